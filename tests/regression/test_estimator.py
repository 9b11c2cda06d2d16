"""MixtureOfRegressions: scikit-learn's rules, K by BIC, the same model from the same seed, plain arrays."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import monitor.regression
from monitor.errors import InputError
from monitor.regression import MixtureOfRegressions, adapt, em
from tests.regression import worlds


@parametrize_with_checks(
    [MixtureOfRegressions(n_components=1), MixtureOfRegressions(max_components=2, n_starts=2)],
)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


def test_the_parameters_that_made_the_data_are_found():
    truth = worlds.INTRODUCTORY
    x = worlds.parabola(1000, seed=1)
    model = MixtureOfRegressions(n_components=2).fit(x, worlds.draw(truth, x, seed=2))
    order = np.argsort(-truth.coefficients[:, 2])[::-1]
    np.testing.assert_allclose(model.mixture_.coefficients, truth.coefficients[order], atol=0.25)
    np.testing.assert_allclose(model.mixture_.sigmas, truth.sigmas[order], atol=0.1)
    assert model.converged_
    assert not model.collapsed_


@pytest.mark.parametrize("components", [1, 2, 3])
def test_bic_finds_how_many_components_there_are(components):
    truth = worlds.random_mixture(components, 2, seed=components + 3)
    x = worlds.normal(300, 2, seed=1)
    model = MixtureOfRegressions(max_components=4, n_starts=5).fit(x, worlds.draw(truth, x, seed=2))
    assert model.n_components_ == components
    parameters = components * 4 + components - 1
    assert model.bic_ == pytest.approx(-2 * model.log_likelihood_ + parameters * np.log(300))


@pytest.mark.parametrize("components", [1, 2])
def test_a_number_of_lines_that_has_lost_is_given_up_early_and_the_choice_is_what_it_was(components, monkeypatch):
    x = worlds.normal(500, 2, seed=1)
    y = worlds.draw(worlds.random_mixture(components, 2, seed=components), x, seed=2)
    model = MixtureOfRegressions(max_components=4, n_starts=5)
    early = model.fit(x, y).to_dict(), model.n_components_, model.bic_by_components_
    monkeypatch.setattr(em, "OUT_OF_REACH", 1e100)
    whole = model.fit(x, y).to_dict(), model.n_components_, model.bic_by_components_
    assert early[1] == whole[1] == components
    assert all(np.array_equal(early[0][name], whole[0][name]) for name in whole[0])
    assert early[2] != whole[2]


def test_the_log_likelihood_is_that_of_the_mixture_in_the_callers_units():
    x = worlds.parabola(200, seed=1) * 1e3 + 5e4
    y = 1e5 + 1e3 * worlds.draw(worlds.INTRODUCTORY, worlds.parabola(200, seed=1), seed=2)
    model = MixtureOfRegressions(2).fit(x, y)
    assert model.log_likelihood_ == pytest.approx(model.mixture_.log_likelihood(x, y), rel=1e-8)


def test_one_component_is_least_squares():
    x = worlds.normal(50, 3, seed=1)
    y = worlds.draw(worlds.random_mixture(1, 3, seed=2), x, seed=3)
    fitted = MixtureOfRegressions(1).fit(x, y).mixture_
    rows = np.column_stack([np.ones(50), x])
    line = np.linalg.lstsq(rows, y, rcond=None)[0]
    np.testing.assert_allclose(fitted.coefficients[0], line, rtol=1e-9)
    assert fitted.sigmas[0] == pytest.approx(np.sqrt(np.mean((y - rows @ line) ** 2)), rel=1e-9)


def test_the_same_seed_gives_the_same_model():
    x = worlds.parabola(100, seed=1)
    y = worlds.draw(worlds.INTRODUCTORY, x, seed=2)
    one, two = (MixtureOfRegressions(2, random_state=3).fit(x, y).to_dict() for _ in range(2))
    for name, values in one.items():
        np.testing.assert_array_equal(two[name], values)


def test_plain_arrays_carry_everything_that_predicting_and_adapting_needs():
    x = worlds.parabola(200, seed=1)
    y = worlds.draw(worlds.INTRODUCTORY, x, seed=2)
    model = MixtureOfRegressions(2).fit(x, y)
    again = MixtureOfRegressions.from_dict(model.to_dict())
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    np.testing.assert_array_equal(again.predict_components(x), model.predict_components(x))
    np.testing.assert_array_equal(again.predict_interval(x), model.predict_interval(x))
    np.testing.assert_array_equal(again.responsibilities(x, y), model.responsibilities(x, y))
    assert adapt(again, x, 2 * y).chosen.bic == adapt(model, x, 2 * y).chosen.bic


def test_collinear_and_constant_inputs_and_a_constant_target_have_an_answer():
    x = worlds.normal(60, 1, seed=1)
    y = 1 + 2 * x[:, 0] + 0.1 * np.random.default_rng(2).normal(size=60)
    doubled = MixtureOfRegressions(1).fit(np.column_stack([x, x, np.full(60, 3.0)]), y)
    np.testing.assert_allclose(doubled.mixture_.coefficients[0, 1:], [1.0, 1.0, 0.0], atol=0.05)
    flat = MixtureOfRegressions().fit(x, np.full(60, 5.0))
    assert flat.collapsed_
    np.testing.assert_allclose(flat.predict(x), 5.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_few_events_that_many_inputs_can_fit_are_no_component(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(400, 12))
    y = x @ np.resize([6.0, -2.0, 3.0], 12) + rng.normal(size=400)
    assert MixtureOfRegressions(max_components=2, n_starts=6).fit(x, y).n_components_ == 1


def test_zero_components_are_refused():
    with pytest.raises(InputError, match="n_components"):
        MixtureOfRegressions(0).fit([[1.0], [2.0]], [1.0, 2.0])


def test_the_door_lists_what_can_be_imported():
    for name in monitor.regression.__all__:
        assert getattr(monitor.regression, name) is not None
    with pytest.raises(AttributeError):
        _ = monitor.regression.Nothing
