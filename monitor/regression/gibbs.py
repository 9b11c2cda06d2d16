"""Gibbs sampling for the Bayesian mixture of regressions: the prior, one sweep, and a run of sweeps.

Bouveyron & Jacques (2014), section 3, with the conditionals as they follow from the priors (the printed one of
sigma^2 is not the full conditional): chains run side by side, S chains, K components, n events, q = p + 1.

    z_i | .        with probability proportional to pi_k phi(y_i | x_i' beta_k, sigma_k^2)
    pi | z         Dirichlet(alpha_k + n_k)
    sigma_k^2 | .  inverse gamma, shape gamma + n_k / 2 + q / 2,
                   scale nu_k + (RSS_k(beta_k) + (beta_k - beta0_k)' A^-1 (beta_k - beta0_k)) / 2
    beta_k | .     normal given the *new* sigma_k^2: mean m_k, covariance sigma_k^2 (X_k'X_k + A^-1)^-1,
                   m_k = (X_k'X_k + A^-1)^-1 (X_k'y_k + A^-1 beta0_k)
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.regression.maximise import Cube, FitParameters
from monitor.regression.mixture import Mixture
from monitor.tolerances import PROXIMAL_RIDGE

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """pi ~ Dirichlet(alpha), sigma_k^2 ~ IG(shape, scale_k), beta_k ~ N(beta0_k, sigma_k^2 diag(spread_k))."""

    alpha: Vector
    coefficients: Matrix
    """beta0, (K, q)."""
    spread: Matrix
    """(K, q)."""
    shape: float
    scale: Vector
    """(K,)."""

    @classmethod
    def as_printed(cls, reference: Mixture) -> Self:
        """The paper's choice, section 3.1: A_k the identity, shape 2, scale 1. Right for inputs and noise near 1."""
        return cls(
            np.maximum(reference.weights, TINY),
            reference.coefficients,
            np.ones_like(reference.coefficients),
            2.0,
            np.ones(reference.components),
        )

    @classmethod
    def relative(cls, reference: Mixture, inputs: Matrix) -> Self:
        """The same free of units: noise is expected near the reference's, a coefficient moves by about its own size.

        The spread of beta_kj is beta_kj^2 plus what one event says of it, sigma_k^2 / mean x_j^2, so that zero
        coefficients may move too.
        """
        mean_square = np.concatenate([[1.0], np.mean(inputs**2, axis=0)])
        one_event = 1.0 / np.where(mean_square > 0, mean_square, 1.0)
        spread = (reference.coefficients / reference.sigmas[:, None]) ** 2 + one_event
        return cls(np.maximum(reference.weights, TINY), reference.coefficients, spread, 2.0, reference.sigmas**2)

    def log_density(self, weights: Cube, coefficients: Cube, sigmas: Cube) -> Cube:
        """The log prior of draws (..., K), (..., K, q), (..., K), up to a constant."""
        variance = sigmas**2
        distance = np.sum((coefficients - self.coefficients) ** 2 / self.spread, axis=-1)
        width = self.coefficients.shape[1]
        terms = (
            (self.alpha - 1.0) * np.log(np.maximum(weights, TINY))
            - (self.shape + 1.0 + 0.5 * width) * np.log(variance)
            - (self.scale + 0.5 * distance) / variance
        )
        total: Cube = terms.sum(axis=-1)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Chains:
    """The kept draws: weights (draws, chains, K), coefficients (draws, chains, K, q), sigmas (draws, chains, K)."""

    weights: Cube
    coefficients: Cube
    sigmas: Cube
    log_posterior: Cube
    """(draws, chains), up to a constant."""


