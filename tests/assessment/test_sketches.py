"""Sketches: what a result carries so that distributions can be drawn without the events."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.assessment import SketchesPart, encode
from monitor.assessment.classifier import assess
from monitor.assessment.regressor import assess_regression
from monitor.assessment.to_message import sketches_part
from monitor.pages.distributions import distribution
from monitor.ports.schema import Feature
from monitor.shifts import SketchedColumns, SortedColumn, profile_of, sketched
from monitor.shifts.ranks import place
from tests.assessment import worlds
from tests.service import regression_streams

HALF = np.array([0.5, 0.5])
NOTHING = SketchedColumns((), (), (), ())


def column(values, labels):
    """A number's column of a reference with two classes."""
    order = np.argsort(values, kind="stable")
    counts = np.bincount(labels, minlength=2).astype(float)
    return SortedColumn.of("x", values[order], labels[order], counts, np.zeros(2))


def of_values(reference, labels, window, priors=HALF):
    """The sketch of one column."""
    known = column(reference, labels)
    group = SketchedColumns(("x",), (known,), (place(known.places, window[None]),), (0.0,))
    return sketched(group, NOTHING, priors).features["x"]


@pytest.fixture(scope="module")
def shifted():
    """Another class mix, one input that moved, and values that are missing."""

    def change(x):
        x[:, 3] += 0.5
        x[:100, 2] = np.nan

    return worlds.window(4000, 3, np.array([0.2, 0.5, 0.3]), change)


numbers = st.sampled_from([-3.0, -1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 2.5, 7.0]) | st.floats(-10, 10, width=16)


@settings(max_examples=150)
@given(st.lists(numbers, min_size=4, max_size=80), st.lists(numbers, max_size=60))
def test_the_cells_are_those_that_a_plain_count_between_the_edges_finds(reference, window):
    labels = np.arange(len(reference)) % 2
    sketch = of_values(np.array(reference), labels, np.array(window))
    *begin, end = sketch.edges.tolist()

    def counted(values):
        cells = [0] * (len(begin) + 2)
        for value in values:
            cells[sum(value >= edge for edge in begin) + (value > end)] += 1
        return cells

    assert sketch.counts.tolist() == counted(window)
    by_class = [counted(np.array(reference)[labels == y]) for y in (0, 1)]
    each = [np.array(counts) / sum(counts) for counts in by_class]
    assert sketch.expected == pytest.approx((each[0] + each[1]) / 2)
    assert sketch.reference == pytest.approx(np.array(counted(reference)) / len(reference))


def test_cells_hold_equal_parts_of_a_smooth_reference_and_a_value_that_is_common_has_its_own():
    rng = np.random.default_rng(0)
    labels = np.arange(4000) % 2
    smooth = of_values(rng.normal(size=4000), labels, np.zeros(3))
    assert smooth.reference[1:-1] == pytest.approx(np.full(20, 0.05), abs=0.001)
    zeros = np.where(rng.random(4000) < 0.6, 0.0, rng.exponential(size=4000))
    assert of_values(zeros, labels, np.zeros(3)).reference.max() == pytest.approx(0.6, abs=0.03)


def test_the_reference_at_the_new_mix_explains_what_the_mix_alone_moved(shifted):
    drawn = assess(shifted, worlds.reference()).sketches
    for name in ("x0", "x1"):
        sketch = drawn.features[name]
        now = sketch.counts / sketch.counts.sum()
        assert np.abs(now - sketch.expected).sum() < np.abs(now - sketch.reference).sum() / 2
    moved = drawn.features["x3"]
    assert np.abs(moved.counts / moved.counts.sum() - moved.expected).sum() > 0.2
    assert set(drawn.scores) == {"a", "b", "c"}
    assert drawn.features["x2"].counts.sum() == 3900, "missing values are in no cell"


def test_values_beyond_the_reference_and_categories_that_it_does_not_know_have_cells_of_their_own():
    sketch = of_values(np.arange(100.0), np.arange(100) % 2, np.array([-5.0, 50.0, 99.0, 99.5, 200.0]))
    assert (sketch.counts[0], sketch.counts[-1]) == (1, 2)
    codes, labels = np.array([0, 0, 1, 2.0] * 10), np.arange(40) % 2
    known = profile_of(Feature("kind", "category", ("a", "b", "c")), codes, labels, 2)
    group = SketchedColumns(("kind",), (known,), (np.array([4.0, 0, 1, 5]),), (0.0,))
    sketch = sketched(group, NOTHING, HALF).features["kind"]
    assert sketch.categories == ("a", "b", "c")
    assert sketch.counts.tolist() == [4, 0, 1, 0, 5]
    assert [cell.label for cell in distribution(sketch).cells] == ["a", "b", "c", "all others", "new"]


def test_sketches_can_be_switched_off_and_belong_to_no_window_with_too_few_events(shifted):
    off = json.loads(assess(shifted, worlds.reference(), sketches=False).to_json())
    assert off["sketches"] is None
    assert assess(worlds.window(5), worlds.reference()).sketches is None
    window = regression_streams.window()
    said = assess_regression(window, regression_streams.reference())
    assert list(said.sketches.scores) == ["prediction"]
    assert set(said.sketches.features) == set(regression_streams.FEATURES)
    assert assess_regression(window, regression_streams.reference(), sketches=False).sketches is None


@pytest.mark.parametrize("columns", [10, 100, 1000])
def test_their_size_is_bounded_whatever_the_number_of_features(columns):
    rng = np.random.default_rng(1)
    known = column(rng.lognormal(3, 3, 2000), np.arange(2000) % 2)
    seen = place(known.places, rng.lognormal(3, 3, (1, 5000)))
    names = tuple(f"feature_{j}" for j in range(columns))
    far = [1.0 if j >= columns - 5 else 0.0 for j in range(columns)]
    drawn = sketched(SketchedColumns(names, (known,) * columns, (seen,) * columns, far), NOTHING, HALF)
    message = encode(SketchesPart({}, {}) if (part := sketches_part(drawn)) is None else part)
    assert len(message) < 48_000
    assert set(names[-5:]) <= set(drawn.features), "those that moved are there"


def test_a_chart_says_in_words_what_it_shows(shifted):
    chart = distribution(assess(shifted, worlds.reference()).sketches.features["x3"])
    assert "expected" in chart.label
    assert {mark.style for mark in chart.marks} == {"now-bars", "reference", "expected"}
    assert sum(cell.now for cell in chart.cells) == pytest.approx(1)
