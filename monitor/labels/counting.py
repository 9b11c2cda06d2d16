"""What became of the labels of a window, and how long they took. Pure, and the same for every kind of stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from monitor.labels.outcome_message import LabelCounts
from monitor.tolerances import LABELS_COME

if TYPE_CHECKING:
    from monitor.arrays import Vector
    from monitor.labels.joining import LabelledRows
    from monitor.labels.values import Found, Waiting


def counted(own: LabelledRows, events: int, copies: int, unknown: int) -> LabelCounts:
    """Of a window of so many events, beside whose own labels came copies of events that it does not hold."""
    labelled = int(own.labelled.sum())
    return LabelCounts(
        joined=labelled + copies,
        missing=events - labelled,
        stateless=copies,
        duplicate=own.duplicate,
        contradicting=own.contradicting,
        early=own.early,
        unknown=unknown,
    )


def within(one: Waiting, own: LabelledRows, found: Found, groups: Vector) -> float | None:
    """Seconds after the window's end within which nearly all labels of each group of rows had come.

    The slowest group counts: labels that came first may be those of one class.
    """
    came = np.full(own.values.size, float(one.end))
    np.maximum.at(came, found.rows, found.marks)
    seconds = (came - one.end) / 1e6
    slowest = [
        np.quantile(seconds[groups == group], LABELS_COME, method="higher") for group in np.unique(groups[own.labelled])
    ]
    return float(max(slowest)) if slowest else None
