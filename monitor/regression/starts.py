"""Where EM starts from: the reference itself, and seeded guesses of how it may have moved."""

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.regression.em import joined
from monitor.regression.maximise import FitParameters

SPREAD = 1.0
"""Standard deviation of the log of a guessed factor: two thirds lie between 1/2.7 and 2.7, one in twenty beyond 7."""

START_NOISE = 0.01
"""A random start is never surer than this share of the reference's noise: sharper, and no event would change sides."""


def guesses_from_reference(
    reference: FitParameters, design: Matrix, target: Vector, starts: int, seed: int
) -> FitParameters:
    """The reference, then guesses: slopes and intercepts times log-normal factors, some by component, some pooled.

    Half as many guesses again have signs drawn: a link may turn a line over, and EM does not cross zero to find it.
    The noise of a guess is what its nearest component leaves unexplained, so that every event has a chance to
    belong to every component.
    """
    rng = np.random.default_rng(seed)
    betas = reference.coefficients[0]
    components, width = betas.shape
    factors = np.exp(SPREAD * rng.standard_normal((max(starts - 1, 0), components, 2)))
    pooled = np.arange(len(factors)) % 2 == 0
    factors[pooled] = factors[pooled][:, :1, :]
    turned = factors[: len(factors) // 2]
    factors = np.concatenate([factors, turned * rng.choice([-1.0, 1.0], size=turned.shape)])
    extra = len(factors)
    scale = np.concatenate([factors[..., :1], np.repeat(factors[..., 1:], width - 1, axis=2)], axis=2)
    guesses = scale * betas
    errors = target - guesses @ design.T
    nearest = np.sqrt(np.mean(np.min(errors**2, axis=1), axis=1))[:, None]
    sigmas = np.maximum(nearest, reference.sigmas)
    return joined([reference, FitParameters(np.repeat(reference.weights, extra, axis=0), guesses, sigmas)])


def random_lines(reference: FitParameters, design: Matrix, target: Vector, starts: int, seed: int) -> FitParameters:
    """Starts that know no reference: each component is the line through a few random events, so that lines differ.

    Half of the starts take the fewest events that determine a line, half take twice as many and a steadier line.
    `reference` gives the number of components and the smallest noise to start with.
    """
    rng = np.random.default_rng(seed)
    events, width = design.shape
    components = reference.weights.shape[1]
    coefficients = np.empty((starts, components, width))
    for start in range(starts):
        size = min(events, width * (1 + start % 2))
        for component in range(components):
            rows = rng.choice(events, size=size, replace=False)
            coefficients[start, component] = np.linalg.lstsq(design[rows], target[rows], rcond=None)[0]
    errors = target - np.matmul(coefficients, design.T)
    nearest = np.sqrt(np.mean(np.min(errors**2, axis=1), axis=1))[:, None]
    sigmas = np.maximum(nearest, START_NOISE * reference.sigmas)
    return FitParameters(np.full((starts, components), 1.0 / components), coefficients, sigmas)
