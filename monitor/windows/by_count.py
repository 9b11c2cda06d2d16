"""Count windows of one stream: every so many events, in the order in which they arrive.

With one partition the order of arrival is the order of the records, and the windows are the same after any restart.
With several, their interleaving decides which events share a window.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from monitor.ports import NEVER
from monitor.windows.origin import Origin
from monitor.windows.panes import Arrivals, Mark
from monitor.windows.progress import CountedWindows
from monitor.windows.window import Window, WindowCounts, WindowKey, merge, ordered


@dataclass(frozen=True, slots=True)
class CountPlan:
    """How many events make a window."""

    count: int
    length: ClassVar[None] = None
    """Nobody can say how much event time a window will span."""
    lateness: ClassVar[int] = 0


class CountWindows:
    """The open window of one stream: arrivals in order, and where each partition's closed windows end."""

    def __init__(self, stream: str, plan: CountPlan) -> None:
        self.stream = stream
        self.plan = plan
        self.rows = 0
        self.mark = NEVER
        """The running maximum, of its partition, at the last event of the last window that was cut."""
        self._open: list[Arrivals] = []
        self._rejected: list[tuple[str, Mark]] = []
        self._counted: dict[str, CountedWindows] = {}
        self._windows = 0

    def begin(self, partition: str, counted: CountedWindows | None) -> None:
        """Go on where the partition's closed windows ended."""
        if counted is not None:
            self._counted[partition] = counted
            self._windows = max(self._windows, counted.windows)

    def add(self, arrivals: Arrivals) -> None:
        """Append events that no closed window holds."""
        fresh = self._uncounted(arrivals)
        if fresh.rows.events:
            self._open.append(fresh)
            self.rows += fresh.rows.events

    def reject(self, partition: str, offset: int, running_max: int) -> None:
        """Count a rejected record in the window of the event that follows it."""
        if not self._is_counted(partition, offset):
            self._rejected.append((partition, Mark(offset, running_max)))

    def close(self) -> Iterator[Window]:
        """Every window that is full."""
        while self.rows >= self.plan.count:
            yield self._cut(self.plan.count, because="count")

    def finish(self) -> Iterator[Window]:
        """What is left, as one last window."""
        yield from self.close()
        if self.rows:
            yield self._cut(self.rows, because="end-of-input")

    def forget(self, partition: str) -> None:
        """Drop everything that came from this partition."""
        self._open = [arrivals for arrivals in self._open if arrivals.partition != partition]
        self._rejected = [(source, mark) for source, mark in self._rejected if source != partition]
        self._counted.pop(partition, None)
        self.rows = sum(arrivals.rows.events for arrivals in self._open)

    def marks(self, partition: str) -> Iterator[Mark]:
        """Where a restart would have to read this partition again."""
        yield from (mark for source, mark in self._rejected if source == partition)
        for arrivals in self._open:
            if arrivals.partition == partition:
                yield Mark(int(arrivals.offsets[0]), int(arrivals.marks_before[0]))

    def counted(self, partition: str) -> CountedWindows | None:
        """How far closed windows have come in this partition; None before the first one."""
        counted = self._counted.get(partition)
        return None if counted is None else replace(counted, windows=self._windows)

    def _is_counted(self, partition: str, offset: int) -> bool:
        counted = self._counted.get(partition)
        return counted is not None and offset <= counted.offset

    def _uncounted(self, arrivals: Arrivals) -> Arrivals:
        counted = self._counted.get(arrivals.partition)
        if counted is None:
            return arrivals
        here = np.flatnonzero(arrivals.offsets == counted.offset)
        fresh = arrivals.offsets >= counted.offset
        # Only on a re-read: events of the boundary record that are in closed windows come again before the others.
        fresh[here[: counted.skip]] = False
        return arrivals.take(fresh)

    def _cut(self, size: int, because: str) -> Window:
        taken: list[Window] = []
        partitions: set[str] = set()
        wanted = size
        while wanted:
            arrivals = self._open[0]
            part, rest = arrivals.split(wanted)
            taken.append(part.rows)
            partitions.add(arrivals.partition)
            wanted -= part.rows.events
            self._counted[arrivals.partition] = self._boundary(part)
            self.mark = int(part.marks_after[-1])
            self._open[:1] = [rest] if rest.rows.events else []
        self.rows -= size
        self._windows += 1
        open_rejects = [(source, mark) for source, mark in self._rejected if not self._is_counted(source, mark.offset)]
        rejected, self._rejected = len(self._rejected) - len(open_rejects), open_rejects
        whole = merge(taken)
        start, end = int(whole.times.min()), int(whole.times.max()) + 1
        return ordered(
            replace(
                whole,
                key=WindowKey(stream=self.stream, start=start, end=end, number=self._windows),
                counts=WindowCounts(rejected=rejected),
                closed_because=because,
                origin=Origin(tuple(sorted(partitions))),
            )
        )

    def _boundary(self, part: Arrivals) -> CountedWindows:
        last = int(part.offsets[-1])
        before = self._counted.get(part.partition)
        already = before.skip if before is not None and before.offset == last else 0
        return CountedWindows(self._windows + 1, last, already + int(np.count_nonzero(part.offsets == last)))
