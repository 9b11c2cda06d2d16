"""A mixture of regressions as a value: its density, its predictions, its intervals, its plain-array form.

Notation: K components, p inputs, q = p + 1; a coefficient row is (intercept, slopes), as in Bouveyron & Jacques
(2014), eq 1.1: Y = x' beta_k + sigma_k e with probability pi_k and x = (1, x_1, ..., x_p).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from monitor.arrays import Matrix, Vector, frozen_matrix, frozen_vector
from monitor.errors import ArtefactError, InputError
from monitor.tolerances import INTERVAL_BISECTIONS, POSTERIOR_SUM

HALF_LOG_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """The parameters of a mixture of regressions, and how many events they were estimated from."""

    weights: Vector
    """pi_k, (K,)."""
    coefficients: Matrix
    """beta_k as rows, intercept first, (K, p + 1)."""
    sigmas: Vector
    """sigma_k, (K,)."""
    events: int = 0
    """0 means that the parameters are known, not estimated."""

    @classmethod
    def of(cls, weights: ArrayLike, coefficients: ArrayLike, sigmas: ArrayLike, events: int = 0) -> Self:
        """A checked mixture from plain arrays."""
        betas = frozen_matrix(coefficients, "coefficients")
        components = betas.shape[0]
        shares = frozen_vector(weights, "weights", components)
        noise = frozen_vector(sigmas, "sigmas", components)
        if not (np.all(np.isfinite(betas)) and np.all(np.isfinite(noise)) and np.all(noise > 0)):
            raise InputError("mixture: want finite coefficients and positive sigmas")
        if np.any(shares < 0) or not abs(float(shares.sum()) - 1.0) <= POSTERIOR_SUM:
            raise InputError(f"weights: want shares that sum to 1, got {shares.tolist()}")
        return cls(shares, betas, noise, int(events))

    @property
    def components(self) -> int:
        """K, the number of components."""
        return int(self.weights.size)

    @property
    def inputs(self) -> int:
        """p, the number of inputs."""
        return int(self.coefficients.shape[1]) - 1

    def component_means(self, inputs: ArrayLike) -> Matrix:
        """x' beta_k of every event and component, (events, K)."""
        means: Matrix = design_matrix(inputs, self.inputs) @ self.coefficients.T
        return means

    def predict(self, inputs: ArrayLike) -> Vector:
        """The mixture mean sum_k pi_k x' beta_k of every event."""
        mean: Vector = self.component_means(inputs) @ self.weights
        return mean

    def log_densities(self, inputs: ArrayLike, targets: ArrayLike) -> Matrix:
        """ln(pi_k phi(y | x' beta_k, sigma_k^2)), (events, K): the terms of eq 1.2."""
        means = self.component_means(inputs)
        errors = (frozen_vector(targets, "targets", means.shape[0])[:, None] - means) / self.sigmas
        with np.errstate(divide="ignore"):  # a component of weight zero has log density -inf, as it should
            logs: Matrix = np.log(self.weights) - np.log(self.sigmas) - 0.5 * errors**2 - HALF_LOG_TWO_PI
        return logs

    def log_likelihood(self, inputs: ArrayLike, targets: ArrayLike) -> float:
        """L of eq 2.4: the sum over events of the log of eq 1.2."""
        return float(np.logaddexp.reduce(self.log_densities(inputs, targets), axis=1).sum())

    def responsibilities(self, inputs: ArrayLike, targets: ArrayLike) -> Matrix:
        """t_ik of eq 2.7, (events, K)."""
        logs = self.log_densities(inputs, targets)
        shares: Matrix = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
        return shares

    def interval(self, inputs: ArrayLike, level: float = 0.95) -> tuple[Vector, Vector]:
        """The central predictive interval of every event: two quantiles of eq 1.2."""
        if not 0.0 < level < 1.0:
            raise InputError(f"level: want 0 < level < 1, got {level}")
        means = self.component_means(inputs)
        tail = 0.5 * (1.0 - level)
        lower = mixture_quantile(tail, self.weights, means, self.sigmas)
        return lower, mixture_quantile(1.0 - tail, self.weights, means, self.sigmas)

    def to_arrays(self) -> dict[str, Vector | Matrix]:
        """The plain arrays that a reference artefact holds; `from_arrays` is the way back."""
        return {
            "weights": self.weights,
            "coefficients": self.coefficients,
            "sigmas": self.sigmas,
            "events": np.array([float(self.events)]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> Self:
        """The mixture that `to_arrays` wrote."""
        try:
            events = int(np.asarray(arrays["events"], dtype=np.float64)[0])
            return cls.of(arrays["weights"], arrays["coefficients"], arrays["sigmas"], events)
        except (KeyError, IndexError, ValueError) as problem:
            raise ArtefactError(f"mixture of regressions: {problem}") from problem


class FittedMixture(Protocol):
    """Anything that carries a fitted mixture, as `MixtureOfRegressions` does after `fit`."""

    @property
    def mixture_(self) -> Mixture: ...


def mixture_of(model: Mixture | FittedMixture | Any) -> Mixture:
    """The mixture itself, whether it was handed over bare or inside a fitted estimator."""
    if isinstance(model, Mixture):
        return model
    inner = getattr(model, "mixture_", None)
    if not isinstance(inner, Mixture):
        raise InputError(f"reference: want a Mixture or a fitted MixtureOfRegressions, got {type(model).__name__}")
    return inner


def design_matrix(inputs: ArrayLike, width: int) -> Matrix:
    """The rows x = (1, x_1, ..., x_p)."""
    matrix = frozen_matrix(inputs, "inputs", width)
    return np.column_stack([np.ones(matrix.shape[0]), matrix])


def mixture_quantile(probability: float, weights: Matrix, means: Matrix, sigmas: Matrix) -> Vector:
    """The quantile of sum_k w_k N(mean_ik, sigma_k^2) of every row i.

    It lies between the smallest and the largest quantile of the components, where the distribution function
    increases: bisection there cannot fail.
    """
    corners = means + sigmas * ndtri(probability)
    low, high = corners.min(axis=1), corners.max(axis=1)
    for _ in range(INTERVAL_BISECTIONS):
        middle = 0.5 * (low + high)
        below = np.sum(weights * ndtr((middle[:, None] - means) / sigmas), axis=1) < probability
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    quantile: Vector = 0.5 * (low + high)
    return quantile
