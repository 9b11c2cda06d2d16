"""Categories, missing values, and p-values of many tests at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chi2_contingency, false_discovery_control

from monitor.shifts import categories, correction

p_vectors = hnp.arrays(float, st.integers(1, 30), elements=st.floats(0, 1))


def test_with_one_class_the_chi_square_is_the_textbooks_for_two_samples_with_the_same_shares():
    counts = np.array([300.0, 400.0, 300.0])
    found = categories.chi_square(counts * 2, counts[None, :], np.array([1.0]))
    assert found.statistic == pytest.approx(0.0, abs=1e-12)
    assert found.p_value == 1.0


def test_with_one_class_the_p_value_is_near_the_contingency_tables():
    window, reference = np.array([320.0, 390.0, 290.0]), np.array([3000.0, 4000.0, 3000.0])
    found = categories.chi_square(window, reference[None, :], np.array([1.0]))
    assert found.p_value == pytest.approx(chi2_contingency(np.array([window, reference])).pvalue, rel=0.05)


def test_a_pure_prior_shift_moves_no_category():
    by_class = np.array([[900.0, 100.0], [100.0, 900.0]])
    window = 1000 * (0.3 * by_class[0] + 0.7 * by_class[1]) / 1000
    assert categories.chi_square(window, by_class, np.array([0.5, 0.5])).p_value < 1e-12
    assert categories.chi_square(window, by_class, np.array([0.3, 0.7])).p_value == pytest.approx(1.0)


def test_values_the_reference_never_saw_are_noticed():
    by_class = np.array([[5000.0, 5000.0, 0.0]])
    assert categories.chi_square(np.array([470.0, 480.0, 50.0]), by_class, np.array([1.0])).p_value < 1e-10


def test_the_level_of_the_chi_square_holds_under_a_class_mix_with_finite_reference():
    rng = np.random.default_rng(0)
    shares = np.array([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
    mix = np.array([0.8, 0.2])
    rejected = 0
    for _ in range(400):
        by_class = np.stack([rng.multinomial(2000, s) for s in shares]).astype(float)
        window = sum(rng.multinomial(n, s) for n, s in zip((800, 200), shares, strict=True)).astype(float)
        rejected += categories.chi_square(window, by_class, mix).p_value < 0.05
    assert rejected <= 32  # 99.9 % bound of a binomial with 400 draws at 5 %


@given(
    hnp.arrays(float, 5, elements=st.integers(0, 50).map(float)),
    hnp.arrays(float, (3, 5), elements=st.integers(0, 50).map(float)),
    st.lists(st.integers(0, 10), min_size=3, max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_any_counts_give_a_p_value(window, by_class, weights):
    priors = np.array(weights, float) / max(sum(weights), 1)
    found = categories.chi_square(window, by_class, priors)
    assert 0 <= found.p_value <= 1
    assert 0 <= found.distance <= 1
    assert np.isfinite(found.statistic)


def missing_p(missing, events, class_missing, class_counts, priors):
    """Of one column."""
    return categories.missing_p(np.array([missing]), events, np.array([priors @ class_missing]), class_counts, priors)


def test_a_feature_that_went_missing_is_significant_and_one_that_never_was_there_is_not():
    classes, half = np.array([500.0, 500.0]), np.array([0.5, 0.5])
    assert missing_p(1000, 1000, np.zeros(2), classes, half) < 1e-12
    assert missing_p(0, 1000, np.zeros(2), classes, half) == 1.0
    assert missing_p(1000, 1000, np.ones(2), classes, half) == 1.0
    assert missing_p(0, 0, np.zeros(2), classes, half) == 1.0


def test_a_missing_rate_that_the_class_mix_explains_is_not_significant():
    by_class, classes = np.array([0.0, 0.4]), np.array([5000.0, 5000.0])
    assert missing_p(320, 1000, by_class, classes, np.array([0.2, 0.8])) > 0.5
    assert missing_p(320, 1000, by_class, classes, np.array([0.5, 0.5])) < 1e-6


@given(p_vectors)
def test_holm_is_the_step_down_of_its_definition(p_values):
    order = np.argsort(p_values, kind="stable")
    expected, running = np.empty(p_values.size), 0.0
    for rank, j in enumerate(order):
        running = max(running, (p_values.size - rank) * p_values[j])
        expected[j] = min(1.0, running)
    assert np.allclose(correction.holm(p_values), expected)


@given(p_vectors)
def test_benjamini_hochberg_is_scipys(p_values):
    assert np.allclose(correction.benjamini_hochberg(p_values), false_discovery_control(p_values))
