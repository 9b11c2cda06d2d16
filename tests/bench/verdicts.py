"""How often is the verdict right? Worlds with known shifts, through the whole of `assess`.

    python -m tests.bench.verdicts --state cells.jsonl --seconds 300     # again and again, until it says it is done

Every cell that is finished stands in the state file, and is not done again; each run goes on where the last one
stopped, and writes the report of what is there. A run without --seconds does everything that is left: an hour or so.

Three kinds of worlds: `gauss` (classes with covariances of their own, scored by Bayes' rule itself), `skewed`
(long-tailed features, scored by a fitted logistic regression: miscalibrated as real models are) and `mixed` (two
clusters a class, one category and one boolean among the features, scored by a logistic regression on squares). The
worlds of a cell differ in everything: priors, centres, covariances, model.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np
from scipy.stats import binom

from monitor.arrays import Labels, Matrix
from monitor.assessment.classifier import Assessment, assess
from monitor.assessment.verdict import Verdict, verdicts
from monitor.priors import em, nulls
from monitor.reference.classifier import Reference
from monitor.shifts.prepared import prepare, without
from monitor.tolerances import VERDICT_LEVEL
from tests.bench.options import REPORTS, options
from tests.bench.pictures import pyplot
from tests.bench.verdicts_worlds import World, reference, window, world

SEED = 20261120
"""Of all worlds, references and windows; no threshold was chosen on them."""

KINDS = ("gauss", "skewed", "mixed")
CLASSES = (2, 3, 10)
WORLDS = 4
"""Of each kind and number of classes; a cell's windows are shared out among them."""
SIZES = (5_000, 1_000, 50_000)
PER_WORLD = 50
"""Windows of each size, in each world, for each shift."""
SHARPENED = 1_000
LEVEL_REFERENCES = 25
LEVEL_WINDOWS = 20
"""For false alarms: so many references of one world with so many windows each; and one reference with all of them."""

SHIFTS: dict[str, Verdict] = {
    "none": Verdict.STABLE,
    "prior": Verdict.PRIOR_SHIFT,
    "linear": Verdict.COVARIATE_SHIFT,
    "monotone": Verdict.COVARIATE_SHIFT,
    "both": Verdict.PRIOR_AND_COVARIATE_SHIFT,
    "unknown": Verdict.UNKNOWN_CLASS,
    "rotated": Verdict.UNEXPLAINED,
}


class Unit(msgspec.Struct, frozen=True):
    """A few windows of one world, held against one of its references."""

    part: str
    """`verdicts` or `level`."""
    kind: str
    classes: int
    size: int
    shift: str
    world: int
    reference: int
    windows: int


class Cell(msgspec.Struct, frozen=True):
    """What `assess` said of them."""

    unit: Unit
    said: dict[str, int]
    plain_alarms: int
    """Windows with a feature that plain KS or chi-square flags at the nominal level, Bonferroni-corrected."""
    covariate_alarms: int
    """Windows with a feature that counts as moved beyond the class mix."""


def units() -> Iterator[Unit]:
    """The whole study: everything in one world of each kind before anything in the next."""
    for number in range(WORLDS):
        for size in SIZES:
            yield from _verdicts(size, number)
        if number == 0:
            yield from _levels()


def _levels() -> Iterator[Unit]:
    for kind in KINDS:
        for known in range(1 + LEVEL_REFERENCES):
            windows = LEVEL_WINDOWS if known else LEVEL_REFERENCES * LEVEL_WINDOWS
            for shift in ("none", "prior"):
                yield Unit("level", kind, 3, 1_000, shift, 0, known, windows)


def _verdicts(size: int, number: int) -> Iterator[Unit]:
    for kind in KINDS:
        for classes in CLASSES:
            for shift in SHIFTS:
                yield Unit("verdicts", kind, classes, size, shift, number, 0, PER_WORLD)


