"""What happened lately, for those who look from outside: an observer on the loop that others read as one frozen value.

The loop writes, any thread reads: each happening makes a new `Snapshot`, and a reader holds on to the one it took. No
lock is held while somebody renders a page. Memory is bounded by the number of windows kept for each stream.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, cast

import msgspec

from monitor.kinds import Assessed
from monitor.labels import LabelFlow, OutcomeResult
from monitor.limits import (
    CHANGES_SHOWN,
    CLASS_SERIES,
    FEATURE_SERIES,
    REPORT_SECONDS,
    SEGMENT_FEATURE_SERIES,
    SEGMENT_TRACKS,
    SEGMENT_WINDOWS,
    STALE_AFTER,
    STALE_WINDOWS,
)
from monitor.observers.window_record import Reading, reading_of
from monitor.ports import Report, Reporting, ReportingSink, SinkReport
from monitor.reference.classifier import Reference
from monitor.reference.regressor import RegressionReference
from monitor.service.loop import Clock
from monitor.service.notices import (
    BatchTaken,
    Committed,
    Happening,
    LabelsWaiting,
    OutcomeKnown,
    Reassigned,
    SeriesSeen,
    Turned,
    WindowAssessed,
)
from monitor.service.publishing import Watched
from monitor.windows import CountPlan, TimePlan

_ENCODER = msgspec.json.Encoder(order="deterministic")

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ITERATIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of values up to each bound, and beyond the last."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0
    last: tuple[str, float] | None = None
    """The latest value and the window that it comes from."""

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "Histogram":
        """Nothing counted yet."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    def plus(self, value: float, window: str = "") -> "Histogram":
        """With one more value."""
        at = bisect_left(self.bounds, value)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return replace(self, counts=counts, total=self.total + value, last=(window, value) if window else None)


@dataclass(frozen=True, slots=True)
class Caps:
    """How many features and classes of a window become series; those that moved most go first."""

    features: int = FEATURE_SERIES
    segment_features: int = SEGMENT_FEATURE_SERIES
    classes: int = CLASS_SERIES

    def of(self, reading: Reading) -> tuple[int, int]:
        """How many features and classes of this window."""
        features = self.segment_features if reading.key.segment else self.features
        return min(features, len(reading.features)), min(self.classes, len(reading.classes))

    def dropped(self, reading: Reading) -> int:
        """How many of them are left out."""
        features, classes = self.of(reading)
        return len(reading.features) - features + len(reading.classes) - classes


