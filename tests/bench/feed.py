"""Does the feed make scores better, and never worse? Models as people use them, through `assess` and the client.

    python -m tests.bench.feed --state cells.jsonl --report tests/bench/reports/feed.md

Every kind of cell that is finished stands in the state file, and is not done again: with `--seconds` a run begins
nothing new after so many seconds of CPU, and the next one goes on.

For each window a second one of the same kind follows, with the same shift. The first is assessed; its recalibration
reaches a client as a scoring service has it; the client corrects the second, whose labels are known. Brier score and
log loss of the second window are compared with those of the raw scores: corrected by the feed (`feed`); with its
inputs taken back and scored again (`inputs`); by a versatile tree's or forest's thresholds of the feed (`tree`); the
first window by its own recalibration, as corrected events are (`own`); and by the yardstick (`true`): calibrated as
the reference is, then reweighted to the second window's true class mix.

A difference counts as worse when its mean over a cell's windows is above zero by more than two standard errors, and by
more than a ten-thousandth (of a log loss: a thousandth). A covariate shift is real: rows are drawn with weights that
depend on one feature, so that p(y | x) stays, and the raw scores are as right as before. In the shift `unit` x0 becomes
2.54 x0 + 1, and nobody has said that it may; in `unit declared` somebody has.
"""

import time
from collections import Counter
from itertools import product
from pathlib import Path

import msgspec
import numpy as np

from monitor import quality
from monitor.arrays import Labels, Matrix, Vector
from monitor.calibration import Calibration
from monitor.kinds import Declared, kind_of
from monitor.priors import bayes
from monitor.recalibration import Recalibration, RecalibrationClient
from monitor.reference import Reference
from monitor.windows import Window
from tests.bench import tables
from tests.bench.feed_worlds import MODELS, NAMES, SHIFTS, World
from tests.bench.options import options
from tests.bench.pictures import pyplot

CLASSES = (2, 5)
SIZES = (1_000, 5_000)
WORLDS = 2
WINDOWS = 6
"""In each world, for each shift,"""
PRIOR_TIMES = 4
"""and so many times as many where the class mix moves: else one window that is not corrected decides about a cell."""
HOLD_OUT = 10_000
WANTED = 0.95
"""Of the improvement by the yardstick, in prior-shift cells of 5,000 events together,"""
WANTED_EACH = 0.9
"""and in each of them."""

SCORES = ("brier", "log_loss")
FLOORS = (1e-4, 1e-3)
"""A change that nobody notices, by score."""
WAYS = ("feed", "inputs", "tree", "own", "true")


class Cell(msgspec.Struct, frozen=True):
    """Windows of one model with one shift."""

    model: str
    classes: int
    size: int
    shift: str
    applied: int
    changes: dict[str, list[list[float]]]
    """By score: its change, a row for each window and a column for each of `WAYS`."""

    @property
    def windows(self) -> int:
        return len(self.changes["brier"])

    def of(self, score: str) -> Matrix:
        """The change of one score."""
        return np.array(self.changes[score])


class Model:
    """A fitted model, its reference, and what has been said of it."""

    def __init__(self, name: str, classes: int, number: int) -> None:
        self.world = World.made(classes, number)
        rng = np.random.default_rng([21, classes, number])
        self.fitted = MODELS[name](number).fit(*self.world.rows(HOLD_OUT, rng))
        x, labels = self.world.rows(HOLD_OUT, rng)
        names = [str(each) for each in range(classes)]
        self.reference = Reference.fit(self.posteriors(x), labels, x, classes=names, feature_names=list(NAMES))
        self.outline = self.fitted.outline() if hasattr(self.fitted, "outline") else None

    def posteriors(self, x: Matrix) -> Matrix:
        return np.asarray(self.fitted.predict_proba(x), dtype=np.float64)

    def assess(self, x: Matrix, declared: bool) -> Recalibration:
        """The recalibration of a window, as the service publishes it."""
        may = Declared(self.outline, {"x0": "rescale"} if declared else {})
        found = kind_of(self.reference).assess(Window.of(self.posteriors(x), x), self.reference, may)
        message: Recalibration = found.recalibration
        return message


