"""What happened lately, for those who look from outside: an observer on the loop that others read as one frozen value.

The loop writes, any thread reads: each happening makes a new `Snapshot`, and a reader holds on to the one it took. No
lock is held while somebody renders a page. What is shown of past windows is what is known over windows.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import msgspec

from monitor.labels import OutcomeResult
from monitor.limits import REPORT_SECONDS
from monitor.observers.snapshot import (
    ITERATIONS,
    SECONDS,
    BucketCounts,
    Caps,
    Flow,
    Snapshot,
    StreamFacts,
    Track,
    facts,
    together,
)
from monitor.ports import Reporting, ReportingSink
from monitor.service import (
    BatchTaken,
    Clock,
    Committed,
    Happening,
    Interrupted,
    LabelsWaiting,
    Opened,
    OutcomeKnown,
    Reassigned,
    RecordsRejected,
    Remembered,
    StateAdvanced,
    StreamsSpread,
    Turned,
    WindowAssessed,
    WindowPublished,
    WindowRefused,
)
from monitor.state import WINDOWS, Known, WindowSeen, owner, surplus


class History:
    """An observer that keeps what a `Snapshot` shows."""

    def __init__(
        self,
        facts: Mapping[str, StreamFacts],
        *,
        caps: Caps = Caps(),
        source: object = None,
        sink: object = None,
        clock: Clock = Clock(),
    ) -> None:
        self._source = source if isinstance(source, Reporting) else None
        self._sink = sink if isinstance(sink, ReportingSink) else None
        self._clock = clock
        self._reported = float("-inf")
        self._records: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._waiting_since: dict[str, float] = {}
        self._rejected: Counter[tuple[str, str]] = Counter()
        self._late: Counter[tuple[str, str]] = Counter()
        self._labels: Counter[str] = Counter()
        self._event_time: dict[str, int] = {}
        self._counted = False
        self._snapshot = Snapshot(
            started=self.now(),
            facts=MappingProxyType(dict(facts)),
            caps=caps,
            assessing={stream: BucketCounts.empty(SECONDS) for stream in facts},
            iterations={
                stream: BucketCounts.empty(ITERATIONS) for stream, known in facts.items() if known.model.estimator
            },
        )

    @property
    def snapshot(self) -> Snapshot:
        """The newest state; safe to ask for from any thread."""
        return self._snapshot

    def now(self) -> float:
        """The wall clock, seconds."""
        return self._clock.now() / 1e6

    def __call__(self, happening: Happening) -> None:
        """Take a notice of the service into what is remembered."""
        if isinstance(happening, BatchTaken):
            self._count(happening)
        elif isinstance(happening, WindowAssessed | WindowPublished):
            self._snapshot = self._with_window(happening)
        elif isinstance(happening, OutcomeKnown):
            self._snapshot = self._with_outcome(happening.outcome)
        elif isinstance(happening, LabelsWaiting):
            self._snapshot = replace(self._snapshot, flow=replace(self._snapshot.flow, label_flow=happening.flow))
        elif isinstance(happening, StateAdvanced):
            self._snapshot = self._with_states(happening)
        elif isinstance(happening, Remembered | RecordsRejected):
            self._snapshot = self._with_others(happening)
        elif isinstance(happening, Turned):
            self._snapshot = replace(self._snapshot, flow=self._turned(happening))
        elif isinstance(happening, Opened | Interrupted):
            self._follow(happening)
        elif isinstance(happening, Committed):
            flow = self._snapshot.flow
            flow = replace(flow, commits=flow.commits.plus(happening.seconds), last_commit=self.now())
            self._snapshot = replace(self._snapshot, flow=flow)
        elif isinstance(happening, Reassigned):
            self._snapshot = replace(self._snapshot, flow=self._reassigned(happening))
        elif isinstance(happening, StreamsSpread):
            flow = replace(self._snapshot.flow, spread=happening.streams, unpublished=happening.refused)
            self._snapshot = replace(self._snapshot, flow=flow)
        elif isinstance(happening, WindowRefused):
            flow, stream = self._snapshot.flow, happening.key.stream
            refused = {**flow.windows_refused, stream: flow.windows_refused.get(stream, 0) + 1}
            self._snapshot = replace(self._snapshot, flow=replace(flow, windows_refused=refused))

    def _follow(self, happening: Opened | Interrupted) -> None:
        """Which ends report now, or since when none does."""
        if isinstance(happening, Opened):
            self._source = happening.source if isinstance(happening.source, Reporting) else None
            self._sink = happening.sink if isinstance(happening.sink, ReportingSink) else None
            self._snapshot = self._under({name: facts(name, stream) for name, stream in happening.watched.items()})
            return
        flow = self._snapshot.flow
        since = self.now() if flow.outage_since is None else flow.outage_since
        flow = replace(flow, outage=happening.reason, outage_since=since, partitions=())
        self._snapshot = replace(self._snapshot, flow=flow)

    def _under(self, facts: Mapping[str, StreamFacts]) -> Snapshot:
        """With these references."""
        before = self._snapshot
        estimated = [stream for stream, known in facts.items() if known.model.estimator]
        iterations = {stream: before.iterations.get(stream, BucketCounts.empty(ITERATIONS)) for stream in estimated}
        return replace(before, facts=MappingProxyType(dict(facts)), iterations=iterations)

    def _count(self, batch: BatchTaken) -> None:
        self._counted = True
        self._records[batch.partition] += batch.records
        self._events.update(batch.events)
        for stream in (stream for stream, count in batch.events.items() if count):
            self._waiting_since.setdefault(stream, self.now())
        self._rejected.update(batch.rejected)
        self._labels.update(batch.labels)
        self._late.update({(stream, "late"): count for stream, count in batch.late.items()})
        self._late.update({(stream, "late-after-idle"): count for stream, count in batch.late_after_idle.items()})
        self._event_time[batch.partition] = batch.event_time

    def _turned(self, turned: Turned) -> Flow:
        flow, now = self._snapshot.flow, self.now()
        if self._clock.elapsed() - self._reported > REPORT_SECONDS:
            flow = replace(
                flow,
                report=self._source.report() if self._source else None,
                sink_report=self._sink.report() if self._sink else None,
            )
            self._reported = self._clock.elapsed()
        if self._counted:
            self._counted = False
            flow = replace(
                flow,
                records=dict(self._records),
                event_time=dict(self._event_time),
                events=dict(self._events),
                waiting_since=dict(self._waiting_since),
                rejected=dict(self._rejected),
                late=dict(self._late),
                labels=dict(self._labels),
                last_batch=now,
            )
        return replace(
            flow,
            partitions=turned.partitions,
            idle=turned.idle,
            held=turned.held,
            waiting_events=turned.waiting_events,
            assessing=turned.assessing,
            outage="",
            outage_since=None,
            last_turn=now,
        )

    def _reassigned(self, change: Reassigned) -> Flow:
        for partition in change.gone:
            self._event_time.pop(partition, None)
        # Windows that are waited for may come to another member now.
        self._waiting_since.clear()
        flow = self._snapshot.flow
        moved = bool(change.came or change.gone)
        return replace(
            flow,
            event_time=dict(self._event_time),
            waiting_since={},
            reassignments=flow.reassignments + moved,
            refused=flow.refused + bool(change.refused),
        )

    def _with_others(self, happening: Remembered | RecordsRejected) -> Snapshot:
        if isinstance(happening, Remembered):
            return self._with_remembered(happening.known)
        self._counted = True
        self._rejected.update(happening.rejected)
        return self._snapshot

    def _with_window(self, seen: WindowAssessed | WindowPublished) -> Snapshot:
        before, reading = self._snapshot, seen.reading
        stream = reading.key.stream
        dropped = {**before.dropped, stream: before.dropped.get(stream, 0) + before.caps.dropped(reading)}
        # In a backlog one turn closes the windows of hours: each is a sign of life.
        before = replace(before, flow=replace(before.flow, last_turn=self.now()))
        if reading.key.segment:
            capped = before.capped.get(stream, 0) + together(reading)
            return replace(before, dropped=dropped, capped={**before.capped, stream: capped})
        self._waiting_since.pop(stream, None)
        self._counted = True
        outcome, window = (stream, reading.verdict), reading.key.id
        iterations = dict(before.iterations)
        if reading.answer.iterations is not None:
            iterations[stream] = iterations[stream].plus(reading.answer.iterations, window)
        assessing = dict(before.assessing)
        if isinstance(seen, WindowAssessed):
            assessing[stream] = assessing[stream].plus(seen.seconds, window)
        else:
            self._events[stream] += seen.events
            self._late[stream, "late"] += seen.late
        return replace(
            before,
            dropped=dropped,
            windows={**before.windows, outcome: before.windows.get(outcome, 0) + 1},
            last_window={**before.last_window, outcome: window},
            assessing=assessing,
            iterations=iterations,
        )

    def _with_outcome(self, outcome: OutcomeResult) -> Snapshot:
        before, stream = self._snapshot, outcome.stream
        if outcome.segment:
            return before
        counts = {(stream, name): count for name, count in msgspec.structs.asdict(outcome.labels).items()}
        return replace(
            before,
            outcome_count={**before.outcome_count, stream: before.outcome_count.get(stream, 0) + 1},
            outcome_labels=dict(Counter(before.outcome_labels) + Counter(counts)),
        )

    def _with_states(self, advanced: StateAdvanced) -> Snapshot:
        before, (stream, segment) = self._snapshot, owner(advanced.seen)
        tracks = dict(before.tracks.get(stream, {}))
        if isinstance(advanced.seen, WindowSeen):
            tracks[segment] = Track(advanced.known, self.now())
        elif segment in tracks:
            tracks[segment] = replace(tracks[segment], known=advanced.known)
        else:  # what has settled is of windows that were compared with another reference, which are not shown
            return before
        oldest = surplus({name: track.known for name, track in tracks.items()})
        if oldest is not None:
            del tracks[oldest]
        return self._showing({**before.tracks, stream: tracks})

    def _with_remembered(self, known: Mapping[str, Mapping[str, Known]]) -> Snapshot:
        """What a process knows from others. Windows that were compared with another reference are not shown."""
        before, now = self._snapshot, self.now()
        tracks = {}
        for stream, segments in known.items():
            shown = {
                name: track for name, track in segments.items() if track.reference == before.facts[stream].reference
            }
            earlier = before.tracks.get(stream, {})
            tracks[stream] = {
                name: Track(track, earlier[name].assessed_at if _same(earlier.get(name), track) else now)
                for name, track in shown.items()
                if track.entries(WINDOWS)
            }
        return self._showing(tracks)

    def _showing(self, tracks: Mapping[str, Mapping[str, Track]]) -> Snapshot:
        return replace(self._snapshot, tracks=tracks, generation=self._snapshot.generation + 1)


def _same(track: Track | None, known: Known) -> bool:
    """Whether both end with the same window."""
    return track is not None and track.known.until == known.until
