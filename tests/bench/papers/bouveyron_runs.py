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
DOUBLED = 2.0
TABLE = ("MR on P", *LINKS, "MR on P*", "chosen", "chosen link", "applied, one start")
CRITERIA = ("bic", "press", "press-nearest")
METHODS = ("reference", "EM", "Gibbs", "truth")


def introductory(events: int, noise: float, seed: int) -> Vector:
    """Section 4.1 and 4.3: errors of AMRp, AMRb and MR, and whether the chains met; sigma times `noise`."""
    return np.array(introductory_run(seed, events, noise), dtype=np.float64)


def table_2(as_printed: bool, scenario: int, seed: int) -> Vector:
    """One simulation of table 2: errors of every model, of BIC's choice, and its number among the ten, MR last.

    The last is the error of the applied link where EM starts from the reference alone. Sigma is as each link defines
    it and the labels are of the whole range; or, as the print seems to be made, sigma is doubled in all scenarios and
    the labels are of half of the range.
    """
    rng = np.random.default_rng([scenario, seed, TARGET_EVENTS])
    reference, now, x, y = _changed_population(scenario, seed, rng, as_printed)
    fresh = inputs(VALIDATION, rng)
    truth = targets(now, fresh, rng)
    found = adapt(reference, x, y, models=["M1", *LINKS], seed=seed)
    alone = MixtureOfRegressions(2, random_state=seed).fit(x, y)
    fits = [found.candidate(name) for name in LINKS]
    bics = [*(fit.bic for fit in fits), alone.bic_]
    errors = [*(error(fit.mixture, fresh, truth) for fit in fits), error(alone.mixture_, fresh, truth)]
    chosen = int(np.argmin(bics))
    one = adapt(reference, x, y, models=[LINKS[scenario]], starts=1, seed=seed).mixture
    return np.array([error(reference, fresh, truth), *errors, errors[chosen], chosen, error(one, fresh, truth)])


def _changed_population(
    scenario: int, seed: int, rng: np.random.Generator, as_printed: bool = False
) -> tuple[Mixture, Mixture, Matrix, Vector]:
    factors, defined = SCENARIOS[LINKS[scenario]]
    old = inputs(500, rng)
    fitted = MixtureOfRegressions(2, n_starts=4, random_state=seed).fit(old, targets(POPULATION, old, rng)).mixture_
    # Components are ordered by the fit; the factors belong to the population's order.
    reference = aligned(fitted, np.argsort([error_of(fitted, component) for component in range(2)]))
    now = changed(factors, [DOUBLED] if as_printed else defined)
    x = inputs(TARGET_EVENTS, rng, low=0.0) if as_printed else inputs(TARGET_EVENTS, rng)
    return reference, now, x, targets(now, x, rng)


def criteria(scenario: int, seed: int) -> Vector:
    """Whether each criterion chooses the applied link, and the error of its choice."""
    rng = np.random.default_rng([scenario, seed, TARGET_EVENTS])
    reference, now, x, y = _changed_population(scenario, seed, rng)
    fresh = inputs(VALIDATION, rng)
    truth = targets(now, fresh, rng)
    found = [adapt(reference, x, y, models=["M1", *LINKS], criterion=by, seed=seed) for by in CRITERIA]
    return np.ravel([[one.model == LINKS[scenario], error(one.mixture, fresh, truth)] for one in found])


def stream(factor: float, events: int, seed: int) -> Vector:
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
    """How many lines BIC chooses among at most `most` where there are `lines`; seconds that it takes; steps of EM."""
    rng = np.random.default_rng([lines, seed])
    slopes = np.linspace(-6, 6, lines)
    population = Mixture.of(
        np.full(lines, 1 / lines), np.column_stack([rng.normal(0, 4, lines), slopes]), np.full(lines, 0.4)
    )
    x = rng.uniform(-3, 3, (1_000, 1))
    y = targets(population, x, rng)
    began = time.process_time()
    fitted = MixtureOfRegressions(max_components=most, random_state=seed).fit(x, y)
    taken = time.process_time() - began
    alone = MixtureOfRegressions(most, random_state=seed).fit(x, y)
    return np.array([fitted.n_components_, taken, alone.n_iter_, time.process_time() - began - taken])


def turned_over(seed: int) -> Vector:
    """A world of pM3b in which lines turn over: nats below the best of 200 starts, with one start and as it is."""
    rng = np.random.default_rng(seed)
    lines = int(rng.integers(2, 5))
    coefficients = rng.normal(size=(lines, 2)) * np.array([10.0, 1.0])
    reference = Mixture.of(rng.dirichlet(np.full(lines, 5.0)), coefficients, rng.uniform(0.2, 0.6, lines), 1_000)
    signs = np.where(rng.random((lines, 1)) < 0.5, -1.0, 1.0)
    factors = np.column_stack([signs * np.exp(0.7 * rng.normal(size=(lines, 1))), np.ones(lines)])
    now = Mixture.of(reference.weights, coefficients * factors, reference.sigmas)
    x = rng.uniform(-1, 1, (80, 1))
    y = targets(now, x, rng)

    def fitted(**starts: int) -> float:
        return adapt(reference, x, y, models=["pM3b"], seed=seed, **starts).candidate("pM3b").log_likelihood

    one, default, many = fitted(starts=1), fitted(), fitted(starts=200)
    best = max(one, default, many)
    return np.array([best - one, best - default])
