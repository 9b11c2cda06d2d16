"""Does the feed make scores better, and never worse? The worlds of the verdict study, through `assess` and the client.

    python -m tests.bench.feed --state cells.jsonl --report tests/bench/reports/feed.md

Every kind of world that is finished stands in the state file, and is not done again: with `--seconds` a run begins
nothing new after so many seconds of CPU, and the next one goes on.

For each window a second one of the same kind follows, with the same class mix and the same change of the inputs. The
first is assessed; its recalibration reaches a client as a scoring service has it; the client corrects the posteriors of
the second, whose labels are known. Brier score and log loss of the second window are compared: as scored, corrected by
the feed, and corrected by the second window's true class mix. The first window corrected by its own recalibration
(what corrected events hold) is compared as well.

A difference counts as worse when its mean over a cell's windows is above zero by more than two standard errors. Events
of a class that the reference never saw have no right answer among its classes, and are left out of the scores. A first
run on fewer of these worlds showed that an input must not be mirrored to fit its distribution; since then only maps
that keep the order of the values are sent to services.
"""

import time
from collections import Counter
from itertools import product
from pathlib import Path

import msgspec
import numpy as np

from monitor import quality
from monitor.arrays import Matrix, Vector
from monitor.assessment.classifier import assess
from monitor.priors import bayes
from monitor.recalibration import Recalibration, RecalibrationClient
from monitor.windows.window import Window
from tests.bench import tables
from tests.bench.options import options
from tests.bench.pictures import pyplot
from tests.bench.verdicts import CLASSES, KINDS, SEED, ground
from tests.bench.verdicts_worlds import World, window

SHIFTS = ("none", "prior", "linear", "monotone", "both", "unknown")
SIZES = (1_000, 5_000)
WORLDS = 2
WINDOWS = 10
"""In each world, for each shift."""
WANTED = 0.9
"""Of the improvement that the true priors give, in prior-shift cells of 5,000 events."""

SCORES = ("brier", "log_loss")
WAYS = ("feed", "inputs", "own", "true")
"""The next window by the feed; the same with its inputs corrected and scored again; the window itself by its own
recalibration; the next window by its true mix."""


class Cell(msgspec.Struct, frozen=True):
    """Windows of one kind of world with one shift."""

    kind: str
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


def cells(kind: str, classes: int, size: int, windows: int) -> list[Cell]:
    """All shifts of one kind of world."""
    changes: dict[str, list[Matrix]] = {shift: [] for shift in SHIFTS}
    applied = Counter[str]()
    for number in range(WORLDS):
        made, known = ground(kind, classes, size, number, 0)
        for place, shift in enumerate(SHIFTS):
            rng = np.random.default_rng([SEED + 1, KINDS.index(kind), classes, size, place, number])
            for _ in range(windows):
                both = window(made, shift, 2 * size, rng)
                first, following = both.take(slice(0, size)), both.take(slice(size, None))
                message = assess(first, known).recalibration
                applied[shift] += message.apply
                changes[shift].append(_changes(made, message, first, following))
    found = []
    for shift, each in changes.items():
        scores = {name: np.array(each)[:, place].tolist() for place, name in enumerate(SCORES)}
        found.append(Cell(kind, classes, size, shift, applied[shift], scores))
    return found


def _changes(made: World, message: Recalibration, first: Window, following: Window) -> Matrix:
    """Brier score and log loss (rows) in each of the ways (columns), minus that of the scores as they were."""
    client = RecalibrationClient(lambda: message, "study")
    client.refresh()
    assert following.labels is not None
    true = np.bincount(following.labels[following.labels >= 0], minlength=made.classes).astype(float)
    ways = (
        (following, client.apply(following.posteriors)),
        (following, client.apply(_rescored(made, client, following))),
        (first, client.apply(first.posteriors)),
        (following, bayes.correct(following.posteriors, message.source_priors, true)),
    )
    return np.array([_losses(each, g) - _losses(each, each.posteriors) for each, g in ways]).T


def _rescored(made: World, client: RecalibrationClient, following: Window) -> Matrix:
    assert following.features is not None
    features = np.array(following.features)
    for column in range(made.numbers):
        features[:, column] = client.correct_input(f"x{column}", features[:, column])
    return made.posteriors(features) if (features != following.features).any() else following.posteriors


def _losses(one: Window, posteriors: Matrix) -> Vector:
    assert one.labels is not None
    seen = one.labels >= 0
    return np.array(
        [quality.brier(posteriors[seen], one.labels[seen]), quality.log_loss(posteriors[seen], one.labels[seen])]
    )


def worse(changes: Vector) -> bool:
    """Above zero by more than two standard errors of the mean."""
    return bool(changes.mean() > 2 * changes.std(ddof=1) / np.sqrt(changes.size) + 1e-12)


def recovered(changes: Matrix, way: str) -> float:
    """The share of the improvement that the true mix gives."""
    return float(changes[:, WAYS.index(way)].sum() / changes[:, WAYS.index("true")].sum())