def cells(name: str, classes: int, size: int, windows: int) -> list[Cell]:
    """All shifts of one model."""
    changes: dict[str, list[Matrix]] = {shift: [] for shift in SHIFTS}
    applied = Counter[str]()
    for number in range(WORLDS):
        model = Model(name, classes, number)
        for place, shift in enumerate(SHIFTS):
            for each in range(windows * (PRIOR_TIMES if shift == "prior" else 1)):
                # The same seed for both windows' class mix: they are of one kind.
                rng = np.random.default_rng([22, classes, size, place, number, each])
                x, labels = model.world.shifted(shift, 2 * size, rng)
                message = model.assess(x[:size], shift == "unit declared")
                applied[shift] += message.apply
                changes[shift].append(_changes(model, message, (x[:size], labels[:size]), (x[size:], labels[size:])))
    found = []
    for shift, some in changes.items():
        scores = {what: np.array(some)[:, place].tolist() for place, what in enumerate(SCORES)}
        found.append(Cell(name, classes, size, shift, applied[shift], scores))
    return found


def _changes(
    model: Model, message: Recalibration, first: tuple[Matrix, Labels], following: tuple[Matrix, Labels]
) -> Matrix:
    """Brier score and log loss (rows) in each of the ways (columns), minus that of the scores as they were."""
    client = RecalibrationClient(lambda: message, "study")
    client.refresh()
    (x, labels), own = following, model.posteriors(first[0])
    raw = model.posteriors(x)
    inputs = np.column_stack([client.correct_input(name, x[:, column]) for column, name in enumerate(NAMES)])
    rescored = raw if np.array_equal(inputs, x) else model.posteriors(inputs)
    thresholds = client.tree()
    adapted = raw if thresholds is None else model.fitted.with_thresholds(thresholds).predict_proba(x)
    true = np.bincount(labels, minlength=len(message.classes)).astype(float)
    ways = (
        (labels, raw, client.apply(raw)),
        (labels, raw, client.apply(rescored)),
        (labels, raw, client.apply(adapted)),
        (first[1], own, client.apply(own)),
        (labels, raw, bayes.correct(calibrated(model.reference.calibration, raw), message.source_priors, true)),
    )
    return np.array([_losses(known, g) - _losses(known, before) for known, before, g in ways]).T


def calibrated(calibration: Calibration, posteriors: Matrix) -> Matrix:
    """As the reference calibrates."""
    return np.asarray(calibration(posteriors))


def _losses(labels: Labels, posteriors: Matrix) -> Vector:
    return np.array([quality.brier(posteriors, labels), quality.log_loss(posteriors, labels)])


def worse(changes: Vector, floor: float = 0.0) -> bool:
    """Above zero by more than two standard errors of the mean, and by more than the floor."""
    return bool(changes.mean() > max(2 * changes.std(ddof=1) / np.sqrt(changes.size), floor) + 1e-12)


def recovered(changes: Matrix, way: str) -> float:
    """The share of the improvement by the yardstick."""
    return float(changes[:, WAYS.index(way)].sum() / changes[:, WAYS.index("true")].sum())


def report(cells: list[Cell], command: str) -> str:
    """The tables as Markdown."""
    failed = [one for one in cells for way in WAYS[:4] if _worse(one, way)]
    prior = [one for one in cells if one.shift == "prior" and one.size == max(SIZES)]
    shares = {(one.model, one.classes, what): recovered(one.of(what), "feed") for one in prior for what in SCORES}
    short = {one[:2] for one, share in shares.items() if share < WANTED_EACH}
    overall = [recovered(np.concatenate([one.of(what) for one in prior]), "feed") for what in SCORES]
    covariate = [one for one in cells if one.shift.startswith("covariate")]
    lines = [
        "# What the feed does to scores",
        "",
        f"Made by `{command}`.",
        "",
        *(__doc__ or "").split("\n\n", 3)[3].strip().splitlines(),
        "",
        tables.claims(
            (
                (
                    "no cell is worse beyond noise, in any of the ways",
                    not failed,
                    f"{len(failed)} of {4 * len(cells)}{_at_worst(cells)}",
                ),
                (
                    f"prior shift, {max(SIZES):,} events: at least {WANTED:.0%} of the improvement by the yardstick",
                    min(overall) >= WANTED,
                    f"{overall[0]:.1%} of the Brier score's, {overall[1]:.1%} of the log loss's",
                ),
                (
                    f"and at least {WANTED_EACH:.0%} in each cell",
                    not short,
                    f"{len(short)} of {len(prior)} cells below; the least is {min(shares.values()):.1%}",
                ),
                (
                    "real covariate shifts of every size: nothing corrected is worse than the model as it is",
                    not any(_worse(one, way) for one in covariate for way in WAYS[:4]),
                    f"{sum(one.applied for one in covariate)} of {sum(one.windows for one in covariate)} windows "
                    "were corrected",
                ),
            )
        ),
        "## By cell",
        "",
        "Mean change, in thousandths (below zero is better; Brier score / log loss), and the windows corrected.",
        "`share`: `feed` as a share of `true`. In bold what is worse beyond noise.",
        "",
        tables.markdown(
            ["model", "classes", "window", "shift", "corrected", *WAYS, "share"], [_row(one) for one in cells]
        ),
    ]
    return "\n".join(lines)


