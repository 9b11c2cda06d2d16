"""How far the predictions of a regressor were off in a window, by labels that came later. Pure.

Notation: r_i label minus prediction of m labelled events, of which each stands for w_i of the window's (as many each,
or by stratum where labels were chosen: `realised`), W the sum of the w_i.

    bias = sum_i w_i r_i / W        MAE = sum_i w_i |r_i| / W        RMSE = sqrt(sum_i w_i r_i^2 / W)

A mean v of losses l_i differs from the window's own by chance with variance m / (m - 1) sum_i (1 - 1 / w_i) s_i^2,
where s_i = w_i (l_i - v) / W. Squares of errors are skewed, more so where errors have heavy tails: an interval that is
symmetric by the normal law then misses the truth far more often than it says, and always on the same side. So the
bounds are the outermost of those of Student's t and of Hall's transformation of it, which takes the skewness g out
(Hall 1992, "On the removal of skewness by transformation"):

    t + g t^2 / (3 sqrt m) + g^2 t^3 / (27 m) + g / (6 sqrt m)

The quantile is Student's with as many degrees of freedom as the variance is known by, 2 m / (k - 1) with the kurtosis
k of the s_i, from 2 to m - 1 (Satterthwaite 1946). Where all s_i are alike they tell of no chance at all: nothing is
said.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from monitor.arrays import Vector
from monitor.performance.measure_value import MeasureValue
from monitor.tolerances import FEWEST_LABELS, INTERVAL_LEVEL

PREDICTION_ERRORS = ("rmse", "mae", "bias")
"""What is measured of a regressor, by name."""


@dataclass(frozen=True, slots=True)
class Gain:
    """The root mean square error of some events without a correction and with it."""

    without: float
    corrected: float
    difference: MeasureValue
    """The second minus the first: below 0 the correction helped."""


def enough_labels(labels: int, events: int) -> bool:
    """Whether so many labels of a window's events say anything: few do where they are all that the window has."""
    return labels > 0 and labels >= min(events, FEWEST_LABELS)


def prediction_errors(
    labels: Vector, predictions: Vector, events: int, weights: Vector | None = None
) -> Mapping[str, MeasureValue]:
    """What labelled predictions tell of a window of so many events, by measure."""
    if not enough_labels(labels.size, events):
        return {}
    residuals, each = labels - predictions, _stands_for(labels.size, events, weights)
    unit, noise = _unit(residuals), _rounding(labels, predictions)
    scaled, noise = residuals / unit, noise / unit
    losses = {"rmse": scaled**2, "mae": np.abs(scaled), "bias": scaled}
    found = {name: _mean(loss, each, noise) for name, loss in losses.items()}
    if (squares := found["rmse"]) is not None:
        found["rmse"] = MeasureValue(*np.sqrt(np.maximum([squares.value, squares.lower, squares.upper], 0.0)).tolist())
    if (sizes := found["mae"]) is not None:
        found["mae"] = MeasureValue(sizes.value, max(sizes.lower, 0.0), sizes.upper)
    return {
        name: MeasureValue(unit * known.value, unit * known.lower, unit * known.upper)
        for name, known in found.items()
        if known is not None
    }


def gain(
    labels: Vector, predictions: Vector, corrected: Vector, events: int, weights: Vector | None = None
) -> Gain | None:
    """What a correction made of the errors of labelled events; None where too few tell, or all tell the same.

    With A and B the mean squares without and with it, sqrt(B) - sqrt(A) changes by (dB / sqrt(B) - dA / sqrt(A)) / 2.
    """
    if not enough_labels(labels.size, events):
        return None
    each = _stands_for(labels.size, events, weights)
    unit = max(_unit(labels - predictions), _unit(labels - corrected))
    squares = [((labels - said) / unit) ** 2 for said in (predictions, corrected)]
    roots = [float(np.sqrt(np.average(square, weights=each))) for square in squares]
    without, with_it = (
        square / (2 * root) if root > 0 else square for square, root in zip(squares, roots, strict=True)
    )
    noise = _rounding(labels, predictions) / unit
    chance = _mean(with_it - without, each, noise)
    if chance is None:
        return None
    middle = roots[1] - roots[0]
    bounds = (middle + bound - chance.value for bound in (chance.lower, chance.upper))
    return Gain(unit * roots[0], unit * roots[1], MeasureValue(unit * middle, *(unit * bound for bound in bounds)))


def _stands_for(labels: int, events: int, weights: Vector | None) -> Vector:
    return np.full(labels, max(events / labels, 1.0)) if weights is None else weights


def _unit(residuals: Vector) -> float:
    """What errors are measured in, so that no power of theirs is too large a number, or too small."""
    return float(np.abs(residuals).max()) or 1.0


def _rounding(labels: Vector, predictions: Vector) -> float:
    """Differences of numbers of this size are no better known than this."""
    return 4 * float(np.finfo(np.float64).eps) * float(max(np.abs(labels).max(), np.abs(predictions).max()))


def _mean(losses: Vector, each: Vector, noise: float) -> MeasureValue | None:
    """The mean of losses and its interval; None where the losses are alike, but for rounding, and others may not be."""
    value = float(np.average(losses, weights=each))
    left = 1 - 1 / each
    if not left.any():
        return MeasureValue(value, value, value)
    if np.ptp(losses) <= noise:
        return None
    m, s = losses.size, each * (losses - value) / each.sum()
    second = float(np.mean(s**2))
    skewness = float(np.mean(s**3)) / second**1.5
    known_by = min(max(2 * m / max(float(np.mean(s**4)) / second**2 - 1, 1e-9), 2.0), m - 1.0)
    error = float(np.sqrt(m / (m - 1) * (left @ s**2)))
    quantile = float(stdtrit(known_by, (1 + INTERVAL_LEVEL) / 2))
    lower = max(quantile, _without_skewness(quantile, skewness, m))
    upper = max(quantile, -_without_skewness(-quantile, skewness, m))
    return MeasureValue(value, value - error * lower, value + error * upper)


def _without_skewness(quantile: float, skewness: float, m: int) -> float:
    """The t whose transformation is this quantile."""
    a = skewness / (3 * np.sqrt(m))
    if abs(a) < 1e-9:
        return quantile
    return float((np.cbrt(1 + 3 * a * (quantile - a / 2)) - 1) / a)
