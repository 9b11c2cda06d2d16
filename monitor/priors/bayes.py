"""A known new class mix: what it does to posteriors, and to the bias of a softmax."""

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Matrix, Vector
from monitor.errors import InputError
from monitor.priors.estimate import positive_priors


def correct(posteriors: ArrayLike, source_priors: ArrayLike, target_priors: ArrayLike) -> Matrix:
    """Posteriors under the target priors (caelen, eq 3.15).

    g~_y(x) = g_y(x) rho_y / sum_k g_k(x) rho_k,   rho_y = P~(y) / P(y)

    A row whose mass lies only on classes that the target does not have says 0/0: it gets the target priors, as does
    a row of zeros, since both leave no evidence about the classes that remain.
    """
    g = np.asarray(posteriors, dtype=np.float64)
    if g.ndim != 2:
        raise InputError(f"posteriors: want shape (events, classes), got {g.shape}")
    if not (np.isfinite(g).all() and (g >= 0).all()):
        raise InputError("posteriors: want finite numbers of at least 0")
    source = positive_priors(source_priors, g.shape[1])
    target = _target(target_priors, g.shape[1])
    corrected = g * (target / source)
    sums = corrected.sum(axis=1, keepdims=True)
    silent = sums[:, 0] <= 0
    sums[silent] = 1.0
    corrected /= sums
    corrected[silent] = target
    return np.asarray(corrected)


def shift_intercepts(intercepts: ArrayLike, source_priors: ArrayLike, target_priors: ArrayLike) -> Vector:
    """Softmax intercepts under the target priors (caelen, eq 3.20).

    alpha~_0^y = alpha_0^y + ln P~(y) - ln P(y)

    A class that the target does not have gets minus infinity, which a softmax turns into exactly 0.
    """
    alpha = np.asarray(intercepts, dtype=np.float64)
    if alpha.ndim == 0:
        raise InputError(f"intercepts: want one per class, got {alpha}")
    source = positive_priors(source_priors, alpha.shape[-1])
    target = _target(target_priors, alpha.shape[-1])
    with np.errstate(divide="ignore"):
        return np.asarray(alpha + np.log(target) - np.log(source))


def _target(priors: ArrayLike, classes: int) -> Vector:
    target = np.asarray(priors, dtype=np.float64)
    if target.shape != (classes,) or not np.isfinite(target).all() or (target < 0).any() or target.sum() <= 0:
        raise InputError(f"target_priors: want {classes} numbers of at least 0 that do not all vanish, got {target}")
    return np.asarray(target / target.sum())
