"""From a window and a reference to a verdict, its reasons and its message."""

from monitor.assessment.baseline import Baseline
from monitor.assessment.classifier import Assessment, assess
from monitor.assessment.concept import with_concept
from monitor.assessment.data_quality import NOTHING_WRONG, DataQuality
from monitor.assessment.message import (
    Level,
    MessagePart,
    SketchesPart,
    SketchPart,
    VolumePart,
    WindowResult,
    encode,
    rfc3339,
    schema_of,
    with_smoothed,
    with_volume,
)
from monitor.assessment.mix_rule import ClassRule, MixRule, share_scores, spread
from monitor.assessment.performance import Performance
from monitor.assessment.prevalence import CANDIDATES, BasedOn, errors_in_blocks
from monitor.assessment.reasons import describe
from monitor.assessment.recent_normal import Examined, RecentNormal, against_recent, examined_by, judged
from monitor.assessment.regressor import RegressionAssessment, assess_regression
from monitor.assessment.regressor_evidence import AdaptBy
from monitor.assessment.regressor_message import RegressionResult
from monitor.assessment.tallying import Tallying
from monitor.assessment.verdict import Verdict, verdicts
from monitor.assessment.window_tests import FeatureShift, Test

__all__ = [
    "CANDIDATES",
    "NOTHING_WRONG",
    "AdaptBy",
    "Assessment",
    "BasedOn",
    "Baseline",
    "ClassRule",
    "DataQuality",
    "Examined",
    "FeatureShift",
    "Level",
    "MessagePart",
    "MixRule",
    "Performance",
    "RecentNormal",
    "RegressionAssessment",
    "RegressionResult",
    "SketchPart",
    "SketchesPart",
    "Tallying",
    "Test",
    "Verdict",
    "VolumePart",
    "WindowResult",
    "against_recent",
    "assess",
    "assess_regression",
    "describe",
    "encode",
    "errors_in_blocks",
    "examined_by",
    "judged",
    "rfc3339",
    "schema_of",
    "share_scores",
    "spread",
    "verdicts",
    "with_concept",
    "with_smoothed",
    "with_volume",
]
