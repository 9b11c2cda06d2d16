"""The two-sample test equals SciPy's, whatever the ties, weights and missing values."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import ks_2samp

from monitor.errors import InputError
from monitor.shifts import ks

coarse = st.integers(-4, 4).map(float)  # ties on purpose
fine = st.floats(-1e6, 1e6)
samples = st.one_of(
    hnp.arrays(float, st.integers(1, 40), elements=coarse), hnp.arrays(float, st.integers(1, 40), elements=fine)
)


def naive_distance(reference, window, weights):
    """sup |F_w - F_r| at every value of either sample, from the definition."""
    points = np.concatenate([reference, window])
    return max(abs(np.mean(window <= x) - weights[reference <= x].sum() / weights.sum()) for x in points)


@given(samples, samples, st.data())
@settings(max_examples=150, deadline=None)
def test_the_distance_is_the_definition_with_any_weights(reference, window, data):
    weights = np.array(data.draw(st.lists(st.integers(0, 5), min_size=reference.size, max_size=reference.size)), float)
    if weights.sum() == 0:
        weights[0] = 1
    found = ks.two_sample(reference, window, weights)
    assert found.statistic == pytest.approx(naive_distance(reference, window, weights), abs=1e-12)


# SciPy divides by the harmonic size, which rounds to 0 for two values in all.
@given(samples.filter(lambda x: x.size > 2), samples.filter(lambda x: x.size > 2))
@settings(max_examples=100, deadline=None)
def test_statistic_and_both_p_values_are_scipys(reference, window):
    for method, theirs in (("asymptotic", "asymp"), ("exact", "exact")):
        ours = ks.two_sample(reference, window, method=method)
        with warnings.catch_warnings(record=True) as refused:
            warnings.simplefilter("always")
            scipys = ks_2samp(reference, window, method=theirs)
        if refused:  # SciPy's own exact method gives up where the probability rounds to more than 1
            assert ours.p_value == pytest.approx(1.0)
            continue
        assert ours.statistic == pytest.approx(scipys.statistic, abs=1e-12)
        assert ours.p_value == pytest.approx(scipys.pvalue, rel=1e-9, abs=1e-12)


def test_whole_number_weights_are_repetitions():
    rng = np.random.default_rng(0)
    reference, window, weights = rng.normal(size=300), rng.normal(size=200), rng.integers(0, 4, 300)
    repeated = ks_2samp(np.repeat(reference, weights), window)
    assert ks.two_sample(reference, window, weights).statistic == pytest.approx(repeated.statistic, abs=1e-12)


def test_missing_values_take_no_part():
    rng = np.random.default_rng(1)
    reference, window = rng.normal(size=100), rng.normal(size=80)
    with_gaps = ks.two_sample(np.append(reference, np.nan), np.append([np.nan, np.nan], window))
    assert with_gaps == ks.two_sample(reference, window)


@pytest.mark.parametrize(("reference", "window"), [([], [1.0]), ([1.0], []), ([], []), ([np.nan], [np.nan, 1.0])])
def test_nothing_on_one_side_cannot_be_told_apart(reference, window):
    found = ks.two_sample(reference, window)
    assert (found.statistic, found.p_value) == (0.0, 1.0)


def test_a_large_reference_is_searched_and_a_small_one_merged_to_the_same_positions():
    rng = np.random.default_rng(2)
    reference = np.sort(np.round(rng.normal(size=1000), 2))
    for size in (10, 5000):
        window = np.round(rng.normal(size=size), 2)
        merged = ks.merge(reference, window)
        assert np.array_equal(merged.right, np.searchsorted(reference, np.sort(window), side="right"))
        assert np.array_equal(merged.left, np.searchsorted(reference, np.sort(window), side="left"))


def test_the_fast_series_is_within_three_percent_of_the_exact_law_where_it_matters():
    for size in (100.0, 1000.0, 100000.0):
        d = np.linspace(0.8, 1.9, 12) / np.sqrt(size)
        exact, fast = ks.asymptotic_p(d, 2 * size, 2 * size), ks.series_p(d, 2 * size, 2 * size)
        assert np.allclose(fast, exact, rtol=0.03)


def test_an_exact_p_value_keeps_its_digits_where_it_is_tiny():
    reference, window = np.arange(60.0), np.arange(60.0) + 1000
    ours = ks.two_sample(reference, window, method="exact").p_value
    assert ours == pytest.approx(ks_2samp(reference, window, method="exact").pvalue, rel=1e-9)
    assert 0 < ours < 1e-30


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="weights"):
        ks.two_sample([1.0, 2.0], [1.0], [1.0])
    with pytest.raises(InputError, match="asymptotic"):
        ks.two_sample([1.0, 2.0], [1.0], [1.0, 2.0], method="exact")
    with pytest.raises(InputError, match="exact"):
        ks.exact_p(0.1, 20_000, 20_000)


def test_the_order_of_the_values_and_their_number_format_do_not_matter():
    rng = np.random.default_rng(3)
    reference, window = rng.normal(size=200), rng.normal(size=100)
    assert ks.two_sample(reference[::-1], window[::-1]) == ks.two_sample(list(reference), list(window))
