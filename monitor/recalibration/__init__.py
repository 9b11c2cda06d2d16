"""What a window's answer means for scores: the message, the rule behind it, and the client that applies it.

Scoring services take the message and the client without the rest of the monitor: they need numpy for arrays, and
nothing at all for lists.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from monitor.recalibration.applying import corrected_rows, expert_rows, pooled_rows, reweighted
from monitor.recalibration.calibration_map import CalibrationMap, CalibrationMethod, ScoreKind
from monitor.recalibration.causes import Cause
from monitor.recalibration.experts import Expert
from monitor.recalibration.inputs_rule import May, gated
from monitor.recalibration.message import InputCorrection, Recalibration, Validity, identity, settled
from monitor.recalibration.relation import (
    RegressionRecalibration,
    RelationCorrection,
    RelationParameters,
    corrected_predictions,
    relation_inputs,
)

if TYPE_CHECKING:
    from monitor.recalibration.classifier import RecalibratedClassifier
    from monitor.recalibration.client import RecalibrationClient
    from monitor.recalibration.kafka_feed import KafkaFeed
    from monitor.recalibration.rule import Grounds, imply, justified, retargeted, towards

__all__ = [
    "CalibrationMap",
    "CalibrationMethod",
    "Cause",
    "Expert",
    "Grounds",
    "InputCorrection",
    "KafkaFeed",
    "May",
    "RecalibratedClassifier",
    "Recalibration",
    "RecalibrationClient",
    "RegressionRecalibration",
    "RelationCorrection",
    "RelationParameters",
    "ScoreKind",
    "Validity",
    "corrected_predictions",
    "corrected_rows",
    "expert_rows",
    "gated",
    "identity",
    "imply",
    "justified",
    "pooled_rows",
    "relation_inputs",
    "retargeted",
    "reweighted",
    "settled",
    "towards",
]


_ELSEWHERE = {
    "Grounds": "monitor.recalibration.rule",
    "KafkaFeed": "monitor.recalibration.kafka_feed",
    "RecalibratedClassifier": "monitor.recalibration.classifier",
    "RecalibrationClient": "monitor.recalibration.client",
    "imply": "monitor.recalibration.rule",
    "retargeted": "monitor.recalibration.rule",
    "justified": "monitor.recalibration.rule",
    "towards": "monitor.recalibration.rule",
}


def __getattr__(name: str) -> Any:
    """These need numpy, threads, the network or scikit-learn: imported when asked for."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)
