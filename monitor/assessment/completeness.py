"""The answer about an incomplete window: its verdict is about what was seen, and it recommends nothing.

Except where all that it lacks is what a uniform sample leaves out: what holds of the sample holds of the window, with
the intervals and tests of the sample's size where the other events were not counted, and so its answer stands.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from monitor.recalibration import Cause
from monitor.windows import Gap, faults

if TYPE_CHECKING:
    from monitor.assessment.classifier import Assessment
    from monitor.assessment.regressor import RegressionAssessment

AssessmentT = TypeVar("AssessmentT", "Assessment", "RegressionAssessment")


def as_far_as_seen(assessment: AssessmentT) -> AssessmentT:
    """The assessment, as it is to be acted on."""
    gaps = assessment.origin.gaps
    sampling: tuple[str, ...] = (Gap.SAMPLED.words + _of_how_many(assessment),) if Gap.SAMPLED in gaps else ()
    if not faults(gaps):
        return replace(assessment, reasons=(*assessment.reasons, *sampling)) if sampling else assessment
    reason = "the window is incomplete: " + "; ".join(gap.words for gap in faults(gaps))
    recalibration = replace(assessment.recalibration.withheld(Cause.INCOMPLETE, reason), complete=False)
    return replace(assessment, recalibration=recalibration, reasons=(*assessment.reasons, *sampling, reason))


def _of_how_many(assessment: AssessmentT) -> str:
    """The sample's size, where it is known: that of a segment is not."""
    kept, left_out = assessment.events + assessment.unusable, assessment.counts.sampled_out
    return (
        f": {kept:,} of {kept + left_out:,}, and what rests on the sample has the intervals of so many"
        if left_out
        else ""
    )
