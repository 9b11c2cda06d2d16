"""How sure an estimate is: standard errors that count the reference's own sampling noise, and intervals from them.

Every estimator here is linear near its answer: an event adds psi(x) / events to it. Under label shift the estimate
therefore varies by (the delta method)

    Var_k = sum_i a_i^2 V_ik / n_i                      the reference: n_i rows of class i
          + (sum_i a_i V_ik + a_k (1 - a_k)) / m        the window: m events, classes drawn at the rate a

with V_ik the variance of psi_k within class i.

The interval holds every rate that the estimate does not refute: with the last part taken at that rate, as Wilson's
interval of a share does (1927), and not at the estimate. An estimate that came out low would also claim to be sure of
it, and of twenty classes one would be missed far too often, nearly always from below.
"""

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from monitor.arrays import Matrix, Vector
from monitor.limits import BLOCK_ROWS, SPREAD_ROWS
from monitor.priors.estimate import PriorEstimate, frozen
from monitor.priors.likelihood import Local, undetermined
from monitor.priors.simplex import constrained_inverse
from monitor.tolerances import INTERVAL_LEVEL

_SIDES = np.array([[-1.0], [1.0]])


def standard_errors(
    influence_variances: Matrix,
    priors: Vector,
    class_counts: Vector,
    events: int,
) -> Vector:
    """The formula above; `influence_variances[i, k]` is V_ik."""
    of_reference = (priors**2 / class_counts) @ influence_variances
    of_window = priors @ influence_variances + priors * (1.0 - priors)
    return np.asarray(np.sqrt(np.maximum(of_reference + of_window / max(events, 1), 0.0)))


def around(
    estimate: PriorEstimate, errors: Vector, centre: Vector | None = None, *, bias: Vector | None = None
) -> PriorEstimate:
    """The estimate with its per-class interval; an infinite error claims nothing. `bias` is a part of the errors.

    `centre` is the estimate before it was put on the simplex: that one is normally distributed even where the truth
    is on the border, so the interval is taken around it, cut to [0, 1], and stretched to hold the estimate.
    """
    lower, upper = box(estimate.priors, errors, centre=centre, events=estimate.events)
    bias = None if bias is None else frozen(bias)
    return replace(estimate, lower=lower, upper=upper, standard_errors=frozen(errors), bias=bias)


def box(
    priors: Vector, errors: Vector, level: float = INTERVAL_LEVEL, *, events: int, centre: Vector | None = None
) -> tuple[Vector, Vector]:
    """Lower and upper limits of each class by itself: those rates a at which

        (centre - a)^2 = z^2 (error^2 - p (1 - p) / events + a (1 - a) / events).

    At `level` ** (1 / classes) the limits hold all classes together with the level, however they are correlated
    (Sidak's inequality).
    """
    middle = priors if centre is None else centre
    z = float(ndtri(0.5 + level / 2.0))
    pull = z**2 / max(events, 1)
    # The quadratic above with z^2 / events = pull.
    others = np.maximum((z * errors) ** 2 - pull * priors * (1.0 - priors), 0.0)
    root = np.sqrt(np.maximum((pull + 4.0 * middle * (1.0 - middle)) * pull + 4.0 * (1.0 + pull) * others, 0.0))
    ends = (2.0 * middle + pull + _SIDES * root) / (2.0 * (1.0 + pull))
    low, high = np.minimum(np.maximum(ends, 0.0), 1.0)
    return frozen(np.minimum(low, priors)), frozen(np.maximum(high, priors))


def error_bound(
    curvature: float,
    bound: float,
    class_counts: Vector,
    events: int,
    *,
    priors: Vector | None = None,
    confidence: float = 0.95,
) -> float:
    """Distance from the truth that distribution feature matching keeps with `confidence` (dussap, Theorem 1).

    C bounds the norm of the feature map, `curvature` is Delta_min (hard) or lambda_min (soft), R_x = 2 + sqrt(2 ln 2x):

        (1)  2 C R / sqrt(Delta_min) * (|w| / sqrt(n) + 1 / sqrt(m)),   w_i = a_i / (n_i / n)
        (2)  2 C R / sqrt(Delta_min) * (1 / sqrt(min n_i) + 1 / sqrt(m))

    The print has (1) <= (2), which is false: each follows from eq 5, so the smaller is returned. (1) needs the true
    priors; without them only (2) is available.
    """
    if not curvature > 0 or events == 0 or not (class_counts > 0).all():
        return math.inf
    classes, rows = class_counts.size, float(class_counts.sum())
    reach = 2.0 + math.sqrt(2.0 * math.log(2.0 * classes / (1.0 - confidence)))
    reference = 1.0 / math.sqrt(float(class_counts.min()))
    if priors is not None:
        weighted = float(np.linalg.norm(priors * rows / class_counts)) / math.sqrt(rows)
        reference = min(reference, weighted)
    return 2.0 * bound * reach / math.sqrt(curvature) * (reference + 1.0 / math.sqrt(events))


def information_errors(at: Local, events: int) -> Vector:
    """Standard errors of the maximum-likelihood priors for exact posteriors: the inverse of the observed information.

    A class that can be traded against another without any event noticing gets an infinite error.
    """
    variances = np.diag(constrained_inverse(at.hessian)) / max(events, 1)
    return np.where(undetermined(at.hessian), np.inf, np.sqrt(np.maximum(variances, 0.0)))


def likelihood_errors(posteriors: Matrix, source_priors: Vector, priors: Vector, class_counts: Vector) -> Vector:
    """Standard errors of maximum-likelihood priors with the reference's noise (delta method, formula of this page).

    An event moves the answer by psi = K (r - 1), with K the inverse information on vectors that sum to zero and r the
    likelihood's gradient. What psi does within class i is read from the window itself: under label shift the density
    of class i over the window's is r_i. Long windows are thinned evenly first.
    """
    events, classes = posteriors.shape
    g = posteriors[:: max(events // SPREAD_ROWS, 1)]
    rows = g.shape[0]
    # s = r pi, a block at a time so that it stays in cache; the factors pi are taken out at the end.
    scaled, products = np.empty((rows, classes)), np.zeros((classes, classes))
    for begin in range(0, rows, BLOCK_ROWS):
        block, s = g[begin : begin + BLOCK_ROWS], scaled[begin : begin + BLOCK_ROWS]
        mixture = block @ (priors / source_priors)
        np.multiply(block, (1.0 / np.where(mixture > 0, mixture, np.inf))[:, None], out=s)
        products += s.T @ s
    products /= np.outer(source_priors, source_priors)
    inverse = constrained_inverse(products / rows)
    squares, towards = np.zeros((classes, classes)), inverse / source_priors[:, None]
    for begin in range(0, rows, BLOCK_ROWS):
        s = scaled[begin : begin + BLOCK_ROWS]
        psi = s @ towards
        squares += s.T @ np.multiply(psi, psi, out=psi)
    # sum_k p_k r_ik = 1, so that the sums of r over the rows are these.
    mass = np.maximum(products @ priors, np.finfo(np.float64).tiny)[:, None]
    means = products @ inverse / mass
    variances = np.maximum(squares / source_priors[:, None] / mass - means**2, 0.0)
    errors = standard_errors(variances, priors, class_counts, events)
    return np.where(undetermined(products / rows), np.inf, errors)
