"""What the likelihood ratio does when nothing moved, learnt from the reference: its null distribution as four arrays.

Real posteriors are never quite calibrated. The best priors p0 on the reference itself are then not the source priors,
and the curvature H of the likelihood is not the covariance J of its gradient, as it would be for the true model. For
a window of m events that follows the reference of n rows, with the gain measured from p0 (White 1982; the reference
contributes its own error to p0),

    2 m (L(best) - L(p0))  is distributed as  (1 + m / n) sum_j lambda_j chi^2_1,

with lambda the eigenvalues of H^-1 J on vectors that sum to zero. For calibrated posteriors they are all 1.
"""

import numpy as np
from scipy.special import gammaincc

from monitor.arrays import Matrix, Vector
from monitor.priors import likelihood
from monitor.priors.estimate import Statistics, positive_priors, usable_rows
from monitor.priors.likelihood import Problem
from monitor.priors.simplex import constrained_inverse


def calibrate(posteriors: Matrix, source_priors: Vector) -> dict[str, Vector]:
    """The null as plain arrays: `null_priors`, `null_weights` (lambda, largest first), `null_rows`."""
    g, _ = usable_rows(posteriors)
    pi = positive_priors(source_priors, g.shape[1])
    if g.shape[0] == 0:
        return {"null_priors": pi, "null_weights": np.ones(max(pi.size - 1, 1)), "null_rows": np.array([1.0])}
    best = likelihood.maximise(Problem(g, pi)).at
    r = (g / pi) / (g @ (best.priors / pi))[:, None]
    gradients = r - r.mean(axis=0)
    covariance = gradients.T @ gradients / g.shape[0]
    product = constrained_inverse(best.hessian) @ covariance
    weights = np.sort(np.linalg.eigvals(product).real)[::-1][: pi.size - 1]
    return {
        "null_priors": best.priors,
        "null_weights": np.maximum(weights, 0.0),
        "null_rows": np.array([float(g.shape[0])]),
    }


def survival(statistic: float, events: int, null: Statistics) -> tuple[float, float]:
    """P(null > statistic) and the degrees of freedom: a gamma distribution with the null's first two moments."""
    weights = null["null_weights"] * (1.0 + events / float(null["null_rows"][0]))
    total, square = float(weights.sum()), float((weights**2).sum())
    if not square > 0:
        return 1.0, 0.0
    scale, degrees = square / total, total**2 / square
    return float(gammaincc(degrees / 2.0, statistic / (2.0 * scale))), degrees
