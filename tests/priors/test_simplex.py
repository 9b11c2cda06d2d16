"""The program on the simplex is exact: against every set of free classes, on the border, and where it is singular."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.priors.simplex import constrained_inverse, identifiable, minimise, smallest_curvature
from tests.priors import naive


@given(seed=st.integers(0, 10**6), size=st.integers(1, 6), rank=st.integers(1, 8))
def test_the_active_set_finds_the_minimum_over_all_sets(seed: int, size: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    a, y = rng.normal(size=(rank, size)), rng.normal(size=rank)
    gram, linear = a.T @ a, a.T @ y
    solution = minimise(gram, linear)
    _, value = naive.simplex_program(gram, linear)
    assert solution.solved
    assert solution.point.min() >= 0
    assert solution.point.sum() == pytest.approx(1, abs=1e-12)
    assert 0.5 * solution.point @ gram @ solution.point - linear @ solution.point == pytest.approx(value, abs=1e-10)
    assert solution.violation < 1e-9


def test_a_start_changes_nothing_but_the_steps() -> None:
    rng = np.random.default_rng(1)
    a, y = rng.normal(size=(40, 30)), rng.normal(size=40)
    cold = minimise(a.T @ a, a.T @ y)
    warm = minimise(a.T @ a, a.T @ y, start=cold.point)
    np.testing.assert_allclose(warm.point, cold.point, atol=1e-12)
    assert warm.iterations < cold.iterations


def test_bound_classes_are_exactly_zero() -> None:
    solution = minimise(np.eye(3), np.array([1.0, 0.9, -5.0]))
    np.testing.assert_allclose(solution.point, [0.55, 0.45, 0.0], atol=1e-15)
    assert solution.point[2] == 0.0


def test_two_equal_classes_are_a_program_without_a_single_answer_and_still_solved() -> None:
    a = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    solution = minimise(a.T @ a, a.T @ np.array([0.7, 0.3]))
    assert solution.solved
    assert solution.point[:2].sum() == pytest.approx(0.7)
    assert not identifiable(a.T @ a)


def test_hundreds_of_classes_are_solved() -> None:
    rng = np.random.default_rng(0)
    a = np.eye(300) + 0.02 * rng.random((300, 300))
    truth = rng.dirichlet(np.ones(300))
    np.testing.assert_allclose(minimise(a.T @ a, a.T @ (a @ truth)).point, truth, atol=1e-9)


def test_the_smallest_curvature_is_the_minimum_over_directions_that_sum_to_zero() -> None:
    rng = np.random.default_rng(3)
    b = rng.normal(size=(4, 6))
    directions = rng.normal(size=(200_000, 4))
    directions -= directions.mean(axis=1, keepdims=True)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sampled = ((directions @ b) ** 2).sum(axis=1).min()
    assert smallest_curvature(b @ b.T) <= sampled <= smallest_curvature(b @ b.T) * 1.05
    assert smallest_curvature(np.ones((1, 1))) == np.inf


def test_the_constrained_inverse_is_the_solutions_derivative() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=(8, 4))
    gram, linear, step = a.T @ a, a.T @ (a @ np.full(4, 0.25)), 1e-6 * rng.normal(size=4)
    moved = minimise(gram, linear + step).point - minimise(gram, linear).point
    np.testing.assert_allclose(moved, constrained_inverse(gram) @ step, atol=1e-12)


@pytest.mark.parametrize(
    ("gram", "linear"), [(np.eye(2), np.ones(3)), (np.eye(0), np.ones(0)), (np.full((1, 1), np.nan), np.ones(1))]
)
def test_what_is_not_a_program_is_an_input_error(gram: np.ndarray, linear: np.ndarray) -> None:
    with pytest.raises(InputError):
        minimise(gram, linear)