@lru_cache(maxsize=1)
def ground(kind: str, classes: int, size: int, number: int, known: int) -> tuple[World, Reference]:
    """A world and one of its references, of ten windows; those before are let go."""
    prepare.cache_clear()
    without.cache_clear()
    made = world(kind, classes, [SEED, number])
    return made, reference(made, 10 * size, np.random.default_rng([SEED, number, classes, size, known]))


def cell(unit: Unit) -> Cell:
    """Assess the windows of one unit."""
    made, known = ground(unit.kind, unit.classes, unit.size, unit.world, unit.reference)
    place = [KINDS.index(unit.kind), unit.classes, unit.size, list(SHIFTS).index(unit.shift)]
    rng = np.random.default_rng([SEED, *place, unit.world, unit.reference, len(unit.part)])
    said: Counter[str] = Counter()
    plain = covariate = 0
    for _ in range(unit.windows):
        found = assess(window(made, unit.shift, unit.size, rng), known)
        said[found.verdict.value] += 1
        plain += _plain_alarm(found)
        covariate += any(feature.moved for feature in found.features.values())
    return Cell(unit, dict(said), plain, covariate)


def _plain_alarm(found: Assessment) -> bool:
    p_values = [feature.move.plain_p for feature in found.features.values()]
    return min(p_values) * len(p_values) < VERDICT_LEVEL


def sharpened(windows: int, size: int, level: float) -> dict[str, float]:
    """How often the likelihood-ratio test rejects a true null when posteriors were sharpened by temperature 2."""
    # One frequent and two rare classes that overlap: where classes hardly do, posteriors are near 0 and 1 whatever the
    # temperature, and where all are equally frequent sharpening favours none.
    priors, numbers = np.array([0.8, 0.15, 0.05]), 3
    spreads = np.stack([np.eye(numbers)] * priors.size)
    made = World("gauss", priors, 1.2 * np.eye(numbers), spreads, np.zeros((0, 0)), None)
    rng = np.random.default_rng(11)

    def scored(rows: int) -> tuple[Matrix, Labels]:
        labels = rng.choice(made.classes, size=rows, p=made.priors)
        g = made.posteriors(made.outside(made.inside(labels, rng), labels, rng)) ** 2
        return g / g.sum(axis=1, keepdims=True), labels

    g, labels = scored(10 * size)
    pi = np.bincount(labels) / labels.size
    null = nulls.calibrate(g, pi)
    tested = [scored(size)[0] for _ in range(windows)]
    return {
        "chi-square null": float(np.mean([em.likelihood_ratio(w, pi).p_value < level for w in tested])),
        "calibrated null": float(np.mean([em.likelihood_ratio(w, pi, null).p_value < level for w in tested])),
    }


def study(state: Path, seconds: float) -> list[Cell]:
    """Do what the state file does not hold yet, for so many seconds of CPU; all that is done so far."""
    cells = []
    if state.exists():
        cells = [msgspec.json.decode(line, type=Cell) for line in state.read_bytes().splitlines()]
    done = {one.unit for one in cells}
    left = [unit for unit in units() if unit not in done]
    with state.open("ab") as file:
        for unit in left:
            if time.process_time() > seconds:
                break
            cells.append(cell(unit))
            file.write(msgspec.json.encode(cells[-1]) + b"\n")
            file.flush()
    print(f"{len(cells)} of {sum(1 for _ in units())} cells are done")
    return cells


