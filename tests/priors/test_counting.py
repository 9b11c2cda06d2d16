"""Counting and adjusting: equal to the slow twins, defined where a matrix is empty or singular."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.priors import counting, matching
from tests.priors import naive


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6))
def test_the_matrix_solve_equals_the_inverse(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    confusion = rng.integers(0, 20, (classes, classes)) + 60 * np.eye(classes, dtype=int)
    counts = rng.integers(1, 100, classes)
    np.testing.assert_allclose(
        counting.adjusted(confusion, counts).priors, naive.adjusted(confusion, counts), atol=1e-10
    )


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_the_program_equals_the_solve_inside_and_is_no_worse_outside(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    confusion = rng.integers(1, 30, (classes, classes)) + 10 * np.eye(classes, dtype=int)
    counts = rng.integers(1, 100, classes)
    m = (confusion / confusion.sum(axis=1, keepdims=True)).T
    solved, programmed = counting.adjusted(confusion, counts), counting.adjusted_qp(confusion, counts)
    if np.linalg.cond(m) > 1e6:
        return
    raw = np.linalg.solve(m, counts / counts.sum())
    if raw.min() > 1e-9:
        np.testing.assert_allclose(programmed.priors, solved.priors, atol=1e-8)
    v = counts / counts.sum()
    assert np.sum((m @ programmed.priors - v) ** 2) <= np.sum((m @ solved.priors - v) ** 2) + 1e-12


def test_bbse_plus_is_matching_of_one_hot_means() -> None:
    """dussap, Proposition 1, with the positivity constraint."""
    confusion, counts = np.array([[8, 2, 0], [1, 5, 4], [0, 3, 7]]), np.array([1, 1, 20])
    means = confusion / confusion.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(
        counting.adjusted_qp(confusion, counts).priors, matching.match(means, counts / 22).priors, atol=1e-12
    )
    np.testing.assert_allclose(
        counting.probabilistic_adjusted(means, counts / 22).priors, matching.match(means, counts / 22).priors
    )


def test_a_singular_confusion_matrix_is_solved_and_said_to_be_singular() -> None:
    confusion = [
        [252, 0, 0, 0],
        [15, 0, 9, 0],
        [0, 0, 230, 23],
        [0, 0, 2, 245],
    ]  # caelen eq 4.6: class 1 never predicted
    for estimate in (
        counting.adjusted(confusion, [280, 0, 289, 251]),
        counting.adjusted_qp(confusion, [280, 0, 289, 251]),
    ):
        assert not estimate.unique
        assert estimate.priors.sum() == pytest.approx(1)
        assert (estimate.priors >= 0).all()
        assert (estimate.upper - estimate.lower == 1).all()
    assert counting.adjusted(confusion, [280, 0, 289, 251]).stop_reason == "singular confusion matrix"


def test_a_class_without_hold_out_rows_is_an_error_that_names_it() -> None:
    for adjust in (counting.adjusted, counting.adjusted_qp):
        with pytest.raises(InputError, match="class 1"):
            adjust([[5, 1], [0, 0]], [3, 3])


def test_no_predictions_leave_the_source_priors() -> None:
    for adjust in (counting.adjusted, counting.adjusted_qp):
        estimate = adjust([[30, 10], [5, 15]], [0, 0])
        np.testing.assert_allclose(estimate.priors, [2 / 3, 1 / 3])
        assert (estimate.stop_reason, estimate.converged) == ("no events", False)


def test_ties_between_predictions_are_shared() -> None:
    shared = counting.predictions(np.array([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]]))
    np.testing.assert_allclose(shared, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])


@given(
    positives=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    rate=st.floats(0.05, 0.95),
    loops=st.integers(1, 12),
)
def test_cde_iterate_equals_its_loop(positives: list[float], rate: float, loops: int) -> None:
    g = np.round(np.array(positives), 3)  # away from thresholds, where two roundings of one comparison may differ
    ours = counting.cde_iterate(g, rate, loops=loops).priors[1]
    assert ours == pytest.approx(naive.cde(g, rate, loops), abs=1.01 / len(g) if loops > 1 else 1e-12)


def test_cde_iterate_absorbs_at_zero_and_one() -> None:
    """Erratum 5: with nothing predicted positive the cost becomes infinite, and stays."""
    assert counting.cde_iterate([0.2, 0.3], 0.5).priors[1] == 0.0
    assert counting.cde_iterate([0.2, 0.3], 0.5).stop_reason == "absorbed at 0"
    assert counting.cde_iterate([0.7, 0.9], 0.5).priors[1] == 1.0
    assert counting.cde_iterate([0.5], 0.5).priors[1] == 0.0, "the decision is strict"


def test_cde_iterate_is_not_consistent() -> None:
    """caelen 5.2: however many events, the answer is not the truth, where adjusted counts come close."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200_000) + np.where(rng.random(200_000) < 0.1, 1.0, -1.0) * 0.75
    g = 1 / (1 + np.exp(-1.5 * x))
    assert counting.cde_iterate(g, 0.5).priors[1] < 0.07


def test_a_class_that_only_the_window_predicts_leaves_shares_and_not_0_over_0() -> None:
    """A useless model: all hold-out rows were predicted as the first class, all events of the window as another."""
    for confusion, predicted, shares in (
        ([[7, 0], [3, 0]], [0, 5], [1 / 2, 1 / 2]),
        # With t of the third class M p = (1 - 0.8 t, 0, 0.8 t), nearest to (0, 1, 0) at 0.8 t = 1/2.
        ([[7, 0, 0], [3, 0, 0], [1, 0, 4]], [0, 5, 0], [3 / 16, 3 / 16, 5 / 8]),
    ):
        estimate = counting.adjusted(confusion, predicted)
        np.testing.assert_allclose(estimate.priors, shares, atol=1e-12)
        assert not estimate.unique
        assert estimate.priors.sum() == pytest.approx(1)


def test_nothing_to_count_is_equal_shares_of_nothing() -> None:
    for estimate in (
        counting.classify_and_count([0, 0]),
        counting.probabilistic(np.empty((0, 2))),
        counting.probabilistic([[np.nan, 1.0], [0.0, 0.0]]),
    ):
        assert estimate.priors.tolist() == [0.5, 0.5]
        assert (estimate.events, estimate.stop_reason, estimate.converged) == (0, "no events", False)


def test_rows_that_say_nothing_are_left_out_of_the_mean_and_counted() -> None:
    estimate = counting.probabilistic([[np.nan, 1.0], [3, 1], [0.25, 0.75]])
    assert estimate.priors.tolist() == [0.5, 0.5]
    assert (estimate.events, estimate.dropped) == (2, 1)


def test_cde_iterate_takes_one_posterior_per_event() -> None:
    with pytest.raises(InputError, match="one number per event"):
        counting.cde_iterate([[0.1, 0.9]], 0.5)
    estimate = counting.cde_iterate([np.nan, 2.0, 0.9, 0.1], 0.5)
    assert (estimate.events, estimate.dropped, estimate.priors.tolist()) == (2, 2, [0.5, 0.5])
