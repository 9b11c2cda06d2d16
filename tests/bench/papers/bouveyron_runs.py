"""What Bouveyron and Jacques simulate in section 4, and what we add: criteria, Gibbs in a stream, many lines."""

import time

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.regression import Mixture, MixtureOfRegressions, adapt, adapt_bayes
from tests.bench.regression import (
    POPULATION,
    SCENARIOS,
    VALIDATION,
    aligned,
    changed,
    error,
    error_of,
    inputs,
    introductory_run,
    targets,
)

LINKS = tuple(SCENARIOS)
TARGET_EVENTS = 20
TABLE = ("MR on P", *LINKS, "MR on P*", "chosen", "chosen link")
CRITERIA = ("bic", "press", "press-nearest")
METHODS = ("reference", "EM", "Gibbs", "truth")


def introductory(seed: int, events: int) -> Vector:
    """Section 4.1 and 4.3: errors of AMRp, AMRb and MR, and whether the chains met."""
    return np.array(introductory_run(seed, events), dtype=np.float64)


def table_2(scenario: int, seed: int) -> Vector:
    """One simulation of table 2: errors of every model, of BIC's choice, and its number among the ten, MR last."""
    rng = np.random.default_rng([scenario, seed, TARGET_EVENTS])
    reference, now, x, y = _changed_population(scenario, seed, rng)
    fresh = inputs(VALIDATION, rng)
    truth = targets(now, fresh, rng)
    found = adapt(reference, x, y, models=["M1", *LINKS], seed=seed)
    alone = MixtureOfRegressions(2, random_state=seed).fit(x, y)
    fits = [found.candidate(name) for name in LINKS]
    bics = [*(fit.bic for fit in fits), alone.bic_]
    errors = [*(error(fit.mixture, fresh, truth) for fit in fits), error(alone.mixture_, fresh, truth)]
    chosen = int(np.argmin(bics))
    return np.array([error(reference, fresh, truth), *errors, errors[chosen], chosen])


def _changed_population(scenario: int, seed: int, rng: np.random.Generator) -> tuple[Mixture, Mixture, Matrix, Vector]:
    factors, noise = SCENARIOS[LINKS[scenario]]
    old = inputs(500, rng)
    fitted = MixtureOfRegressions(2, n_starts=4, random_state=seed).fit(old, targets(POPULATION, old, rng)).mixture_
    # Components are ordered by the fit; the factors belong to the population's order.
    reference = aligned(fitted, np.argsort([error_of(fitted, component) for component in range(2)]))
    now, x = changed(factors, noise), inputs(TARGET_EVENTS, rng)
    return reference, now, x, targets(now, x, rng)


def criteria(scenario: int, seed: int) -> Vector:
    """Whether each criterion chooses the applied link, and the error of its choice."""
    rng = np.random.default_rng([scenario, seed, TARGET_EVENTS])
    reference, now, x, y = _changed_population(scenario, seed, rng)
    fresh = inputs(VALIDATION, rng)
    truth = targets(now, fresh, rng)
    found = [adapt(reference, x, y, models=["M1", *LINKS], criterion=by, seed=seed) for by in CRITERIA]
    return np.ravel([[one.model == LINKS[scenario], error(one.mixture, fresh, truth)] for one in found])


def stream(seed: int, factor: float, events: int) -> Vector:
    """A window's labels adapt the reference, the next window is predicted by the mixture mean: excess squared error.

    All 24 links by EM and BIC, against Gibbs, both as the stream has them.
    """
    rng = np.random.default_rng([seed, events, round(100 * factor)])
    old = inputs(1_000, rng)
    reference = MixtureOfRegressions(2, n_starts=4, random_state=seed).fit(old, targets(POPULATION, old, rng)).mixture_
    now = changed([[factor] * 3], [factor])
    x, fresh = inputs(events, rng), inputs(VALIDATION, rng)
    y = targets(now, x, rng)
    mixtures = (reference, adapt(reference, x, y, seed=seed).mixture, adapt_bayes(reference, x, y, seed=seed).mixture)
    best = now.predict(fresh)
    return np.array([*(float(np.mean((one.predict(fresh) - best) ** 2)) for one in mixtures), 0.0])


def many_lines(lines: int, most: int, seed: int) -> Vector:
    """How many lines BIC chooses where there are `lines`, and the seconds that it takes to choose among `most`."""
    rng = np.random.default_rng([lines, seed])
    slopes = np.linspace(-6, 6, lines)
    population = Mixture.of(
        np.full(lines, 1 / lines), np.column_stack([rng.normal(0, 4, lines), slopes]), np.full(lines, 0.4)
    )
    x = rng.uniform(-3, 3, (1_000, 1))
    y = targets(population, x, rng)
    began = time.process_time()
    fitted = MixtureOfRegressions(max_components=most, random_state=seed).fit(x, y)
    return np.array([fitted.n_components_, time.process_time() - began])
