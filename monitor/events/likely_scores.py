"""What scores that are no posteriors probably are, in words for whoever sent them."""

import numpy as np

from monitor.arrays import Vector
from monitor.tolerances import POSTERIOR_SUM


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
    return ""
