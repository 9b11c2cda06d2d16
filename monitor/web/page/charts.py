"""The charts, as SVG in coordinates from 0 to 1000 that stretch with the page.

Text is never inside them: it would stretch too. It stands beside them in HTML. All charts of a stream share one
horizontal axis, a list of bins: one window each, or several where there are more windows than the eye can tell apart.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from monitor.observers.window_record import Reading
from monitor.tolerances import DISTANCE_FLOOR
from monitor.web.page.words import moment, number, percent, text

MOST_BINS = 160
MOST_ROWS = 24
HEAT_LEVELS = 6
HOTTEST = 0.4  # half of the events would have to move to another place of the distribution to look more alarming
ROW_PIXELS = 18
WIDE = 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bins:
    """Consecutive windows, a few to a bin when there are many."""

    readings: Sequence[Reading]

    @cached_property
    def groups(self) -> tuple[Sequence[Reading], ...]:
        """The windows of each bin; the newest is last."""
        each = -(-len(self.readings) // MOST_BINS)
        return tuple(self.readings[at : at + each] for at in range(0, len(self.readings), each))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """Their names; a window with too few events has tested none."""
        return next((one.features for one in reversed(self.readings) if one.features), ())

    @property
    def width(self) -> float:
        """Of one bin."""
        return WIDE / max(1, len(self.groups))

    def middle(self, number: int) -> float:
        """Where a bin's value is drawn."""
        return (number + 0.5) * self.width

    def series(self, name: str, class_number: int) -> Floats:
        """One of priors, lower, upper for a class: a bin's mean, or its outermost bound."""
        values = [[getattr(one, name)[class_number] for one in group] for group in self.groups]
        if name == "priors":
            return np.array([np.mean(group) for group in values])
        return np.array([min(group) if name == "lower" else max(group) for group in values])

    def worst(self) -> list[Reading]:
        """For each bin the window whose verdict is the gravest."""
        return [max(group, key=lambda one: one.verdict.rank) for group in self.groups]

    @cached_property
    def effects(self) -> Floats:
        """(features, bins): the largest effect of each feature in each bin; 0 where none was measured."""
        features = len(self.features)
        nothing = np.zeros(features)
        columns = [
            np.max([one.effects if one.effects.size == features else nothing for one in group], axis=0)
            for group in self.groups
        ]
        return np.array(columns, dtype=np.float64).T


def strip(bins: Bins) -> str:
    """The verdicts over time, a colour each."""
    marks, at = [], 0
    for verdict, run in groupby(bins.worst(), key=lambda one: one.verdict):
        length = len(list(run))
        marks.append(
            f'<rect class="v-{verdict}" x="{at * bins.width:.1f}" width="{length * bins.width:.1f}" height="24"/>'
        )
        at += length
    shifted = sum(one.verdict.moved for one in bins.readings)
    label = f"Verdicts of {len(bins.readings)} windows: {shifted} of them with a shift"
    return plot(label, 24, "".join(marks), "strip", "verdict")


def prevalence(bins: Bins, class_number: int) -> str:
    """The share of one class over time, with its interval, the reference's share, and the truth where labels tell."""
    latest = bins.readings[-1]
    name = latest.classes[class_number]
    priors, lower, upper = (bins.series(part, class_number) for part in ("priors", "lower", "upper"))
    claimed = (upper - lower) < 1
    source = latest.source_priors[class_number]
    truths = list(_truths(bins, class_number))
    low, high = _range([*priors, source, *lower[claimed], *upper[claimed], *(truth for _, truth in truths)])

    def y(share: float) -> str:
        return f"{(high - share) / (high - low) * 100:.1f}"

    xs = [f"{bins.middle(at):.1f}" for at in range(len(priors))]
    parts = [f'<path class="source" d="M0 {y(source)}H{WIDE}"/>']
    for run in runs(claimed):
        there = [f"{xs[at]} {y(upper[at])}" for at in run]
        back = [f"{xs[at]} {y(lower[at])}" for at in reversed(run)]
        parts.append(f'<path class="band" d="M{"L".join([*there, *back])}Z"/>')
    line = "L".join(f"{x} {y(share)}" for x, share in zip(xs, priors, strict=True))
    parts.append(f'<path class="line" d="M{line}{"h0" if len(xs) == 1 else ""}"/>')
    if truths:
        dots = "".join(f"M{xs[at]} {y(truth)}h0" for at, truth in truths)
        parts.append(f'<path class="truth" d="{dots}"/>')
    parts.append(f'<path class="now" d="M{xs[-1]} {y(priors[-1])}h0"/>')
    label = f"Share of {name} over {len(bins.readings)} windows, now {percent(priors[-1])}, reference {percent(source)}"
    axis = f'<div class="y"><span>{percent(high)}</span><span>{percent(low)}</span></div>'
    return axis + plot(label, 100, "".join(parts), "chart", f"class:{class_number}")


