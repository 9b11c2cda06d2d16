"""How good a model is in a window whose labels nobody knows. Pure.

Calibrated posteriors q expect, of every measure f, f(q) (`measures`). What calibration gets wrong shows on the hold-out
events, whose labels y are known: with the classes weighted to the window's mix p (weights w_y = p_y / pi_y) these are
what the window would be under a shift of the class mix alone, and

    estimate = f(q | window) + f(y | hold-out, w) - f(q | hold-out, w),       q reweighted to the mix p

is right whatever the calibration is. Its error, to first order, with G the gradients of f, and J that by the mix:

    sum_i [sum_c q_ic G_ic^2 - (sum_c q_ic G_ic)^2]       which classes the window's events happen to be of
    J' V J                                                V the covariance of the mix's errors
    sum_h w_h^2 (G_h (y_h - q_h))^2                       which hold-out events there happened to be

The same three as from a bootstrap of window and hold-out with classes drawn, without the draws. In place of the Laplace
posterior of the calibration's parameters: that knows how uncertain they are, and not that no such calibration is right.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.performance.measure_value import MeasureValue, with_interval
from monitor.performance.measures import Measure, Scores


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """Scores with what their calibrated posteriors say, under the class mix of the hold-out events."""

    scores: Scores
    posteriors: Matrix


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """What calibrated posteriors get wrong on the hold-out events, of one measure."""

    bias: float
    """Measured minus expected."""
    variance: float
    """Of the bias; where blocks of the hold-out differ, with how much a window differs from the mean of all."""


def misfits(
    hold_out: Expected,
    labels: Labels,
    ratios: Vector,
    measures: Mapping[str, Measure],
    blocks: Labels | None = None,
) -> dict[str, CalibrationError]:
    """Of every measure, with the classes weighted by these ratios: a window's share over the hold-out's.

    `blocks` numbers those of events that came together, which are as long as windows; -1 stands for none.
    """
    truth = np.eye(ratios.size)[labels] * ratios[labels][:, None]
    said = _under(hold_out.posteriors, ratios) * ratios[labels][:, None]
    values = {}
    for name, measure in measures.items():
        expected, gradient = measure.of(hold_out.scores, said)
        parts = np.einsum("ic,ic->i", gradient, truth - said)
        variance = float(parts @ parts) if blocks is None else _between(parts, blocks)
        values[name] = CalibrationError(measure.of(hold_out.scores, truth)[0] - expected, variance)
    return values


def estimated(
    window: Expected,
    measures: Mapping[str, Measure],
    misfit: Mapping[str, CalibrationError],
    *,
    source: Vector,
    mix: Vector,
    variances: Vector,
) -> dict[str, MeasureValue]:
    """Every measure of a window with this class mix, of which each share has this variance."""
    q = _under(window.posteriors, mix / source)
    values = {}
    for name, measure in measures.items():
        value, gradient = measure.of(window.scores, q)
        mean = np.einsum("ic,ic->i", q, gradient)
        drawn = float(np.einsum("ic,ic,ic", q, gradient, gradient) - mean @ mean)
        by_mix = (np.einsum("ic,ic->c", q, gradient) - mean @ q) / np.maximum(mix, np.finfo(np.float64).tiny)
        error = misfit[name]
        variance = drawn + error.variance + _of_shares(by_mix, variances)
        values[name] = with_interval(measure, value + error.bias, variance)
    return values


def _between(parts: Vector, blocks: Labels) -> float:
    """The variance of the mean of all blocks, and beyond chance that of one block about it."""
    inside = blocks >= 0
    events = np.bincount(blocks[inside])
    there = events > 0
    shares = events[there] / inside.sum()
    apart = np.bincount(blocks[inside], weights=parts[inside])[there] / shares - float(parts[inside].sum())
    by_chance = float(parts @ parts) / shares
    natural = max(float(np.mean(apart**2 - by_chance)), 0.0)
    return float(np.sum((shares * apart) ** 2)) + natural


def _under(posteriors: Matrix, ratios: Vector) -> Matrix:
    """Posteriors under another class mix (bayes.correct, for ratios of the mixes)."""
    weighted = posteriors * ratios
    total = np.einsum("ic->i", weighted)[:, None]
    return np.asarray(np.divide(weighted, total, out=posteriors.copy(), where=total > 0))


def _of_shares(gradient: Vector, variances: Vector) -> float:
    """The variance that errors of shares bring: they are independent but for their sum, which is 0."""
    total = float(variances.sum())
    left = float((variances * (1 - variances / total)).sum()) if total > 0 else 0.0
    if left <= 0:
        return 0.0
    apart = gradient - float(variances @ gradient) / total
    return float(variances @ apart**2) * total / left
