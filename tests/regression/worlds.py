"""Reference mixtures and labelled events to test with."""

import numpy as np

from monitor.regression import Mixture

INTRODUCTORY = Mixture.of([0.5, 0.5], [[3.0, 0.0, -2.0], [-3.0, 0.0, 0.5]], [1.0, 0.75])
"""Population P of section 4.1."""


def random_mixture(components, inputs, seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(components, 5.0))
    return Mixture.of(weights, 3 * rng.normal(size=(components, inputs + 1)), rng.uniform(0.5, 1.5, components))


def moved(reference, factors, noise=1.0, weights=None):
    """The reference with every coefficient times its factor and sigma times `noise`."""
    return Mixture.of(
        reference.weights if weights is None else weights,
        reference.coefficients * factors,
        reference.sigmas * noise,
    )


def draw(mixture, inputs, seed):
    """Targets of the mixture at the inputs."""
    rng = np.random.default_rng(seed)
    component = rng.choice(mixture.components, size=len(inputs), p=mixture.weights)
    means = mixture.component_means(inputs)[np.arange(len(inputs)), component]
    return means + mixture.sigmas[component] * rng.normal(size=len(inputs))


def parabola(events, seed, low=-3.0, high=3.0):
    """The inputs (x, x^2) of the introductory example."""
    x = np.random.default_rng(seed).uniform(low, high, events)
    return np.column_stack([x, x**2])


def normal(events, inputs, seed):
    return np.random.default_rng(seed).normal(size=(events, inputs))
