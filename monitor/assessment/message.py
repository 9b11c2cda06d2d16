"""The message of one window as types: what goes to the results sink, and what its JSON Schema is generated from.

No number in it is NaN or infinite: what could not be computed is null, and a reason or a stop reason names why.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from monitor.assessment.prevalence import BasedOn
from monitor.assessment.verdict import Verdict
from monitor.recalibration import Recalibration
from monitor.windows import Gap

SCHEMA_ID = "shiftwatch.window.v1"


class MessagePart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all parts: immutable, and nothing in them that the schema does not know."""


Rows = Literal["all", "sample"]
"""Which events of a window an answer rests on, where only a sample of them is kept: those that need no rows may rest on
all. It is left out where it is `all`."""


class Counts(MessagePart, frozen=True):
    """What happened to the events of the window."""

    used: int
    late: int
    rejected: int
    sampled_out: int
    unusable: int
    """Events whose posteriors were not numbers of at least 0 with a positive sum."""
    missing_values: int
    """Feature values that were null, over all features."""


class Share(MessagePart, frozen=True):
    """One class's prevalence."""

    estimate: float
    lower: float
    upper: float
    reference: float


class Level(MessagePart, frozen=True):
    """One class's prevalence now, as the windows so far tell it together."""

    estimate: float
    lower: float
    upper: float


class Unknown(MessagePart, frozen=True):
    """The share of the events that look like no known class; `prevalence` is that of the others."""

    estimate: float
    lower: float
    upper: float


class HarmPart(MessagePart, frozen=True):
    """Whether the model is likely worse in this window than it was on the hold-out, without a label."""

    score: float
    """In standard deviations of the hold-out's blocks: above 2 a model is likely worse than in any of them."""
    confidence: float
    """The part of the model's own confidence."""
    departure: float
    """How many times as far from the reference inputs are as usual."""
    shares: float
    """The move of the calibrated scores' shares, in natural standard deviations."""
    expected_brier: float
    """What calibrated posteriors expect of themselves, summed over the classes; and"""
    usual_brier: float
    """what it was on the hold-out."""


class FigurePart(MessagePart, frozen=True):
    """A number with its 95 % interval."""

    estimate: float
    lower: float
    upper: float


class PerformancePart(MessagePart, frozen=True):
    """How good the model's scores are in this window, as they are said, estimated without labels."""

    figures: dict[str, FigurePart]
    """By measure: `accuracy`, `brier` (the mean over events and classes) and `log_loss`; of two classes `f1`,
    `roc_auc` and `average_precision` of the positive one, and `cost` where mistakes were given one; of more
    `macro_f1`, and `macro_roc_auc` and `macro_average_precision` where these were asked for."""
    withheld: str
    """Why there are none; empty if there are."""


class Estimate(MessagePart, frozen=True, omit_defaults=True):
    """One estimator's answer, and how it got there."""

    priors: dict[str, float]
    lower: dict[str, float]
    upper: dict[str, float]
    events: int
    dropped: int
    iterations: int
    converged: bool
    gap: float | None
    stop_reason: str
    unique: bool
    deficit: float | None
    based_on: Rows = "all"


class TestResult(MessagePart, frozen=True, omit_defaults=True):
    """One test: its statistic, how unlikely that is without a shift, how large the effect is, and what it needed."""

    statistic: float | None
    p_value: float | None
    """Null where a measure has no distribution, and is judged by its effect alone."""
    effect: float | None
    level: float
    """The p-value has to be below this,"""
    floor: float
    """and the effect at least this."""
    events: int
    significant: bool
    """Both."""
    meaning: str
    based_on: Rows = "all"


class Map(MessagePart, frozen=True):
    """How a feature's values are taken back: window = alpha x reference + beta, or matching percentiles."""

    kind: str
    alpha: float
    beta: float
    window: tuple[float, ...]
    reference: tuple[float, ...]


class FeatureResult(MessagePart, frozen=True, omit_defaults=True):
    """One feature or posterior against the reference, plainly and reweighted to the class mix."""

    moved: bool
    kind: str
    """`none`, `linear`, `monotone`, `shape`, `categories` or `missing`."""
    test: str
    statistic: float
    p_value: float
    adjusted_p_value: float
    """Holm over all features and missing rates."""
    false_discovery_rate: float
    """Benjamini-Hochberg's adjusted p-value."""
    distance: float
    plain_distance: float
    plain_p_value: float
    events: int
    missing_rate: float
    expected_missing_rate: float
    missing_p_value: float
    missing_moved: bool
    map: Map | None
    reason: str
    based_on: Rows = "all"


class SketchPart(MessagePart, frozen=True):
    """How one column is distributed, cell by cell, for drawing; missing values are in no cell."""

    edges: tuple[float, ...]
    """Of a number: the cells lie below the first, from each to the next, and above the last, and so there is one more.
    The first and the last are the ends of the reference's range. Where the last two are the same number, the cell
    between them holds that number."""
    categories: tuple[str, ...]
    """Of any other feature: the values with a cell of their own; two cells follow, one of all other values that the
    reference knows, and one of those that it does not."""
    counts: tuple[int, ...]
    """The window's values in each cell."""
    reference: tuple[float, ...]
    """The share of the reference's values in each cell,"""
    expected: tuple[float, ...]
    """and what it would be at the class mix of `prevalence`."""


class SketchesPart(MessagePart, frozen=True):
    """Small sketches of distributions: of numbers at quantiles of the reference, of categories the most common ones."""

    features: dict[str, SketchPart]
    """By name; where there are more than 160, those that moved most."""
    scores: dict[str, SketchPart]
    """By class: the calibrated posterior, of two classes that of the one that is looked for; of a regressor the
    `prediction`."""


