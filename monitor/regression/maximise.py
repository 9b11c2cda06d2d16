"""The M-steps: everything that can turn responsibilities into parameters lives here.

Notation (Bouveyron & Jacques 2014, section 2.2). S starts run side by side, K components, n events, q = p + 1.
t: responsibilities (S, K, n), times the events' weights; b_k = beta_k0; m_ki = x_i~0' beta_k~0; r_ki = y_i - b_k.

Models M2 and M3 need five sums a component, with weight t: 1, r, m, r^2, r m. Written in v = 1/lambda_1 and
u = lambda_0/lambda_1 their part of Q is n ln v - (1/2) sum w (v y - u b - m)^2 with w = t/sigma^2, which is jointly
concave. So lambda_0 and lambda_1 of M2d and M3d, which the paper alternates, have a closed form too: the same
quadratic after y and m have lost their projection on b.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.regression.links import Link
from monitor.tolerances import EMPTY_COMPONENT, PROXIMAL_RIDGE, SIGMA_FLOOR

NEGLIGIBLE = 1e-280
"""A sum of squares below this has a reciprocal near the largest float: its component has no intercept or no labels."""

Cube = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class FitParameters:
    """The parameters of S starts: weights (S, K), coefficients (S, K, q), sigmas (S, K)."""

    weights: Matrix
    coefficients: Cube
    sigmas: Matrix

    def take(self, chosen: Labels | Flags | slice) -> "FitParameters":
        """The starts that `chosen` names."""
        return FitParameters(self.weights[chosen], self.coefficients[chosen], self.sigmas[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class FitProblem:
    """The labelled events and the reference, with what every M-step reuses. Leading axis: 1, or one set per start."""

    design: Cube
    """(1 or S, n, q), first column 1."""
    target: Cube
    """(1 or S, 1, n)."""
    event_weights: Cube
    """(1 or S, 1, n); 0 leaves an event out."""
    reference: FitParameters
    """With S = 1."""
    products: Cube
    """Of every row the products of two of its entries, each pair once, (1 or S, n, q (q + 1) / 2)."""
    columns: Cube
    """r, m, r^2 and r m after a 1, (1 or S, K, n, 5)."""
    unexplained: Cube
    """What the reference leaves of the target, y - x' beta_k, (1 or S, K, n)."""
    ridge: Cube
    """(1 or S, q): keeps what the labels do not determine at the reference."""

    def take(self, chosen: Labels | Flags | slice) -> "FitProblem":
        """The problem of the starts that `chosen` names; what all starts share stays shared."""
        if self.design.shape[0] == self.target.shape[0] == self.event_weights.shape[0] == 1:
            return self

        def part(values: Cube) -> Cube:
            return values if values.shape[0] == 1 else values[chosen]

        return FitProblem(
            part(self.design),
            part(self.target),
            part(self.event_weights),
            self.reference,
            part(self.products),
            part(self.columns),
            part(self.unexplained),
            part(self.ridge),
        )


def pose(design: Cube, target: Cube, reference: FitParameters, event_weights: Cube | None = None) -> FitProblem:
    """The problem of design (n, q) or (S, n, q), target (n,) or (S, n) and event weights likewise."""
    rows = design if design.ndim == 3 else design[None]
    values = (target if target.ndim == 2 else target[None])[:, None, :]
    weights = np.ones((1, 1, rows.shape[1])) if event_weights is None else event_weights[:, None, :]
    betas = reference.coefficients[0]
    rest = values - betas[:, :1]
    slopes = np.matmul(betas[:, 1:], rows[..., 1:].transpose(0, 2, 1))
    rest, slopes = np.broadcast_arrays(rest, slopes)
    columns = np.stack([np.ones_like(rest), rest, slopes, rest**2, rest * slopes], axis=-1)
    first, second = _pairs(rows.shape[2])
    products = rows[..., first] * rows[..., second]
    ridge = PROXIMAL_RIDGE * np.maximum(np.sum(rows**2, axis=1), np.finfo(float).tiny)
    return FitProblem(rows, values, weights, reference, products, columns, rest - slopes, ridge)


@lru_cache
def _pairs(width: int) -> tuple[Labels, Labels]:
    """Two of so many entries, each pair once."""
    return np.triu_indices(width)


