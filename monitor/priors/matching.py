"""Distribution feature matching: the mixture of the reference's class means that is nearest to the window's mean.

Dussap et al. (2023), problems (P) and (P2). A feature map turns every event into a vector; class means and window means
of those vectors are all that is needed, and they add up over batches.
"""

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Matrix, Vector
from monitor.errors import InputError
from monitor.priors.estimate import PriorEstimate, without_interval
from monitor.priors.simplex import SimplexSolution, identifiable, minimise, smallest_curvature
from monitor.tolerances import SINGULAR


def match(class_means: ArrayLike, window_mean: ArrayLike, soft: bool = False, events: int = 0) -> PriorEstimate:
    """Hard (P): min |sum_i a_i Phi_i - Phi|^2 over the simplex. Soft (P2): the priors may sum to less than one.

    The soft form adds a class whose mean is 0; the share it takes is the `deficit`, what no class of the reference
    explains. It is never quite zero in small samples: see `deficit_error`.
    """
    means, mean = np.asarray(class_means, dtype=np.float64), np.asarray(window_mean, dtype=np.float64)
    if means.ndim != 2 or means.shape[0] == 0 or mean.shape != (means.shape[1],):
        raise InputError(f"class_means, window_mean: want (classes, D) and (D,), got {means.shape} and {mean.shape}")
    gram = means @ means.T
    unique = lambda_min(means) > SINGULAR * float((means**2).sum()) if soft else identifiable(gram)
    return match_products(gram, means @ mean, soft, events, unique=unique)


def match_products(gram: Matrix, scores: Vector, soft: bool, events: int, *, unique: bool) -> PriorEstimate:
    """`match` on inner products alone: of the class means with each other, and with the window's mean."""
    solution = solve(gram, scores, soft)
    classes = scores.size
    return without_interval(
        "dfm-soft" if soft else "dfm",
        solution.point[:classes],
        events,
        iterations=solution.iterations,
        converged=solution.solved,
        gap=solution.violation,
        stop_reason="solved" if solution.solved else "step limit",
        unique=unique,
        deficit=float(solution.point[classes]) if soft else None,
    )


def solve(gram: Matrix, scores: Vector, soft: bool = False) -> SimplexSolution:
    """(QP) with q = -scores (erratum 1), on inner products alone; soft: with the dummy class last."""
    if soft:
        gram, scores = np.pad(gram, (0, 1)), np.append(scores, 0.0)
    return minimise(gram, scores)


def delta_min(class_means: ArrayLike) -> float:
    """Definition 1: the second smallest eigenvalue of the centred Gram matrix, how well mixtures can be told apart."""
    means = _class_means(class_means)
    return smallest_curvature(means @ means.T)


def lambda_min(class_means: ArrayLike) -> float:
    """The smallest eigenvalue of the Gram matrix: what `delta_min` is to the soft form."""
    means = _class_means(class_means)
    return max(float(np.linalg.eigvalsh(means @ means.T)[0]), 0.0)


def _class_means(class_means: ArrayLike) -> Matrix:
    means = np.asarray(class_means, dtype=np.float64)
    if means.ndim != 2 or means.shape[0] == 0 or not np.isfinite(means).all():
        raise InputError(f"class_means: want finite numbers of shape (classes, D), got shape {means.shape}")
    return means
