"""When scores are posteriors, and what they probably are where not, in words for whoever sent them."""

import numpy as np

from monitor.arrays import Vector
from monitor.tolerances import CLASS_ROUNDING, FARTHEST_SUM, POSTERIOR_SUM, SUM_ROUNDING


def sum_tolerance(classes: int) -> float:
    """How far from 1 the posteriors of an event may sum, by what rounding each to three decimals can do."""
    return min(max(POSTERIOR_SUM, classes * CLASS_ROUNDING), FARTHEST_SUM) + SUM_ROUNDING


def likely_scores(row: Vector) -> str:
    """The end of a sentence about one event's scores; empty where nothing is likely."""
    if not np.isfinite(row).all():
        return ""
    if row.min() >= 0 and abs(row.sum() / 100 - 1) <= POSTERIOR_SUM:
        return "; are these percentages? Divide them by 100"
    if row.max() <= 0 and abs(np.exp(row).sum() - 1) <= POSTERIOR_SUM:
        return "; are these logarithms? Take their exp"
    if row.max() > 1 + POSTERIOR_SUM or row.min() < -POSTERIOR_SUM:
        # One number p of two classes came in as 1 - p and p.
        percentages = (
            "percentages? Or " if row.size == 2 and 10 < row.max() <= 100 and abs(row.sum() - 1) < 1e-9 else ""
        )
        margins = 'margins? Then build the reference with --scores margin, or scores="margin" in Python'
        return f"; are these {percentages}{margins}"
    if abs(row.sum() - 1) <= row.size * 10 * CLASS_ROUNDING and np.allclose(row, np.round(row, 2), rtol=0, atol=1e-9):
        return "; were they rounded to two decimals? Send three or more"
    return ""