def product(left: Cube, right: Cube) -> Cube:
    """The matrix product of every start; rows that all starts share are read once for all."""
    if len(right) > 1:
        return np.asarray(np.matmul(left, right))
    return np.asarray((left.reshape(-1, left.shape[2]) @ right[0]).reshape(*left.shape[:2], -1))


def maximise(
    problem: FitProblem, link: Link, shares: Cube, state: FitParameters, cycles: int = 1
) -> tuple[Cube, Matrix]:
    """The coefficients and sigmas that maximise Q of eq 2.6 for the responsibilities `shares`.

    Only links with free noise and shared factors, such as M4, need `cycles`: the lambdas given the sigmas, then the
    sigmas given the lambdas. One cycle never lowers
    Q, which is all that EM asks (ECM, Meng & Rubin 1993); many cycles reach its maximum.
    """
    if link.shape == "same":
        whole = (shares.shape[0], *state.coefficients.shape[1:])
        return (
            np.broadcast_to(problem.reference.coefficients, whole),
            np.broadcast_to(problem.reference.sigmas, whole[:2]),
        )
    if link.shape == "free":
        coefficients, sigmas = _free(problem, shares)
    elif link.shape in _TOGETHER:
        together = _TOGETHER[link.shape](state.coefficients.shape[2])
        coefficients, sigmas = _with_free_noise(problem, together, shares, state.sigmas, cycles)
    else:
        coefficients, sigmas = _scaled(problem, link, shares)
    if not link.per_component:
        return coefficients, sigmas
    silent = shares.sum(axis=2) < EMPTY_COMPONENT
    if not silent.any():
        return coefficients, sigmas
    return np.where(silent[..., None], state.coefficients, coefficients), np.where(silent, state.sigmas, sigmas)


def _scaled(problem: FitProblem, link: Link, shares: Cube) -> tuple[Cube, Matrix]:
    """M2 and M3: the quadratics of section 2.2, pooled over components (M2) or one each (M3)."""
    betas, noise = problem.reference.coefficients[0], problem.reference.sigmas[0]
    count, *sums = _weighted_sums(problem, shares)
    rest, slopes, rest_rest, rest_slopes = (total / noise**2 for total in sums)
    base = betas[:, 0]
    weight = count / noise**2
    base_base, base_rest, base_slopes = weight * base**2, rest * base, slopes * base
    if not link.per_component:
        count, rest_rest, rest_slopes, base_base, base_rest, base_slopes = (
            total.sum(axis=1, keepdims=True)
            for total in (count, rest_rest, rest_slopes, base_base, base_rest, base_slopes)
        )
    seen = base_base > NEGLIGIBLE
    per_base = np.where(seen, 1.0 / np.where(seen, base_base, 1.0), 0.0)
    ones = np.ones_like(count)
    if link.shape == "intercepts":
        low, high = 1.0 + (base_rest - base_slopes) * per_base, ones
    elif link.shape == "slopes":
        low, high = ones, positive_root(count, rest_slopes, rest_rest)
    elif link.shape == "all":  # y = r + b and the whole mean m + b
        whole = rest_rest + 2.0 * base_rest + base_base
        cross = rest_slopes + base_rest + base_slopes + base_base
        low = high = positive_root(count, cross, whole)
    else:  # M2d, M3d: what is left of r and m beside b
        high = positive_root(
            count, rest_slopes - base_rest * base_slopes * per_base, rest_rest - base_rest**2 * per_base
        )
        low = 1.0 + (base_rest - high * base_slopes) * per_base
    low, high = (np.broadcast_to(factor, shares.shape[:2]) for factor in (low, high))
    factors = np.concatenate([low[..., None], np.repeat(high[..., None], betas.shape[1] - 1, axis=2)], axis=2)
    return factors * betas, high * noise


def _weighted_sums(problem: FitProblem, shares: Cube) -> Cube:
    """The sums of 1, r, m, r^2 and r m under the responsibilities, (5, S, K)."""
    sums: Cube = np.matmul(shares[:, :, None, :], problem.columns)[:, :, 0, :]
    return np.moveaxis(sums, 2, 0)