class FeatureQualityPart(MessagePart, frozen=True):
    """A feature with values that no hold-out event had."""

    outside_range: float
    """The share of its values below or above all of the reference's, of a number;"""
    new_categories: float
    """of any other feature, the share that the reference does not know."""


class QualityPart(MessagePart, frozen=True):
    """What is plainly wrong with the data, in shares that anybody can check."""

    rejected: float
    """Of the records; 0 of a segment, where it is not known."""
    missing: float
    """Of the feature values."""
    outside_range: float
    """Of the numbers: below or above all of the reference's."""
    new_categories: float
    """Of the values of other features."""
    constant: tuple[str, ...]
    """Features with one value only, where the reference has many."""
    features: dict[str, FeatureQualityPart]
    """Those with values that no hold-out event had; twenty at most, the worst of them."""


class VolumePart(MessagePart, frozen=True):
    """How many events there were, beside the same hour of earlier days."""

    ratio: float
    """To the median of these days,"""
    days: int
    """so many, seven at most."""


class BaselineResult(MessagePart, frozen=True):
    """The verdict against one of the things that the window was held against."""

    verdict: Verdict
    reasons: tuple[str, ...]
    moved: tuple[str, ...]
    """The features that differ, those that differ the most first."""


class Versions(MessagePart, frozen=True):
    """What made the result."""

    software: str
    reference: str


class WindowResult(MessagePart, frozen=True):
    """One closed window."""

    schema: str
    stream: str
    segment: str
    window: str
    start: str
    end: str
    closed_because: str
    complete: bool
    """Whether the window had all of its events. One that had not recommends nothing, unless it is a uniform sample."""
    gaps: tuple[Gap, ...]
    """Why it had not; in words among the reasons."""
    member: str
    """Of a group, where the window is its part of a stream that comes to several; otherwise empty."""
    partitions: tuple[str, ...]
    """What an incomplete window was made from; empty for a whole one."""
    events: Counts
    verdict: Verdict
    reasons: tuple[str, ...]
    baselines: dict[str, BaselineResult]
    """Against `reference`, which `verdict` is, and against the `recent` normal where one is known."""
    prevalence: dict[str, Share]
    harm: HarmPart | None
    """Null where the reference has no blocks that say what is usual, and for regressors."""
    performance: PerformancePart | None
    """Null for regressors."""
    unknown: Unknown | None
    """Null but for the verdict `unknown-class`."""
    estimator: str
    """The method behind `prevalence`."""
    based_on: BasedOn | None
    """What that rests on; `reasons` say why where it is not label shift. Null for regressors."""
    estimates: dict[str, Estimate]
    tests: dict[str, TestResult]
    features: dict[str, FeatureResult]
    posteriors: dict[str, FeatureResult]
    recalibration: Recalibration
    versions: Versions
    quality: QualityPart
    volume: VolumePart | None
    """Null until the same hour of a day before is known, for segments, and for windows by count."""
    sketches: SketchesPart | None
    """Null where there are too few events, and where they are switched off (`sketches = false`)."""
    smoothed: dict[str, Level] | None
    """The prevalence now, by this window and those before it: for small windows it is known better than `prevalence`,
    which is this window's alone. Null before the first window that may be trusted, and for regressors."""


_ENCODER = msgspec.json.Encoder(order="deterministic")
_FIELDS = WindowResult.__struct_fields__
_AFTER_BASELINES = b',"%b":' % _FIELDS[_FIELDS.index("baselines") + 1].encode()


def encode(message: MessagePart | Recalibration) -> bytes:
    """The same message gives the same bytes."""
    return _ENCODER.encode(message)


def with_baselines(message: bytes, baselines: dict[str, BaselineResult]) -> bytes:
    """The message of a window with other baselines: nothing else is written again.

    No string of JSON holds a bare quotation mark, and no table before them has a field of these names.
    """
    start = message.index(b',"baselines":') + len(b',"baselines":')
    return message[:start] + _ENCODER.encode(baselines) + message[message.index(_AFTER_BASELINES, start) :]


def with_volume(result: bytes, volume: VolumePart) -> bytes:
    """An encoded result with how its volume compares: nothing else that can be null has this name."""
    return result.replace(b'"volume":null', b'"volume":' + _ENCODER.encode(volume), 1)


_NOT_SMOOTHED = b'"smoothed":null}'


def with_smoothed(result: bytes, smoothed: dict[str, Level]) -> bytes:
    """An encoded result with what is known over windows: it is the last field, so nothing is encoded anew."""
    return result.removesuffix(_NOT_SMOOTHED) + b'"smoothed":' + _ENCODER.encode(smoothed) + b"}"


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the message."""
    return schema_of(WindowResult)


def schema_of(message: type[MessagePart]) -> dict[str, Any]:
    """The JSON Schema of a message; alternatives in an order that no release of msgspec decides."""
    schema: dict[str, Any] = in_order(msgspec.json.schema(message))
    return schema


def in_order(schema: Any) -> Any:
    """A schema with its alternatives sorted."""
    if isinstance(schema, list):
        return [in_order(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    ordered = {key: in_order(value) for key, value in schema.items()}
    if "anyOf" in ordered:
        ordered["anyOf"] = sorted(ordered["anyOf"], key=str)
    return ordered


def rfc3339(microseconds: int) -> str:
    """Microseconds since the epoch as RFC 3339 in UTC, always with six digits."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
