"""Recursive recalibration: one slope and an intercept per class, fitted anew with every window of labels. Pure.

Notation: z the logarithms of posteriors (events, classes), theta = (slope, intercepts), and q the model

    q = softmax(slope z + intercepts)

What earlier windows have said is kept as a Gaussian about theta with information A, of which each window forgets a
share 1 - f; the same share of the prior, theta_0 = (1, 0, ..., 0) with information tau, comes back. After labels y

    theta' = argmin  - sum_i log q_i(y_i) + f/2 (theta - theta_old)' A (theta - theta_old)
                     + (1 - f) tau/2 |theta - theta_0|^2
    A'     = f A + (1 - f) tau I + Fisher information of the labels at theta'

by Newton steps, each of which is cut off where it grows too long: a window of a few labels, all of one class, would
otherwise send an intercept to infinity.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from monitor.arrays import Labels, Matrix, Vector
from monitor.tolerances import LEARNED_MEMORY, LEARNED_PRIOR, LEARNED_SLOPES, LEARNED_STEP, LEARNED_STEPS


@dataclass(frozen=True, slots=True)
class Recursive:
    """What is known after some windows."""

    slope: float
    intercepts: tuple[float, ...]
    information: tuple[tuple[float, ...], ...]
    """Of slope and intercepts together."""


def untaught(classes: int) -> Recursive:
    """Before any label: posteriors are right."""
    return Recursive(1.0, (0.0,) * classes, tuple(map(tuple, (LEARNED_PRIOR * np.eye(classes + 1)).tolist())))


def taught(before: Recursive, z: Matrix, labels: Labels) -> Recursive:
    """After the labels of one window; without any nothing is forgotten either."""
    if not labels.size:
        return before
    old = np.array([before.slope, *before.intercepts])
    start = np.eye(1, old.size)[0]
    kept, back = LEARNED_MEMORY * np.array(before.information), (1 - LEARNED_MEMORY) * LEARNED_PRIOR
    theta = old
    for _ in range(LEARNED_STEPS):
        slope, information = _derivatives(theta, z, labels)
        gradient = slope + kept @ (theta - old) + back * (theta - start)
        theta = theta - _step(theta[0], information + kept + back * np.eye(old.size), gradient)
    information = _derivatives(theta, z, labels)[1] + kept + back * np.eye(old.size)
    return Recursive(float(theta[0]), tuple(theta[1:].tolist()), tuple(map(tuple, information.tolist())))


def _step(slope: float, curvature: Matrix, gradient: Vector) -> Vector:
    """Newton's, cut off where it is too long. Where the slope would leave its bounds the intercepts have to fit the one
    on the bound: they are correlated with it, as logarithms have no mean of 0."""
    step: Vector = np.asarray(np.linalg.solve(curvature, gradient), dtype=np.float64)
    step *= LEARNED_STEP / max(float(np.abs(step).max()), LEARNED_STEP)
    wanted = slope - step[0]
    allowed = float(np.clip(wanted, *LEARNED_SLOPES))
    if allowed != wanted:
        step[0] = slope - allowed
        step[1:] = np.linalg.solve(curvature[1:, 1:], gradient[1:] - curvature[1:, 0] * step[0])
        step[1:] *= LEARNED_STEP / max(float(np.abs(step[1:]).max()), LEARNED_STEP)
    return step


def _derivatives(theta: Vector, z: Matrix, labels: Labels) -> tuple[Vector, Matrix]:
    """Gradient and Fisher information of the labels' negative log-likelihood."""
    q = softmax(theta[0] * z + theta[1:], axis=1)
    residual = q - np.eye(z.shape[1])[labels]
    gradient = np.concatenate([[np.sum(residual * z)], residual.sum(axis=0)])
    apart = z - np.sum(q * z, axis=1, keepdims=True)
    across = np.sum(q * apart, axis=0)
    information = np.empty((theta.size, theta.size))
    information[0, 0] = np.sum(q * apart**2)
    information[0, 1:] = information[1:, 0] = across
    information[1:, 1:] = np.diag(q.sum(axis=0)) - q.T @ q
    return gradient, information
