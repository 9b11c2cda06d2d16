"""Columns of events that are still waiting: what one partition has put into one open stretch of a stream.

Kept apart by partition, because a partition can be taken away, and its events must then leave without a trace.
"""

from dataclasses import dataclass, field, replace
from typing import Self

from monitor.arrays import Labels
from monitor.windows.window import Counting, Rows, Window, WindowCounts, merge, sampled

# Above the maximum a part is thinned only when it has twice too many rows: each thinning costs a pass over the rows,
# and doubling makes that a constant cost per event.
THINNING_FACTOR = 2


@dataclass(frozen=True, slots=True, eq=False)
class Arrivals:
    """Events of one stream from one batch, in the order of their records."""

    partition: str
    rows: Window
    offsets: Labels
    marks_before: Labels
    """The partition's running maximum before each event's record."""
    marks_after: Labels
    """The partition's running maximum with each event included."""

    @property
    def timestamps(self) -> Labels:
        """Event times; arrivals always carry them."""
        return self.rows.times

    def take(self, rows: Rows) -> Self:
        """The same with only these events."""
        return replace(
            self,
            rows=self.rows.take(rows),
            offsets=self.offsets[rows],
            marks_before=self.marks_before[rows],
            marks_after=self.marks_after[rows],
        )

    def split(self, most: int) -> tuple[Self, Self]:
        """The first `most` events and the rest."""
        return self.take(slice(None, most)), self.take(slice(most, None))


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """Where a restart would have to read again, and the newest event time its partition had seen before that."""

    offset: int
    running_max: int


@dataclass(slots=True)
class Collected:
    """What one partition has put into one pane."""

    mark: Mark
    chunks: list[Window] = field(default_factory=list)
    rows: int = 0
    counts: WindowCounts = field(default_factory=WindowCounts)

    def add(self, chunk: Window, most: int, seed: int, tally: Counting | None = None) -> None:
        """Append rows; beyond twice the maximum keep the seeded sample."""
        self.chunks.append(chunk)
        self.rows += chunk.events
        if self.rows > THINNING_FACTOR * most:
            self.chunks = [sampled(merge(self.chunks), most, seed, tally)]
            self.rows = self.chunks[0].events
