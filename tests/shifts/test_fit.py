"""Matching: unbiased shares, a test that keeps its level, and positions that equal the slow way."""

import numpy as np
import pytest

from monitor.shifts import fit
from monitor.shifts.moments import Moments
from monitor.shifts.novelty import novelty
from monitor.shifts.prepared import mapped_rows, prepare
from monitor.shifts.projections import unskewed
from monitor.shifts.window_view import look
from monitor.tolerances import FIT_RIDGE
from tests.assessment import worlds


def moments(rows=50_000):
    """Two classes, three coordinates, unit variance."""
    means = np.array([[0.0, 0.0, 0.0], [2.0, 1.0, 0.0]])
    return Moments(np.ones(3), means, np.stack([np.eye(3)] * 2), np.array([0.5, 0.5]), np.array([rows / 2, rows / 2]))


def test_the_mean_of_a_mix_is_matched_exactly():
    found = fit.match(moments(), 0.3 * moments().means[0] + 0.7 * moments().means[1], 1000)
    assert found.free == pytest.approx([0.3, 0.7])
    assert found.statistic == pytest.approx(0.0, abs=1e-12)
    assert found.p_value == pytest.approx(1.0)


def test_what_all_classes_have_in_common_costs_no_digit_however_large_it_is():
    known, mean = moments(), np.array([1.0, 0.5, 0.2])
    far = Moments(known.scale, known.means + 2.0**26, known.within, known.source_priors, known.class_counts)
    near, found = fit.match(known, mean, 1000), fit.match(far, mean + 2.0**26, 1000)
    assert found.free == pytest.approx(near.free, abs=1e-6)
    assert found.statistic == pytest.approx(near.statistic, rel=1e-6)


def test_what_is_left_over_is_held_against_the_covariance_of_residuals():
    """The product W P C P' of the docstring, multiplied out: its traces are those of the null."""
    rng = np.random.default_rng(3)
    spread = rng.normal(size=(2, 6, 6))
    within = spread @ spread.transpose(0, 2, 1) / 6
    counts = np.array([300.0, 500.0])
    known = Moments(np.ones(6), rng.normal(size=(2, 6)), within, np.array([0.4, 0.6]), counts)
    mean, n = rng.normal(size=6), 250
    found = fit.match(known, mean, n)
    first = _slowly(known, mean, n, known.source_priors)[0]
    free, statistic, product = _slowly(known, mean, n, np.maximum(first, 0) / np.maximum(first, 0).sum())
    assert found.free == pytest.approx(free)
    assert found.statistic == pytest.approx(statistic)
    traces = [np.trace(np.linalg.matrix_power(product, k)) for k in (2, 3)]
    assert found.degrees == pytest.approx(traces[0] ** 3 / traces[1] ** 2)


def _slowly(known, mean, n, priors):
    """p^, T and W P C P' at these priors, as the docstring of `fit` has them."""
    weights = priors / n + priors**2 / known.class_counts
    covariance = np.tensordot(weights, known.within, axes=1)
    inverse = np.linalg.inv(covariance + FIT_RIDGE * np.trace(covariance) / 6 * np.eye(6))
    a, apart = known.means.T, np.array([[1.0], [-1.0]])
    to_second = apart @ np.linalg.inv(apart.T @ a.T @ inverse @ a @ apart) @ apart.T @ a.T @ inverse
    free = np.array([0.5, 0.5]) + to_second @ (mean - a.mean(axis=1))
    projector, residual = np.eye(6) - a @ to_second, mean - a @ free
    return free, residual @ inverse @ residual, inverse @ projector @ covariance @ projector.T


def test_what_no_mix_reaches_is_left_over_in_standard_deviations():
    found = fit.match(moments(), np.array([1.0, 0.5, 0.2]), 10_000)
    assert found.p_value < 1e-10
    assert found.effect == pytest.approx(0.2, rel=0.1)


def test_the_tests_level_holds_with_a_finite_reference():
    rng = np.random.default_rng(0)
    known, n, m = moments(), 200, 400
    rejected = 0
    for _ in range(1000):
        means = known.means + rng.normal(size=known.means.shape) / np.sqrt(m / 2)
        reference = Moments(known.scale, means, known.within, known.source_priors, np.array([m / 2, m / 2]))
        share = rng.binomial(n, 0.3) / n
        mean = share * known.means[0] + (1 - share) * known.means[1] + rng.normal(size=3) / np.sqrt(n)
        rejected += fit.match(reference, mean, n).p_value < 0.05
    assert 25 <= rejected <= 78  # 99.99 % of a binomial with 1,000 draws at 5 %


def test_classes_that_look_alike_are_not_told_apart():
    same = Moments(np.ones(2), np.zeros((2, 2)), np.stack([np.eye(2)] * 2), np.array([0.5, 0.5]), np.array([1e3, 1e3]))
    found = fit.match(same, np.zeros(2), 1000)
    assert not found.identified
    assert np.isfinite(found.free).all()


def test_a_look_at_the_window_is_the_mean_of_its_rows():
    reference = worlds.reference()
    ready = prepare(reference)
    sample = reference.sample
    window = worlds.window(1000, 1)
    rows = type(window).of(sample.posteriors, sample.features)
    expected = mapped_rows(sample, ready).mean(axis=0) / ready.moments.scale
    assert look(rows, ready).mean == pytest.approx(expected, abs=1e-5)


def test_the_reference_is_prepared_once():
    assert prepare(worlds.reference()) is prepare(worlds.reference())


def test_mass_far_from_every_class_is_counted_and_its_events_are_named():
    ready = prepare(worlds.reference())
    window = worlds.window(5000, 2)
    x = np.array(window.features)
    x[:250] = np.array([-6.0, -6.0, 6.0, 6.0]) + np.random.default_rng(0).normal(size=(250, 4))
    found = novelty(ready.landscape, ready.landscape.distances(ready.projections.standardised(x)), worlds.PRIORS)
    assert found.mass == pytest.approx(0.05, abs=0.01)
    assert found.p_value < 1e-10
    assert found.beyond[:250].all()


def test_events_of_the_reference_are_no_novelty():
    ready = prepare(worlds.reference())
    window = worlds.window(5000, 3)
    distances = ready.landscape.distances(ready.projections.standardised(window.features))
    found = novelty(ready.landscape, distances, worlds.PRIORS)
    assert found.p_value > 0.001


def test_a_log_normal_is_straightened():
    rng = np.random.default_rng(0)
    values = 3 + np.exp(rng.normal(size=(10_000, 1)))
    straight = unskewed(values, np.array([3.0]), np.array([1.0]))
    low, middle, high = np.quantile(straight, [0.1, 0.5, 0.9])
    assert high - middle == pytest.approx(middle - low, rel=0.1)
