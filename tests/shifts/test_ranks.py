"""Places are those of a binary search, and the distance from them that of the sorted samples, whatever the values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from monitor.shifts import ks
from monitor.shifts.prepared import polynomial_sums, rank_polynomials
from monitor.shifts.ranks import distance, place, places

coarse = st.integers(-4, 4).map(float)  # ties on purpose
anything = st.floats(allow_nan=False)  # denormals, both zeros, 1e308 and infinities
lopsided = st.floats(-300, 300).map(lambda x: 10.0**x)
elements = [coarse, anything, lopsided]
samples = st.one_of(hnp.arrays(float, st.integers(0, 60), elements=one) for one in elements)


@given(samples, samples)
@settings(max_examples=200, deadline=None)
def test_a_place_is_the_number_of_distinct_values_that_are_not_above(reference, window):
    known = places(np.sort(reference))
    assert np.array_equal(known.find(window), np.searchsorted(np.unique(reference), window, side="right"))


@given(samples, samples)
@settings(max_examples=200, deadline=None)
def test_twice_the_mid_rank_is_both_ranks_added(reference, window):
    ordered = np.sort(reference)
    both = np.searchsorted(ordered, window, side="left") + np.searchsorted(ordered, window, side="right")
    assert np.array_equal(places(ordered).twice_mid_ranks(window), both)


@given(samples.filter(lambda x: x.size > 0), samples, st.data())
@settings(max_examples=150, deadline=None)
def test_the_distance_is_that_of_the_sorted_samples_with_any_weights(reference, window, data):
    ordered = np.sort(reference)
    weights = np.array(data.draw(st.lists(st.integers(1, 5), min_size=reference.size, max_size=reference.size)), float)
    known = places(ordered)
    cumulative = ks.steps(weights).take(known.upto)
    expected = ks.two_sample(ordered, window, weights).statistic
    assert distance(place(known, window), cumulative) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "shape",
    [
        lambda z: z,
        lambda z: np.exp(3 * z),
        lambda z: -np.exp(3 * z),
        lambda z: 1 / (1 + np.exp(-9 * z)),
        np.tan,
        np.round,
        lambda z: np.where(z < 0, 0.0, z),
        lambda z: 1e9 + 1e-3 * z,
        lambda z: np.where(z > 3, 1e300, z),
    ],
)
def test_many_values_of_any_shape_are_placed_exactly(shape):
    rng = np.random.default_rng(0)
    reference, window = np.sort(shape(rng.normal(size=20_000))), shape(rng.normal(size=5_000))
    known = places(reference)
    assert np.array_equal(known.find(window), np.searchsorted(np.unique(reference), window, side="right"))
    cumulative = known.upto / reference.size
    assert distance(place(known, window), cumulative) == pytest.approx(ks.two_sample(reference, window).statistic)


def test_the_table_tells_most_values_apart_where_they_are_spread_as_usual():
    rng = np.random.default_rng(1)
    for shape in (lambda z: z, lambda z: np.exp(2 * z), lambda z: np.round(10 * z)):
        known = places(np.sort(shape(rng.normal(size=10_000))))
        assert known.table.size <= 8 * known.size
        assert np.unique(known.table).size > 0.5 * known.size, shape


def test_missing_values_are_counted_apart():
    known = places(np.array([1.0, 2.0, 2.0, 3.0]))
    placed = place(known, np.array([np.nan, 2.0, 0.0, np.nan, 9.0]))
    assert (placed.n, placed.missing) == (3, 2)
    assert placed.counts.tolist() == [1, 0, 1, 1]
    assert placed.tied is not None
    assert placed.tied.tolist() == [0, 1, 0]
    nothing = place(known, np.array([np.nan]))
    assert distance(nothing, known.upto / 4) == 0.0


@given(samples, samples)
@settings(max_examples=60, deadline=None)
def test_the_sums_of_rank_polynomials_are_those_value_by_value(reference, window):
    ordered = np.sort(reference)
    known = places(ordered)
    expected = rank_polynomials(known.twice_mid_ranks(window), ordered.size).sum(axis=1)
    assert np.allclose(polynomial_sums(place(known, window), known), expected, atol=1e-9)