def report(cells: list[Cell], levels: dict[str, dict[str, float]], command: str) -> str:
    """The tables as Markdown."""
    main = [one for one in cells if one.unit.part == "verdicts"]
    sizes = sorted({x.unit.size for x in main})
    told = "; ".join(_counted([x for x in main if x.unit.size == size], size) for size in sizes)
    lines = [
        "# How often the verdict is right",
        "",
        f"Made by `{command}`:",
        f"{told}.",
        f"These are {len(cells)} of the {sum(1 for _ in units())} parts of the study.",
        f"Random worlds on which nothing was tuned; level {VERDICT_LEVEL:.0%} a window;",
        "references of ten windows. Shifts: `prior` has Cohen's w of 0.25 to 1; `linear` one feature times 1.2, moved",
        "by 0.4 sd; `monotone` one feature stretched by 1.8 above its median and 0.7 below; `both` of the first two;",
        "`unknown` 5 % of the events in a new cluster; `rotated` every class turned by 60 degrees about its centre, in",
        "pairs of features. Below 95 % is in bold.",
        "",
        "| world | classes | window | " + " | ".join(SHIFTS) + " |",
        "|---|---|---|" + "---|" * len(SHIFTS),
    ]
    for kind in KINDS:
        for classes in CLASSES:
            for size in sizes:
                row = [x for x in main if (x.unit.kind, x.unit.classes, x.unit.size) == (kind, classes, size)]
                if not row:
                    continue
                shares = [_share([x for x in row if x.unit.shift == shift]) for shift in SHIFTS]
                lines.append(f"| {kind} | {classes} | {size:,} | " + " | ".join(shares) + " |")
    lines += ["", "Worlds in which fewer than 90 % were right:", "", *(_poor(main) or ["- none"])]
    names = [str(verdict) for verdict in verdicts(regression=False)]
    for size in sizes:
        lines += ["", f"## Confusion at {size:,} events", "", "| shift | " + " | ".join(names) + " |"]
        lines.append("|---|" + "---|" * len(names))
        for shift in SHIFTS:
            said = _said(main, shift, size)
            lines.append(f"| {shift} | " + " | ".join(str(said[name]) for name in names) + " |")
    return "\n".join([*lines, *_alarms(cells), *_sharpened(levels)]) + "\n"


def _poor(cells: list[Cell]) -> list[str]:
    """One line for each world whose windows were often misread, with what was said of them."""
    return [
        f"- {x.unit.kind}, {x.unit.classes} classes, world {x.unit.world}, {x.unit.size:,} events, {x.unit.shift}: "
        + ", ".join(f"{name} {count}" for name, count in sorted(x.said.items(), key=lambda said: -said[1]))
        for x in cells
        if _right([x]) < 0.9 * x.unit.windows
    ]


def _counted(cells: list[Cell], size: int) -> str:
    worlds = {(x.unit.kind, x.unit.classes, x.unit.world) for x in cells}
    return f"{sum(x.unit.windows for x in cells):,} windows of {size:,} events in {len(worlds)} worlds"


