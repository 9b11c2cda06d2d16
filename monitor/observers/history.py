"""What happened lately, for those who look from outside: an observer on the loop that others read as one frozen value.

The loop writes, any thread reads: each happening makes a new `Snapshot`, and a reader holds on to the one it took. No
lock is held while somebody renders a page. Memory is bounded by the number of windows kept for each stream.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import msgspec

from monitor.kinds import AnyReading
from monitor.labels import OutcomeResult
from monitor.limits import REPORT_SECONDS, SEGMENT_TRACKS, SEGMENT_WINDOWS
from monitor.observers.snapshot import ITERATIONS, SECONDS, BucketCounts, Caps, Flow, Snapshot, StreamFacts, Track
from monitor.ports import Reporting, ReportingSink
from monitor.service import (
    BatchTaken,
    Clock,
    Committed,
    Happening,
    LabelsWaiting,
    OutcomeKnown,
    Reassigned,
    StateAdvanced,
    Turned,
    WindowAssessed,
)

_ENCODER = msgspec.json.Encoder(order="deterministic")


class History:
    """An observer that keeps what a `Snapshot` shows."""

    def __init__(
        self,
        facts: Mapping[str, StreamFacts],
        *,
        windows: int,
        caps: Caps = Caps(),
        source: object = None,
        sink: object = None,
        clock: Clock = Clock(),
    ) -> None:
        self._windows = windows
        self._source = source if isinstance(source, Reporting) else None
        self._sink = sink if isinstance(sink, ReportingSink) else None
        self._clock = clock
        self._reported = float("-inf")
        self._records: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
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
        elif isinstance(happening, WindowAssessed):
            self._snapshot = self._with_window(happening)
        elif isinstance(happening, OutcomeKnown):
            self._snapshot = self._with_outcome(happening.outcome)
        elif isinstance(happening, LabelsWaiting):
            self._snapshot = replace(self._snapshot, flow=replace(self._snapshot.flow, label_flow=happening.flow))
        elif isinstance(happening, StateAdvanced):
            self._snapshot = self._with_states(happening)
        elif isinstance(happening, Turned):
            self._snapshot = replace(self._snapshot, flow=self._turned(happening))
        elif isinstance(happening, Committed):
            flow = self._snapshot.flow
            flow = replace(flow, commits=flow.commits.plus(happening.seconds), last_commit=self.now())
            self._snapshot = replace(self._snapshot, flow=flow)
        elif isinstance(happening, Reassigned):
            self._snapshot = replace(self._snapshot, flow=self._reassigned(happening))

    def _count(self, batch: BatchTaken) -> None:
        self._counted = True
        self._records[batch.partition] += batch.records
        self._events.update(batch.events)
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
            last_turn=now,
        )

    def _reassigned(self, change: Reassigned) -> Flow:
        for partition in change.gone:
            self._event_time.pop(partition, None)
        flow = self._snapshot.flow
        moved = bool(change.came or change.gone)
        return replace(
            flow,
            event_time=dict(self._event_time),
            reassignments=flow.reassignments + moved,
            refused=flow.refused + bool(change.refused),
        )

    def _with_window(self, assessed: WindowAssessed) -> Snapshot:
        before, reading = self._snapshot, assessed.reading
        stream, segment = reading.key.stream, reading.key.segment
        track = self._extended(before.tracks.get(stream, {}).get(segment), reading, assessed)
        tracks = {**before.tracks, stream: _bounded({**before.tracks.get(stream, {}), segment: track})}
        dropped = {**before.dropped, stream: before.dropped.get(stream, 0) + before.caps.dropped(reading)}
        before = replace(before, tracks=tracks, dropped=dropped, generation=before.generation + 1)
        if segment:
            return before
        outcome, window = (stream, reading.verdict), reading.key.id
        iterations = dict(before.iterations)
        if reading.answer.iterations is not None:
            iterations[stream] = iterations[stream].plus(reading.answer.iterations, window)
        return replace(
            before,
            windows={**before.windows, outcome: before.windows.get(outcome, 0) + 1},
            last_window={**before.last_window, outcome: window},
            assessing={**before.assessing, stream: before.assessing[stream].plus(assessed.seconds, window)},
            iterations=iterations,
        )

    def _extended(self, track: Track | None, reading: AnyReading, assessed: WindowAssessed) -> Track:
        kept = min(self._windows, SEGMENT_WINDOWS) if reading.key.segment else self._windows
        earlier = track.readings[-(kept - 1) :] if track is not None and kept > 1 else ()
        recalibration = _ENCODER.encode(assessed.recalibration)
        newest = Track((*earlier, reading), assessed.assessment, recalibration, self.now())
        return newest if track is None else replace(newest, known=track.known)

    def _with_states(self, advanced: StateAdvanced) -> Snapshot:
        before, stream, segment = self._snapshot, advanced.key.stream, advanced.key.segment
        track = before.tracks.get(stream, {}).get(segment)
        if track is None:
            return before
        track = replace(track, known=advanced.known)
        tracks = {**before.tracks, stream: {**before.tracks[stream], segment: track}}
        return replace(before, tracks=tracks, generation=before.generation + 1)

    def _with_outcome(self, outcome: OutcomeResult) -> Snapshot:
        before, stream = self._snapshot, outcome.stream
        earlier = before.outcomes.get(stream, ())[-(self._windows - 1) :] if self._windows > 1 else ()
        counts = {(stream, name): count for name, count in msgspec.structs.asdict(outcome.labels).items()}
        return replace(
            before,
            outcomes={**before.outcomes, stream: (*earlier, outcome)},
            outcome_count={**before.outcome_count, stream: before.outcome_count.get(stream, 0) + 1},
            outcome_labels=dict(Counter(before.outcome_labels) + Counter(counts)),
            generation=before.generation + 1,
        )


def _bounded(tracks: dict[str, Track]) -> dict[str, Track]:
    """The whole stream and the segments seen last: values of a segment that never comes again are let go."""
    if len(tracks) <= SEGMENT_TRACKS:
        return tracks
    oldest = min((name for name in tracks if name), key=lambda name: tracks[name].latest.key.end)
    return {name: track for name, track in tracks.items() if name != oldest}
