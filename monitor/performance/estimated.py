"""How good a model is in a window whose labels nobody knows. Pure.

Calibrated posteriors q expect, of every measure f, f(q) (`measures`). What calibration gets wrong shows on the hold-out
events, whose labels y are known: with the classes weighted to the window's mix p (weights w_y = p_y / pi_y) these are
what the window would be under a shift of the class mix alone, and

    estimate = f(q | window) + f(y | hold-out, w) - f(q | hold-out, w),       q reweighted to the mix p

is right whatever the calibration is. Its error, to first order, with G the gradients of f, and J that of the estimate
by the mix:

    sum_i [sum_c q_ic G_ic^2 - (sum_c q_ic G_ic)^2]       which classes the window's events happen to be of
    J' V J                                                V the covariance of the mix's errors
    sum_h w_h^2 (G_h (y_h - q_h))^2                       which hold-out events there happened to be
    2 sum_h w_h G_h (y_h - q_h) (J' d_h)                  the last two together

The mix and what calibration gets wrong rest on the same hold-out events, and err together. With d_h what one of them
moves the mix by: the mix is where p = mean_i q_i(p), calibrated posteriors follow the labels that there are, and so, to
first order,

    d_h = A^-1 w_h (y_h - q_h),       A = mean(q q') diag(1/p)

cut to what is known of the mix's error, as estimates use more than posteriors. Of a mix that is drawn back to the
hold-out's (`drawn_back`) the part `left` of V and of d_h is left. The same four as from a bootstrap of window and
hold-out with classes drawn, without the draws. In place of the Laplace posterior of the calibration's parameters: that
knows how uncertain they are, and not that no such calibration is right.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.performance.measure_value import MeasureValue, with_interval
from monitor.performance.measures import Measure, Scores

RIDGE = 1e-9
"""Scores may say nothing of some classes."""


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """Scores with what their calibrated posteriors say, under the class mix of the hold-out events."""

    scores: Scores
    posteriors: Matrix


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationError:
    """What calibrated posteriors get wrong on the hold-out events, of one measure."""

    bias: float
    """Measured minus expected."""
    variance: float
    """Of the bias; where blocks of the hold-out differ, with how much a window differs from the mean of all."""
    by_mix: Vector
    """How the bias changes with the share of each class."""
    mix_variances: Vector
    """What the same hold-out events bring into the estimate of each share,"""
    with_mix: Vector
    """and its covariance with the bias."""


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
    of_class, weights = np.eye(ratios.size)[labels], ratios[labels][:, None]
    q = _under(hold_out.posteriors, ratios)
    truth, said = of_class * weights, q * weights
    mix = np.maximum(truth.sum(axis=0) / weights.sum(), np.finfo(np.float64).tiny)
    into_mix = _into_mix(q, said, truth - said, mix)
    values = {}
    for name, measure in measures.items():
        expected, gradient = measure.of(hold_out.scores, said)
        measured, of_truth = measure.of(hold_out.scores, truth)
        parts = np.einsum("ic,ic->i", gradient, truth - said)
        means = np.einsum("ic,ic->i", said, gradient)
        weighted = of_class.T @ means / mix
        values[name] = CalibrationError(
            bias=measured - expected,
            variance=float(parts @ parts) if blocks is None else _between(parts, blocks),
            by_mix=np.einsum("ic,ic->c", truth, of_truth) / mix
            - weighted
            - _reweighting(q, said, gradient, means, mix),
            mix_variances=np.einsum("ic,ic->c", into_mix, into_mix),
            with_mix=parts @ into_mix,
        )
    return values


def estimated(
    window: Expected,
    measures: Mapping[str, Measure],
    misfit: Mapping[str, CalibrationError],
    *,
    source: Vector,
    mix: Vector,
    variances: Vector,
    left: Vector,
) -> dict[str, MeasureValue]:
    """Every measure of a window with this class mix. Each share was estimated with this variance, of which a part may
    be left."""
    q = _under(window.posteriors, mix / source)
    values = {}
    for name, measure in measures.items():
        value, gradient = measure.of(window.scores, q)
        mean = np.einsum("ic,ic->i", q, gradient)
        drawn = float(np.einsum("ic,ic,ic", q, gradient, gradient) - mean @ mean)
        error = misfit[name]
        by_mix = _reweighting(q, q, gradient, mean, np.maximum(mix, np.finfo(np.float64).tiny)) + error.by_mix
        shared = _shared(left * by_mix, variances, error)
        variance = drawn + error.variance + _of_shares(by_mix, left * variances) + 2 * shared
        values[name] = with_interval(measure, value + error.bias, variance)
    return values


def _reweighting(q: Matrix, weights: Matrix, gradient: Matrix, means: Vector, mix: Vector) -> Vector:
    """How a measure changes with each share by which posteriors are reweighted; the weights are their multiples, and
    the means those of the gradient by them, of each event."""
    return np.asarray((np.einsum("ic,ic->c", weights, gradient) - means @ q) / mix)


def _into_mix(q: Matrix, weighted: Matrix, errors: Matrix, mix: Vector) -> Matrix:
    """What each hold-out event moves the estimate of every share by."""
    slope = weighted.T @ q / mix + RIDGE * np.eye(mix.size)
    return np.asarray(np.linalg.solve(slope, errors.T).T)


def _shared(by_mix: Vector, variances: Vector, error: CalibrationError) -> float:
    """The covariance of the two errors that come from the hold-out, where that of the mix is at most what is known."""
    known = np.sqrt(np.minimum(variances / np.maximum(error.mix_variances, np.finfo(np.float64).tiny), 1.0))
    return float((error.with_mix * known) @ by_mix)


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
