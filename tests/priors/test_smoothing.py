"""Levels over windows: as right as many windows in calm, as one after a jump, and defined for every input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitor.priors.smoothing import Levels
from monitor.tolerances import JUMP_SIZE, JUMPS, LEVEL_MOVES, LEVEL_REACH
from tests.bench.smoothing import COURSES, NOISE, followed, small_windows

SHARES = arrays(np.float64, (12, 2), elements=st.floats(0, 1))


def density(x: float, variance: float) -> float:
    return float(np.exp(-(x**2) / (2 * variance)) / np.sqrt(2 * np.pi * variance))


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.01, 1))
def test_a_step_is_the_formula_of_the_page_literally(first: float, second: float, noise: float) -> None:
    """Each filter: the mean and the variance of the posterior with and without a jump, taken together."""
    r = noise / 100
    levels = (
        Levels.of(np.array([first]), np.array([noise]), 100).ahead(1).plus(np.array([second]), np.array([noise]), 100)
    )
    for column, rho in enumerate(LEVEL_MOVES):
        prior, parts = r + rho * r, []
        for share, extra in ((1 - JUMPS, 0.0), (JUMPS, JUMP_SIZE**2)):
            gain = (prior + extra) / (prior + extra + r)
            chance = share * density(second - first, prior + extra + r)
            parts.append((chance, first + gain * (second - first), gain * r))
        total = sum(chance for chance, _, _ in parts)
        mean = sum(chance * mean for chance, mean, _ in parts) / total
        variance = sum(chance * (var + (at - mean) ** 2) for chance, at, var in parts) / total
        assert levels.means[0, column] == pytest.approx(mean)
        assert levels.variances[0, column] == pytest.approx(variance)


@given(SHARES, st.floats(0, 1), st.integers(1, 1_000_000))
def test_any_windows_give_numbers_and_levels_between_the_least_and_the_largest_share(
    shares: np.ndarray, noise: float, events: int
) -> None:
    """Also an absent class, no variance at all, and windows of one event."""
    levels = Levels.of(shares[0], np.full(2, noise), events)
    for row in shares[1:]:
        levels = levels.ahead(1).plus(row, np.full(2, noise), events)
    means, variances = levels.estimate
    assert np.isfinite(variances).all()
    assert (variances >= 0).all()
    assert (means >= shares.min(axis=0) - 1e-9).all()
    assert (means <= shares.max(axis=0) + 1e-9).all()


@given(SHARES)
def test_classes_are_followed_one_by_one(shares: np.ndarray) -> None:
    def estimate(of: np.ndarray) -> np.ndarray:
        levels = Levels.of(of[0], np.full(of.shape[1], 0.2), 100)
        for row in of[1:]:
            levels = levels.ahead(1).plus(row, np.full(of.shape[1], 0.2), 100)
        return levels.estimate[0]

    assert estimate(shares)[1] == pytest.approx(estimate(shares[:, 1:])[0])


def test_what_is_not_seen_grows_more_uncertain_and_stays_where_it_was() -> None:
    levels = Levels.of(np.array([0.3]), np.array([0.2]), 100)
    variances = [levels.ahead(windows).estimate[1][0] for windows in (0, 1, 10, 1_000)]
    assert variances == sorted(variances)
    assert levels.ahead(1_000).estimate[0][0] == pytest.approx(0.3)


@pytest.mark.parametrize("name", ["calm", "drift by 2 s.e. over 50 windows", "walk of .1 s.e."])
def test_small_windows_of_calm_and_slowly_drifting_streams_are_known_twice_as_well(name: str) -> None:
    x, truth, part = small_windows(COURSES[name], series=200, seed=1)
    means, deviations = followed(x, NOISE**2)
    off = (means - truth)[part]
    assert np.sqrt((off**2).mean()) < 0.5 * NOISE
    assert 0.93 < (np.abs(off) <= LEVEL_REACH * deviations[part]).mean() < 0.985


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6, 10])
def test_the_windows_after_a_jump_are_known_as_well_as_they_know_themselves(size: int) -> None:
    x, truth, part = small_windows(COURSES[f"jump of {size} s.e."], series=200, seed=2)
    means, _ = followed(x, NOISE**2)
    assert np.sqrt(((means - truth)[part] ** 2).mean()) < 1.05 * NOISE


def test_a_rare_class_is_not_pulled_down_by_windows_that_hold_few_of_it() -> None:
    """A window without the class says that it is sure of that; weighed by that the mean comes out a third too low."""
    rng = np.random.default_rng(3)
    shares = rng.binomial(100, 0.02, size=(200, 300)) / 100
    claimed = (shares * (1 - shares) / 100 + 0.25 / 100**2) * 100
    levels = Levels.of(shares[0], claimed[0], 100)
    for row, noise in zip(shares[1:], claimed[1:], strict=True):
        levels = levels.ahead(1).plus(row, noise, 100)
    assert levels.estimate[0].mean() == pytest.approx(0.02, abs=0.001)


def test_a_segment_follows_its_stream_where_both_move_together() -> None:
    """Twenty segments of a hundred events move together by two standard errors of theirs, nine of the stream's."""
    rng = np.random.default_rng(4)
    truth = 0.3 + rng.normal(0, 0.05, 20) + 2 * NOISE * (np.arange(60) >= 50)[:, None]
    x = truth + NOISE * rng.normal(size=truth.shape)
    whole, _ = followed(x.mean(axis=1, keepdims=True), NOISE**2 / 20)
    alone, _ = followed(x, NOISE**2)
    together, _ = followed(x, NOISE**2, np.diff(whole, axis=0, prepend=whole[:1]))
    off_alone, off_together = (np.sqrt(((found - truth)[50:55] ** 2).mean()) for found in (alone, together))
    assert off_together < 0.75 * off_alone
    assert off_together < 0.8 * NOISE