def positive_root(count: Matrix, cross: Matrix, square: Matrix) -> Matrix:
    """The positive root of n lambda^2 + cross lambda - square = 0, without cancellation; at least the sigma floor."""
    square = np.maximum(square, 0.0)
    safe = np.maximum(count, np.finfo(float).tiny)
    root = np.sqrt(cross**2 + 4.0 * safe * square)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(cross > 0, 2.0 * square / (cross + root), (root - cross) / (2.0 * safe))
    return np.maximum(factor, SIGMA_FLOOR)


_TOGETHER: dict[str, Callable[[int], Matrix]] = {
    "noise": lambda width: np.zeros((width, 0)),
    "slopes+noise": lambda width: np.ones((width, 1)) * (np.arange(width)[:, None] > 0),
    "inputs": lambda width: np.eye(width)[:, 1:],
    "inputs+": np.eye,
}
"""Which coefficients, intercept first, share a factor where the noise is free: a column for each factor."""


def _with_free_noise(
    problem: FitProblem, together: Matrix, shares: Cube, sigmas: Matrix, cycles: int
) -> tuple[Cube, Matrix]:
    """M4, M1n and M2n: all factors at once given the sigmas; the sigmas by eq 2.10 given the factors."""
    betas = problem.reference.coefficients[0]
    grams, scores, rests = _residual_sums(problem, shares)
    along = betas[:, :, None] * together
    grams_k = np.einsum("kai,skab,kbj->skij", along, grams, along)
    scores_k = np.einsum("kai,ska->ski", along, scores)
    ridge_k = np.einsum("kai,sa->ski", along**2, np.broadcast_to(problem.ridge, (shares.shape[0], betas.shape[1])))
    counts = shares.sum(axis=2)
    for _ in range(cycles):
        precision = 1.0 / sigmas**2
        gram = np.einsum("sk,skij->sij", precision, grams_k)
        diagonal = np.arange(together.shape[1])
        gram[:, diagonal, diagonal] += np.maximum(np.einsum("sk,ski->si", precision, ridge_k), 1e-300)
        step = np.linalg.solve(gram, np.einsum("sk,ski->si", precision, scores_k)[..., None])[..., 0]
        left = rests - 2.0 * np.einsum("ski,si->sk", scores_k, step) + np.einsum("si,skij,sj->sk", step, grams_k, step)
        sigmas = _noise(left, counts, sigmas, problem.reference.sigmas)
    return (1.0 + step @ together.T)[:, None, :] * betas, sigmas


def _free(problem: FitProblem, shares: Cube) -> tuple[Cube, Matrix]:
    """M5: weighted least squares in every component, from the reference where the labels are silent."""
    grams, scores, rests = _residual_sums(problem, shares)
    width = grams.shape[2]
    ridged = grams.copy()
    ridged[:, :, np.arange(width), np.arange(width)] += problem.ridge[:, None, :]
    step = np.linalg.solve(ridged, scores[..., None])[..., 0]
    left = rests - 2.0 * np.sum(scores * step, axis=2) + np.einsum("ski,skij,skj->sk", step, grams, step)
    noise = problem.reference.sigmas
    return problem.reference.coefficients + step, _noise(left, shares.sum(axis=2), noise, noise)


def _residual_sums(problem: FitProblem, shares: Cube) -> tuple[Cube, Cube, Matrix]:
    """X'TX, X'T(y - X beta) and (y - X beta)'T(y - X beta) of every start and component, at the reference's beta."""
    width = problem.design.shape[2]
    sums = product(shares, problem.products)
    first, second = _pairs(width)
    grams = np.empty((*shares.shape[:2], width, width))
    grams[..., first, second] = grams[..., second, first] = sums
    weighted = shares * problem.unexplained
    return grams, product(weighted, problem.design), np.sum(weighted * problem.unexplained, axis=2)


def _noise(squares: Matrix, counts: Matrix, current: Matrix, reference: Vector | Matrix) -> Matrix:
    """Eq 2.10, never below the floor, and unchanged in a component that no event belongs to."""
    silent = counts < EMPTY_COMPONENT
    variance = np.maximum(squares, 0.0) / np.where(silent, 1.0, counts)
    sigmas: Matrix = np.where(silent, current, np.maximum(np.sqrt(variance), SIGMA_FLOOR * reference))
    return sigmas
