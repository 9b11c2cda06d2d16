"""How far are the estimates off when a share of the window belongs to no class? (dussap, section 4.2, figure 1)

    python -m tests.bench.priors_contamination [--repetitions 3]
        [--report tests/bench/reports/priors_contamination.md]

Five Gaussian classes, 10,000 events of them in the reference and in the window, dimensions 2 to 10; on top of the
window comes noise that makes up a share eps of it: uniform over the range of the data, a class far from the others, or
one in their middle. The error is the distance between the estimated and the true shares of the five classes, which sum
to 1 - eps. The paper's four methods: random Fourier features hard and soft, the energy kernel soft, BBSE+ soft.
"""

from pathlib import Path

import numpy as np

from tests.bench import tables
from tests.bench.options import options
from tests.bench.pictures import pyplot
from tests.priors.papers import Contamination

METHODS = {
    "dfm-rff-features-soft": "soft RFF",
    "dfm-rff-features": "RFF",
    "dfm-energy-features-soft": "soft energy",
    "acc-qp-soft": "soft BBSE+",
}
NOISE = ("background", "far", "middle")
SHARES = (0.0, 0.1, 0.2, 0.3)
DIMENSIONS = range(2, 11)
EVENTS = 10_000

Errors = dict[tuple[str, float, str], list[float]]
"""By noise, share and method, one for each dimension and repetition."""


def study(repetitions: int, events: int) -> Errors:
    found: Errors = {}
    for dimensions in DIMENSIONS:
        for repetition in range(repetitions):
            world = Contamination.draw(repetition, dimensions, events, list(METHODS))
            clean = world.errors(NOISE[0], 0.0, list(METHODS))
            for kind in NOISE:
                for share in SHARES:
                    errors = world.errors(kind, share, list(METHODS)) if share else clean
                    for name, error in errors.items():
                        found.setdefault((kind, share, name), []).append(error)
    return found


def rows(found: Errors) -> list[list[str]]:
    lines = []
    for kind in NOISE:
        for share in SHARES:
            errors = {name: np.array(found[kind, share, name]) for name in METHODS}
            others = np.min([errors[name] for name in list(METHODS)[1:]], axis=0)
            wins = float((errors["dfm-rff-features-soft"] < others).mean())
            lines.append(
                [
                    kind,
                    f"{share:.2f}",
                    *(f"{np.mean(e):.4f} ({np.median(e):.4f})" for e in errors.values()),
                    f"{wins:.0%}",
                ]
            )
    return lines


def picture(found: Errors, path: Path) -> None:
    plt = pyplot()

    figure, panels = plt.subplots(1, len(NOISE), figsize=(11, 3.4), sharey=True)
    for panel, kind in zip(panels, NOISE, strict=True):
        for name, label in METHODS.items():
            errors = np.array([found[kind, share, name] for share in SHARES])
            middle, spread = errors.mean(axis=1), errors.std(axis=1) / np.sqrt(errors.shape[1])
            panel.errorbar(SHARES, middle, yerr=spread, label=label, marker="o", markersize=3, capsize=2)
        panel.set(title=f"noise: {kind}", xlabel="share of the window that is noise")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("distance from the true shares")
    panels[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    given = parser.parse_args()
    repetitions = 1 if given.quick else given.repetitions
    events = 1_000 if given.quick else EVENTS
    size = "--quick" if given.quick else f"--repetitions {repetitions}"
    found = study(repetitions, events)
    text = "\n".join(
        [
            "# Contamination",
            "",
            f"Made by `python -m tests.bench.priors_contamination {size} "
            "--report tests/bench/reports/priors_contamination.md`;",
            f"{events:,} events, dimensions {DIMENSIONS[0]} to {DIMENSIONS[-1]}, mixtures each: {repetitions}. "
            "Distance of the estimated from the true shares of the five classes: mean (median);",
            "the last column says in how many of the windows soft RFF is the best of the four.",
            "",
            tables.markdown(["noise", "eps", *METHODS.values(), "soft RFF best"], rows(found)),
        ]
    )
    if given.report:
        picture(found, given.report.with_suffix(".png"))
        text += f"\n![error against eps]({given.report.stem}.png)\n"
        given.report.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
