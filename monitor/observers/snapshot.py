"""What can be seen of the service from outside, as frozen values: each stream's windows, and how the loop stands."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from monitor.assessment import SketchesPart, Verdict
from monitor.kinds import AnyReading, ModelFacts, kind_of
from monitor.labels import LabelFlow, OutcomeResult
from monitor.limits import CLASS_SERIES, FEATURE_SERIES, PAST_AFTER, SEGMENT_FEATURE_SERIES, STALE_AFTER, STALE_WINDOWS
from monitor.ports import NEVER, Report, SinkReport
from monitor.service import Watched
from monitor.state import (
    OUTCOMES,
    SKETCHES,
    WINDOWS,
    AlarmState,
    ChangeState,
    EvidenceState,
    HistoryState,
    Known,
    OpenAlarm,
    PerformanceState,
    QualityState,
    WindowSketches,
)
from monitor.windows import OTHER_SEGMENTS, CountPlan

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ITERATIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000)


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """Counts of values up to each bound, and beyond the last."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float = 0.0
    last: tuple[str, float] | None = None
    """The latest value and the window that it comes from."""

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> "BucketCounts":
        """Counts for these bounds, before anything is counted."""
        return cls(bounds, (0,) * (len(bounds) + 1))

    def plus(self, value: float, window: str = "") -> "BucketCounts":
        """The counts with one more value."""
        at = bisect_left(self.bounds, value)
        counts = (*self.counts[:at], self.counts[at] + 1, *self.counts[at + 1 :])
        return replace(self, counts=counts, total=self.total + value, last=(window, value) if window else None)


@dataclass(frozen=True, slots=True)
class Caps:
    """How many features and classes of a window become series; those that moved most go first."""

    features: int = FEATURE_SERIES
    segment_features: int = SEGMENT_FEATURE_SERIES
    classes: int = CLASS_SERIES

    def of(self, reading: AnyReading) -> tuple[int, int]:
        """How many features and classes of this window."""
        features = self.segment_features if reading.key.segment else self.features
        return min(features, len(reading.features)), min(self.classes, len(reading.answer.classes))

    def dropped(self, reading: AnyReading) -> int:
        """How many of them are left out."""
        features, classes = self.of(reading)
        return len(reading.features) - features + len(reading.answer.classes) - classes