@dataclass(frozen=True, slots=True)
class RelationFacts:
    """What is known of a regression stream before its first window."""

    inputs: tuple[str, ...]
    wanted: int
    """Labels that the relation test wants."""
    error: float
    """Of the predictions, on the hold-out events."""


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What is known of a stream before its first window."""

    stream: str
    classes: tuple[str, ...]
    source_priors: tuple[float, ...]
    features: tuple[str, ...]
    positive: str | None
    reference: str
    """The version of the reference."""
    reference_events: int
    estimator: str
    window_seconds: float | None
    """None for count windows, whose length is that of the last one."""
    window_count: int | None = None
    relation: RelationFacts | None = None
    """Only of a regression stream, which has no classes."""


def facts(name: str, watched: Watched) -> StreamFacts:
    """What a stream's reference and plan say about it."""
    reference, plan = watched.reference, watched.plan
    common: dict[str, Any] = {
        "stream": name,
        "features": tuple(feature.name for feature in reference.schema.features),
        "reference": reference.version,
        "reference_events": reference.events,
        "window_seconds": plan.size / 1e6 if isinstance(plan, TimePlan) else None,
        "window_count": plan.count if isinstance(plan, CountPlan) else None,
    }
    if isinstance(reference, RegressionReference):
        return StreamFacts(
            classes=(),
            source_priors=(),
            positive=None,
            estimator="",
            relation=RelationFacts(reference.input_names, reference.wanted, reference.error),
            **common,
        )
    classifier = cast(Reference, reference)
    return StreamFacts(
        classes=classifier.classes,
        source_priors=tuple(classifier.source_priors.tolist()),
        positive=reference.schema.positive,
        estimator=classifier.estimator,
        **common,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """The latest windows of one stream, or of one of its segments; the newest is last."""

    readings: tuple[Reading, ...]
    assessment: Assessed
    """The newest window's, with its whole result."""
    recalibration: bytes
    """The newest window's, as JSON."""
    assessed_at: float
    """Wall clock, seconds."""
    series: SeriesSeen | None = None
    """What the newest window says together with those before it."""
    changes: tuple[SeriesSeen, ...] = ()
    """The latest windows with a change of level."""
    change_points: int = 0
    """Changes of level since the start."""

    @property
    def latest(self) -> Reading:
        """The newest window."""
        return self.readings[-1]

    def stale(self, now: float) -> bool:
        """Whether so much time passed without a window that the last one says nothing about the present."""
        length = (self.latest.key.end - self.latest.key.start) / 1e6
        return now - self.assessed_at > max(STALE_AFTER, STALE_WINDOWS * length)


NOTHING_COMMITTED = Histogram.empty(SECONDS)


@dataclass(frozen=True, slots=True)
class Flow:
    """Totals since the start, and how the loop stands."""

    records: Mapping[str, int] = field(default_factory=dict)
    """By partition."""
    event_time: Mapping[str, int] = field(default_factory=dict)
    """By partition: the newest event time; microseconds."""
    events: Mapping[str, int] = field(default_factory=dict)
    """By stream."""
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By stream and reason."""
    late: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By stream and reason."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """Labels of earlier events, by stream."""
    label_flow: Mapping[str, LabelFlow] = field(default_factory=dict)
    """What waits for labels, by stream."""
    partitions: tuple[str, ...] = ()
    idle: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    waiting_events: int = 0
    assessing: int = 0
    """Windows that are being assessed beside the loop."""
    reassignments: int = 0
    commits: Histogram = NOTHING_COMMITTED
    refused: int = 0
    last_turn: float | None = None
    """Wall clock, seconds; so are the next two."""
    last_batch: float | None = None
    last_commit: float | None = None
    report: Report | None = None
    """What the source says about itself, where it says anything."""
    sink_report: SinkReport | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Everything that can be seen from outside at one instant."""

    started: float
    facts: Mapping[str, StreamFacts]
    tracks: Mapping[str, Mapping[str, Track]] = field(default_factory=dict)
    """By stream and segment; the segment of a whole stream is empty."""
    flow: Flow = Flow()
    windows: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By stream and verdict."""
    last_window: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The id of the newest of those windows."""
    assessing: Mapping[str, Histogram] = field(default_factory=dict)
    """Seconds by stream."""
    iterations: Mapping[str, Histogram] = field(default_factory=dict)
    """Of the reported estimate, by stream."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Features and classes that the caps kept from becoming series, by stream."""
    outcomes: Mapping[str, tuple[OutcomeResult, ...]] = field(default_factory=dict)
    """The latest outcomes by stream; the newest is last."""
    outcome_count: Mapping[str, int] = field(default_factory=dict)
    outcome_labels: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By stream and what became of them."""
    caps: Caps = Caps()
    generation: int = 0
    """Grows with every window."""


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
            assessing={stream: Histogram.empty(SECONDS) for stream in facts},
            iterations={stream: Histogram.empty(ITERATIONS) for stream in facts},
        )

    @property
    def snapshot(self) -> Snapshot:
        """The newest state; safe to ask for from any thread."""
        return self._snapshot

    def now(self) -> float:
        """The wall clock, seconds."""
        return self._clock.now() / 1e6

    def __call__(self, happening: Happening) -> None:
        """Take note."""
        if isinstance(happening, BatchTaken):
            self._count(happening)
        elif isinstance(happening, WindowAssessed):
            self._snapshot = self._with_window(happening)
        elif isinstance(happening, OutcomeKnown):
            self._snapshot = self._with_outcome(happening.outcome)
        elif isinstance(happening, LabelsWaiting):
            self._snapshot = replace(self._snapshot, flow=replace(self._snapshot.flow, label_flow=happening.flow))
        elif isinstance(happening, SeriesSeen):
            self._snapshot = self._with_series(happening)
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
        before, reading = self._snapshot, reading_of(assessed)
        stream, segment = reading.key.stream, reading.key.segment
        track = self._extended(before.tracks.get(stream, {}).get(segment), reading, assessed)
        tracks = {**before.tracks, stream: _bounded({**before.tracks.get(stream, {}), segment: track})}
        dropped = {**before.dropped, stream: before.dropped.get(stream, 0) + before.caps.dropped(reading)}
        before = replace(before, tracks=tracks, dropped=dropped, generation=before.generation + 1)
        if segment:
            return before
        outcome, window = (stream, reading.verdict), reading.key.id
        iterations = before.iterations[stream]
        if reading.relation is None:
            iterations = iterations.plus(reading.reported.iterations, window)
        return replace(
            before,
            windows={**before.windows, outcome: before.windows.get(outcome, 0) + 1},
            last_window={**before.last_window, outcome: window},
            assessing={**before.assessing, stream: before.assessing[stream].plus(assessed.seconds, window)},
            iterations={**before.iterations, stream: iterations},
        )

    def _extended(self, track: Track | None, reading: Reading, assessed: WindowAssessed) -> Track:
        kept = min(self._windows, SEGMENT_WINDOWS) if reading.key.segment else self._windows
        earlier = track.readings[-(kept - 1) :] if track is not None and kept > 1 else ()
        recalibration = _ENCODER.encode(assessed.recalibration)
        newest = Track((*earlier, reading), assessed.assessment, recalibration, self.now())
        if track is None:
            return newest
        return replace(newest, series=track.series, changes=track.changes, change_points=track.change_points)

    def _with_series(self, seen: SeriesSeen) -> Snapshot:
        before, stream, segment = self._snapshot, seen.key.stream, seen.key.segment
        track = before.tracks.get(stream, {}).get(segment)
        if track is None:
            return before
        changes = (*track.changes, seen)[-CHANGES_SHOWN:] if seen.changes else track.changes
        track = replace(track, series=seen, changes=changes, change_points=track.change_points + len(seen.changes))
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
