"""How test windows are drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor import sampling
from monitor.errors import InputError


@given(st.integers(2, 6), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_simplex_draws_are_prevalences(classes, draws, seed):
    drawn = sampling.uniform_simplex(classes, draws, np.random.default_rng(seed))
    assert drawn.shape == (draws, classes)
    assert (drawn >= 0).all()
    assert drawn.sum(axis=1) == pytest.approx(1)


def test_simplex_draws_are_uniform():
    # Under the uniform distribution on the simplex each coordinate is Beta(1, k - 1): mean 1/k, P(p > 1/2) = 2^(1 - k).
    drawn = sampling.uniform_simplex(4, 40_000, np.random.default_rng(0))
    assert drawn.mean(axis=0) == pytest.approx(np.full(4, 0.25), abs=0.005)
    assert (drawn > 0.5).mean(axis=0) == pytest.approx(np.full(4, 0.125), abs=0.007)


def test_the_artificial_protocol_is_the_whole_grid():
    grid = sampling.artificial_prevalences(3, 5)
    assert grid.shape == (15, 3)  # (5 + 1) choose 2
    assert grid.sum(axis=1) == pytest.approx(1)
    assert np.unique(grid, axis=0).shape[0] == 15


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=8), st.integers(1, 500))
def test_class_sizes_add_up_and_are_within_one_of_exact(parts, size):
    prevalence = np.array(parts) / sum(parts)
    sizes = sampling.class_sizes(prevalence, size)
    assert sizes.sum() == size
    assert (np.abs(sizes - prevalence * size) < 1 + 1e-9).all()


def test_a_drawn_window_has_the_class_mix_that_was_asked_for():
    labels = np.repeat([0, 1, 2], [70, 20, 10])
    rows = sampling.draw(labels, np.array([0.1, 0.3, 0.6]), 50, np.random.default_rng(0))
    assert np.bincount(labels[rows]).tolist() == [5, 15, 30]


def test_a_class_that_nobody_has_cannot_be_drawn():
    with pytest.raises(InputError, match="class 1 is wanted 5 times"):
        sampling.draw(np.zeros(10, dtype=np.int64), np.array([0.5, 0.5]), 10, np.random.default_rng(0))


def test_realistic_shifts_stay_around_the_source():
    source = np.array([0.9, 0.1])
    near = sampling.near_simplex(source, 5000, 200, np.random.default_rng(0))
    assert near.mean(axis=0) == pytest.approx(source, abs=0.01)
    assert near.std(axis=0).max() < 0.03


@given(st.integers(2, 5), st.integers(0, 1000))
def test_folds_hold_every_class_alike(classes, seed):
    labels = np.random.default_rng(seed).integers(0, classes, 100)
    labels[:classes] = np.arange(classes)
    labels[classes : 2 * classes] = np.arange(classes)
    fold = sampling.stratified_folds(labels, 5, seed)
    for c in range(classes):
        sizes = np.bincount(fold[labels == c], minlength=int(fold.max()) + 1)
        assert sizes.max() - sizes.min() <= 1


@given(st.integers(20, 300), st.integers(0, 1000))
def test_a_stratified_sample_keeps_the_mix_and_the_order(size, seed):
    labels = np.random.default_rng(seed).choice(3, 1000, p=[0.9, 0.08, 0.02])
    rows = sampling.stratified_sample(labels, size, seed)
    assert (np.diff(rows) > 0).all()
    share = np.bincount(labels[rows], minlength=3) / rows.size
    assert share == pytest.approx(np.bincount(labels, minlength=3) / 1000, abs=3 / size)
    assert np.bincount(labels[rows], minlength=3).min() >= 2
