"""What is usual at a time of the season, and how well a few blocks know it: all against what is drawn many times."""

from itertools import pairwise

import numpy as np
import pytest

from monitor.shifts import BlockSums, Mates, often_enough, phases_of_inputs
from monitor.shifts.blocks import usual_inputs
from monitor.tolerances import INPUT_PHASES

HOUR = 3_600_000_000
DAY = 24 * HOUR
PHASES, DAYS = 6, 5


def mates(stretch=None):
    phase = np.tile(np.arange(PHASES), DAYS)
    return Mates(phase, np.arange(phase.size) if stretch is None else stretch, PHASES)


def drawn(rng, between, counts):
    """Blocks of one class about the mean of their phase, which is 3 times its number."""
    phase = np.tile(np.arange(PHASES), DAYS)
    real = 3.0 * phase + between * rng.normal(size=phase.size)
    sums = counts * real + np.sqrt(counts) * rng.normal(size=phase.size)
    blocks = BlockSums(sums[:, None, None], counts[:, None].astype(float), np.arange(phase.size), whole_windows=True)
    return blocks.in_phases(mates())


COUNTS = np.tile(np.array([20, 40, 60, 80, 200, 400]), DAYS)


@pytest.mark.parametrize("between", [0.0, 0.3])
def test_a_block_differs_from_its_phase_by_as_much_as_is_said(between) -> None:
    """By 1 / rows of sampling, and by (1 + g) of what real time adds."""
    rng = np.random.default_rng(0)
    blocks = drawn(rng, between, COUNTS)
    errors = np.array([drawn(rng, between, COUNTS).residuals[:, 0] for _ in range(3_000)])
    # The mean of all other blocks, which the phases' means are taken from, is the same on both sides.
    sampling = 1 / COUNTS + (blocks.mates.together**2) @ (1 / COUNTS)
    expected = sampling + between**2 * blocks.resting
    np.testing.assert_allclose((errors**2).mean(axis=0), expected, rtol=0.12)
    assert (1 / blocks.rows >= sampling).all()


def test_a_window_differs_from_its_phases_by_as_much_as_is_said() -> None:
    rng, between, events, when = np.random.default_rng(1), 0.3, 1_000, np.array([0, 0.7, 0.3, 0, 0, 0])
    errors = []
    for _ in range(3_000):
        usual = usual_inputs(drawn(rng, between, COUNTS), when)
        window = 3.0 * (when @ np.arange(PHASES)) + between * rng.normal() + rng.normal() / np.sqrt(events)
        errors.append(window - usual.mean[0])
    least = 1 / events + usual.sampling + between**2 * (1 + (when**2).sum() / DAYS)
    most = 1 / events + usual.sampling + between**2 * (1 + usual.between)
    # As much as if the errors of neighbouring phases were the same, which they may be.
    assert usual.between == pytest.approx(1 / DAYS)
    assert 0.93 * least <= np.mean(np.square(errors)) <= most


def test_a_window_that_is_sixteen_times_a_block_is_no_better_known_than_its_phase() -> None:
    usual = usual_inputs(drawn(np.random.default_rng(2), 0.0, COUNTS), np.eye(PHASES)[0])
    assert usual.sampling == pytest.approx(1 / 20 / DAYS)


def test_a_block_has_no_part_in_what_is_usual_at_its_time_nor_have_its_neighbours() -> None:
    together = mates(stretch=np.arange(PHASES * DAYS) // (2 * PHASES)).together
    assert not np.diag(together).any()
    assert not together[0, PHASES]  # the same hour of the next day, in the same stretch
    assert together[0, 2 * PHASES] == pytest.approx(1 / 3)
    np.testing.assert_allclose(together.sum(axis=1), 1.0)


def test_where_all_blocks_of_a_phase_are_of_one_stretch_each_is_held_against_the_others_of_it() -> None:
    together = mates(stretch=np.zeros(PHASES * DAYS, dtype=np.int64)).together
    assert not np.diag(together).any()
    assert together[0, PHASES] == pytest.approx(1 / (DAYS - 1))


def test_blocks_that_are_held_against_their_phase_are_correlated_as_is_said() -> None:
    rng = np.random.default_rng(3)
    even = np.full(PHASES * DAYS, 100)
    errors = np.array([drawn(rng, 0.0, even).residuals[:, 0] for _ in range(4_000)])
    np.testing.assert_allclose(np.corrcoef(errors.T), drawn(rng, 0.0, even).correlation, atol=0.09)


def test_a_phase_of_which_too_few_days_are_known_is_left_out() -> None:
    phase, day = np.tile(np.arange(3), 5), np.repeat(np.arange(5), 3)
    enough = often_enough(phase[:-5], day[:-5])  # the last two phases have three days
    np.testing.assert_array_equal(phase[:-5][enough], 0)


def test_the_phases_of_a_season_are_of_equal_length_and_not_too_many() -> None:
    year = phases_of_inputs(365 * DAY, DAY)
    numbers = year.of(np.arange(365) * DAY)
    assert year.number == INPUT_PHASES == np.unique(numbers).size
    assert all(b - a in {0, 1} for a, b in pairwise(numbers))
    np.testing.assert_array_equal(phases_of_inputs(DAY, HOUR).of(np.arange(48) * HOUR), np.arange(48) % 24)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 6, [1.0, 0, 0, 0]), (3, 15, [0.5, 1.0, 0.5, 0]), (21, 27, [0.5, 0, 0, 0.5]), (30, 78, [2.0] * 4)],
)
def test_a_window_lies_in_the_phases_that_it_overlaps(start, end, expected) -> None:
    quarters = phases_of_inputs(DAY, 6 * HOUR)
    np.testing.assert_allclose(quarters.overlap(start * HOUR, end * HOUR), expected, atol=1e-9)