def together(reading: AnyReading) -> bool:
    """Whether these are the segments of a window that are not watched apart: there were too many."""
    return reading.key.segment == OTHER_SEGMENTS


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What is known of a stream before its first window."""

    stream: str
    kind: str
    """The name of its kind."""
    model: ModelFacts
    verdicts: tuple[Verdict, ...]
    """Those that its windows can get."""
    features: tuple[str, ...]
    reference: str
    """The version of the reference."""
    reference_events: int
    window_seconds: float | None
    """None for count windows, whose length is that of the last one."""
    window_count: int | None = None
    reference_written: float | None = None
    """When its file was; wall clock, seconds."""


def facts(name: str, watched: Watched) -> StreamFacts:
    """What a stream's reference and plan say about it."""
    reference, plan, kind = watched.reference, watched.plan, kind_of(watched.reference)
    return StreamFacts(
        stream=name,
        kind=kind.name,
        model=kind.facts(reference),
        verdicts=kind.verdicts,
        features=tuple(feature.name for feature in reference.schema.features),
        reference=reference.version,
        reference_events=reference.events,
        window_seconds=None if plan.length is None else plan.length / 1e6,
        window_count=plan.count if isinstance(plan, CountPlan) else None,
        reference_written=watched.written,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Track:
    """The latest windows of one stream, or of one of its segments."""

    known: Known
    """What its windows say together."""
    assessed_at: float
    """When the newest was assessed; for one that this process has only read of, when that was. Wall clock, seconds."""

    @property
    def readings(self) -> tuple[AnyReading, ...]:
        """The windows; the newest is last."""
        return self.known.entries(WINDOWS)

    @property
    def result(self) -> bytes:
        """The result of the newest window, as JSON."""
        return bytes(self.known.state(HistoryState).result)

    def sketches(self, window: str) -> SketchesPart | None:
        """How the columns of a window were distributed; None for windows that are too long ago, or had too few
        events."""
        entries: tuple[WindowSketches, ...] = self.known.entries(SKETCHES)
        return next((entry.sketches for entry in reversed(entries) if entry.window == window), None)

    @property
    def recalibration(self) -> bytes:
        """The recalibration of the newest window, as JSON."""
        return bytes(self.known.state(HistoryState).recalibration)

    @property
    def outcomes(self) -> tuple[OutcomeResult, ...]:
        """Of the windows whose labels have come; the newest is last."""
        return self.known.entries(OUTCOMES)

    @property
    def alarm(self) -> AlarmState:
        """Whether enough of the last windows moved."""
        return self.known.state(AlarmState)

    @property
    def open_alarms(self) -> Mapping[str, OpenAlarm]:
        """Those that evidence or a limit has raised and nothing has ended, by series; the one that began first comes
        first."""
        alarms = {**self.gathered, **self.beyond_limits, **self.data_faults}
        return dict(sorted(alarms.items(), key=lambda item: (item[1].since, item[0])))

    @property
    def gathered(self) -> Mapping[str, OpenAlarm]:
        """Those of how events are distributed, by evidence that windows have gathered."""
        return self.known.state(EvidenceState).alarms

    @property
    def beyond_limits(self) -> Mapping[str, OpenAlarm]:
        """Those of how good the model is."""
        return self.known.state(PerformanceState).alarms

    @property
    def data_faults(self) -> Mapping[str, OpenAlarm]:
        """Those of data quality."""
        return self.known.state(QualityState).alarms

    @property
    def changes(self) -> ChangeState:
        """Changes of level over the windows."""
        return self.known.state(ChangeState)

    @property
    def latest(self) -> AnyReading:
        """The newest window that is remembered; None before the first."""
        return self.readings[-1]

    def stale(self, now: float) -> bool:
        """Whether so much time passed without a window that the last one says nothing about the present."""
        length = (self.latest.key.end - self.latest.key.start) / 1e6
        return now - self.assessed_at > max(STALE_AFTER, STALE_WINDOWS * length)

    @property
    def past(self) -> float | None:
        """How many seconds old the last window's events were when it was assessed; None where that is of no note."""
        age, length = self.assessed_at - self.latest.key.end / 1e6, (self.latest.key.end - self.latest.key.start) / 1e6
        return age if age > max(PAST_AFTER, STALE_WINDOWS * length) else None


NOTHING_COMMITTED = BucketCounts.empty(SECONDS)


@dataclass(frozen=True, slots=True)
class Flow:
    """Totals since the start, and how the loop stands."""

    records: Mapping[str, int] = field(default_factory=dict)
    """By partition."""
    event_time: Mapping[str, int] = field(default_factory=dict)
    """By partition: the newest event time; microseconds."""
    events: Mapping[str, int] = field(default_factory=dict)
    """By stream."""
    waiting_since: Mapping[str, float] = field(default_factory=dict)
    """By stream: when the first event came of which no window has told yet."""
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
    outage: str = ""
    """Why source or sink do not answer, as far as is known; empty while they do."""
    outage_since: float | None = None
    reassignments: int = 0
    commits: BucketCounts = NOTHING_COMMITTED
    refused: int = 0
    last_turn: float | None = None
    """Wall clock, seconds; so are the next two."""
    last_batch: float | None = None
    last_commit: float | None = None
    spread: frozenset[str] = frozenset()
    """Streams that come to several members of the group,"""
    unpublished: frozenset[str] = frozenset()
    """and those of them whose windows are not published."""
    windows_refused: Mapping[str, int] = field(default_factory=dict)
    """By stream: windows that were not published because other members have events of them."""
    report: Report | None = None
    """What the source says about itself, where it says anything."""
    sink_report: SinkReport | None = None

    @property
    def newest_event(self) -> int | None:
        """Its time; microseconds."""
        return max((at for at in self.event_time.values() if at > NEVER), default=None)


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
    assessing: Mapping[str, BucketCounts] = field(default_factory=dict)
    """Seconds by stream."""
    iterations: Mapping[str, BucketCounts] = field(default_factory=dict)
    """Of the reported estimate, by stream; only where there is one."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Features and classes that the caps kept from becoming series, by stream."""
    capped: Mapping[str, int] = field(default_factory=dict)
    """Windows with more segments than are watched apart, by stream."""
    outcome_count: Mapping[str, int] = field(default_factory=dict)
    """By stream; those of segments are not among them."""
    outcome_labels: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By stream and what became of them."""
    caps: Caps = Caps()
    generation: int = 0
    """Grows with every window."""
