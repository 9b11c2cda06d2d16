"""Categories, booleans and missing values: how often each value occurs, against the reference at a given class mix.

Notation. q_v = sum_y p_y n_yv / n_y, the share of value v that the class mix p implies; o_v the window's share;
n the window's size, m = 1 / sum_y (p_y^2 / n_y) the reference's effective one.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr

from monitor.arrays import Flags, Matrix, Vector
from monitor.tolerances import EXPECTED_IN_CELL


@dataclass(frozen=True, slots=True)
class SharesResult:
    """Chi-square and its p-value, and the distance in shares: what part of the events has another value."""

    statistic: float
    p_value: float
    distance: float
    degrees: int
    n: int


def chi_square(
    counts: Vector, class_counts: Matrix, priors: Vector, beyond: Vector | None = None, known: float = 0.0
) -> SharesResult:
    """Whether the window's counts per value fit the reference's counts (classes, values) at these priors.

    X^2 = sum_v (o_v - q_v)^2 / (q_v (1/n + 1/m)), chi-square with one degree less than there are cells; values
    expected too rarely share one cell. The distance is sum_v |o_v - q_v| / 2, over those cells. `beyond` is what is
    usual of the shares at this time besides, as well as 1 / `known` values say.
    """
    n, m = float(counts.sum()), effective_size(class_counts.sum(axis=1), priors)
    if n == 0 or m == 0:
        return SharesResult(0.0, 1.0, 0.0, 0, int(n))
    expected, m = mixed_shares(class_counts, priors), m / (1 + known * m)
    if beyond is not None:
        expected = np.maximum(expected + beyond, 0.0)
        expected /= expected.sum()
    # The variance is the same whichever sample a value is rare in: judge a cell by both together.
    pooled = (n * (counts / n) + m * expected) / (n + m)
    frequent = pooled * n * m / (n + m) >= EXPECTED_IN_CELL
    observed = _with_rest(counts / n, frequent)
    expected = _with_rest(expected, frequent)
    pooled = _with_rest(pooled, frequent)
    gap = observed - expected
    # A value that only one of the two samples has is judged by its pooled share: q_v itself would be zero.
    share = np.maximum(np.where(expected * n >= EXPECTED_IN_CELL, expected, pooled), np.finfo(np.float64).tiny)
    statistic = float((gap**2 / (share * (1 / n + 1 / m))).sum())
    degrees = observed.size - 1
    p_value = float(chdtrc(degrees, statistic)) if degrees > 0 else 1.0
    return SharesResult(statistic, p_value, float(np.abs(gap).sum() / 2), degrees, int(n))


def missing_p(
    missing: Vector, events: int, expected: Vector, class_counts: Matrix, priors: Vector, *, known: float = 0.0
) -> Vector:
    """Whether values of columns are missing as often as the class mix implies: p-values of the two-proportion z-test.

    `expected` are the shares that it implies, `class_counts` the reference's events, a row for each column.
    """
    p_values = np.ones(len(missing))
    some = (missing > 0) | (expected > 0)
    if events == 0 or not some.any():
        return p_values
    sizes = effective_sizes(class_counts, priors)
    sizes = sizes / (1 + known * sizes)
    observed = missing / events
    pooled = (missing + sizes * expected) / (events + sizes)
    with np.errstate(divide="ignore", invalid="ignore"):
        variances = pooled * (1 - pooled) * (1 / events + 1 / sizes)
        tested = some & (sizes > 0) & (variances > 0)
        z = (observed - expected) / np.sqrt(variances)
    return np.asarray(np.where(tested, 2 * ndtr(-np.abs(z)), p_values))


def mixed_shares(class_counts: Matrix, priors: Vector) -> Vector:
    """q_v: the share of each value when the classes have these priors (classes without any event say nothing)."""
    totals = class_counts.sum(axis=1)
    shares = class_counts / np.maximum(totals, 1)[:, None]
    weights = np.where(totals > 0, priors, 0.0)
    total = weights.sum()
    return np.asarray((weights / total) @ shares) if total > 0 else np.zeros(class_counts.shape[1])


def effective_size(class_counts: Vector, priors: Vector) -> float:
    """m = 1 / sum_y (p_y^2 / n_y) over classes that have events: what a reweighted reference is worth."""
    return float(effective_sizes(class_counts, priors))


def effective_sizes(class_counts: Matrix, priors: Vector | Matrix) -> Vector:
    """The same of each row."""
    known = (class_counts > 0) & (priors > 0)
    weights = np.where(known, priors, 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    weights = np.divide(weights, total, out=weights, where=total > 0)
    squares = np.divide(weights**2, class_counts, out=weights, where=known).sum(axis=-1)
    return np.asarray(np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0))


def _with_rest(shares: Vector, frequent: Flags) -> Vector:
    rest = shares[~frequent]
    return np.append(shares[frequent], rest.sum()) if rest.size else shares
