"""What the charts of a stream show, as marks in coordinates from 0 to 1000 that stretch with the page.

Text is never inside them: it would stretch too. It stands beside them in HTML. All charts of a stream share one
horizontal axis, a list of bins: one window each, or several where there are more windows than the eye can tell apart.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.kinds import AnyReading
from monitor.pages import DrawnPath, Frame, moment, number
from monitor.tolerances import DISTANCE_FLOOR

MOST_BINS = 160
MOST_ROWS = 24
HEAT_LEVELS = 6
HOTTEST = 0.4  # half of the events would have to move to another place of the distribution to look more alarming
ROW_PIXELS = 18
WIDE = 1000
TALL = 100
STRIP = 24
LEAST_LOSS = 0.02  # of a chart's height: what was lost is never too thin to be seen

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing that stretches, and the words around it."""

    label: str
    """For those who cannot see it."""
    kind: str
    """Its class in the style sheet."""
    shows: str
    """What the script shows under the pointer."""
    marks: tuple[DrawnPath, ...]
    height: int = TALL
    pixels: int | None = None
    """Its height on the screen where that is not the style sheet's."""
    top: str = ""
    """What the upper edge stands for; empty for no axis."""
    bottom: str = ""


@dataclass(frozen=True)
class Bins:
    """Consecutive windows, a few to a bin when there are many."""

    readings: Sequence[AnyReading]

    @cached_property
    def groups(self) -> tuple[Sequence[AnyReading], ...]:
        """The windows of each bin; the newest is last."""
        each = -(-len(self.readings) // MOST_BINS)
        return tuple(self.readings[at : at + each] for at in range(0, len(self.readings), each))

    def at(self, end: int) -> int | None:
        """The bin of the window that ended then; None where none of them did."""
        ends = [reading.key.end for reading in self.readings]
        place = bisect_left(ends, end)
        return place // len(self.groups[0]) if place < len(ends) and ends[place] == end else None

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the features; a window with too few events has tested none."""
        return next((reading.features for reading in reversed(self.readings) if reading.features), ())

    @cached_property
    def middles(self) -> Floats:
        """Where the value of each bin is drawn; a bin is one wide."""
        return np.arange(len(self.groups), dtype=np.float64) + 0.5

    @cached_property
    def ticks(self) -> list[str]:
        """The times under the charts."""
        groups = self.groups
        picked = sorted({0, len(groups) // 2, len(groups) - 1}) if len(groups) > 2 else [0]
        days = moment(self.readings[0].key.end, "%j") != moment(self.readings[-1].key.end, "%j")
        return [moment(groups[at][-1].key.end, "%d %b %H:%M" if days else "%H:%M:%S") for at in picked]

    def frame(self, height: float = TALL, low: float = 0.0, high: float = 1.0) -> Frame:
        """The area that all bins share."""
        return Frame(WIDE, height, right=max(1, len(self.groups)), low=low, high=high)

    def means(self, value: Callable[[Any], float | None]) -> Floats:
        """What the windows of each bin answer, on average; NaN where none has a value."""
        return np.array([_mean([value(reading.answer) for reading in group]) for group in self.groups])

    @cached_property
    def worst(self) -> list[AnyReading]:
        """The window of each bin whose verdict is the gravest."""
        return [max(group, key=lambda reading: reading.verdict.rank) for group in self.groups]

    @cached_property
    def effects(self) -> Floats:
        """(features, bins): the largest effect of each feature in each bin; 0 where none was measured."""
        features = len(self.features)
        nothing = np.zeros(features)
        columns = [
            np.max([reading.effects if reading.effects.size == features else nothing for reading in group], axis=0)
            for group in self.groups
        ]
        return np.array(columns, dtype=np.float64).T


def strip(bins: Bins) -> Chart:
    """The verdicts over time, a colour each."""
    frame, paths, at = bins.frame(STRIP), dict[str, str](), 0
    for verdict, run in groupby(bins.worst, key=lambda reading: reading.verdict):
        end = at + len(list(run))
        paths[verdict] = paths.get(verdict, "") + frame.bar(at, end, 0, 1)
        at = end
    moved = sum(reading.verdict.moved for reading in bins.readings)
    label = f"Verdicts of {len(bins.readings)} windows: {moved} of them with a shift"
    marks = tuple(DrawnPath(f"v-{verdict}", path) for verdict, path in paths.items())
    return Chart(label, "strip", "verdict", marks, height=STRIP)


def heat(bins: Bins, rows: Sequence[int]) -> Chart:
    """How far each feature moved over time."""
    label = f"Shift of {len(rows)} features over {len(bins.readings)} windows"
    return heated(bins, [heat_level(bins.effects[row]) for row in rows], label, "features")


def heated(bins: Bins, rows: Sequence[NDArray[np.int64]], label: str, shows: str) -> Chart:
    """A row for each list of levels over time: the higher the level, the stronger the colour."""
    height = len(rows) * ROW_PIXELS
    frame, cells = bins.frame(height, high=height), [""] * HEAT_LEVELS
    for at, levels in enumerate(rows, start=1):
        foot = height - at * ROW_PIXELS
        for first, last, level in _stretches(levels):
            cells[level - 1] += frame.bar(first, last, foot + 1, foot + ROW_PIXELS - 1)
    marks = tuple(DrawnPath(f"h{level}", path) for level, path in enumerate(cells, start=1) if path)
    return Chart(label, "heat", shows, marks, height=height, pixels=height)


def heat_level(effects: Floats, floor: float = DISTANCE_FLOOR, hottest: float = HOTTEST) -> NDArray[np.int64]:
    """0 below the floor, of effects that of the test; then in steps of equal proportion, the last from `hottest` on."""
    steps = np.log(np.maximum(effects, 1e-12) / floor) / np.log(hottest / floor) * (HEAT_LEVELS - 1)
    levels = np.where(effects < floor, 0, np.clip(np.floor(steps) + 1, 1, HEAT_LEVELS))
    return levels.astype(np.int64)


def heat_rows(bins: Bins) -> list[int]:
    """The features worth a row: those that moved most at any time."""
    if not bins.effects.size:
        return []
    peaks = bins.effects.max(axis=1)
    return [int(row) for row in np.argsort(-peaks, kind="stable")[:MOST_ROWS]]


def flow(bins: Bins) -> Chart:
    """Events of each window, and what was lost of them."""
    used = np.array([np.mean([reading.events for reading in group]) for group in bins.groups])
    lost = np.array([np.mean([reading.late + reading.rejected for reading in group]) for group in bins.groups])
    top = max(1.0, float((used + lost).max()))
    tall = np.maximum(lost, LEAST_LOSS * top)
    foot = np.minimum(used, top - tall)
    frame, lefts, rights, some = bins.frame(high=top), bins.middles - 0.4, bins.middles + 0.4, lost > 0
    good = "".join(map(frame.bar, lefts, rights, np.zeros_like(used), used))
    bad = "".join(map(frame.bar, lefts[some], rights[some], foot[some], (foot + tall)[some]))
    marks = tuple(DrawnPath(style, path) for style, path in (("used", good), ("lost", bad)) if path)
    label = f"Events of {len(bins.readings)} windows"
    return Chart(label, "chart small", "events", marks, top=number(round(top)), bottom="0")


def runs(flags: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
    """Consecutive positions that are true."""
    for part in np.split(np.arange(flags.size), np.flatnonzero(np.diff(flags)) + 1):
        if part.size and flags[part[0]]:
            yield part


def _mean(errors: Sequence[float | None]) -> float:
    known = [error for error in errors if error is not None]
    return float(np.mean(known)) if known else float("nan")


def _stretches(levels: NDArray[np.int64]) -> Iterator[tuple[int, int, int]]:
    """First, one past the last, and level of each stretch of one level above 0."""
    edges = [0, *(np.flatnonzero(np.diff(levels)) + 1).tolist(), levels.size]
    for first, last in pairwise(edges):
        if levels[first]:
            yield first, last, int(levels[first])
