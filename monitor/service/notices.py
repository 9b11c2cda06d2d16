"""What the service tells about itself: frozen values, given to every observer.

Metrics, the live table, the log and the status page are observers. The service knows none of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from monitor.kinds import AnyReading, Assessed, kind_of, reading_of
from monitor.labels import LabelFlow, OutcomeResult
from monitor.recalibration import Cause, Recalibration, withheld
from monitor.windows import WindowCheckpoint, WindowKey, WindowSummary


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


@dataclass(frozen=True)
class WindowAssessed:
    """One window was closed and assessed; its result is written but not yet committed."""

    assessment: Assessed
    window: WindowSummary
    seconds: float
    doubt: str = ""
    """Why labels say that the estimates are off; empty if they do not. Nothing is to be corrected meanwhile."""

    @property
    def recalibration(self) -> Recalibration:
        """As it was published."""
        message = self.assessment.recalibration
        return withheld(message, Cause.LABELS_DISAGREE, self.doubt) if self.doubt else message

    @cached_property
    def reading(self) -> AnyReading:
        """What is remembered of it: made once, for whoever asks first."""
        answer = kind_of(self.assessment).read(self.assessment, self.window, self.recalibration)
        return reading_of(
            self.assessment, answer, self.window, self.recalibration, doubt=self.doubt, seconds=self.seconds
        )


@dataclass(frozen=True, slots=True)
class LabelsWaiting:
    """What waits on disk, by stream; after a commit."""

    flow: Mapping[str, LabelFlow]


@dataclass(frozen=True, slots=True)
class SeriesSeen:
    """What an assessed window says together with those before it, since the start of this process."""

    key: WindowKey
    flagged: int
    """Of the last windows so many had another verdict than `stable`."""
    judged: int
    """The last windows: at most those that the alarm looks at, without any that had too few events."""
    alarm: bool
    turned: bool
    """Whether the alarm was raised or ended with this window."""
    detector: str
    """What looks for changes; empty where nothing does."""
    changes: tuple[str, ...] = ()
    """The series that have another level since about this window."""


@dataclass(frozen=True, slots=True)
class OutcomeKnown:
    """The labels of a window have come: how its estimate had fared. Written but not yet committed."""

    outcome: OutcomeResult


@dataclass(frozen=True, slots=True)
class Committed:
    """Everything so far is published."""

    checkpoint: WindowCheckpoint
    seconds: float


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
class Listening:
    """Status page, metrics and API are there for whoever asks."""

    address: str


Happening = (
    BatchTaken
    | WindowAssessed
    | SeriesSeen
    | OutcomeKnown
    | LabelsWaiting
    | Committed
    | Turned
    | Reassigned
    | Listening
)
Observer = Callable[[Happening], None]
