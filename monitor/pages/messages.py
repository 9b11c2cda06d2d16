"""What a report reads of published messages: of each window and outcome a few fields, of any release that has them.

Fields that a message lacks are empty, and fields that are not named here are passed over at the speed of the decoder.
"""

from datetime import datetime
from functools import cached_property

import msgspec

NO_SKETCHES = msgspec.Raw(b"null")


class Read(msgspec.Struct, frozen=True):
    """Base of all: unknown fields do no harm."""


class SharesRead(Read, frozen=True):
    """One class's share; of the smoothed one no reference is told."""

    estimate: float
    lower: float
    upper: float
    reference: float = 0.0


class CountsRead(Read, frozen=True):
    """What became of the events."""

    used: int = 0
    late: int = 0
    rejected: int = 0
    sampled_out: int = 0
    unusable: int = 0
    missing_values: int = 0


class MeasureRead(Read, frozen=True):
    """A measure of the model's scores; in outcomes `realised` stands for `estimate`."""

    lower: float
    upper: float
    estimate: float = 0.0
    realised: float = 0.0
    reference: float | None = None
    """Of a regressor: on its hold-out."""


class PerformanceRead(Read, frozen=True):
    """How good the model is estimated to be."""

    figures: dict[str, MeasureRead] = {}
    withheld: str = ""


class HarmRead(Read, frozen=True):
    """The harm score."""

    score: float


class QualityRead(Read, frozen=True):
    """What is plainly wrong with the data."""

    rejected: float = 0.0
    missing: float = 0.0
    outside_range: float = 0.0
    new_categories: float = 0.0
    constant: tuple[str, ...] = ()


class VolumeRead(Read, frozen=True):
    """Events beside the same hour of earlier days."""

    ratio: float


class FeatureRead(Read, frozen=True):
    """One feature against the reference."""

    moved: bool = False
    kind: str = ""
    distance: float = 0.0
    adjusted_p_value: float = 1.0
    missing_rate: float = 0.0
    expected_missing_rate: float = 0.0
    reason: str = ""


class BaselineRead(Read, frozen=True):
    """The verdict against one of the things that the window was held against."""

    verdict: str


class FeedRead(Read, frozen=True):
    """Whether scores are to be corrected, and why or why not."""

    apply: bool = False
    reason: str = ""


class RelationRead(Read, frozen=True):
    """Of a regressor: its error, and what labels say."""

    labels: int = 0
    description: str = ""
    error: float | None = None
    reference_error: float = 0.0
    residual_quantiles: tuple[float, float, float] | None = None


class VersionsRead(Read, frozen=True):
    """What made the result."""

    software: str = ""
    reference: str = ""


class SketchRead(Read, frozen=True):
    """How one column is distributed."""

    edges: tuple[float, ...]
    categories: tuple[str, ...]
    counts: tuple[int, ...]
    reference: tuple[float, ...]
    expected: tuple[float, ...]


class SketchesRead(Read, frozen=True):
    """The sketches of a window."""

    features: dict[str, SketchRead] = {}
    scores: dict[str, SketchRead] = {}


class _WithTimes(msgspec.Struct, frozen=True, dict=True):
    start: str
    end: str

    @cached_property
    def begin(self) -> int:
        """Microseconds since the epoch, as is `until`."""
        return _microseconds(self.start)

    @cached_property
    def until(self) -> int:
        return _microseconds(self.end)


class WindowRead(_WithTimes, frozen=True):
    """One window."""

    stream: str
    window: str
    verdict: str
    segment: str = ""
    complete: bool = True
    events: CountsRead = CountsRead()
    reasons: tuple[str, ...] = ()
    baselines: dict[str, BaselineRead] = {}
    prevalence: dict[str, SharesRead] = {}
    smoothed: dict[str, SharesRead] | None = None
    estimator: str = ""
    based_on: str | None = None
    harm: HarmRead | None = None
    performance: PerformanceRead | None = None
    features: dict[str, FeatureRead] = {}
    recalibration: FeedRead = FeedRead()
    relation: RelationRead | None = None
    versions: VersionsRead = VersionsRead()
    quality: QualityRead = QualityRead()
    volume: VolumeRead | None = None
    sketches: msgspec.Raw = NO_SKETCHES

    @property
    def told(self) -> str:
        """The verdict that alarms follow: against recent windows, where that is known."""
        recent = self.baselines.get("recent")
        return self.verdict if recent is None else recent.verdict

    @property
    def drawn(self) -> SketchesRead:
        """Its sketches; none where it has none."""
        return msgspec.json.decode(self.sketches, type=SketchesRead | None) or SketchesRead()

    @property
    def moved(self) -> tuple[str, ...]:
        """The features that moved, those that moved furthest first."""
        names = [name for name, feature in self.features.items() if feature.moved]
        return tuple(sorted(names, key=lambda name: -self.features[name].distance))

    def slim(self, *, sketches: bool) -> "WindowRead":
        """The same without what only a closer look needs: the line that it was read from can be let go of."""
        kept = {name: feature for name, feature in self.features.items() if feature.moved or feature.missing_rate}
        raw = self.sketches.copy() if sketches else NO_SKETCHES
        return msgspec.structs.replace(self, features=kept, sketches=raw)


class RealisedRead(Read, frozen=True):
    """One class, as the labels have it."""

    realised: float


class CorrectionRead(Read, frozen=True):
    """What labels say of a regressor's correction."""

    finding: str
    reason: str


class OutcomeRead(_WithTimes, frozen=True):
    """What the labels of one window said."""

    stream: str
    window: str
    segment: str = ""
    selective: bool = False
    classes: dict[str, RealisedRead] = {}
    performance: dict[str, MeasureRead] = {}
    correction: CorrectionRead | None = None


class AlarmRead(Read, frozen=True):
    """An alarm that has begun, goes on or has ended."""

    stream: str
    id: str
    state: str
    series: str
    since: str
    end: str
    segment: str = ""
    reason: str = ""

    @property
    def begin(self) -> int:
        """Microseconds since the epoch, as is `until`."""
        return _microseconds(self.since)

    @property
    def until(self) -> int:
        return _microseconds(self.end)


class DeadLetterRead(Read, frozen=True):
    """A record that was rejected; it has no time of its own."""

    reason: str
    stream: str = ""
    """Empty where the record does not say so in a way that can be read."""


Message = WindowRead | OutcomeRead | AlarmRead | DeadLetterRead


class _Header(msgspec.Struct):
    schema: str = ""
    reason: str = ""
    partition: str = ""


_HEADER = msgspec.json.Decoder(_Header)
_DEAD_LETTER = msgspec.json.Decoder(DeadLetterRead)
_DECODERS: dict[str, msgspec.json.Decoder[Message]] = {
    "shiftwatch.window.v1": msgspec.json.Decoder(WindowRead),
    "shiftwatch.regression-window.v1": msgspec.json.Decoder(WindowRead),
    "shiftwatch.outcome.v1": msgspec.json.Decoder(OutcomeRead),
    "shiftwatch.regression-outcome.v1": msgspec.json.Decoder(OutcomeRead),
    "shiftwatch.alarm.v1": msgspec.json.Decoder(AlarmRead),
}


def read(line: bytes) -> Message | None:
    """The message in a line of JSON; None for those that a report has no use for. msgspec.DecodeError for others."""
    header = _HEADER.decode(line)
    decoder = _DEAD_LETTER if header.reason and header.partition else _DECODERS.get(header.schema)
    return None if decoder is None else decoder.decode(line)


def _microseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e6)
