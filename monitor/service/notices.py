"""What the service tells about itself: frozen values, given to every observer.

Metrics, the live table, the log and the status page are observers. The service knows none of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from monitor.kinds import AnyReading
from monitor.labels import LabelFlow, OutcomeResult
from monitor.ports import Reporting, Sink, Source
from monitor.service.publishing import Watched
from monitor.state import Known, Seen, WindowSeen
from monitor.windows import WindowCheckpoint, WindowKey


@dataclass(frozen=True, slots=True)
class BatchTaken:
    """One batch of one partition was decoded and put into windows. Re-read records are not counted again."""

    partition: str
    records: int
    events: Mapping[str, int]
    """Accepted scored events by stream."""
    rejected: Mapping[tuple[str, str], int]
    """By stream (empty where not known) and reason."""
    late: Mapping[str, int]
    late_after_idle: Mapping[str, int]
    event_time: int
    """The partition's newest event time so far; `NEVER` before the first event."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """Labels of earlier events by stream."""
    examples: Mapping[str, str] = field(default_factory=dict)
    """What was wrong with the first record that was rejected for a reason. It may quote the record: not for a log."""


WindowAssessed = WindowSeen
"""One window was closed and assessed; its result is written but not yet committed."""


@dataclass(frozen=True, slots=True)
class StateAdvanced:
    """What is known of a stream, or of a segment, with a window that was assessed or an outcome."""

    seen: Seen
    known: Known


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is known when this process begins, and when partitions come or go: by stream and segment. Other streams are
    watched by others now."""

    known: Mapping[str, Mapping[str, Known]]


@dataclass(frozen=True, slots=True)
class WindowPublished:
    """Others, whom this process only follows, have published a window or that of a segment. Of events that others have
    read no more is known than their windows tell."""

    reading: AnyReading

    @property
    def events(self) -> int:
        """Accepted scored events that no notice before it told of: those of a segment are among those of the stream."""
        return 0 if self.reading.key.segment else self.reading.events + self.reading.sampled_out

    @property
    def late(self) -> int:
        """The same for late events."""
        return 0 if self.reading.key.segment else self.reading.late


@dataclass(frozen=True, slots=True)
class RecordsRejected:
    """They have rejected records."""

    rejected: Mapping[tuple[str, str], int]
    """By stream (empty where not known) and reason."""


@dataclass(frozen=True, slots=True)
class LabelsWaiting:
    """What waits on disk, by stream; after a commit."""

    flow: Mapping[str, LabelFlow]


@dataclass(frozen=True, slots=True)
class OutcomeKnown:
    """The labels of a window have come: how its estimate had fared. Written but not yet committed."""

    outcome: OutcomeResult


@dataclass(frozen=True, slots=True)
class Committed:
    """Everything so far is published."""

    checkpoint: WindowCheckpoint
    seconds: float
    windows: int = 0
    """How many it publishes of the windows that were told of, segments apart: those that had waited longest."""


@dataclass(frozen=True, slots=True)
class Turned:
    """One turn of the loop: what is waiting, and for whom."""

    partitions: tuple[str, ...]
    idle: frozenset[str]
    held: frozenset[str]
    waiting_events: int
    assessing: int = 0
    """Windows that are being assessed beside the loop."""


@dataclass(frozen=True, slots=True)
class Reassigned:
    """Partitions came or went."""

    came: frozenset[str] = field(default_factory=frozenset)
    gone: frozenset[str] = field(default_factory=frozenset)
    refused: str = ""
    """Why a commit was refused, if that is what happened: what it held is read again by whoever has the partitions
    now."""


@dataclass(frozen=True, slots=True)
class StreamsSpread:
    """Other streams than before come to several members of the group, be it none any more."""

    streams: frozenset[str]
    refused: frozenset[str]
    """Those of them whose windows are not published."""


@dataclass(frozen=True, slots=True)
class WindowRefused:
    """A window was closed and not published: other members have events of it."""

    key: WindowKey
    events: int


@dataclass(frozen=True, slots=True)
class Listening:
    """Status page, metrics and API are there for whoever asks."""

    address: str


@dataclass(frozen=True, slots=True)
class Opened:
    """The service begins with these ends: the first time, after an outage, or with other references. Who only follows
    others has no sink."""

    source: Source | Reporting
    sink: Sink | None
    watched: Mapping[str, Watched]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The other side of the source or the sink does not answer; it is asked again and again."""

    reason: str


Happening = (
    BatchTaken
    | WindowAssessed
    | StateAdvanced
    | Remembered
    | WindowPublished
    | RecordsRejected
    | OutcomeKnown
    | LabelsWaiting
    | Committed
    | Turned
    | Reassigned
    | StreamsSpread
    | WindowRefused
    | Listening
    | Opened
    | Interrupted
)
Observer = Callable[[Happening], None]
