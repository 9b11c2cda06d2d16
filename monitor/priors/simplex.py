"""The quadratic program on the simplex that every matching estimator ends in: exact, by active sets.

    minimise  x' G x / 2 - b' x   subject to  x >= 0,  sum(x) = 1

G is positive semi-definite and b lies in its range, as in every least-squares problem G = A'A, b = A'y (caelen 4.3,
dussap (QP) with the sign of q corrected). Each step solves the equality-constrained problem on the classes that are
free, walks to the first bound that it meets, and frees the class with the most violated multiplier. The objective
falls strictly, so no set of free classes occurs twice: it ends, at the solution.
"""

import math
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags, Matrix, Vector, pseudo_inverse
from monitor.errors import InputError
from monitor.tolerances import SIMPLEX_VIOLATION, SINGULAR

SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class SimplexSolution:
    """The minimiser, how many active-set steps it took, and by how much the optimality conditions miss."""

    point: Vector
    iterations: int
    solved: bool
    violation: float


def minimise(gram: Matrix, linear: Vector, start: Vector | None = None) -> SimplexSolution:
    """Solve the program; `start`, a point on the simplex, only saves steps."""
    size = linear.size
    if size == 0 or gram.shape != (size, size):
        raise InputError(f"gram: want shape ({size}, {size}) with at least one class, got {gram.shape}")
    largest = float(np.abs(gram).max()), float(np.abs(linear).max())
    if not all(map(math.isfinite, largest)):
        raise InputError("gram, linear: want finite numbers")
    scale = max(*largest, SMALLEST)
    gram, linear = gram / scale, linear / scale
    x = _clipped(gram, linear) if start is None else np.array(start)
    free = x > 0
    refused = np.zeros(size, dtype=np.bool_)  # freed by a multiplier that was rounding: bound again at once
    iterations, limit = 0, 50 * size + 50
    while iterations < limit:
        iterations += 1
        target, level = _on_free(gram, linear, x, free)
        blocked = free & (target <= 0)
        if blocked.any():
            refused |= blocked & (x == 0)
            x, free = _walk(x, target, free, blocked)
            continue
        x = target
        if free.all():
            break
        multipliers = linear - gram @ x - level
        multipliers[free | refused] = -np.inf
        entering = int(np.argmax(multipliers))
        if multipliers[entering] <= SIMPLEX_VIOLATION:
            break
        free[entering] = True
    violation = _violation(gram, linear, x)
    return SimplexSolution(x / x.sum(), iterations, iterations < limit, violation)


def smallest_curvature(gram: Matrix) -> float:
    """The smallest u'Gu over unit u that sum to zero: the second smallest eigenvalue of the centred Gram matrix.

    Dussap's theorem B.1, with the matrix centred on both sides. For a single class nothing can move: infinity.
    """
    size = gram.shape[0]
    if size == 1:
        return float("inf")
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    return max(float(np.linalg.eigvalsh(centred)[1]), 0.0)


def identifiable(gram: Matrix) -> bool:
    """Whether different points of the simplex always differ in the quadratic form: nothing is collinear."""
    return smallest_curvature(gram) > SINGULAR * float(np.trace(gram))


def constrained_inverse(gram: Matrix) -> Matrix:
    """K with K b = the minimiser's change for a change b of the linear term, while no class meets its bound.

    K = Z (Z'GZ)^+ Z' with Z any basis of the vectors that sum to zero.
    """
    size = gram.shape[0]
    centring = np.eye(size) - 1.0 / size
    return pseudo_inverse(centring @ gram @ centring, SINGULAR)


def _clipped(gram: Matrix, linear: Vector) -> Vector:
    """Where to begin: the minimiser without bounds, cut to the simplex. Most windows have all classes: that is it."""
    even = np.full(linear.size, 1.0 / linear.size)
    target, _ = _on_free(gram, linear, even, np.ones(linear.size, dtype=np.bool_))
    clipped = np.maximum(target, 0.0)
    return np.asarray(clipped / clipped.sum())


def _on_free(gram: Matrix, linear: Vector, x: Vector, free: Flags) -> tuple[Vector, float]:
    """The minimiser over the free classes that sums to one, and the multiplier of that sum.

    Solved for the step from x, so that a direction without curvature is left where it is.
    """
    index = np.flatnonzero(free)
    count = index.size
    system, right = np.ones((count + 1, count + 1)), np.empty(count + 1)
    system[:count, :count] = gram if count == x.size else gram[index[:, None], index]
    system[count, count] = 0.0
    right[:count], right[count] = (linear - gram @ x)[index], 1.0 - x.sum()
    try:
        step = np.linalg.solve(system, right)
        exact = bool(np.abs(system @ step - right).max() <= 1e-12 and np.abs(step).max() < 1e6)
    except np.linalg.LinAlgError:
        exact = False
    if not exact:
        step = np.linalg.lstsq(system, right, rcond=SINGULAR)[0]
    target = x.copy()
    target[index] += step[:count]
    return target, float(step[count])


def _walk(x: Vector, target: Vector, free: Flags, blocked: Flags) -> tuple[Vector, Flags]:
    """Go from x towards the target until the first blocked class reaches zero, and bind it there."""
    index = np.flatnonzero(blocked)
    shares = x[index] / np.maximum(x[index] - target[index], SMALLEST)
    share = float(min(shares.min(), 1.0))
    moved = np.where(free, x + share * (target - x), 0.0)
    bound = index[shares <= share]
    moved[bound] = 0.0
    still_free = free.copy()
    still_free[bound] = False
    return np.maximum(moved, 0.0), still_free


def _violation(gram: Matrix, linear: Vector, x: Vector) -> float:
    """How far the Karush-Kuhn-Tucker conditions are missed, in units of the problem's scale."""
    gradient = gram @ x - linear
    return float(max(x @ gradient - gradient.min(), 0.0))
