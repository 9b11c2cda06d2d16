"""EM climbs, ends where it says, and obeys the laws that any maximum-likelihood fit obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.regression import Mixture, adapt
from monitor.regression.candidates import state_of
from monitor.regression.em import climb, expect, step
from monitor.regression.links import MODELS
from monitor.regression.maximise import pose
from tests.regression import naive, worlds

seeds = st.integers(0, 2**31 - 1)


@pytest.mark.parametrize("name", MODELS)
def test_the_likelihood_never_falls(name):
    for seed in range(4):
        reference = worlds.random_mixture(3, 2, seed)
        x = worlds.normal(40, 2, seed + 10)
        y = worlds.draw(worlds.moved(reference, np.array([1.3, 2.0, 0.5])), x, seed + 20)
        problem, state = pose(naive.design(x), y, state_of(reference)), state_of(reference)
        values = []
        for _ in range(60):
            state, value = step(problem, MODELS[name], state)
            values.append(float(value[0]))
        assert np.all(np.diff(values) >= -1e-9 * max(1.0, abs(values[-1])))


def test_the_e_step_is_equation_2_7_and_2_4():
    mixture = worlds.random_mixture(3, 2, seed=1)
    x = worlds.normal(15, 2, seed=2)
    y = worlds.draw(mixture, x, seed=3)
    shares, likelihood = expect(pose(naive.design(x), y, state_of(mixture)), state_of(mixture))
    np.testing.assert_allclose(shares[0].T, naive.responsibilities(mixture, x, y), rtol=1e-10, atol=1e-300)
    assert likelihood[0] == pytest.approx(naive.log_likelihood(mixture, x, y), rel=1e-12)


@pytest.mark.parametrize("name", ["M2a", "M2d", "M3b", "pM3c", "pM3d", "M5"])
def test_ten_steps_equal_the_slow_twin(name):
    reference = worlds.random_mixture(2, 1, seed=3)
    x = worlds.normal(30, 1, seed=4)
    y = worlds.draw(worlds.moved(reference, 1.4, 1.4), x, seed=5)
    model = MODELS[name]
    problem, state = pose(naive.design(x), y, state_of(reference)), state_of(reference)
    for _ in range(10):
        state, _ = step(problem, model, state)
    twin = naive.em(model.link.name, model.free_proportions, reference, x, y, steps=10)
    np.testing.assert_allclose(state.coefficients[0], twin.coefficients, rtol=1e-8)
    np.testing.assert_allclose(state.sigmas[0], twin.sigmas, rtol=1e-8)
    np.testing.assert_allclose(state.weights[0], twin.weights, rtol=1e-8)


def test_an_event_of_weight_two_is_two_events_and_of_weight_zero_none():
    reference = worlds.random_mixture(2, 2, seed=5)
    x = worlds.normal(25, 2, seed=6)
    y = worlds.draw(worlds.moved(reference, 2.0, 2.0), x, seed=7)
    weights = np.ones((1, 25))
    weights[0, 3], weights[0, 8] = 2.0, 0.0
    rows = naive.design(x)
    repeated = np.concatenate([np.delete(np.arange(25), 8), [3]])
    model = MODELS["pM3d"]
    one = climb(pose(rows, y, state_of(reference), weights), model, state_of(reference))
    two = climb(pose(rows[repeated], y[repeated], state_of(reference)), model, state_of(reference))
    np.testing.assert_allclose(one.state.coefficients, two.state.coefficients, rtol=1e-7)
    assert one.log_likelihood[0] == pytest.approx(two.log_likelihood[0], abs=1e-7)


def test_a_climb_that_is_cut_short_says_so():
    reference = worlds.random_mixture(2, 2, seed=5)
    x = worlds.normal(25, 2, seed=6)
    problem = pose(naive.design(x), worlds.draw(worlds.moved(reference, 1.1), x, 8), state_of(reference))
    assert not climb(problem, MODELS["pM5"], state_of(reference), 2).converged[0]
    assert climb(problem, MODELS["pM5"], state_of(reference)).converged[0]


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_a_larger_model_is_never_less_likely_than_one_inside_it(seed):
    reference = worlds.random_mixture(2, 2, seed)
    x = worlds.normal(60, 2, seed + 1)
    y = worlds.draw(worlds.moved(reference, 1.5), x, seed + 2)
    fits = {fit.model: fit for fit in adapt(reference, x, y, starts=2).candidates}
    for name, fit in fits.items():
        for inner in MODELS[name].nested:
            if fit.selectable and fits[inner].selectable and not fit.empty:
                assert fit.log_likelihood >= fits[inner].log_likelihood - 1e-6


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_the_order_of_events_and_of_components_changes_nothing_but_the_order(seed):
    rng = np.random.default_rng(seed)
    reference = worlds.random_mixture(3, 2, seed)
    x = worlds.normal(50, 2, seed + 1)
    y = worlds.draw(worlds.moved(reference, 1.5, 1.5), x, seed + 2)
    models = ["M2a", "M3c", "pM3d"]
    plain = adapt(reference, x, y, models=models, starts=1)
    rows, parts = rng.permutation(50), rng.permutation(3)
    turned = Mixture.of(reference.weights[parts], reference.coefficients[parts], reference.sigmas[parts])
    again = adapt(turned, x[rows], y[rows], models=models, starts=1)
    for one, two in zip(plain.candidates, again.candidates, strict=True):
        assert two.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-6)
        np.testing.assert_allclose(two.mixture.coefficients, one.mixture.coefficients[parts], rtol=1e-3, atol=1e-4)


@given(seed=seeds, unit=st.sampled_from([1e-3, 0.1, 60.0, 1e4]))
@settings(max_examples=10, deadline=None)
def test_units_change_no_factor(seed, unit):
    reference = worlds.random_mixture(2, 2, seed)
    x = worlds.normal(50, 2, seed + 1)
    y = worlds.draw(worlds.moved(reference, 1.5, 1.5), x, seed + 2)
    other = Mixture.of(
        reference.weights, reference.coefficients * np.array([1.0, 1 / unit, 1.0]) * 7.0, reference.sigmas * 7.0
    )
    models = ["M2a", "M2d", "M3a", "pM4b"]
    plain = adapt(reference, x, y, models=models, starts=3)
    again = adapt(other, x * np.array([unit, 1.0]), 7.0 * y, models=models, starts=3)
    assert again.model == plain.model
    np.testing.assert_allclose(again.factors, plain.factors, rtol=1e-4)
