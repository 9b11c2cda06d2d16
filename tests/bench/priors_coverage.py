"""Do the 95 % intervals hold the truth? Coverage over redrawn references and windows.

    python -m tests.bench.priors_coverage [--draws 400] [--state draws.jsonl [--seconds 300]] [--only acc em ...]
        [--report tests/bench/reports/priors_coverage.md]

Each draw takes a new reference (2,000 labelled events under equal priors), new target priors (uniform on the simplex)
and a new window (2,000 events). Classes are spherical Gaussians, one along each axis; the features are the coordinates
and the posteriors exact, hence calibrated. The target is the rate at which classes come. Per class the share of draws
whose interval holds the true rate is taken: with 400 draws a class that is covered in .95 shows between .93 and .97.

With `--state` every draw is kept in a file and taken up from there, so that the study can be run in parts, of some
estimators or for some time; the table says how many draws there are of each.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from monitor.priors import ESTIMATORS, intervals
from monitor.tolerances import INTERVAL_LEVEL
from monitor.windows.window import Window
from tests.bench import tables
from tests.bench.options import options
from tests.priors.doubles import PlainReference, Problem

MATCHING = ["dfm-energy", "dfm-gaussian", "dfm-rff", "dfm-energy-features", "dfm-rff-features"]
NAMES = ["acc", "acc-qp", "pacc", *MATCHING, "dfm-rff-features-soft", "em"]
CLASSES = (2, 5, 10, 20)
EVENTS = 2_000
SEPARATION = 2.0


def one_draw(classes: int, draw: int, names: list[str]) -> dict[str, dict[str, object]]:
    """By estimator: whether each class's interval and the joint box hold the truth, and the mean width."""
    rng = np.random.default_rng([classes, draw])
    problem = Problem.simple(classes, SEPARATION)
    g, labels, x = problem.draw(EVENTS, problem.source_priors, rng)
    truth = rng.dirichlet(np.ones(classes))
    window, _, features = problem.draw(EVENTS, truth, rng)
    needed = [*names, *(name.removesuffix("-soft") for name in names)]
    reference = PlainReference.of(g, labels, x, names=needed)
    results = {}
    for name in names:
        found = ESTIMATORS[name](Window.of(window, features), reference)
        errors, level = found.standard_errors, INTERVAL_LEVEL ** (1 / classes)
        lower, upper = (
            (found.lower, found.upper)
            if errors is None
            else intervals.box(found.priors, errors, level, events=found.events)
        )
        results[name] = {
            "inside": ((found.lower <= truth) & (truth <= found.upper)).astype(int).tolist(),
            "width": float((found.upper - found.lower).mean()),
            "joint": bool(((lower <= truth) & (truth <= upper)).all()),
        }
    return results


def study(
    names: list[str], draws: int, state: Path | None, seconds: float
) -> Iterator[tuple[int, dict[str, dict[str, object]]]]:
    """All draws, those of earlier parts first; fewer when the time is up."""
    known: dict[tuple[int, int], set[str]] = {}
    for line in state.read_text().splitlines() if state and state.exists() else []:
        kept = json.loads(line)
        known.setdefault((kept["classes"], kept["draw"]), set()).update(kept["results"])
        yield kept["classes"], kept["results"]
    begin = time.monotonic()
    for draw in range(draws):
        for classes in CLASSES:
            missing = [name for name in names if name not in known.get((classes, draw), ())]
            if not missing:
                continue
            if time.monotonic() - begin > seconds:
                return
            results = one_draw(classes, draw, missing)
            if state:
                with state.open("a") as file:
                    file.write(json.dumps({"classes": classes, "draw": draw, "results": results}) + "\n")
            yield classes, results


def cell(results: list[dict[str, object]]) -> str:
    inside = np.mean([result["inside"] for result in results], axis=0)
    width, joint = (np.mean([result[what] for result in results]) for what in ("width", "joint"))
    return f"{inside.mean():.3f} ({inside.min():.3f}, {inside.max():.3f}); {width:.3f}; {joint:.3f}"


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--state", type=Path, help="keep every draw here, and take up from there")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="ESTIMATOR")
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop after this long")
    given = parser.parse_args()
    if given.quick:
        given.draws = 4
    found: dict[tuple[str, int], list[dict[str, object]]] = {}
    for classes, results in study(given.only, given.draws, given.state, given.seconds):
        for name, result in results.items():
            found.setdefault((name, classes), []).append(result)
    rows = []
    for name in [name for name in NAMES if all((name, classes) in found for classes in CLASSES)]:
        done = [found[name, classes] for classes in CLASSES]
        rows.append([name, str(min(len(results) for results in done)), *map(cell, done)])
    lines = [
        "# Coverage of the 95 % intervals",
        "",
        f"Made by `python -m tests.bench.priors_coverage --draws {given.draws} "
        "--report tests/bench/reports/priors_coverage.md`;",
        f"references and windows of {EVENTS:,} events redrawn every time. Each cell: per-class coverage, mean (lowest "
        "class, highest class); mean width; how often the joint interval holds all classes.",
        "",
    ]
    columns = ["estimator", "draws", *(f"{classes} classes" for classes in CLASSES)]
    text = "\n".join([*lines, tables.markdown(columns, rows)])
    print(text)
    if given.report:
        given.report.write_text(text)


if __name__ == "__main__":
    main()