def heat(bins: Bins, rows: Sequence[int]) -> str:
    """How far each feature moved over time: a row each, the stronger the colour the larger the effect."""
    cells = [""] * HEAT_LEVELS
    for at, row in enumerate(rows):
        levels = heat_level(bins.effects[row])
        for first, last, level in _stretches(levels):
            cells[level - 1] += (
                f"M{first * bins.width:.1f} {at * ROW_PIXELS + 1}h{(last - first) * bins.width:.1f}"
                f"v{ROW_PIXELS - 2}H{first * bins.width:.1f}z"
            )
    paths = "".join(f'<path class="h{level}" d="{d}"/>' for level, d in enumerate(cells, start=1) if d)
    names = "".join(f'<li title="{text(bins.features[row])}">{text(bins.features[row])}</li>' for row in rows)
    label = f"Shift of {len(rows)} features over {len(bins.readings)} windows"
    height = len(rows) * ROW_PIXELS
    cells_plot = plot(label, height, paths, "heat", "features", pixels=height)
    return f'<ul class="rows">{names}</ul>{cells_plot}'


def heat_level(effects: Floats) -> NDArray[np.int64]:
    """0 below the floor of the test, then in steps of equal proportion, the last from `HOTTEST` on."""
    steps = np.log(np.maximum(effects, 1e-12) / DISTANCE_FLOOR) / np.log(HOTTEST / DISTANCE_FLOOR) * (HEAT_LEVELS - 1)
    levels = np.where(effects < DISTANCE_FLOOR, 0, np.clip(np.floor(steps) + 1, 1, HEAT_LEVELS))
    return levels.astype(np.int64)


def heat_rows(bins: Bins) -> list[int]:
    """The features worth a row: those that moved most at any time."""
    if not bins.effects.size:
        return []
    peaks = bins.effects.max(axis=1)
    return [int(row) for row in np.argsort(-peaks, kind="stable")[:MOST_ROWS]]


def flow(bins: Bins) -> str:
    """Events of each window, and what was lost of them."""
    used = np.array([np.mean([one.events for one in group]) for group in bins.groups])
    lost = np.array([np.mean([one.late + one.rejected for one in group]) for group in bins.groups])
    top = max(1.0, float((used + lost).max()))
    parts = []
    for at, (good, bad) in enumerate(zip(used / top * 100, lost / top * 100, strict=True)):
        x, width = at * bins.width + 0.1 * bins.width, 0.8 * bins.width
        parts.append(f'<rect class="used" x="{x:.1f}" y="{100 - good:.1f}" width="{width:.2f}" height="{good:.1f}"/>')
        if bad > 0:
            tall = max(bad, 2.0)
            parts.append(
                f'<rect class="lost" x="{x:.1f}" y="{max(0.0, 100 - good - tall):.1f}" '
                f'width="{width:.2f}" height="{tall:.1f}"/>'
            )
    axis = f'<div class="y"><span>{number(round(top))}</span><span>0</span></div>'
    return axis + plot(f"Events of {len(bins.readings)} windows", 100, "".join(parts), "chart small", "events")


def share_bar(share: float, lower: float, upper: float, source: float) -> str:
    """Where a share lies between nothing and all: its interval, itself, and a mark at the reference's."""
    return (
        '<svg class="bar" viewBox="0 0 1000 16" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" y="6" width="1000" height="4"/>'
        f'<rect class="between" x="{lower * 1000:.1f}" width="{max(0.0, upper - lower) * 1000:.1f}" y="4" height="8"/>'
        f'<path class="mark" d="M{source * 1000:.1f} 0V16"/><path class="point" d="M{share * 1000:.1f} 8h0"/></svg>'
    )


def ticks(bins: Bins) -> str:
    """The times under a chart."""
    groups = bins.groups
    picked = sorted({0, len(groups) // 2, len(groups) - 1}) if len(groups) > 2 else [0]
    days = moment(bins.readings[0].key.end, "%j") != moment(bins.readings[-1].key.end, "%j")
    pattern = "%d %b %H:%M" if days else "%H:%M:%S"
    labels = "".join(f"<span>{moment(groups[at][-1].key.end, pattern)}</span>" for at in picked)
    return f'<div class="x" aria-hidden="true">{labels}</div>'


def plot(label: str, height: int, inside: str, kind: str, shows: str, *, pixels: int | None = None) -> str:
    """The frame of a chart."""
    size = f' height="{pixels}"' if pixels is not None else ""
    return (
        f'<svg class="plot {kind}" role="img" tabindex="0" aria-label="{text(label)}" data-shows="{shows}" '
        f'viewBox="0 0 {WIDE} {height}" preserveAspectRatio="none"{size}>{inside}</svg>'
    )


def _truths(bins: Bins, class_number: int) -> Iterator[tuple[int, float]]:
    for at, group in enumerate(bins.groups):
        known = [(one.realised[class_number], one.labelled) for one in group if one.realised is not None]
        weight = sum(labelled for _, labelled in known)
        if weight:
            yield at, sum(share * labelled for share, labelled in known) / weight


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    margin = max(0.08 * (high - low), 0.005)
    return max(0.0, low - margin), min(1.0, high + margin)


def runs(flags: NDArray[np.bool_]) -> Iterator[list[int]]:
    """Consecutive positions that are true."""
    for part in np.split(np.arange(flags.size), np.flatnonzero(np.diff(flags)) + 1):
        if part.size and flags[part[0]]:
            yield part.tolist()


def _stretches(levels: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """First, one past the last, and level of each stretch of one level above 0."""
    edges = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), levels.size]
    for first, last in pairwise(edges):
        if levels[first]:
            yield first, last, int(levels[first])