def _alarms(cells: list[Cell]) -> list[str]:
    lines = [
        "",
        "## False alarms: the class mix alone moved, or nothing did",
        "",
        f"Windows of 1,000, three classes, against one reference and over {LEVEL_REFERENCES} fresh ones of the same",
        "world; and all windows of the tables above. The last two columns are windows in which some feature was",
        "flagged: by plain tests of every feature (Bonferroni), and beyond the class mix. The bounds are those of a",
        f"binomial at the level of {VERDICT_LEVEL:.0%}.",
        "",
        "| world | shift | references | windows | wrong verdicts | 1 % to 99 % bounds | plain KS | beyond the mix |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for shift in ("none", "prior"):
        for kind in KINDS:
            level = [x for x in cells if (x.unit.part, x.unit.kind, x.unit.shift) == ("level", kind, shift)]
            lines.append(_alarm_row([x for x in level if x.unit.reference == 0], kind, shift, "one"))
            lines.append(_alarm_row([x for x in level if x.unit.reference > 0], kind, shift, "fresh"))
        everywhere = [x for x in cells if x.unit.part == "verdicts" and x.unit.shift == shift]
        for size in sorted({x.unit.size for x in everywhere}):
            sized = [x for x in everywhere if x.unit.size == size]
            lines.append(_alarm_row(sized, f"all, {size:,} events", shift, f"{len(sized)}"))
    return lines


def _alarm_row(cells: list[Cell], kind: str, shift: str, references: str) -> str:
    windows = sum(x.unit.windows for x in cells)
    low, high = (int(binom.ppf(q, windows, VERDICT_LEVEL)) if windows else 0 for q in (0.01, 0.99))
    plain, beyond = sum(x.plain_alarms for x in cells), sum(x.covariate_alarms for x in cells)
    wrong = windows - _right(cells)
    return f"| {kind} | {shift} | {references} | {windows} | {wrong} | {low} to {high} | {plain} | {beyond} |"


def _sharpened(levels: dict[str, dict[str, float]]) -> list[str]:
    return [
        "",
        "## Posteriors sharpened by temperature 2, nothing moved",
        "",
        f"The likelihood-ratio test alone, at the level of {VERDICT_LEVEL:.0%}; {SHARPENED} windows of each size.",
        "",
        "| window | chi-square null rejects | calibrated null rejects |",
        "|---|---|---|",
        *(
            f"| {size} | {found['chi-square null']:.1%} | {found['calibrated null']:.1%} |"
            for size, found in levels.items()
        ),
    ]


def _right(cells: list[Cell]) -> int:
    return sum(x.said.get(SHIFTS[x.unit.shift].value, 0) for x in cells)


def _share(cells: list[Cell]) -> str:
    right, windows = _right(cells), sum(x.unit.windows for x in cells)
    told = f"{right}/{windows}" if windows else "-"
    return f"**{told}**" if right < 0.95 * windows else told


def _said(cells: list[Cell], shift: str, size: int) -> Counter[str]:
    total: Counter[str] = Counter()
    for x in cells:
        if x.unit.shift == shift and x.unit.size == size:
            total.update(x.said)
    return total


def picture(cells: list[Cell], path: Path) -> None:
    """The confusion matrices as shares, one for each window size."""
    plt = pyplot()

    cells = [x for x in cells if x.unit.part == "verdicts"]
    sizes = sorted({x.unit.size for x in cells})
    names = [str(verdict) for verdict in verdicts(regression=False)]
    figure, axes = plt.subplots(1, len(sizes), figsize=(5.5 * len(sizes), 5), squeeze=False, layout="constrained")
    for axis, size in zip(axes[0], sizes, strict=True):
        matrix = np.array([[_said(cells, s, size)[name] for name in names] for s in SHIFTS], dtype=float)
        matrix /= np.maximum(matrix.sum(axis=1, keepdims=True), 1)
        axis.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
        for (i, j), share in np.ndenumerate(matrix):
            if share > 0:
                axis.text(j, i, f"{share:.2f}", ha="center", va="center", color="white" if share > 0.5 else "black")
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right")
        axis.set_yticks(range(len(SHIFTS)), list(SHIFTS))
        axis.set_title(f"windows of {size:,}")
    figure.savefig(path, dpi=90)


def main() -> None:
    """Go on with the study, and write the report of what is done."""
    parser = options(__doc__, REPORTS / "verdicts.md")
    parser.add_argument("--state", type=Path, help="JSON lines: the cells that are done")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU, after which no cell is begun")
    given = parser.parse_args()
    if given.quick:
        given.seconds = 8.0
    with tempfile.TemporaryDirectory() as folder:
        cells = study(given.state or Path(folder) / "cells.jsonl", given.seconds)
    windows = SHARPENED // 20 if given.quick else SHARPENED
    levels = {f"{size:,}": sharpened(windows, size, VERDICT_LEVEL) for size in (200, 2_000)}
    command = "python -m tests.bench.verdicts" + (" --quick" if given.quick else " --state cells.jsonl")
    given.report.write_text(report(cells, levels, command), encoding="utf-8")
    picture(cells, given.report.with_suffix(".png"))


if __name__ == "__main__":
    main()
