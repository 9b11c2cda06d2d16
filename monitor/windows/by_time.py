"""Event-time windows of one stream: which pane an event belongs to, what is late, and which windows are due.

A window [start, start + size) is the merge of its panes of length `slide`; a tumbling window is one pane.

An event is late if it is older than the running maximum of its own partition minus the allowed lateness: that
depends on the partition's order alone. It is counted where its partition's clock stands (the pane of the running
maximum), a stretch that cannot have been closed yet, so the count does not depend on batching or restarts either.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from monitor.arrays import Flags, Labels
from monitor.windows.label_evidence import EvidencePlan, LabelEvidence, PlainLabels
from monitor.windows.origin import Gap, Origin
from monitor.windows.panes import Arrivals, Collected, Mark
from monitor.windows.window import Counting, Window, WindowCounts, WindowKey, merge, ordered, sampled


@dataclass(frozen=True, slots=True)
class TimePlan:
    """Microseconds throughout; `slide` divides `size`."""

    size: int
    slide: int
    lateness: int
    most: int
    seed: int = 0
    evidence: EvidencePlan | None = None
    """How far back labels count, in streams that are judged by labels."""
    tally: Counting | None = None
    """What counts events above the maximum."""

    @property
    def length(self) -> int:
        """The event time that a window spans."""
        return self.size

    def pane(self, timestamps: Labels) -> Labels:
        """Where the pane of each time begins."""
        return timestamps // self.slide * self.slide

    def panes(self, start: int) -> range:
        """Those of the window that begins here."""
        return range(start, start + self.size, self.slide)

    def key(self, stream: str, start: int) -> WindowKey:
        """Of the window that begins here."""
        return WindowKey(stream=stream, start=start, end=start + self.size)

    @property
    def held(self) -> int:
        """How far event time has to come from the start of a window until it closes."""
        return self.size + self.lateness

    def due(self, panes: Iterable[int], mark: int | None) -> list[tuple[int, int]]:
        """(end + lateness, start) of the windows over these panes that may close at this watermark; of all for None."""
        starts = {
            start for pane in panes for start in range(pane - self.size + self.slide, pane + self.slide, self.slide)
        }
        deadlines = ((start + self.held, start) for start in starts)
        return sorted(due for due in deadlines if mark is None or due[0] <= mark)


@dataclass(frozen=True, slots=True, eq=False)
class MissedArrivals:
    """Which arrivals did not get into a window."""

    late: Flags
    published: Flags
    """Belonging to windows that have already been published."""
    first: int | None
    """Where the earliest window begins that got any; None if none did."""


Spans = Sequence[tuple[int, int]]
"""Windows that are published besides: where the first begins, and when the last was due."""


class TimeWindows:
    """The open panes of one stream."""

    def __init__(self, stream: str, plan: TimePlan) -> None:
        self.stream = stream
        self.plan = plan
        self._panes: dict[int, dict[str, Collected]] = {}
        self._evidence = None
        if plan.evidence is not None:
            self._evidence = LabelEvidence(
                plan.evidence,
                size=plan.size,
                slide=plan.slide,
                lateness=plan.lateness,
                most=plan.most,
                seed=plan.seed,
            )

    def late(self, arrivals: Arrivals) -> Flags:
        """Which arrivals are older than their partition's running maximum by more than is allowed."""
        return np.asarray(arrivals.timestamps < arrivals.marks_after - self.plan.lateness)

    def add(self, arrivals: Arrivals, closed: int, spans: Spans = ()) -> MissedArrivals:
        """Put events into their panes; those of published windows are left out."""
        plan = self.plan
        late = self.late(arrivals)
        panes = plan.pane(np.where(late, arrivals.marks_after, arrivals.timestamps))
        earliest, due = panes - plan.size + plan.slide, panes + plan.held
        published = due <= closed
        for first, last in spans:
            published |= (earliest >= first) & (due <= last)
        if self._evidence is not None:
            self._evidence.add(arrivals, late, closed)
        open_panes = _distinct(panes[~published] if published.any() else panes)
        for pane in open_panes:
            members = (panes == pane) & ~published
            first = int(np.argmax(members))
            part = self._part(pane, arrivals.partition, arrivals.offsets[first], arrivals.marks_before[first])
            kept = members & ~late
            part.counts += WindowCounts(late=int(np.count_nonzero(members & late)))
            if kept.any():
                rows = arrivals.rows if kept.all() else arrivals.rows.take(np.flatnonzero(kept))
                part.add(rows, plan.most, plan.seed, plan.tally)
        first_window = open_panes[0] - plan.size + plan.slide if open_panes else None
        return MissedArrivals(late & ~published, published, first_window)

    def note(self, copies: Arrivals, closed: int) -> None:
        """Take labelled copies of earlier events as labels alone, where windows are judged by labels."""
        if self._evidence is not None:
            self._evidence.add(copies, self.late(copies), closed)

    def tell(self, told: PlainLabels, closed: int) -> None:
        """Take labels that came in records of their own, where windows are judged by labels."""
        if self._evidence is not None:
            self._evidence.tell(told, closed)

    def reject(self, partition: str, offset: int, running_max: int, closed: int) -> None:
        """Count a rejected record where its partition's clock stands."""
        pane = int(self.plan.pane(np.array([running_max]))[0])
        if pane + self.plan.held > closed:
            self._part(pane, partition, offset, running_max).counts += WindowCounts(rejected=1)

    def due(self, mark: int | None) -> list[tuple[int, int]]:
        """(end + lateness, start) of the windows that may close at this watermark, or of all open ones for None."""
        return self.plan.due(self._panes, mark)

    def release(self, partition: str) -> Iterator[tuple[int, Collected]]:
        """Take out all that came from a partition, by pane."""
        for pane in sorted(self._panes):
            collected = self._panes[pane].pop(partition, None)
            if collected is not None:
                yield pane, collected
        self._panes = {pane: parts for pane, parts in self._panes.items() if parts}

    @property
    def next_due(self) -> int | None:
        """The least watermark at which a window may close; None where none is open."""
        # The first window that holds a pane ends where the pane does.
        return min(self._panes) + self.plan.slide + self.plan.lateness if self._panes else None

    def close(
        self, start: int, closed: Mapping[str, int], because: str, spans: Mapping[str, Spans] = MappingProxyType({})
    ) -> Window | None:
        """The window that starts here, of the partitions that have not published it; None if none has anything.

        `spans`: of partitions that came when windows had been published without them.
        """
        plan = self.plan
        deadline = start + plan.held
        parts = [
            (partition, part)
            for pane in plan.panes(start)
            for partition, part in sorted(self._panes.get(pane, {}).items())
            if closed[partition] < deadline
            and not any(first <= start and deadline <= last for first, last in spans.get(partition, ()))
        ]
        counts = sum((part.counts for _, part in parts), WindowCounts())
        chunks = [chunk for _, part in parts for chunk in part.chunks]
        if not chunks:
            return None
        whole = merge(chunks)
        evidence = None
        if self._evidence is not None:
            gathered = self._evidence.gathered(start + plan.size, deadline, closed)
            evidence = gathered or whole.take(slice(0, 0))
        counted = replace(whole, counts=whole.counts + counts, evidence=evidence)
        partitions = [partition for partition, _ in parts]
        return as_window(counted, plan.key(self.stream, start), plan, because, partitions)

    def prune(self, mark: int) -> None:
        """Drop the panes whose last window has been published."""
        keep = mark - self.plan.held
        self._panes = {pane: parts for pane, parts in self._panes.items() if pane > keep}
        if self._evidence is not None:
            self._evidence.prune(mark)

    def forget(self, partition: str) -> None:
        """Drop everything that came from this partition."""
        for parts in self._panes.values():
            parts.pop(partition, None)
        self._panes = {pane: parts for pane, parts in self._panes.items() if parts}
        if self._evidence is not None:
            self._evidence.forget(partition)

    def marks(self, partition: str) -> Iterator[Mark]:
        """Where a restart would have to read this partition again, for each open pane."""
        yield from (parts[partition].mark for parts in self._panes.values() if partition in parts)
        if self._evidence is not None:
            yield from self._evidence.marks(partition)

    @property
    def rows(self) -> int:
        """How many events are waiting."""
        return sum(part.rows for parts in self._panes.values() for part in parts.values())

    def _part(self, pane: int, partition: str, offset: int, running_max: int) -> Collected:
        parts = self._panes.setdefault(pane, {})
        mark = Mark(int(offset), int(running_max))
        part = parts.setdefault(partition, Collected(mark))
        # Events and rejected records of one batch come separately: the earlier of the two is where to read again.
        part.mark = min(part.mark, mark)
        return part


def as_window(rows: Window, key: WindowKey, plan: TimePlan, because: str, partitions: Iterable[str]) -> Window:
    """All rows and counts of a window as it is published: no more rows than are kept, and in order."""
    origin = Origin(tuple(sorted(set(partitions))))
    named = replace(rows, key=key, closed_because=because, origin=origin)
    kept = ordered(sampled(named, plan.most, plan.seed, plan.tally))
    return replace(kept, origin=origin.lacking([Gap.SAMPLED])) if kept.counts.sampled_out else kept


def _distinct(panes: Labels) -> list[int]:
    """Neighbours mostly share their pane: only the first of each run of equals is looked at."""
    return sorted({*panes[:1].tolist(), *panes[1:][panes[1:] != panes[:-1]].tolist()})
