"""Where events become windows: every stream's open windows, every partition's clock, and what a restart needs.

The rules stand in `by_time` and `by_count`; this file holds what they share: the clock of each partition
(`partition_clock`), and the order in which windows close (by end plus allowed lateness, then by stream), which does not
depend on how the input was cut into batches (`batch`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Protocol

import numpy as np

from monitor.ports import NEVER
from monitor.windows.batch import NO_OFFSETS, LabelTimes, LeftOut, RejectedAt, StreamRows, first_of_record, interleaved
from monitor.windows.by_count import CountPlan, CountWindows
from monitor.windows.by_time import MissedArrivals, TimePlan, TimeWindows
from monitor.windows.label_evidence import PlainLabels
from monitor.windows.origin import OPEN, Gap, Stretch, followed, widened
from monitor.windows.panes import Arrivals, Mark
from monitor.windows.partition_clock import PartitionClock, joined
from monitor.windows.parts import Part, PartitionRead
from monitor.windows.progress import PartitionProgress, WindowCheckpoint
from monitor.windows.streams import Streams
from monitor.windows.undivided import Undivided
from monitor.windows.window import Window, merge, without_copies

Plan = TimePlan | CountPlan


class _OpenWindows(Protocol):
    """What both kinds of window have in common."""

    @property
    def rows(self) -> int: ...
    def marks(self, partition: str) -> Iterator[Mark]: ...
    def forget(self, partition: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Standing:
    """What all windows that events have been put into come to; found anew when one has changed."""

    rows: int
    next_due: int | None
    marks: dict[str, Mark | None] = field(default_factory=dict)
    """Where a restart would have to read each partition again, of those that were asked for."""


class Windowing:
    """All open windows. Time comes from the events; nothing here reads a clock."""

    def __init__(self, plans: Mapping[str, Plan], awaiting_labels: Collection[str] = ()) -> None:
        """In the streams of `awaiting_labels` a labelled event that comes late is a label, and no late event."""
        self._timed = {s: TimeWindows(s, plan) for s, plan in sorted(plans.items()) if isinstance(plan, TimePlan)}
        self._counting = {s: CountWindows(s, plan) for s, plan in sorted(plans.items()) if isinstance(plan, CountPlan)}
        self._everyone: tuple[_OpenWindows, ...] = (*self._timed.values(), *self._counting.values())
        self._only = next(iter(plans)) if len(plans) == 1 else None
        self._clocks: dict[str, PartitionClock] = {}
        self._awaiting_labels = frozenset(awaiting_labels)
        self._by_evidence = [timed for timed in self._timed.values() if timed.plan.evidence is not None]
        self._at_once = self._awaiting_labels | self._counting.keys() | {timed.stream for timed in self._by_evidence}
        """The streams whose events have to be looked at as they come."""
        self._undivided = Undivided(self._timed)
        self._stands: _Standing | None = None
        self._remembered = max(
            (2 * (windows.plan.size + windows.plan.lateness) for windows in self._timed.values()), default=0
        )
        """For so long after it a window may still have to say what a partition lacks."""
        self.mark: int | None = NEVER
        """Up to where event time had come when the last window closed, or at the last `close`; None after all."""

    def begin(self, partition: str, progress: PartitionProgress | None) -> None:
        """Take up a partition where it was committed, or fresh.

        What begins fresh leaves alone what has been published without it: the others have to be taken up first.
        """
        if progress is None:
            self._clocks[partition] = PartitionClock.fresh(self._published_so_far())
            return
        self._clocks[partition] = PartitionClock.resumed_at(progress)
        for stream, windows in self._counting.items():
            windows.begin(partition, progress.counted.get(stream))
        self._stands = None

    def forget(self, partition: str) -> None:
        """Drop everything that came from a partition: someone else reads it now."""
        self._clocks.pop(partition, None)
        self._undivided.divide()
        for windows in self._everyone:
            windows.forget(partition)
        self._stands = None

    def add(
        self,
        partition: str,
        next_offset: int,
        events: Sequence[StreamRows],
        rejected: Sequence[RejectedAt] = (),
        labels: Mapping[str, LabelTimes] = MappingProxyType({}),
        *,
        skipped: int = 0,
    ) -> LeftOut:
        """Put one batch of one partition into the open windows. Label events move its clock, and are evidence.

        `skipped` records before the batch are gone: no window will have them.
        """
        clock = self._clocks.setdefault(partition, PartitionClock())
        labelled = sorted(labels)
        scored = [(group.offsets, group.rows.times) for group in events]
        known = [(labels[name].offsets, labels[name].times) for name in labelled]
        offsets, times, rank = interleaved([*scored, *known])
        running = np.maximum.accumulate(np.concatenate([[clock.running_max], times]))
        before = running[first_of_record(offsets)]
        if skipped:
            clock.lacks = widened(clock.lacks, Stretch(Gap.SKIPPED, "", clock.running_max, OPEN))
        if (timed := times[times > NEVER]).size:
            clock.lacks = followed(clock.lacks, int(timed[0]))
        for group in events:
            clock.brought.update(group.streams.present())

        for record in rejected:
            running_max = running[np.searchsorted(offsets, record.offset, side="left")]
            self._reject(partition, clock, record, int(running_max))
        left_out = LeftOut()
        parts = np.split(rank, np.cumsum([part.size for part, _ in (*scored, *known)]))
        for group, here in zip(events, parts, strict=False):
            arrivals = Arrivals(partition, group.rows, group.offsets, before[here], running[1:][here])
            self._share_out(clock, arrivals, group.streams, left_out)
        for name, here in zip(labelled, parts[len(events) :], strict=False):
            came = labels[name]
            if name in self._timed and came.ids is not None and came.targets is not None:
                said = PlainLabels(
                    partition, came.ids, came.targets, came.times, came.offsets, before[here], running[1:][here]
                )
                self._timed[name].tell(said, clock.closed)
                self._stands = None
        clock.running_max = int(running[-1])
        clock.read = next_offset
        if self._undivided.full:
            self._divide()
        marks = {name: running[1:][here] for name, here in zip(labelled, parts[len(events) :], strict=False)}
        return replace(left_out, label_marks=marks)

    def _share_out(self, clock: PartitionClock, arrivals: Arrivals, streams: Streams, left_out: LeftOut) -> None:
        """Put events into the windows of their streams, or keep those of several until a window may close."""
        if streams.codes is None:
            self._add(clock, streams.names[0], arrivals, left_out)
            return
        at_once = streams.among(self._at_once | clock.before.keys())
        if at_once is not None:
            some = arrivals.take(at_once)
            for name, rows in streams.take(at_once).apart(some.offsets.size):
                self._add(clock, name, some.take(rows), left_out)
            arrivals, streams = arrivals.take(~at_once), streams.take(~at_once)
        if arrivals.offsets.size:
            missed, first = self._undivided.add(arrivals, streams, clock.closed)
            clock.note_first(first)
            self._note_missed(clock, arrivals, streams, missed, left_out)

    def _add(self, clock: PartitionClock, name: str, arrivals: Arrivals, left_out: LeftOut) -> None:
        """Put events of one stream into its windows."""
        self._stands = None
        if name in self._counting:
            self._counting[name].add(arrivals)
            return
        if name in self._awaiting_labels:
            left_out.copied[name] = arrivals.rows.labelled & self._timed[name].late(arrivals)
            left_out.copies[name], arrivals = (
                arrivals.take(left_out.copied[name]),
                arrivals.take(~left_out.copied[name]),
            )
            if left_out.copied[name].any():
                self._timed[name].note(left_out.copies[name], clock.closed)
        if arrivals.rows.events:
            missed = self._timed[name].add(arrivals, clock.closed, clock.before.get(name, ()))
            clock.note_first({} if missed.first is None else {name: missed.first})
            self._note_missed(clock, arrivals, Streams((name,)), missed, left_out)

    def _note_missed(
        self, clock: PartitionClock, arrivals: Arrivals, streams: Streams, missed: MissedArrivals, left_out: LeftOut
    ) -> None:
        """Say which events are in no window, unless that was said before a restart; and that windows lack them."""
        news = arrivals.offsets >= clock.resumed
        for out, which in ((left_out.late, missed.late & news), (left_out.late_after_idle, missed.published & news)):
            out.update(dict.fromkeys(streams.present(), NO_OFFSETS))
            if which.any():
                offsets, some = arrivals.offsets[which], streams.take(which)
                out.update({name: offsets[rows] for name, rows in some.apart(offsets.size)})
        if (gone := missed.published & news).any():
            marks, some = arrivals.marks_after[gone], streams.take(gone)
            for name, rows in some.apart(marks.size):
                clock.note_too_late(name, marks[rows], self._timed[name].plan.lateness)

    def close(
        self, assigned: Collection[str], idle: Collection[str] = (), idle_mark: int | None = None
    ) -> Iterator[Window]:
        """The windows that are due, in an order that depends on them alone.

        A window waits for every assigned partition that is not idle. When all are idle, `idle_mark` says how far
        event time must have come; without it nothing closes, nor does it when no partition is assigned.
        """
        for counting in self._counting.values():
            yield from self._counted(counting, counting.close())
        mark = self._watermark(assigned, idle, idle_mark)
        if mark is None:
            return
        if self._may_close(mark):
            self._divide()
            yield from self._close_timed(mark, mark, "watermark")
            self._prune(self._timed.values(), mark)
        self.mark = mark
        self._published(mark)

    def due(self, assigned: Collection[str], idle: Collection[str] = (), idle_mark: int | None = None) -> bool:
        """Whether `close` would give any."""
        mark = self._watermark(assigned, idle, idle_mark)
        return any(counting.rows >= counting.plan.count for counting in self._counting.values()) or (
            mark is not None and self._may_close(mark)
        )

    def finish(self) -> Iterator[Window]:
        """Every window that is still open: nothing more will ever come."""
        for counting in self._counting.values():
            yield from self._counted(counting, counting.finish())
        self._divide()
        last = max((deadline for timed in self._timed.values() for deadline, _ in timed.due(None)), default=None)
        # A window that event time has passed would have closed by watermark, had the last batches been smaller.
        newest = max((clock.running_max for clock in self._clocks.values()), default=NEVER)
        yield from self._close_timed(None, newest, "end-of-input")
        self.mark = None
        if last is not None:
            self._prune(self._timed.values(), last)
            self._published(last)

    def release(self, partition: str, first: int) -> Mapping[str, Sequence[Part]]:
        """What a partition has brought since record `first`, by stream, taken out: its clock stays.

        Each stream gets a part, be it without events: its windows wait for the clocks of all partitions.
        """
        self._divide()
        clock = self._clocks[partition]
        seen = {partition: PartitionRead(((first, clock.read),), clock.running_max)}
        released = {}
        for stream, timed in self._timed.items():
            here = int(timed.plan.pane(np.array([clock.running_max]))[0])
            released[stream] = [
                Part(stream, pane, seen, merge(each.chunks) if each.chunks else None, each.counts)
                for pane, each in timed.release(partition)
            ] or [Part(stream, here, seen)]
        return released

    def checkpoint(self) -> WindowCheckpoint:
        """What a restart needs of every partition."""
        return WindowCheckpoint(
            {partition: self._progress(partition, clock) for partition, clock in self._clocks.items()}
        )

    @property
    def rows(self) -> int:
        """How many events are waiting in open windows."""
        return self._standing().rows + self._undivided.rows

    def ahead(self, active: Collection[str]) -> frozenset[str]:
        """The partitions that no window waits for: the ones to hold back when too much is waiting."""
        slowest = min(map(self.event_time, active), default=NEVER)
        return frozenset(partition for partition in active if self.event_time(partition) > slowest)

    def event_time(self, partition: str) -> int:
        """The newest event time seen in a partition; `NEVER` before the first event."""
        clock = self._clocks.get(partition)
        return NEVER if clock is None else clock.running_max

    def reached(self, partition: str) -> int:
        """The newest event time of a partition, or the watermark that was published with it if that is newer."""
        clock = self._clocks.get(partition)
        return NEVER if clock is None else max(clock.running_max, clock.closed)

    def judged(self, partition: str) -> int:
        """Records before this offset were judged before a restart, and are not reported again."""
        return self._clocks[partition].resumed if partition in self._clocks else 0

    def _watermark(self, assigned: Collection[str], idle: Collection[str], idle_mark: int | None) -> int | None:
        """How far event time has come in all partitions; None where that is not known."""
        active = (self.event_time(partition) for partition in assigned if partition not in idle)
        mark = min(active, default=idle_mark)
        return None if not assigned or mark == NEVER else mark

    def _reject(self, partition: str, clock: PartitionClock, record: RejectedAt, running_max: int) -> None:
        """Count a rejected record with the stream it names, or with the only stream there is.

        Before its partition's first event there is no time to count it at: then it is dead-lettered and nothing more.
        """
        stream = self._only if record.stream is None else record.stream
        self._stands = None
        if stream in self._timed and running_max != NEVER:
            self._timed[stream].reject(partition, record.offset, running_max, clock.closed)
        elif stream in self._counting:
            self._counting[stream].reject(partition, record.offset, running_max)

    def _close_timed(self, mark: int | None, passed: int, otherwise: str) -> Iterator[Window]:
        """`passed` is how far event time has come; what it has not passed is closed `otherwise`."""
        closed = {partition: clock.closed for partition, clock in self._clocks.items()}
        came_later = [(partition, clock.before) for partition, clock in self._clocks.items() if clock.before]
        due = sorted(
            (deadline, stream, start) for stream, timed in self._timed.items() for deadline, start in timed.due(mark)
        )
        for deadline, stream, start in due:
            because = "watermark" if deadline <= passed else otherwise
            spans = {partition: before[stream] for partition, before in came_later if stream in before}
            window = self._timed[stream].close(start, closed, because, spans)
            if window is not None:
                self.mark = deadline
                lacking = self._lacking(window, self._timed[stream].plan.lateness)
                yield self._once(self._without(lacking, start, deadline))

    def _counted(self, counting: CountWindows, windows: Iterator[Window]) -> Iterator[Window]:
        for window in windows:
            self._stands = None
            self.mark = counting.mark
            yield self._once(self._lacking(window))

    def _lacking(self, window: Window, lateness: int = 0) -> Window:
        """With the gaps that it has: of the partitions that bring its stream, and by its own size.

        Around records that are gone others came out of order, by as much as is allowed; so may they have.
        """
        key = window.key
        gaps = {
            gap.gap
            for clock in self._clocks.values()
            if key.stream in clock.brought
            for gap in clock.lacks
            for around in [lateness if gap.gap is Gap.SKIPPED else 0]
            if gap.touches(key.stream, key.start - around, key.end + around)
        }
        return replace(window, origin=window.origin.lacking(gaps)) if gaps else window

    def _without(self, window: Window, start: int, deadline: int) -> Window:
        """With a gap, where another partition had events of its stream and was closed before: by a member of a group
        that did not have all of them."""
        apart = any(clock.had(window.key.stream, start, deadline) for clock in self._clocks.values())
        return replace(window, origin=window.origin.lacking([Gap.SPREAD])) if apart else window

    def _once(self, window: Window) -> Window:
        return without_copies(window) if window.key.stream in self._awaiting_labels else window

    def _published(self, mark: int) -> None:
        for clock in self._clocks.values():
            clock.close(mark, self._remembered)
        self._prune(self._by_evidence, mark)

    def _prune(self, some: Iterable[TimeWindows], mark: int) -> None:
        for timed in some:
            timed.prune(mark)
            self._stands = None

    def _divide(self) -> None:
        self._undivided.divide()
        self._stands = None

    def _may_close(self, mark: int) -> bool:
        """Whether a window may be due. Until one is, no stream is looked at."""
        return any(due is not None and due <= mark for due in (self._standing().next_due, self._undivided.due))

    def _standing(self) -> _Standing:
        if self._stands is None:
            due = (timed.next_due for timed in self._timed.values())
            self._stands = _Standing(
                rows=sum(windows.rows for windows in self._everyone),
                next_due=min((each for each in due if each is not None), default=None),
            )
        return self._stands

    def _first_needed(self, partition: str) -> Mark | None:
        marks = self._standing().marks
        if partition not in marks:
            marks[partition] = min((mark for each in self._everyone for mark in each.marks(partition)), default=None)
        return marks[partition]

    def _published_so_far(self) -> dict[str, list[tuple[int, int]]]:
        """By stream, the windows that partitions which are here have published."""
        clocks = self._clocks.values()
        streams = {stream for clock in clocks for stream in (*clock.since, *clock.before)}
        return {s: spans for s in sorted(streams) if (spans := joined(x for c in clocks for x in c.spans(s)))}

    def _progress(self, partition: str, clock: PartitionClock) -> PartitionProgress:
        here = Mark(clock.read, clock.running_max)
        mark = min(self._first_needed(partition) or here, self._undivided.mark(partition) or here)
        counted = {stream: windows.counted(partition) for stream, windows in self._counting.items()}
        return PartitionProgress(
            offset=mark.offset,
            running_max=mark.running_max,
            read=max(clock.read, clock.resumed),
            closed=clock.closed,
            counted={stream: progress for stream, progress in counted.items() if progress is not None},
            lacks=clock.lacks,
            published=clock.published,
        )
