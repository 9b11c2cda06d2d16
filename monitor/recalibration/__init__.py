"""What a window's answer means for scores: the message (`message`), and the client that applies it (`client`).

Only numpy is needed to import either: scoring services take this without the rest of the monitor.
"""

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
    from monitor.recalibration.client import RecalibrationClient

__all__ = [
    "DISAGREEMENT",
    "Grounds",
    "InputCorrection",
    "Recalibration",
    "RecalibrationClient",
    "Validity",
    "identity",
    "imply",
    "justified",
    "settled",
    "withheld",
]


def __getattr__(name: str) -> Any:
    """The client needs threads and the network, which the pure core never sees: it is imported when asked for."""
    if name != "RecalibrationClient":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from monitor.recalibration.client import RecalibrationClient  # noqa: PLC0415

    return RecalibrationClient
