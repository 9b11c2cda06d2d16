"""The answer about an incomplete window: its verdict is about what was seen, and it recommends nothing."""

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from monitor.recalibration import Cause

if TYPE_CHECKING:
    from monitor.assessment.classifier import Assessment
    from monitor.assessment.regressor import RegressionAssessment

AssessmentT = TypeVar("AssessmentT", "Assessment", "RegressionAssessment")


def as_far_as_seen(assessment: AssessmentT) -> AssessmentT:
    """The assessment, as it is to be acted on."""
    origin = assessment.origin
    if origin.complete:
        return assessment
    reason = f"the window is incomplete: {origin.words}"
    recalibration = replace(assessment.recalibration.withheld(Cause.INCOMPLETE, reason), complete=False)
    return replace(assessment, recalibration=recalibration, reasons=(*assessment.reasons, reason))
