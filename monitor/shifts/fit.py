"""Is a change of the class mix enough to explain a window? Matching of feature means, and what is left over.

Notation (see `prepared`). b = mean of Phi over the window's n events; A = columns mu_y; p the window's class mix.
Under label shift E[b] = A p, and around it b varies by

    C(p) = sum_y p_y S_y / n  +  sum_y p_y^2 S_y / n_y          (window, and the finite reference)

The shares of classes in the window also vary, but along A, where the free p takes it up. With W = (C + ridge)^-1

    p^ = argmin (b - A p)' W (b - A p)  subject to  sum p = 1,   r = b - A p^ = P (b - A p),   T = r' W r

and under label shift T is a weighted sum of chi-squares with weights the eigenvalues of P'W P C. Its first three
moments give the p-value (a scaled F: chi-square's shape with the covariance's own uncertainty in the denominator).
No bootstrap, one pass over the events.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, fdtrc, ndtr

from monitor.arrays import Labels, Matrix, Vector
from monitor.shifts.categories import effective_size
from monitor.shifts.prepared import Block, Moments, Prepared
from monitor.tolerances import FIT_RIDGE, IDENTIFIED_CURVATURE, LEAST_CURVATURE, SMALLEST_VARIANCE


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The best class mix, how sure it is, and the test of what it leaves unexplained."""

    priors: Vector
    """On the simplex."""
    free: Vector
    """Before negative shares were cut: unbiased, and what tests are made of."""
    covariance: Matrix
    """Of `free` around the shares of classes in this window."""
    statistic: float
    p_value: float
    effect: float
    """Size of what is left over, in pooled within-class standard deviations."""
    degrees: float
    identified: bool
    """False where the coordinates cannot tell all classes apart."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A statistic, its p-value and its effect size."""

    statistic: float
    p_value: float
    effect: float
    degrees: float


