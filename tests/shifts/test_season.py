"""The class mix that is usual at some time: what is known of a phase, and what nobody knows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.shifts import Season

HOUR = 3_600_000_000
DAY = 24 * HOUR


def days(number, by_hour, events=200, seed=0, noise=0.0):
    """Hours of so many days, in which the share of the second class follows the hour."""
    rng = np.random.default_rng(seed)
    hours = np.repeat(np.arange(number * 24), events)
    shares = np.clip(by_hour[np.arange(number * 24) % 24] + noise * rng.normal(size=number * 24), 0.0, 1.0)
    return hours, (rng.random(hours.size) < shares[hours]).astype(np.int64)


def season(number, by_hour, **more):
    hours, labels = days(number, by_hour, **more)
    return Season.of(DAY, HOUR, hours, labels, 2)


NIGHT = np.where(np.arange(24) < 6, 0.4, 0.1)


def test_what_is_usual_follows_the_hour() -> None:
    known = season(20, NIGHT)
    for hour in (0, 3, 8, 23):
        usual = known.usual(1_000 * DAY + hour * HOUR, 1_000 * DAY + (hour + 1) * HOUR)
        assert usual.shares[1] == pytest.approx(NIGHT[hour], abs=0.025)
        assert usual.events == pytest.approx(20 * 200)
    assert known.explained > 0.9


def test_where_nothing_follows_the_hour_all_hours_are_as_usual_as_the_whole() -> None:
    hours, labels = days(20, np.full(24, 0.2), noise=0.05)
    known = Season.of(DAY, HOUR, hours, labels, 2)
    usual = np.array([known.usual(k * HOUR, (k + 1) * HOUR).shares[1] for k in range(24)])
    by_hour = np.array([labels[hours % 24 == k].mean() for k in range(24)])
    assert np.abs(usual - labels.mean()).max() < np.abs(by_hour - labels.mean()).max() / 2
    assert known.explained < 0.1


def test_a_time_that_the_hold_out_never_had_is_as_usual_as_the_whole() -> None:
    hours, labels = days(10, NIGHT)
    daytime = hours % 24 >= 6
    known = Season.of(DAY, HOUR, hours[daytime], labels[daytime], 2)
    usual = known.usual(3 * HOUR, 4 * HOUR)
    assert usual.shares[1] == pytest.approx(labels[daytime].mean())


def test_each_hour_of_the_hold_out_is_expected_by_the_other_days_alone() -> None:
    hours, labels = days(10, NIGHT)
    odd = hours == 3 * 24 + 12
    labels = np.where(odd, 1, labels)
    known = Season.of(DAY, HOUR, hours, labels, 2)
    expected = known.usual_of_others(np.array([(3 * 24 + 12) * HOUR + 5, (4 * 24 + 12) * HOUR + 5]))
    assert expected[0, 1] == pytest.approx(0.1, abs=0.03)
    assert expected[1, 1] > expected[0, 1] + 0.05


def test_it_is_the_same_after_a_file() -> None:
    known = season(5, NIGHT)
    again = Season.from_arrays(known.described(), known.to_arrays())
    assert np.array_equal(again.usual(0, HOUR).shares, known.usual(0, HOUR).shares)


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 2)), min_size=1, max_size=200),
    st.integers(2, 30),
    st.integers(0, 1_000),
)
@settings(max_examples=60, deadline=None)
def test_what_is_usual_is_a_class_mix_whatever_the_hold_out(rows, phases, at) -> None:
    hours, labels = (np.array(column) for column in zip(*rows, strict=True))
    known = Season.of(phases * HOUR, HOUR, hours, labels, 3)
    mixes = [known.usual(at * HOUR, (at + 1) * HOUR).shares, *known.usual_of_others(hours * HOUR)]
    for mix in mixes:
        assert mix.sum() == pytest.approx(1.0)
        assert (mix >= 0).all()
    assert 0 <= known.explained <= 1
