"""The sampler draws from the posterior: Geweke's joint test, each conditional by itself, relabelling, diagnostics."""

import numpy as np
import pytest
from scipy import stats

from monitor.errors import InputError
from monitor.regression import Mixture, adapt_bayes
from monitor.regression.diagnostics import effective_size, split_r_hat
from monitor.regression.gibbs import Chains, Prior, sweep
from monitor.regression.maximise import FitParameters
from monitor.regression.relabel import relabel
from tests.regression import naive, worlds

PRIOR = Prior(
    alpha=np.array([2.0, 3.0]),
    coefficients=np.array([[1.0, 2.0], [-1.0, 0.5]]),
    spread=np.array([[0.5, 1.5], [1.0, 0.3]]),
    shape=4.0,
    scale=np.array([2.0, 3.0]),
)


def prior_draws(size, rng):
    variance = stats.invgamma.rvs(PRIOR.shape, scale=PRIOR.scale, size=(size, 2), random_state=rng)
    noise = np.sqrt(variance)[..., None] * np.sqrt(PRIOR.spread) * rng.normal(size=(size, 2, 2))
    return FitParameters(rng.dirichlet(PRIOR.alpha, size), PRIOR.coefficients + noise, np.sqrt(variance))


def products_of(rows):
    return (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


def simulate(state, rows, rng):
    """Data from the model, one set a chain."""
    size = len(state.weights)
    component = (rng.random((size, len(rows), 1)) > np.cumsum(state.weights, axis=1)[:, None, :-1]).sum(axis=2)
    chain = np.arange(size)[:, None]
    means = np.einsum("sij,ij->si", state.coefficients[chain, component], rows)
    return means + state.sigmas[chain, component] * rng.normal(size=means.shape)


def geweke(sweeps, wrong=None):
    """Chains that start at the prior and alternate data | parameters, parameters | data must stay at the prior.

    The p-values of two-sample KS tests, quantity by quantity, against fresh prior draws.
    """
    rng = np.random.default_rng(11)
    rows = naive.design(worlds.normal(6, 1, seed=3))
    state = prior_draws(4_000, rng)
    for _ in range(sweeps):
        data = simulate(state, rows, rng)
        state, _ = sweep(state, rows, products_of(rows), data, prior=wrong or PRIOR, rng=rng)
    fresh = prior_draws(4_000, rng)

    def quantities(part):
        flat = part.coefficients.reshape(4_000, -1)
        likely = np.einsum("sk,skj,ij->si", part.weights, part.coefficients, rows)[:, :2]
        return np.column_stack(
            [part.weights[:, 0], flat, np.log(part.sigmas), flat[:, :1] / part.sigmas[:, :1], likely]
        )

    pairs = zip(quantities(state).T, quantities(fresh).T, strict=True)
    return np.array([stats.ks_2samp(one, two).pvalue for one, two in pairs])


def test_geweke_the_sampler_leaves_the_joint_distribution_as_it_is():
    p_values = geweke(sweeps=25)
    assert p_values.min() > 0.01 / p_values.size


def test_geweke_would_notice_the_printed_shape_of_sigma():
    # The print leaves (p + 1)/2 out of the shape: the same as a prior whose shape is that much smaller.
    printed = Prior(PRIOR.alpha, PRIOR.coefficients, PRIOR.spread, PRIOR.shape - 1.0, PRIOR.scale)
    assert geweke(sweeps=25, wrong=printed).min() < 1e-6


def test_each_conditional_has_the_mean_that_its_formula_gives():
    rng = np.random.default_rng(5)
    rows = naive.design(worlds.normal(30, 1, seed=3))
    one = Mixture.of([0.4, 0.6], [[9.0, 2.0], [-9.0, 0.5]], [0.8, 1.2])
    target = worlds.draw(one, rows[:, 1:], seed=4)
    member = naive.responsibilities(one, rows[:, 1:], target).argmax(axis=1)  # eighteen sigmas apart: certain
    size = 40_000
    state = FitParameters(
        *(np.repeat(part[None], size, axis=0) for part in (one.weights, one.coefficients, one.sigmas))
    )
    drawn, likelihood = sweep(state, rows, products_of(rows), target[None], prior=PRIOR, rng=rng)
    counts = np.bincount(member, minlength=2)
    alpha = PRIOR.alpha + counts
    np.testing.assert_allclose(drawn.weights.mean(axis=0), alpha / alpha.sum(), atol=0.002)
    for k in range(2):
        x, y = rows[member == k], target[member == k]
        away = one.coefficients[k] - PRIOR.coefficients[k]
        shape = PRIOR.shape + (counts[k] + 2) / 2
        scale = PRIOR.scale[k] + np.sum((y - x @ one.coefficients[k]) ** 2) / 2 + np.sum(away**2 / PRIOR.spread[k]) / 2
        assert stats.kstest(drawn.sigmas[:, k] ** 2, stats.invgamma(shape, scale=scale).cdf).pvalue > 1e-3
        precision = x.T @ x + np.diag(1 / PRIOR.spread[k])
        mean = np.linalg.solve(precision, x.T @ y + PRIOR.coefficients[k] / PRIOR.spread[k])
        standard = (drawn.coefficients[:, k] - mean) / drawn.sigmas[:, k, None]
        np.testing.assert_allclose(np.cov(standard.T), np.linalg.inv(precision), atol=0.02)
        np.testing.assert_allclose(standard.mean(axis=0), 0.0, atol=0.01)
    expected = naive.log_likelihood(one, rows[:, 1:], target) + 30 * 0.5 * np.log(2 * np.pi)
    assert likelihood[0] == pytest.approx(expected, rel=1e-9)


def test_relabelling_undoes_any_switching():
    rng = np.random.default_rng(1)
    centre = np.array([[1.0, 2.0], [-1.0, 0.5]])
    coefficients = centre + 0.1 * rng.normal(size=(200, 2, 2, 2))
    weights = np.broadcast_to([0.3, 0.7], (200, 2, 2)).copy()
    sigmas = np.broadcast_to([0.5, 1.0], (200, 2, 2)) * np.exp(0.05 * rng.normal(size=(200, 2, 2)))
    straight = Chains(weights, coefficients, sigmas, rng.normal(size=(200, 2)))
    flip = rng.random((200, 2)) < 0.3
    order = np.where(flip[..., None], [1, 0], [0, 1])
    mixed = Chains(
        np.take_along_axis(weights, order, 2),
        np.take_along_axis(coefficients, order[..., None], 2),
        np.take_along_axis(sigmas, order, 2),
        straight.log_posterior,
    )
    again, switched = relabel(mixed, PRIOR)
    assert switched == flip.sum()
    np.testing.assert_array_equal(again.coefficients, coefficients)
    np.testing.assert_array_equal(again.weights, weights)
    assert relabel(straight, PRIOR)[1] == 0


def test_the_effective_size_is_the_books_formula():
    rng = np.random.default_rng(2)
    draws = np.empty((200, 3, 2))
    draws[0] = rng.normal(size=(3, 2))
    for t in range(1, 200):
        draws[t] = np.array([0.8, 0.1]) * draws[t - 1] + rng.normal(size=(3, 2))
    expected = [naive.effective_size(draws[:, :, j]) for j in range(2)]
    np.testing.assert_allclose(effective_size(draws), expected, rtol=1e-8)


def test_r_hat_is_one_for_chains_that_agree_and_large_for_chains_apart():
    draws = np.random.default_rng(3).normal(size=(500, 4, 1))
    assert split_r_hat(draws)[0] == pytest.approx(1.0, abs=0.02)
    assert split_r_hat(draws + 5 * np.arange(4)[None, :, None])[0] > 3
    assert split_r_hat(draws + np.linspace(0, 5, 500)[:, None, None])[0] > 1.4
    assert split_r_hat(np.ones((10, 2, 1)))[0] == 1.0


def test_many_labels_outvote_the_prior_and_the_interval_covers():
    reference = Mixture.of([0.5, 0.5], [[4.0, 1.0], [-3.0, 2.0]], [0.5, 0.7])
    now = worlds.moved(reference, 2.0, 2.0, weights=[0.3, 0.7])
    x = worlds.normal(500, 1, seed=1)
    found = adapt_bayes(reference, x, worlds.draw(now, x, seed=2), sweeps=600)
    assert found.converged
    assert found.effective_sizes.min() > 200
    np.testing.assert_allclose(found.mixture.coefficients, now.coefficients, atol=0.4)
    np.testing.assert_allclose(found.mixture.weights, now.weights, atol=0.07)
    assert (
        np.mean((found.lower.coefficients < now.coefficients) & (now.coefficients < found.upper.coefficients)) >= 0.75
    )
    fresh = worlds.normal(1_000, 1, seed=3)
    y = worlds.draw(now, fresh, seed=4)
    lower, upper = found.interval(fresh, 0.9)
    assert np.mean((lower < y) & (y < upper)) == pytest.approx(0.9, abs=0.03)


def test_without_labels_the_answer_is_the_prior():
    found = adapt_bayes(worlds.INTRODUCTORY, np.empty((0, 2)), [], sweeps=2_000)
    np.testing.assert_allclose(found.mixture.coefficients, worlds.INTRODUCTORY.coefficients, atol=0.15)
    assert found.events == 0


def test_the_relative_prior_knows_no_units():
    reference = Mixture.of([0.5, 0.5], [[4.0, 1.0], [-3.0, 2.0]], [0.5, 0.7])
    other = Mixture.of([0.5, 0.5], reference.coefficients * [100.0, 0.1], reference.sigmas * 100.0)
    x = worlds.normal(40, 1, seed=1)
    y = worlds.draw(worlds.moved(reference, 2.0, 2.0), x, seed=2)
    one = adapt_bayes(reference, x, y, prior=Prior.relative(reference, x), sweeps=200)
    two = adapt_bayes(other, 1e3 * x, 100 * y, prior=Prior.relative(other, 1e3 * x), sweeps=200)
    np.testing.assert_allclose(two.mixture.coefficients, one.mixture.coefficients * [100.0, 0.1], rtol=1e-6)


def test_the_same_seed_gives_the_same_draws_and_one_component_works():
    reference = Mixture.of([1.0], [[4.0, 1.0]], [0.5])
    x = worlds.normal(20, 1, seed=1)
    y = worlds.draw(reference, x, seed=2)
    one, two = (adapt_bayes(reference, x, y, sweeps=50, burn_in=10, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one.chains.coefficients, two.chains.coefficients)
    assert one.switched == 0


def test_a_burn_in_that_leaves_nothing_is_refused():
    with pytest.raises(InputError, match="burn_in"):
        adapt_bayes(worlds.INTRODUCTORY, [[0.0, 0.0]], [1.0], sweeps=100, burn_in=100)
