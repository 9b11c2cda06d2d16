"""Do the 95 % intervals hold the truth? Coverage over redrawn references and windows.

    python -m tests.bench.priors_coverage [--draws 600] [--report tests/bench/reports/priors_coverage.md]

Each draw takes a new reference (2,000 labelled events under equal priors), new target priors (uniform on the simplex)
and a new window (2,000 events). Classes are spherical Gaussians with exact, hence calibrated, posteriors. The target is
the rate at which classes come. Per class the share of draws whose interval holds the true rate is taken; the table
gives its mean over classes, and the lowest and highest class in brackets. With 600 draws a class whose true coverage is
.95 shows between .93 and .97.
"""

import numpy as np

from monitor.priors import ESTIMATORS, intervals
from monitor.windows import Window
from tests.bench.options import options
from tests.priors.doubles import PlainReference, Problem

LINEAR = ["acc", "acc-qp", "pacc"]
NAMES = [*LINEAR, "em"]
CLASSES = (2, 5, 10, 20)
EVENTS = 2_000


def coverage(classes: int, draws: int, names: list[str]) -> dict[str, tuple[np.ndarray, float, float]]:
    """By estimator: per-class coverage, mean width, and how often the joint box holds all rates at once."""
    inside: dict[str, list[np.ndarray]] = {name: [] for name in names}
    width: dict[str, list[float]] = {name: [] for name in names}
    jointly: dict[str, list[bool]] = {name: [] for name in names}
    for draw in range(draws):
        rng = np.random.default_rng([classes, draw])
        problem = Problem.simple(classes, 2.0)
        g, labels, _ = problem.draw(EVENTS, problem.source_priors, rng)
        truth = rng.dirichlet(np.ones(classes))
        window, _, _ = problem.draw(EVENTS, truth, rng)
        reference = PlainReference.of(g, labels, names=names)
        for name in names:
            found = ESTIMATORS[name](Window.of(window), reference)
            inside[name].append((found.lower <= truth) & (truth <= found.upper))
            width[name].append(float((found.upper - found.lower).mean()))
            lower, upper = intervals.joint(found)
            jointly[name].append(bool(((lower <= truth) & (truth <= upper)).all()))
    return {
        name: (np.mean(inside[name], axis=0), float(np.mean(width[name])), float(np.mean(jointly[name])))
        for name in names
    }


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--draws", type=int, default=600)
    given = parser.parse_args()
    if given.quick:
        given.draws = 20
    lines = [
        "# Coverage of the 95 % intervals",
        "",
        f"Made by `python -m tests.bench.priors_coverage --draws {given.draws} "
        "--report tests/bench/reports/priors_coverage.md`;",
        f"references and windows of {EVENTS:,} events redrawn every time. Per-class coverage: mean (lowest class, "
        "highest class); then mean width; then how often the joint interval holds all classes.",
        "",
        "| classes | " + " | ".join(NAMES) + " |",
        "| --- |" + " --- |" * len(NAMES),
    ]
    for classes in CLASSES:
        found = coverage(classes, given.draws, NAMES)
        cells = [
            f"{hits.mean():.3f} ({hits.min():.3f}, {hits.max():.3f}); {width:.3f}; {joint:.3f}"
            for hits, width, joint in (found[name] for name in NAMES)
        ]
        lines.append(f"| {classes} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    text = "\n".join([*lines, ""])
    print(text)
    if given.report:
        given.report.write_text(text)


if __name__ == "__main__":
    main()