def _at_worst(cells: list[Cell]) -> str:
    """The largest mean that is above zero, within noise or not."""
    means = [(one.of("brier")[:, place].mean(), one, way) for one in cells for place, way in enumerate(WAYS[:4])]
    mean, one, way = max(means, key=lambda each: each[0])
    if mean <= 0:
        return ""
    where = f"{one.model}, {one.classes} classes, {one.size:,} events, {one.shift}, `{way}`"
    return f"; the largest mean change of the Brier score above zero is {mean * 1000:+.2f} thousandths ({where})"


def _worse(one: Cell, way: str) -> bool:
    return any(worse(one.of(what)[:, WAYS.index(way)], floor) for what, floor in zip(SCORES, FLOORS, strict=True))


def _row(one: Cell) -> list[str]:
    means = {way: [one.of(what)[:, WAYS.index(way)].mean() * 1000 for what in SCORES] for way in WAYS}
    told = {way: f"{brier:+.2f} / {loss:+.2f}" for way, (brier, loss) in means.items()}
    marked = [f"**{told[way]}**" if way != "true" and _worse(one, way) else told[way] for way in WAYS]
    shares = [f"{recovered(one.of(what), 'feed'):.1%}" for what in SCORES] if one.shift == "prior" else ["-"]
    size = f"{one.size:,}"
    return [one.model, f"{one.classes}", size, one.shift, f"{one.applied}/{one.windows}", *marked, " / ".join(shares)]


def picture(cells: list[Cell], path: Path) -> None:
    """The change of the Brier score by shift: each dot a cell."""
    plt = pyplot()

    figure, axes = plt.subplots(1, len(SIZES), figsize=(6 * len(SIZES), 4.5), sharey=True, layout="constrained")
    for axis, size in zip(axes, SIZES, strict=True):
        for place, (way, colour) in enumerate((("feed", "tab:blue"), ("inputs", "tab:orange"), ("true", "tab:grey"))):
            points = [
                (SHIFTS.index(one.shift) + 0.25 * (place - 1), one.of("brier")[:, WAYS.index(way)].mean() * 1000)
                for one in cells
                if one.size == size
            ]
            axis.scatter(*zip(*points, strict=True), s=14, color=colour, label=way, alpha=0.8)
        axis.axhline(0, color="black", linewidth=0.6)
        axis.set_xticks(range(len(SHIFTS)), SHIFTS, rotation=40, ha="right")
        axis.set_title(f"windows of {size:,}")
    axes[0].set_ylabel("change of the Brier score, thousandths")
    axes[0].legend()
    figure.savefig(path, dpi=90)


def study(models: tuple[str, ...], windows: int, state: Path | None, seconds: float) -> list[Cell]:
    """Every cell that is done or can be begun in time."""
    found = []
    if state is not None and state.exists():
        found = [msgspec.json.decode(line, type=Cell) for line in state.read_bytes().splitlines()]
    done = {(one.model, one.classes, one.size) for one in found}
    for name, classes, size in product(models, CLASSES, SIZES):
        if (name, classes, size) in done or time.process_time() > seconds:
            continue
        made = cells(name, classes, size, windows)
        found += made
        if state is not None:
            with state.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(one) + b"\n" for one in made))
    names = list(MODELS)
    return sorted(found, key=lambda one: (one.size, names.index(one.model), one.classes, SHIFTS.index(one.shift)))


def main() -> None:
    """Do the study, and write the report."""
    parser = options(__doc__)
    parser.add_argument("--state", type=Path, help="JSON lines: the cells that are done")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU, after which nothing is begun")
    given = parser.parse_args()
    models, windows = (tuple(MODELS)[:1], 3) if given.quick else (tuple(MODELS), WINDOWS)
    found = study(models, windows, given.state, given.seconds)
    text = report(found, "python -m tests.bench.feed --state cells.jsonl --report tests/bench/reports/feed.md")
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")
        picture(found, given.report.with_suffix(".png"))


if __name__ == "__main__":
    main()
