"""Places are those of a binary search, and the distance from them that of the sorted samples, whatever the values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from monitor.shifts import ks
from monitor.shifts.columns import KnownColumns, SortedColumn
from monitor.shifts.feature_map import rank_polynomials
from monitor.shifts.ranks import PlacedCounts, place, places, side_by_side
from monitor.shifts.rising import RisingColumns
from monitor.shifts.window_view import polynomial_sums

coarse = st.integers(-4, 4).map(float)  # ties on purpose
anything = st.floats(allow_nan=False)  # denormals, both zeros, 1e308 and infinities
lopsided = st.floats(-300, 300).map(lambda x: 10.0**x)
elements = [coarse, anything, lopsided]
samples = st.one_of(hnp.arrays(float, st.integers(0, 60), elements=one) for one in elements)


def _distance(placed, cumulative):
    return placed.distances(cumulative.take(placed.upto), cumulative.take(placed.below))


@given(samples, samples)
@settings(max_examples=200, deadline=None)
def test_a_place_is_the_number_of_distinct_values_that_are_not_above(reference, window):
    known = places(np.sort(reference))
    assert np.array_equal(known.find(window[None])[0], np.searchsorted(np.unique(reference), window, side="right"))


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
    cumulative = ks.steps(weights)
    expected = ks.two_sample(ordered, window, weights).statistic
    assert _distance(place(known, window[None]), cumulative) == pytest.approx(expected, abs=1e-12)


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
    assert np.array_equal(known.find(window[None])[0], np.searchsorted(np.unique(reference), window, side="right"))
    cumulative = np.arange(reference.size + 1) / reference.size
    expected = ks.two_sample(reference, window).statistic
    assert _distance(place(known, window[None]), cumulative) == pytest.approx(expected)


def test_the_table_tells_most_values_apart_where_they_are_spread_as_usual():
    rng = np.random.default_rng(1)
    for shape in (lambda z: z, lambda z: np.exp(2 * z), lambda z: np.round(10 * z)):
        known = places(np.sort(shape(rng.normal(size=10_000))))
        assert known.table.size <= 8 * known.size
        assert np.unique(known.table).size > 0.5 * known.size, shape


def test_missing_values_are_counted_apart():
    known = places(np.array([1.0, 2.0, 2.0, 3.0]))
    placed = place(known, np.array([[np.nan, 2.0, 0.0, np.nan, 9.0]]))
    assert (placed.present.tolist(), placed.missing.tolist()) == ([3], [2])
    assert placed.below[0, :3].tolist() == [0, 1, 4]
    assert placed.upto[0, :3].tolist() == [0, 3, 4]
    quarters = np.arange(5) / 4
    assert _distance(placed, quarters) == pytest.approx(max(1 / 3, 3 / 4 - 2 / 3))
    assert _distance(place(known, np.array([[np.nan]])), quarters) == 0.0
    assert _distance(place(known, np.zeros((1, 0))), quarters) == 0.0


columns_of_a_table = hnp.arrays(float, st.tuples(st.integers(1, 4), st.integers(0, 30)), elements=coarse | anything)


@given(columns_of_a_table, columns_of_a_table)
@settings(max_examples=60, deadline=None)
def test_columns_are_placed_together_as_each_would_be_alone(reference, window):
    columns = min(len(reference), len(window))
    each = [places(np.sort(one)) for one in reference[:columns]]
    window = np.where(window == 4.0, np.nan, window[:, ::-1])[:columns]
    together = place(side_by_side(each), window)
    for row, known in enumerate(each):
        alone = place(known, window[row : row + 1])
        assert np.array_equal(alone.below[0], together.below[row])
        assert np.array_equal(alone.upto[0], together.upto[row])
        assert alone.present[0] == together.present[row]


@given(samples, samples)
@settings(max_examples=60, deadline=None)
def test_the_sums_of_rank_polynomials_are_those_value_by_value(reference, window):
    ordered = np.sort(reference)
    labels = np.zeros(ordered.size, dtype=np.int64)
    column = SortedColumn.of("x", ordered, labels, np.array([float(ordered.size)]), np.zeros(1))
    expected = rank_polynomials(column.places.twice_mid_ranks(window), ordered.size).sum(axis=1)
    found = polynomial_sums(place(column.places, window[None]), KnownColumns.of([column]).kept)
    assert np.allclose(found[0], expected, atol=1e-9)


@given(st.lists(samples, min_size=1, max_size=4), st.lists(samples, min_size=1, max_size=4), st.data())
@settings(max_examples=150, deadline=None)
def test_counts_at_places_say_what_the_values_themselves_do_in_however_many_parts(references, parts, data):
    """To the last bit; some of the values are missing."""
    columns = [places(np.sort(reference)) for reference in references]
    known, rows = side_by_side(columns), np.concatenate(parts)
    table = np.stack([np.where(np.arange(rows.size) % 5 == j, np.nan, rows) for j in range(len(columns))])
    cuts = np.sort(data.draw(st.lists(st.integers(0, rows.size), max_size=3)))
    counts = sum(known.counted(part) for part in np.split(table, cuts, axis=1))
    values, counted = place(known, table), PlacedCounts.of_counts(known, counts)
    sizes = np.array([reference.size for reference in references])
    cumulative = [ks.steps(np.ones(size)) for size in sizes]

    def distances(placed):
        ranks = placed.upto, placed.below
        rising = (np.stack([f.take(at) for f, at in zip(cumulative, rows, strict=True)]) for rows in ranks)
        return placed.distances(*rising).tolist()

    assert counted.present.tolist() == values.present.tolist()
    assert distances(counted) == distances(values)
    for exact, added in zip(values.rank_sums(sizes), counted.rank_sums(sizes), strict=True):
        assert added.tolist() == exact.tolist()
    for j, size in enumerate(sizes):
        ranks = np.arange(size + 1)
        assert counted.of(j).before(ranks).tolist() == values.of(j).before(ranks).tolist()
        assert counted.of(j).within(ranks).tolist() == values.of(j).within(ranks).tolist()


@given(st.integers(1, 4), st.integers(0, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_a_few_ranks_and_many_see_the_same_distribution_function_to_the_last_bit(classes, size, seed):
    rng = np.random.default_rng(seed)
    labels = [rng.integers(classes, size=size), rng.integers(classes, size=size)]
    weights = rng.random((2, classes)) * (rng.random((2, classes)) < 0.8)
    rising = RisingColumns(labels, classes)
    everywhere = np.stack([np.arange(size + 1, dtype=np.int32)] * 2)
    (added_up,) = rising.at(weights, np.repeat(everywhere, 8, axis=1))
    for rank in range(size + 1):
        (looked_up,) = rising.at(weights, everywhere[:, rank : rank + 1])
        assert np.array_equal(looked_up[:, 0], added_up[:, 8 * rank], equal_nan=True)
    for row, one, weight in zip(added_up, labels, weights, strict=True):
        expected = ks.steps(weight[one]) if weight[one].sum() > 0 else np.full(size + 1, np.nan)
        assert np.allclose(row[::8], expected, atol=1e-15, equal_nan=True)