def sweep(
    state: FitParameters, design: Matrix, products: Matrix, target: Cube, *, prior: Prior, rng: np.random.Generator
) -> tuple[FitParameters, Vector]:
    """One draw of everything given everything else, and the log-likelihood *before* it, (chains,).

    design (n, q), products (n, q * q) of its rows, target (1 or S, n).
    """
    chains, components, width = state.coefficients.shape
    errors = target[:, None, :] - np.matmul(state.coefficients, design.T)
    logs = -0.5 * (errors / state.sigmas[..., None]) ** 2
    logs += (np.log(np.maximum(state.weights, TINY)) - np.log(state.sigmas))[..., None]
    members, likelihood = _allocate(logs, rng)
    counts = members.sum(axis=2)

    shares = np.maximum(rng.standard_gamma(prior.alpha + counts), TINY)
    weights = shares / shares.sum(axis=1, keepdims=True)

    squares = np.sum(members * errors**2, axis=2)
    distance = np.sum((state.coefficients - prior.coefficients) ** 2 / prior.spread, axis=2)
    scale = prior.scale + 0.5 * (squares + distance)
    variance = scale / rng.standard_gamma(prior.shape + 0.5 * (counts + width))

    precision = np.matmul(members, products).reshape(chains, components, width, width)
    precision[:, :, np.arange(width), np.arange(width)] += 1.0 / prior.spread
    pull = np.matmul(members * target[:, None, :], design) + prior.coefficients / prior.spread
    sigmas = np.sqrt(variance)
    noise = sigmas[..., None] * rng.standard_normal((chains, components, width))
    return FitParameters(weights, _normal(precision, pull, noise), sigmas), likelihood


def _normal(precision: Cube, pull: Cube, noise: Cube) -> Cube:
    """P^-1 pull + P^-1/2 noise, in columns of unit precision, so that units and almost collinear inputs do no harm."""
    unit = np.sqrt(np.diagonal(precision, axis1=2, axis2=3))
    scaled = precision / (unit[..., :, None] * unit[..., None, :])
    width = unit.shape[2]
    scaled[:, :, np.arange(width), np.arange(width)] += PROXIMAL_RIDGE
    root = np.linalg.cholesky(scaled)
    upper = np.swapaxes(root, 2, 3)
    half = np.linalg.solve(root, (pull / unit)[..., None])
    drawn: Cube = np.linalg.solve(upper, half + noise[..., None])[..., 0] / unit
    return drawn


def _allocate(logs: Cube, rng: np.random.Generator) -> tuple[Cube, Vector]:
    """Draw every event's component: members (S, K, n) of zeros and ones; and the log-likelihood, (S,)."""
    top = logs.max(axis=1, keepdims=True)
    heights = np.cumsum(np.exp(logs - top), axis=1)
    total = heights[:, -1:, :]
    above = (rng.random((logs.shape[0], 1, logs.shape[2])) * total) < heights
    members = above.astype(np.float64)
    members[:, 1:] -= above[:, :-1]
    return members, np.sum(np.log(total) + top, axis=(1, 2))


def sample(
    start: FitParameters,
    design: Matrix,
    target: Vector,
    *,
    prior: Prior,
    sweeps: int,
    burn_in: int,
    rng: np.random.Generator,
) -> Chains:
    """Run the chains of `start` for `sweeps` sweeps and keep what comes after `burn_in`."""
    products = (design[:, :, None] * design[:, None, :]).reshape(design.shape[0], design.shape[1] ** 2)
    chains, components, width = start.coefficients.shape
    kept = sweeps - burn_in
    weights, sigmas = np.empty((kept, chains, components)), np.empty((kept, chains, components))
    coefficients, likelihood = np.empty((kept, chains, components, width)), np.empty((kept, chains))
    state, values = start, target[None]
    for number in range(sweeps + 1):
        # The likelihood that a sweep starts from belongs to the draw before it, hence one sweep more than is kept.
        following, before = sweep(state, design, products, values, prior=prior, rng=rng)
        if number > burn_in:
            row = number - burn_in - 1
            weights[row], coefficients[row], sigmas[row] = state.weights, state.coefficients, state.sigmas
            likelihood[row] = before
        state = following
    return Chains(weights, coefficients, sigmas, likelihood + prior.log_density(weights, coefficients, sigmas))
