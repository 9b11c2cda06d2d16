"""Matching: unbiased shares, a test that keeps its level, and positions that equal the slow way."""

import numpy as np
import pytest

from monitor.shifts import fit
from monitor.shifts.moments import Moments
from monitor.shifts.novelty import novelty
from monitor.shifts.prepared import prepare
from monitor.shifts.projections import unskewed
from monitor.shifts.window_view import look
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
    assert look(rows, ready).mean == pytest.approx(ready.rows.mean(axis=0) / ready.moments.scale, abs=1e-5)


def test_the_reference_is_prepared_once():
    assert prepare(worlds.reference()) is prepare(worlds.reference())


def test_mass_far_from_every_class_is_counted_and_its_events_are_named():
    ready = prepare(worlds.reference())
    window = worlds.window(5000, 2)
    x = np.array(window.features)
    x[:250] = np.array([-6.0, -6.0, 6.0, 6.0]) + np.random.default_rng(0).normal(size=(250, 4))
    found = novelty(ready.landscape, ready.projections.standardised(x), worlds.PRIORS)
    assert found.mass == pytest.approx(0.05, abs=0.01)
    assert found.p_value < 1e-10
    assert found.beyond[:250].all()


def test_events_of_the_reference_are_no_novelty():
    ready = prepare(worlds.reference())
    window = worlds.window(5000, 3)
    found = novelty(ready.landscape, ready.projections.standardised(window.features), worlds.PRIORS)
    assert found.p_value > 0.001


def test_a_log_normal_is_straightened():
    rng = np.random.default_rng(0)
    values = 3 + np.exp(rng.normal(size=(10_000, 1)))
    straight = unskewed(values, np.array([3.0]), np.array([1.0]))
    low, middle, high = np.quantile(straight, [0.1, 0.5, 0.9])
    assert high - middle == pytest.approx(middle - low, rel=0.1)
