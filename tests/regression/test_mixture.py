"""A mixture as a value: densities, predictions, intervals, plain arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from monitor.errors import ArtefactError, InputError
from monitor.regression import Mixture
from tests.regression import naive, worlds


def test_the_density_is_equation_1_2():
    mixture = worlds.random_mixture(3, 2, seed=1)
    x, y = worlds.normal(12, 2, seed=2), np.linspace(-5, 5, 12)
    expected = [np.log(naive.density(mixture, row, value)) for row, value in zip(x, y, strict=True)]
    np.testing.assert_allclose(np.logaddexp.reduce(mixture.log_densities(x, y), axis=1), expected, rtol=1e-12)
    np.testing.assert_allclose(mixture.responsibilities(x, y), naive.responsibilities(mixture, x, y), rtol=1e-9)


def test_the_prediction_is_the_mean_of_the_components():
    mixture = Mixture.of([0.25, 0.75], [[1.0, 2.0], [3.0, -1.0]], [1.0, 1.0])
    np.testing.assert_allclose(mixture.component_means([[2.0]]), [[5.0, 1.0]])
    np.testing.assert_allclose(mixture.predict([[2.0]]), [2.0])


def test_the_interval_of_one_component_is_the_normal_one():
    lower, upper = Mixture.of([1.0], [[1.0, 2.0]], [3.0]).interval([[2.0]], 0.9)
    np.testing.assert_allclose([lower[0], upper[0]], stats.norm.interval(0.9, 5.0, 3.0), rtol=1e-12)


@given(seed=st.integers(0, 10_000), level=st.floats(0.05, 0.99))
def test_the_interval_leaves_half_of_the_rest_on_each_side(seed, level):
    mixture = worlds.random_mixture(3, 1, seed)
    x = worlds.normal(3, 1, seed)
    means = mixture.component_means(x)
    lower, upper = mixture.interval(x, level)
    for bound, mass in ((lower, 0.5 - level / 2), (upper, 0.5 + level / 2)):
        below = np.sum(mixture.weights * stats.norm.cdf(bound[:, None], means, mixture.sigmas), axis=1)
        np.testing.assert_allclose(below, mass, atol=1e-9)


def test_an_event_that_no_component_could_have_made_still_has_responsibilities():
    mixture = worlds.random_mixture(3, 1, seed=1)
    shares = mixture.responsibilities([[0.0]], [1e6])
    assert np.all(np.isfinite(shares))
    assert shares.sum() == pytest.approx(1.0)


def test_plain_arrays_and_back_is_the_same_mixture():
    mixture = worlds.random_mixture(3, 2, seed=1)
    again = Mixture.from_arrays(mixture.to_arrays())
    for part in ("weights", "coefficients", "sigmas"):
        np.testing.assert_array_equal(getattr(again, part), getattr(mixture, part))
    assert again.events == mixture.events


@pytest.mark.parametrize(
    "change",
    [{"weights": None}, {"sigmas": [0.0, 1.0]}, {"weights": [0.4, 0.4]}, {"coefficients": [[np.nan, 1.0]] * 2}],
)
def test_arrays_that_are_no_mixture_are_an_artefact_error(change):
    arrays = {"weights": [0.5, 0.5], "coefficients": [[1.0, 2.0], [3.0, 4.0]], "sigmas": [1.0, 1.0], "events": [0.0]}
    arrays = {name: value for name, value in {**arrays, **change}.items() if value is not None}
    with pytest.raises(ArtefactError):
        Mixture.from_arrays(arrays)


def test_arrays_are_read_only_and_the_callers_stay_his():
    mine = np.array([0.5, 0.5])
    mixture = Mixture.of(mine, [[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
    mine[0] = 9.0
    assert mixture.weights[0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        mixture.weights[0] = 1.0


def test_a_level_outside_0_1_is_refused():
    with pytest.raises(InputError, match="level"):
        worlds.INTRODUCTORY.interval([[0.0, 0.0]], 1.0)