def coordinates(blocks: tuple[Block, ...], *kinds: str) -> Labels:
    """The positions of all blocks of these kinds."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *(positions(b) for b in blocks if b.kind in kinds)])


def positions(block: Block) -> Labels:
    """The coordinates of one block."""
    return np.arange(block.at.start, block.at.stop)


def match(moments: Moments, mean: Vector, events: int) -> Match:
    """Match the window's mean of the map's coordinates; twice, as the covariance depends on the answer."""
    a, b, priors = moments.means.T, mean, moments.source_priors
    for _ in range(2):
        covariance = _covariance(moments, priors, events)
        free, spread, weighted, identified = _least_squares(a, b, covariance)
        priors = simplex(free)
    projector = np.eye(b.size) - a @ spread
    residual = b - a @ free
    statistic = float(residual @ weighted @ residual)
    residual_covariance = projector @ covariance @ projector.T
    mean_t, degrees, p_value = _null(weighted @ residual_covariance, statistic, moments.class_counts)
    return Match(
        priors=priors,
        free=free,
        covariance=spread @ covariance @ spread.T,
        statistic=statistic,
        p_value=p_value,
        effect=float(np.sqrt(max(statistic - mean_t, 0.0) / comparable_rows(moments.class_counts, priors, events))),
        degrees=degrees,
        identified=identified,
    )


def comparable_rows(class_counts: Vector, priors: Vector, events: int) -> float:
    """The harmonic size of a window and a reweighted reference: 1 / (1/n + 1/m)."""
    m = effective_size(class_counts, priors)
    return events * m / (events + m) if m > 0 else 0.0


def mix_moved(found: Match, reference: Prepared, events: int) -> Tested:
    """Whether the matched class mix differs from the reference's: a Wald test on c - 1 shares.

    Besides the match's own error the class shares of the window and of the hold-out events are samples:
    (diag(pi) - pi pi') (1/n + 1/N). The effect is Cohen's w = sqrt(sum_y (p_y - pi_y)^2 / pi_y).
    """
    pi = reference.source_priors
    gap = found.free - pi
    sampled = (np.diag(pi) - np.outer(pi, pi)) * (1 / events + 1 / reference.class_counts.sum())
    # Sums to zero in every direction that matters: one class fewer says the same.
    variance = (found.covariance + sampled)[:-1, :-1]
    statistic = float(gap[:-1] @ np.linalg.pinv(variance, rcond=1e-10, hermitian=True) @ gap[:-1])
    return Tested(statistic, float(chdtrc(pi.size - 1, statistic)), cohen_w(found.priors, pi), pi.size - 1)


def soft_deficit(reference: Prepared, mean: Vector, events: int) -> Tested | None:
    """Mass that no reference class explains, by soft matching: the best p without sum p = 1 (dussap, soft DFM).

    On the cosines of random projections, whose mean over a spread-out cloud is 0: mass that lies elsewhere takes
    part in no class, and the shares sum to less than 1. The deficit 1 - sum p is tested against its sampling error.
    """
    at = coordinates(reference.blocks, "joint")
    if at.size <= reference.class_counts.size:
        return None
    moments = reference.moments.at(at)
    a, b = moments.means.T, mean[at]
    covariance = _covariance(moments, moments.source_priors, events)
    weighted = np.linalg.inv(covariance + _ridge(covariance))
    solver = _seen_inverse(a.T @ weighted @ a)[0] @ a.T @ weighted
    deficit = 1.0 - float((solver @ b).sum())
    ones = solver.sum(axis=0)
    error = float(np.sqrt(ones @ covariance @ ones))
    z = deficit / error if error > 0 else 0.0
    return Tested(z, float(ndtr(-z)), deficit, 1.0)


def simplex(free: Vector) -> Vector:
    """Negative shares cut, the rest scaled to 1."""
    cut = np.maximum(free, 0.0)
    return np.asarray(cut / cut.sum())


def cohen_w(priors: Vector, source: Vector) -> float:
    """Cohen's w = sqrt(sum_y (p_y - pi_y)^2 / pi_y): 0.1 is small, 0.3 medium, 0.5 large."""
    return float(np.sqrt(((priors - source) ** 2 / source).sum()))


def _covariance(moments: Moments, priors: Vector, events: int) -> Matrix:
    """C(p)."""
    counts = moments.class_counts
    weights = priors / events + np.divide(priors**2, counts, out=np.zeros_like(priors), where=counts > 0)
    return np.asarray(np.tensordot(weights, moments.within, axes=1))


def _ridge(covariance: Matrix) -> Matrix:
    return np.asarray(
        FIT_RIDGE * max(float(np.trace(covariance)) / len(covariance), SMALLEST_VARIANCE) * np.eye(len(covariance))
    )


def _least_squares(a: Matrix, b: Vector, covariance: Matrix) -> tuple[Vector, Matrix, Matrix, bool]:
    """p^ with sum 1, d p^ / d b, the weights W, and whether all classes could be told apart."""
    weighted: Matrix = np.asarray(np.linalg.inv(covariance + _ridge(covariance)), dtype=np.float64)
    classes = a.shape[1]
    centring = np.eye(classes) - 1.0 / classes
    inverse, identified = _seen_inverse(centring @ (a.T @ weighted @ a) @ centring)
    spread: Matrix = inverse @ a.T @ weighted
    even = np.ones(classes) / classes
    free: Vector = even + spread @ (b - a @ even)
    return free, spread, weighted, identified


def _seen_inverse(curvature: Matrix) -> tuple[Matrix, bool]:
    """The inverse on directions that the data see, and whether they see all that sum to zero.

    The inverse of a curvature is a variance of shares: a direction with a variance above 1 is not seen at all.
    """
    values, vectors = np.linalg.eigh(curvature)
    seen = values > max(LEAST_CURVATURE, IDENTIFIED_CURVATURE * float(values[-1]))
    inverse: Matrix = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
    return inverse, int(seen.sum()) >= len(values) - 1


def _null(product: Matrix, statistic: float, counts: Vector) -> tuple[float, float, float]:
    """Mean of T, its degrees of freedom, and P(T >= statistic), from the first three cumulants of T under label shift.

    With weights l_i: c_k = sum l_i^k; h = c_2^3 / c_3^2 degrees of freedom; (T - c_1) sqrt(h / c_2) + h is about
    chi-square with h degrees (Imhof 1961), and F-like where the covariance was estimated from few rows.
    """
    square = product @ product
    c1, c2, c3 = float(np.trace(product)), float(np.trace(square)), float(np.vdot(square.T, product))
    if c2 <= 0 or c3 <= 0:
        return c1, 0.0, 1.0
    h = c2**3 / c3**2
    standard = (statistic - c1) * np.sqrt(h / c2) + h
    rows = max(float(counts.sum()) - counts.size - h, 1.0)
    return c1, h, float(fdtrc(h, rows, max(standard, 0.0) / h))
