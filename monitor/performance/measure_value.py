"""A measure with its 95 % interval, from its value and its variance. Pure.

Shares have an interval that is symmetric in log-odds, so that it stays between 0 and 1; losses one that stays above 0.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from monitor.performance.measures import Measure
from monitor.tolerances import LEAST_ERROR, NORMAL_95


@dataclass(frozen=True, slots=True)
class MeasureValue:
    """One measure."""

    value: float
    lower: float
    upper: float


def with_interval(measure: Measure, value: float, variance: float) -> MeasureValue:
    """A value and its interval, from its variance."""
    half = NORMAL_95 * float(np.sqrt(max(variance, 0.0)))
    if measure.range == "loss":
        value = max(value, 0.0)
        return MeasureValue(value, max(value - half, 0.0), value + half)
    value = min(max(value, 0.0), 1.0)
    inside = min(max(value, LEAST_ERROR), 1 - LEAST_ERROR)
    odds, width = float(logit(inside)), half / (inside * (1 - inside))
    return MeasureValue(value, min(value, float(expit(odds - width))), max(value, float(expit(odds + width))))
