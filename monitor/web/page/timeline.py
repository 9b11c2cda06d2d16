"""Verdicts over time on an axis that several streams share: what has no window stays empty.

Where more windows than cells fall into the range, a cell shows the gravest of its windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from monitor.kinds import AnyReading
from monitor.pages import DrawnPath, Frame, moment
from monitor.web.page.charts import STRIP, WIDE, Chart

CELLS = 120
MOST_TICKS = 6
SECOND = 1_000_000
DAY = 86_400 * SECOND
STEPS = (
    *(seconds * SECOND for seconds in (1, 5, 15, 60, 300, 900, 3_600, 10_800, 21_600, 43_200)),
    *(days * DAY for days in (1, 2, 7, 14, 30, 90, 365, 3_650)),
)
"""Between ticks; all of up to a day divide it."""
Integers = NDArray[np.int64]
_NONE = -1


@dataclass(frozen=True, slots=True)
class Tick:
    """A round time on the axis."""

    at: str
    """In percent of its width."""
    words: str


@dataclass(frozen=True, slots=True)
class Range:
    """A stretch of time; microseconds."""

    start: int
    end: int

    @property
    def ticks(self) -> list[Tick]:
        """Some round times in it: hours, or days where it is long."""
        step = next((step for step in STEPS if (self.end - self.start) / step <= MOST_TICKS), STEPS[-1])
        first = -(-self.start // step) * step
        return [
            Tick(f"{100 * (at - self.start) / (self.end - self.start):.2f}%", _tick_words(at, step))
            for at in range(first, self.end, step)
        ]


def strip(readings: Sequence[AnyReading], over: Range) -> Chart:
    """The verdicts over this range, a colour each."""
    count = len(readings)
    ends = np.fromiter((reading.key.end for reading in readings), np.int64, count)
    within = slice(int(np.searchsorted(ends, over.start, side="right")), count)
    readings, ends = readings[within], ends[within]
    starts = np.fromiter((reading.key.start for reading in readings), np.int64, len(readings))
    starts[1:] = np.maximum(starts[1:], ends[:-1])  # of windows that overlap, what is new
    ranks = np.fromiter((reading.verdict.rank for reading in readings), np.int64, len(readings))
    verdicts = {reading.verdict.rank: reading.verdict for reading in readings}
    frame, paths, at = Frame(WIDE, STRIP, right=CELLS), dict[str, str](), 0
    for rank, run in groupby(_gravest(ranks, _cells(starts, over), _cells(ends - 1, over)).tolist()):
        end = at + len(list(run))
        if rank != _NONE:
            paths[verdicts[rank]] = paths.get(verdicts[rank], "") + frame.bar(at, end, 0, 1)
        at = end
    moved = sum(reading.verdict.moved for reading in readings)
    label = f"{len(readings)} windows, {moved} of them with a shift"
    return Chart(label, "strip", "", tuple(DrawnPath(f"v-{name}", path) for name, path in paths.items()), height=STRIP)


def _cells(times: Integers, over: Range) -> Integers:
    return np.clip((times - over.start) * CELLS // (over.end - over.start), 0, CELLS - 1)


def _gravest(ranks: Integers, first: Integers, last: Integers) -> Integers:
    """The highest rank of a verdict in each cell."""
    cells = np.full(CELLS, _NONE)
    for offset in range(int((last - first).max(initial=0)) + 1):
        inside = first + offset <= last
        np.maximum.at(cells, first[inside] + offset, ranks[inside])
    return cells


def _tick_words(at: int, step: int) -> str:
    if step >= DAY or at % DAY == 0:
        return moment(at, "%Y" if step >= STEPS[-2] else "%d %b").removeprefix("0")
    return moment(at, "%H:%M:%S" if step < 60 * SECOND else "%H:%M")