def report(cells: list[Cell], command: str) -> str:
    """The tables as Markdown."""
    failed = [one for one in cells for way in WAYS[:3] if _worse(one, way)]
    prior = [one for one in cells if one.shift == "prior" and one.size == max(SIZES)]
    short = [
        one for one in prior if min(recovered(one.of("brier"), "feed"), recovered(one.of("log_loss"), "feed")) < WANTED
    ]
    overall = [recovered(np.concatenate([one.of(what) for one in prior]), "feed") for what in SCORES]
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
                    f"{len(failed)} of {3 * len(cells)}{_at_worst(cells)}",
                ),
                (
                    f"prior shift, {max(SIZES):,} events: at least {WANTED:.0%} of the improvement by the true mix",
                    not short,
                    f"{len(short)} of {len(prior)} cells below; all together {overall[0]:.1%} of the Brier score's, "
                    f"{overall[1]:.1%} of the log loss's",
                ),
            )
        ),
        "## By cell",
        "",
        "Mean change, in thousandths (below zero is better; Brier score / log loss), and the windows corrected.",
        "`feed`: the next window. `inputs`: the same, with moved inputs taken back and scored again. `own`: the window",
        "itself. `true`: the next window by its true mix. `share`: `feed` as a share of `true`.",
        "",
        tables.markdown(
            ["world", "classes", "window", "shift", "corrected", *WAYS, "share"], [_row(one) for one in cells]
        ),
    ]
    return "\n".join(lines)


def _at_worst(cells: list[Cell]) -> str:
    """The largest mean that is above zero, within noise or not."""
    means = [(one.of("brier")[:, place].mean(), one, way) for one in cells for place, way in enumerate(WAYS[:3])]
    mean, one, way = max(means, key=lambda each: each[0])
    if mean <= 0:
        return ""
    where = f"{one.kind}, {one.classes} classes, {one.size:,} events, {one.shift}, `{way}`"
    return f"; the largest mean change of the Brier score above zero is {mean * 1000:+.2f} thousandths ({where})"


def _worse(one: Cell, way: str) -> bool:
    return any(worse(one.of(what)[:, WAYS.index(way)]) for what in SCORES)


def _row(one: Cell) -> list[str]:
    means = {way: [one.of(what)[:, WAYS.index(way)].mean() * 1000 for what in SCORES] for way in WAYS}
    told = {way: f"{brier:+.2f} / {loss:+.2f}" for way, (brier, loss) in means.items()}
    marked = [f"**{told[way]}**" if way != "true" and _worse(one, way) else told[way] for way in WAYS]
    shares = [f"{recovered(one.of(what), 'feed'):.1%}" for what in SCORES] if one.shift == "prior" else ["-"]
    size = f"{one.size:,}"
    return [one.kind, f"{one.classes}", size, one.shift, f"{one.applied}/{one.windows}", *marked, " / ".join(shares)]


def picture(cells: list[Cell], path: Path) -> None:
    """The change of the Brier score by shift: each dot a cell."""
    plt = pyplot()

    figure, axes = plt.subplots(1, len(SIZES), figsize=(5 * len(SIZES), 4), sharey=True, layout="constrained")
    for axis, size in zip(axes, SIZES, strict=True):
        for place, (way, colour) in enumerate((("feed", "tab:blue"), ("inputs", "tab:orange"), ("true", "tab:grey"))):
            points = [
                (SHIFTS.index(one.shift) + 0.25 * (place - 1), one.of("brier")[:, WAYS.index(way)].mean() * 1000)
                for one in cells
                if one.size == size
            ]
            axis.scatter(*zip(*points, strict=True), s=14, color=colour, label=way, alpha=0.8)
        axis.axhline(0, color="black", linewidth=0.6)
        axis.set_xticks(range(len(SHIFTS)), SHIFTS)
        axis.set_title(f"windows of {size:,}")
    axes[0].set_ylabel("change of the Brier score, thousandths")
    axes[0].legend()
    figure.savefig(path, dpi=90)


def study(kinds: tuple[str, ...], windows: int, state: Path | None, seconds: float) -> list[Cell]:
    """Every cell that is done or can be begun in time."""
    found = []
    if state is not None and state.exists():
        found = [msgspec.json.decode(line, type=Cell) for line in state.read_bytes().splitlines()]
    done = {(one.kind, one.classes, one.size) for one in found}
    for kind, classes, size in product(kinds, CLASSES, SIZES):
        if (kind, classes, size) in done or time.process_time() > seconds:
            continue
        made = cells(kind, classes, size, windows)
        found += made
        if state is not None:
            with state.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(one) + b"\n" for one in made))
    return sorted(found, key=lambda one: (one.size, KINDS.index(one.kind), one.classes, SHIFTS.index(one.shift)))


def main() -> None:
    """Do the study, and write the report."""
    parser = options(__doc__)
    parser.add_argument("--state", type=Path, help="JSON lines: the cells that are done")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU, after which nothing is begun")
    given = parser.parse_args()
    kinds, windows = (KINDS[:1], 3) if given.quick else (KINDS, WINDOWS)
    found = study(kinds, windows, given.state, given.seconds)
    text = report(found, "python -m tests.bench.feed --state cells.jsonl --report tests/bench/reports/feed.md")
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")
        picture(found, given.report.with_suffix(".png"))


if __name__ == "__main__":
    main()
