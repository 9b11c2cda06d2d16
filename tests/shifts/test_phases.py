"""What is usual of windows at one time of the season: known of some phases, drawn to any time where little is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.shifts import Phases, phases_of_inputs
from monitor.tolerances import INPUT_PHASES

HOUR = 3_600_000_000
DAY = 24 * HOUR


def of_days(days, values, noise, seed=0):
    """Blocks of so many days, whose values follow the phase; each day is a stretch of its own blocks."""
    rng = np.random.default_rng(seed)
    phases = np.tile(np.arange(len(values)), days)
    return Phases(phases, np.arange(phases.size)), values[phases] + noise * rng.normal(size=(phases.size, 2))


DAILY = np.stack([np.sin(np.arange(8)), np.cos(np.arange(8))], axis=1)


def test_what_follows_the_season_is_usual_at_its_time() -> None:
    phases, values = of_days(12, DAILY, 0.2)
    usual = phases.usual(values)
    for phase in range(8):
        np.testing.assert_allclose(usual.at(phase), DAILY[phase] - DAILY.mean(axis=0), atol=0.2)


def test_what_does_not_follow_it_is_hardly_anything_at_any_time() -> None:
    phases, values = of_days(12, 0 * DAILY, 1.0)
    assert np.abs(phases.usual(values).of_phase).max() < 0.25


def test_nothing_is_usual_at_a_time_that_no_block_had() -> None:
    phases, values = of_days(12, DAILY, 0.2)
    np.testing.assert_array_equal(phases.usual(values).at(9), 0.0)
    np.testing.assert_array_equal(phases.usual(values).at(None), 0.0)


@given(st.integers(0, 1_000))
def test_a_block_has_no_part_in_what_is_usual_at_its_time(seed) -> None:
    """But for how far phases are believed, which one block of many hardly changes."""
    phases, values = of_days(5, DAILY, 0.3, seed)
    changed = values.copy()
    changed[11] += 0.01
    before, after = phases.usual(values).of_block[11], phases.usual(changed).of_block[11]
    # The mean over all phases has a fortieth of the change, and the shrinkage next to nothing.
    np.testing.assert_allclose(before, after, atol=0.002)


def test_blocks_of_one_stretch_tell_each_other_nothing() -> None:
    phases = np.zeros(6, dtype=np.int64)
    one = Phases(np.append(phases, np.ones(6, dtype=np.int64)), np.repeat(np.arange(4), 3))
    values = np.repeat([[1.0], [3.0], [11.0], [13.0]], 3, axis=0)
    found = one.usual(values).of_block[:, 0]
    assert found[0] == found[1] == found[2] > found[3]


@pytest.mark.parametrize("phases", [[0, 0, 0, 0], [0, 1, 2, 3]])
def test_of_one_phase_or_of_one_block_each_nothing_is_known(phases) -> None:
    blocks = Phases(np.array(phases), np.arange(4))
    np.testing.assert_array_equal(blocks.usual(np.arange(4.0)[:, None]).of_phase, 0.0)


def test_a_value_that_never_varies_is_no_trouble() -> None:
    phases, values = of_days(4, DAILY, 0.1)
    values[:, 1] = 7.0
    assert np.isfinite(phases.usual(values).of_phase).all()


def test_a_long_season_has_at_most_so_many_phases() -> None:
    moments = np.arange(365) * DAY
    found = phases_of_inputs(moments, 365 * DAY, DAY)
    assert np.unique(found).size == INPUT_PHASES
    assert (np.diff(found) >= 0).all()
    np.testing.assert_array_equal(phases_of_inputs(np.arange(48) * HOUR, DAY, HOUR), np.arange(48) % 24)
