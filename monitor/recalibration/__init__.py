"""What a window's answer means for scores: the message (`message`), and the client that applies it (`client`).

Only numpy is needed to import either: scoring services take this without the rest of the monitor.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from monitor.recalibration.message import (
    DISAGREEMENT,
    Grounds,
    InputCorrection,
    Recalibration,
    Validity,
    identity,
    imply,
    justified,
    settled,
    withheld,
)

if TYPE_CHECKING:
    from monitor.recalibration.classifier import RecalibratedClassifier
    from monitor.recalibration.client import RecalibrationClient
    from monitor.recalibration.kafka_feed import KafkaFeed

__all__ = [
    "DISAGREEMENT",
    "Grounds",
    "InputCorrection",
    "KafkaFeed",
    "RecalibratedClassifier",
    "Recalibration",
    "RecalibrationClient",
    "Validity",
    "identity",
    "imply",
    "justified",
    "settled",
    "withheld",
]


_ELSEWHERE = {
    "KafkaFeed": "monitor.recalibration.kafka_feed",
    "RecalibratedClassifier": "monitor.recalibration.classifier",
    "RecalibrationClient": "monitor.recalibration.client",
}


def __getattr__(name: str) -> Any:
    """These need threads, the network or scikit-learn, which the pure core never sees: imported when asked for."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)
