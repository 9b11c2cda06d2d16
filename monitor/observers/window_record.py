"""What is kept of an assessed window for those who look at it later: metrics, the API, the status page.

A reading is small and frozen. It is made on the loop, once per window; everything that is shown is made from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from monitor.assessment import Assessment, FeatureShift, RegressionAssessment, Test, Verdict, describe
from monitor.kinds import Assessed
from monitor.ports.schema import PREDICTION
from monitor.priors.estimate import PriorEstimate
from monitor.service.notices import WindowAssessed
from monitor.windows import WindowKey

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EstimateReading:
    """One estimator's answer."""

    method: str
    priors: tuple[float, ...]
    iterations: int
    converged: bool
    gap: float
    stop_reason: str


@dataclass(frozen=True, slots=True)
class MovedFeature:
    """A feature that moved beyond what the class mix explains."""

    name: str
    kind: str
    effect: float
    p_value: float
    explanation: str


@dataclass(frozen=True, slots=True)
class RelationReading:
    """What the labels of a regression stream say."""

    tested: bool
    labels: int
    wanted: int
    error: float | None
    """Root mean square of label minus prediction; None without labels."""
    reference_error: float
    corrected_error: float | None
    description: str
    """What changed, in words; empty where nothing did."""


NO_ESTIMATE = EstimateReading("", (), 0, True, 0.0, "")
"""Of a stream without classes."""


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One window, as it is remembered."""

    key: WindowKey
    events: int
    late: int
    rejected: int
    sampled_out: int
    verdict: Verdict
    reasons: tuple[str, ...]
    classes: tuple[str, ...]
    source_priors: tuple[float, ...]
    reported: EstimateReading
    """The prevalence that is reported, and its interval."""
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    estimates: tuple[EstimateReading, ...]
    tests: Mapping[str, Test]
    features: tuple[str, ...]
    effects: Floats
    """Per feature: how far it moved beyond what the class mix explains, 0 to 1."""
    p_values: Floats
    """Corrected across features."""
    moved: tuple[MovedFeature, ...]
    apply: bool
    """Whether the recalibration is to be applied."""
    why: str
    """The reason for that."""
    multipliers: tuple[float, ...]
    doubt: str
    """Why labels of earlier windows say that the estimates are off; empty if they do not."""
    realised: tuple[float, ...] | None
    """Shares of the classes among the labelled events of the window, where there are any."""
    labelled: int
    seconds: float
    """How long the assessment took."""
    relation: RelationReading | None = None
    """Only of a regression stream, which has no classes."""

    @property
    def priors(self) -> tuple[float, ...]:
        """The prevalence that is reported."""
        return self.reported.priors

    def strongest(self, most: int) -> list[int]:
        """The numbers of the features with the largest effects, at most so many, in the order of the features."""
        if len(self.features) <= most:
            return list(range(len(self.features)))
        return sorted(np.argsort(-self.effects, kind="stable")[:most].tolist())


def reading_of(assessed: WindowAssessed) -> Reading:
    """What is remembered of an assessed window."""
    assessment = assessed.assessment
    if isinstance(assessment, RegressionAssessment):
        return _of_regression(assessment, assessed)
    assessment = cast(Assessment, assessment)
    window, told = assessed.window, assessment.prevalence
    realised = tuple(count / window.labelled for count in window.class_counts) or None
    return Reading(
        classes=assessment.classes,
        source_priors=_tuple(assessment.source_priors),
        reported=_estimate(told.method, told),
        lower=_tuple(told.lower),
        upper=_tuple(told.upper),
        estimates=tuple(_estimate(name, one) for name, one in assessment.estimates.items()),
        realised=realised,
        labelled=window.labelled,
        **_common(assessment, assessed, assessment.features),
    )


def _of_regression(assessment: RegressionAssessment, assessed: WindowAssessed) -> Reading:
    """The predictions are remembered beside the features."""
    found, shifts = assessment.relation, assessment.features
    if assessment.prediction is not None:
        shifts = {**shifts, PREDICTION.name: assessment.prediction}
    return Reading(
        classes=(),
        source_priors=(),
        reported=NO_ESTIMATE,
        lower=(),
        upper=(),
        estimates=(),
        realised=None,
        labelled=assessed.window.labelled,
        relation=RelationReading(
            tested=found.tested,
            labels=found.labels,
            wanted=found.wanted,
            error=found.error,
            reference_error=found.reference_error,
            corrected_error=found.corrected_error,
            description=found.test.description if found.changed else "",
        ),
        **_common(assessment, assessed, shifts),
    )


def _common(assessment: Assessed, assessed: WindowAssessed, shifts: Mapping[str, FeatureShift]) -> dict[str, Any]:
    """What the windows of all streams have."""
    return {
        "key": assessment.key,
        "events": assessment.events,
        "late": assessment.counts.late,
        "rejected": assessment.counts.rejected,
        "sampled_out": assessment.counts.sampled_out,
        "verdict": assessment.verdict,
        "reasons": assessment.reasons,
        "tests": assessment.tests,
        "features": tuple(shifts),
        "effects": np.array([_effect(one) for one in shifts.values()], dtype=np.float32),
        "p_values": np.array([_p_value(one) for one in shifts.values()], dtype=np.float32),
        "moved": tuple(
            MovedFeature(name, one.kind, _effect(one), _p_value(one), describe(one.move, one.explanation))
            for name, one in shifts.items()
            if one.moved
        ),
        "apply": assessed.recalibration.apply,
        "why": assessed.recalibration.reason,
        "multipliers": assessed.recalibration.multipliers,
        "doubt": assessed.doubt,
        "seconds": assessed.seconds,
    }


def _estimate(name: str, one: PriorEstimate) -> EstimateReading:
    return EstimateReading(name, _tuple(one.priors), one.iterations, bool(one.converged), one.gap, one.stop_reason)


def _effect(shift: FeatureShift) -> float:
    """Of its values or of their absence, whichever moved further."""
    return max(shift.move.distance, abs(shift.move.missing_rate - shift.move.expected_missing_rate))


def _p_value(shift: FeatureShift) -> float:
    return min(shift.move.adjusted_p, shift.move.missing_adjusted_p)


def _tuple(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
