"""Carry a reference mixture over by Bayesian inference: the reference is the prior, a few labelled events the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Matrix, Vector, frozen_vector
from monitor.errors import InputError
from monitor.regression.diagnostics import effective_size, split_r_hat
from monitor.regression.gibbs import Chains, Prior, sample
from monitor.regression.maximise import Cube, FitParameters
from monitor.regression.mixture import FittedMixture, Mixture, design_matrix, mixture_of, mixture_quantile
from monitor.regression.relabel import relabel
from monitor.tolerances import INTERVAL_DRAWS, INTERVAL_LEVEL, R_HAT


@dataclass(frozen=True, slots=True, eq=False)
class BayesAdaptation:
    """The posterior of the mixture of regressions of now, after relabelling."""

    mixture: Mixture
    """Posterior means of weights, coefficients and sigmas."""
    lower: Mixture
    upper: Mixture
    """Bounds of every parameter's central posterior interval, each on its own: not mixtures to predict with."""
    reference: Mixture
    chains: Chains
    effective_sizes: Vector
    """Per quantity: weights, coefficients component by component, sigmas."""
    r_hats: Vector
    switched: int
    """How many draws had their components renamed."""
    events: int

    @property
    def converged(self) -> bool:
        """True where every split R-hat is below its limit."""
        return bool(np.all(self.r_hats < R_HAT))

    def predict(self, inputs: ArrayLike) -> Vector:
        """The mixture mean at the posterior means."""
        return self.mixture.predict(inputs)

    def interval(self, inputs: ArrayLike, level: float = INTERVAL_LEVEL) -> tuple[Vector, Vector]:
        """The central interval of the posterior predictive distribution: noise, branches and uncertain parameters."""
        coefficients, weights, sigmas = (_pooled(part) for part in _parts(self.chains))
        picked = np.linspace(0, len(weights) - 1, min(INTERVAL_DRAWS, len(weights))).astype(np.int64)
        betas = coefficients[picked].reshape(-1, coefficients.shape[2])
        means = design_matrix(inputs, self.reference.inputs) @ betas.T
        shares, noise = weights[picked].ravel() / picked.size, sigmas[picked].ravel()
        tail = 0.5 * (1.0 - level)
        return (
            mixture_quantile(tail, shares, means, noise),
            mixture_quantile(1.0 - tail, shares, means, noise),
        )


def adapt_bayes(
    reference: Mixture | FittedMixture | Any,
    inputs: ArrayLike,
    targets: ArrayLike,
    *,
    prior: Prior | None = None,
    sweeps: int = 1000,
    burn_in: int = 100,
    chains: int = 4,
    seed: int = 0,
) -> BayesAdaptation:
    """Sample the posterior of the mixture given labelled events and the reference as prior.

    Section 3 of Bouveyron & Jacques (2014), corrected conditionals (see `monitor.regression.gibbs`). The chains start
    from the reference: started from draws of the prior, in half of 60 introductory examples they had not met after
    5,000 sweeps, and the median error was 24 instead of 18. So R-hat says nothing of modes far away.
    `prior` is `Prior.as_printed(reference)` unless given;
    `Prior.relative(reference, inputs)` is free of units.
    """
    source = mixture_of(reference)
    design = design_matrix(inputs, source.inputs)
    target = frozen_vector(targets, "targets", design.shape[0])
    if not 0 <= burn_in < sweeps - 4:
        raise InputError(f"burn_in: want 0 <= burn_in < sweeps - 4, got {burn_in} of {sweeps}")
    if not (np.all(np.isfinite(design)) and np.all(np.isfinite(target))):
        raise InputError("inputs and targets: want finite numbers; leave events with missing values out")
    belief = prior or Prior.as_printed(source)
    rng = np.random.default_rng(seed)
    drawn = sample(_at_reference(source, chains), design, target, prior=belief, sweeps=sweeps, burn_in=burn_in, rng=rng)
    named, switched = relabel(drawn, belief)
    quantities = np.concatenate(
        [part.reshape(*part.shape[:2], -1) for part in (named.weights, named.coefficients, named.sigmas)], axis=2
    )
    coefficients, weights, sigmas = (_pooled(part) for part in _parts(named))
    tails = np.array([0.5 * (1.0 - INTERVAL_LEVEL), 0.5 * (1.0 + INTERVAL_LEVEL)])
    bounds = [np.quantile(part, tails, axis=0) for part in (weights, coefficients, sigmas)]
    return BayesAdaptation(
        mixture=Mixture.of(weights.mean(axis=0), coefficients.mean(axis=0), sigmas.mean(axis=0), target.size),
        lower=Mixture(bounds[0][0], bounds[1][0], bounds[2][0], target.size),
        upper=Mixture(bounds[0][1], bounds[1][1], bounds[2][1], target.size),
        reference=source,
        chains=named,
        effective_sizes=effective_size(quantities),
        r_hats=split_r_hat(quantities),
        switched=switched,
        events=int(target.size),
    )


def _at_reference(reference: Mixture, chains: int) -> FitParameters:
    return FitParameters(
        np.repeat(reference.weights[None], chains, axis=0),
        np.repeat(reference.coefficients[None], chains, axis=0),
        np.repeat(reference.sigmas[None], chains, axis=0),
    )


def _parts(chains: Chains) -> tuple[Cube, Cube, Cube]:
    return chains.coefficients, chains.weights, chains.sigmas


def _pooled(draws: Cube) -> Matrix:
    """Draws of all chains in one axis."""
    pooled: Matrix = draws.reshape(-1, *draws.shape[2:])
    return pooled
