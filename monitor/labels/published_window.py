"""What is kept of a published window, and of its segments, until its labels have come."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from monitor.arrays import Vector
from monitor.assessment import Assessment
from monitor.labels.rows import Columns, packed
from monitor.performance import USUAL_DECISIONS, Decisions, MeasureValue
from monitor.recalibration import CalibrationMap, Expert
from monitor.windows import OTHER_SEGMENTS, Window

if TYPE_CHECKING:
    from monitor.labels.outcome_rules import PublishedPart


class PublishedEstimate(msgspec.Struct, frozen=True):
    """What was published of a window, as far as its outcome needs it."""

    classes: tuple[str, ...]
    source_priors: tuple[float, ...]
    estimate: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    target_priors: tuple[float, ...]
    """Of the recalibration, where one was to be applied; else the source priors."""
    applied: bool
    verdict: str
    reference: str
    calibration: CalibrationMap | None = None
    """That of the recalibration."""
    experts: dict[str, tuple[float, ...]] = {}
    """What each expert on the class mix said (`state.recent_labels`)."""
    pool: tuple[Expert, ...] = ()
    """Of the feed: what labels of earlier windows had taught."""
    performance: dict[str, MeasureValue] = {}
    """How good the model was estimated to be."""
    decisions: Decisions = USUAL_DECISIONS
    positive: int = 1
    segments: tuple["PublishedSegment", ...] = ()
    """Those that were watched apart. A release before had none."""

    @property
    def multipliers(self) -> tuple[float, ...]:
        """Of the recalibration, where one was to be applied; else all are 1."""
        return tuple(target / source for source, target in zip(self.source_priors, self.target_priors, strict=True))


class PublishedSegment(msgspec.Struct, frozen=True):
    """The same of the events of one segment."""

    name: str
    window: str
    """The id of the segment's window."""
    events: int
    estimate: PublishedEstimate


def told(
    assessment: Assessment,
    experts: Mapping[str, Vector],
    pool: tuple[Expert, ...] = (),
    segments: tuple[PublishedSegment, ...] = (),
) -> bytes:
    """What is kept of a published window.

    `experts` are estimates of its class mix that labels are to choose among, `pool` are the corrections of its feed.
    """
    estimate = msgspec.structs.replace(
        published_estimate(assessment),
        experts={name: tuple(mix.tolist()) for name, mix in experts.items()},
        pool=pool,
        segments=segments,
    )
    return msgspec.json.encode(estimate)


def published_estimate(assessment: Assessment) -> PublishedEstimate:
    """What a window, or one of its segments, says by itself."""
    estimate, correction = assessment.prevalence, assessment.recalibration
    return PublishedEstimate(
        classes=assessment.classes,
        source_priors=tuple(assessment.source_priors.tolist()),
        estimate=tuple(estimate.priors.tolist()),
        lower=tuple(estimate.lower.tolist()),
        upper=tuple(estimate.upper.tolist()),
        target_priors=correction.target_priors if correction.apply else correction.source_priors,
        applied=correction.apply,
        verdict=str(assessment.verdict),
        reference=assessment.reference_version,
        calibration=correction.calibration,
        performance=dict(assessment.performance.figures),
        decisions=assessment.performance.decisions,
        positive=assessment.performance.positive,
    )


def what_waits(window: Window, parts: "Sequence[PublishedPart]", _: Any) -> tuple[bytes, bytes]:
    """What was published of a window and of its segments, and the columns that its outcome needs."""
    whole, *segments = parts
    apart = tuple(
        PublishedSegment(
            each.window.key.segment, each.window.key.id, each.window.events, published_estimate(each.assessment)
        )
        for each in segments
    )
    return told(whole.assessment, whole.experts, whole.recalibration.experts, apart), kept(window, apart)


def kept(window: Window, segments: Sequence[PublishedSegment] = ()) -> bytes:
    """The columns that an outcome needs."""
    columns: dict[str, Any] = {"times": window.times, "posteriors": window.posteriors}
    if window.labels is not None:
        columns["labels"] = window.labels
    columns |= places(window, [segment.name for segment in segments])
    return packed(columns, None if window.ids is None else window.ids.tolist())


def places(window: Window, segments: Sequence[str]) -> Columns:
    """The column of each event's segment, as its place among those that were watched apart; none without any."""
    if not segments or window.segments is None:
        return {}
    numbers = {name: place for place, name in enumerate(segments)}
    other = numbers.get(OTHER_SEGMENTS, -1)
    of_names = np.array([numbers.get(name, other) for name in window.segments.names], dtype=np.int16)
    return {"segments": of_names[window.segments.codes]}
