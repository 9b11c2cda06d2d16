"""The relation test: quiet when nothing changed, quick when something did, honest when it cannot know."""

import numpy as np
import pytest

from monitor.errors import ArtefactError
from monitor.regression import (
    MixtureOfRegressions,
    RelationNull,
    calibrate_relation,
    labels_wanted,
    relation_test,
)
from monitor.regression.relation import RelationStatus
from tests.regression import worlds


@pytest.fixture(scope="module")
def reference():
    x = worlds.parabola(2_000, seed=1)
    y = worlds.draw(worlds.INTRODUCTORY, x, seed=2)
    model = MixtureOfRegressions(2, n_starts=5).fit(x, y)
    return model, calibrate_relation(model, x, y, windows=200)


def test_a_window_whose_slopes_doubled_is_told_in_words(reference):
    model, null = reference
    x = worlds.parabola(300, seed=5)
    y = worlds.draw(worlds.moved(worlds.INTRODUCTORY, np.array([1.0, 2.0, 2.0]), 2.0), x, seed=6)
    found = relation_test(model, x, y, null=null)
    assert found.changed
    assert found.model == "M2a"
    assert found.description == "all slopes doubled; intercepts unchanged"
    assert found.p_value < 1e-10
    assert found.effect > 0.1
    assert found.calibrated
    np.testing.assert_allclose(found.adaptation.factors[:, 2], 2.0, rtol=0.05)


def test_nothing_changed_is_quiet_at_the_level(reference):
    model, null = reference
    p_values = []
    for seed in range(100):
        x = worlds.parabola(40, seed)
        found = relation_test(model, x, worlds.draw(worlds.INTRODUCTORY, x, seed + 500), null=null, level=0.0)
        p_values.append(found.p_value)
        assert (found.model, found.description, found.changed) == ("M1", "nothing changed", False)
    # 100 windows at 5 %: 5 expected, 12 is three standard deviations above
    assert np.sum(np.array(p_values) < 0.05) <= 12
    assert np.median(p_values) > 0.25


def test_evidence_adds_up_over_windows(reference):
    model, null = reference
    x = worlds.parabola(200, seed=8)
    y = worlds.draw(worlds.moved(worlds.INTRODUCTORY, 1.15, 1.15), x, seed=9)
    one = relation_test(model, x[:20], y[:20], null=null, level=0.0)
    all_ten = relation_test(model, x, y, null=null, level=0.0)
    assert all_ten.p_value < 1e-4 < one.p_value


def test_every_alternative_contains_the_null_so_that_no_ratio_is_negative(reference):
    model, _ = reference
    for seed in range(5):
        x = worlds.parabola(30, seed)
        found = relation_test(model, x, worlds.draw(worlds.INTRODUCTORY, x, seed), level=0.0)
        assert found.statistic >= 0.0
        assert 0.0 < found.p_value <= 1.0
        assert not found.calibrated


def test_too_few_labels_and_a_constant_label_are_named_not_tested(reference):
    model, null = reference
    x = worlds.parabola(7, seed=1)
    few = relation_test(model, x, worlds.draw(worlds.INTRODUCTORY, x, seed=2), null=null)
    assert (few.status, few.p_value, few.changed) == (RelationStatus.TOO_FEW_LABELS, 1.0, False)
    assert relation_test(model, np.empty((0, 2)), [], null=null).status is RelationStatus.TOO_FEW_LABELS
    flat = relation_test(model, worlds.parabola(50, seed=1), np.full(50, 3.0), null=null)
    assert flat.status is RelationStatus.CONSTANT_TARGET
    assert "carry no relation" in flat.description


def test_events_with_missing_values_are_left_out_and_counted(reference):
    model, null = reference
    x = worlds.parabola(60, seed=1)
    y = worlds.draw(worlds.INTRODUCTORY, x, seed=2)
    whole = relation_test(model, x[5:], y[5:], null=null, level=0.0)
    x[:3, 0], y[3:5] = np.nan, np.nan
    found = relation_test(model, x, y, null=null, level=0.0)
    assert (found.events, found.dropped) == (55, 5)
    assert found.p_value == whole.p_value


def test_the_null_travels_as_plain_arrays(reference):
    _, null = reference
    again = RelationNull.from_arrays(null.to_arrays())
    np.testing.assert_array_equal(again.at(33)[0], null.at(33)[0])
    with pytest.raises(ArtefactError):
        RelationNull.from_arrays({**null.to_arrays(), "inflation": np.ones((3, 2))})
    with pytest.raises(ArtefactError):
        RelationNull.from_arrays({})


def test_the_inflation_of_gaussian_noise_is_near_one_and_of_heavy_tails_above(reference):
    _, null = reference
    assert np.all(null.inflation[-1] < 1.6)
    x = worlds.parabola(1_000, seed=1)
    rng = np.random.default_rng(3)
    component = rng.integers(2, size=1_000)
    y = worlds.INTRODUCTORY.component_means(x)[np.arange(1_000), component] + rng.standard_t(3, size=1_000)
    heavy = calibrate_relation(MixtureOfRegressions(2, n_starts=3).fit(x, y), x, y, windows=100)
    assert heavy.inflation[-1].max() > 1.5
    assert heavy.inflation[-1].max() > null.inflation[-1].max()


def test_how_many_labels_to_gather_follows_from_the_parameters(reference):
    assert labels_wanted(reference[0]) == 4 * 5  # M4b with two components and two inputs
    assert labels_wanted(worlds.random_mixture(1, 1, seed=1)) == 20


def test_one_component_is_a_plain_regression_and_works_the_same():
    truth = worlds.random_mixture(1, 2, seed=4)
    x = worlds.normal(500, 2, seed=1)
    y = worlds.draw(truth, x, seed=2)
    model = MixtureOfRegressions(1).fit(x, y)
    null = calibrate_relation(model, x, y, windows=100)
    fresh = worlds.normal(60, 2, seed=3)
    same = relation_test(model, fresh, worlds.draw(truth, fresh, seed=4), null=null)
    assert same.model == "M1"
    doubled = worlds.draw(worlds.moved(truth, np.array([1.0, 2.0, 2.0]), 2.0), fresh, seed=5)
    assert relation_test(model, fresh, doubled, null=null).model == "M2a"
