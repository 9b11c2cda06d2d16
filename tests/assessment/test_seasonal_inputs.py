"""Inputs that follow the hour of the day: what is far from all of the hold-out may be as usual at its hour, and what
lies in the middle of it may not."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from monitor import Reference
from monitor.assessment import against_recent, assess
from monitor.assessment.verdict import Verdict
from monitor.errors import InputError
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.blocks import Seasonal, cut
from monitor.shifts import prepare
from monitor.shifts.fit import block_matches
from monitor.windows import WindowKey
from monitor.windows.window import Window
from tests.assessment import worlds
from tests.marks import in_chaos

HOUR = 3_600_000_000
EVENTS, DAYS = 120, 20
LATER = 42
"""A day long after the hold-out."""
SCHEMA = StreamSchema("hours", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
DAILY = 1.2
FOLLOWED, MIX_ONLY = Seasonal("24h", inputs=True), Seasonal("24h")


def busy(hour):
    """Ten times as many events at two in the afternoon as at two at night."""
    return round(EVENTS * 10 ** ((1 + np.cos(2 * np.pi * (hour % 24 - 14) / 24)) / 2))


def hour_of_events(hour, rng, more=0.0, *, events=EVENTS, daily=DAILY, noise=0.15):
    """The last two inputs follow the hour, and no hour is quite as it was the day before."""
    labels = rng.choice(3, size=events, p=[0.4, 0.3, 0.3])
    x = worlds.features(labels, rng)
    angle = 2 * np.pi * (hour % 24) / 24
    scores = worlds.posteriors(x)
    x[:, 2] += daily * np.sin(angle) + noise * rng.normal() + more
    x[:, 3] += daily * np.cos(angle) + noise * rng.normal()
    return scores, x, labels


def hours_of_events(hours, rng, events, *, daily=DAILY, noise=0.15):
    parts = [hour_of_events(hour, rng, events=events(hour), daily=daily, noise=noise) for hour in hours]
    times = np.concatenate([hour * HOUR + np.arange(len(part[2])) for hour, part in zip(hours, parts, strict=True)])
    return (*(np.concatenate(part) for part in zip(*parts, strict=True)), times)


@cache
def reference(season, ignored=(), days=DAYS, *, events=lambda _: EVENTS, daily=DAILY, noise=0.15):
    scores, rows, labels, times = hours_of_events(
        range(days * 24), np.random.default_rng(3), events, daily=daily, noise=noise
    )
    return worlds.cheaply(SCHEMA, scores, labels, rows, cut("1h", labels.size, times, season)).ignoring(ignored)


def window(hour, seed=0, more=0.0, at=None, *, events=EVENTS, noise=0.15):
    """Of that many events; as if it were at another hour."""
    scores, x, _ = hour_of_events(hour, np.random.default_rng([seed, hour]), more, events=events, noise=noise)
    start = (LATER * 24 + (hour if at is None else at)) * HOUR
    return replace(Window.of(scores, x), key=WindowKey("hours", "", start, start + HOUR))


def not_stable(windows, held):
    return sum(assess(one, held).verdict is not Verdict.STABLE for one in windows)


@pytest.mark.parametrize("times", [1, in_chaos(4), 16])
def test_hours_as_they_always_are_are_no_shift_however_many_events_they_have(times) -> None:
    """What is usual at an hour is known of four days: no better in a window of many events."""
    assert not_stable([window(hour, times, events=times * EVENTS) for hour in range(24)], reference(FOLLOWED)) <= 2


def test_nor_are_half_days_of_which_most_events_come_at_noon() -> None:
    def half(day, from_hour):
        hours = range((LATER + day) * 24 + from_hour, (LATER + day) * 24 + from_hour + 12)
        scores, x, _, _ = hours_of_events(hours, np.random.default_rng([day, from_hour]), busy)
        return replace(Window.of(scores, x), key=WindowKey("hours", "", hours[0] * HOUR, (hours[-1] + 1) * HOUR))

    halves = [half(day, begin) for day in range(4) for begin in (0, 6, 12)]
    assert not_stable(halves, reference(FOLLOWED, events=busy)) <= 1


def test_nor_are_the_hours_of_a_hold_out_of_few_days() -> None:
    assert not_stable([window(hour, 5) for hour in range(24)], reference(FOLLOWED, days=4)) <= 2


def test_nor_are_long_ones_of_a_stream_whose_days_are_alike() -> None:
    """Nothing but sampling: that of the four blocks of an hour is sixteen times that of the window."""
    held = reference(FOLLOWED, days=4, noise=0.0)
    assert not_stable([window(hour, 7, events=64 * EVENTS, noise=0.0) for hour in range(24)], held) <= 2


def test_the_law_of_blocks_has_the_degrees_that_their_phases_leave() -> None:
    matches = block_matches(prepare(reference(FOLLOWED)).seasonal.moments)
    number = matches.statistics.size
    assert matches.law.degrees <= min(number - 24, number / 4)


def test_less_of_a_shift_is_seen_where_it_is_known_what_is_usual_at_the_hour() -> None:
    moved = [window(hour, seed, more=0.7) for hour in range(24) for seed in range(2)]
    told = not_stable(moved, reference(FOLLOWED))
    assert told >= 2 * not_stable(moved, reference(MIX_ONLY))
    assert told >= 16


def test_a_shift_back_to_what_is_usual_at_other_times_is_named() -> None:
    """At six the first of them is as far up as it gets: 1.2 less makes it what it is on the whole."""
    found = [assess(window(6, seed, more=-1.2), reference(FOLLOWED)) for seed in range(6)]
    assert sum(one.features["x2"].moved and one.verdict is Verdict.COVARIATE_SHIFT for one in found) >= 5
    betas = [one.features["x2"].beta for one in found if one.features["x2"].kind == "linear"]
    assert betas
    assert all(-1.9 < beta < -0.5 for beta in betas)


def test_noon_at_midnight_is_a_shift_though_the_hold_out_has_many_noons() -> None:
    at_midnight = [window(12, seed, at=24) for seed in range(8)]
    assert not_stable(at_midnight, reference(FOLLOWED)) >= 7
    assert not_stable(at_midnight, reference(MIX_ONLY)) <= 2


def test_the_result_says_what_inputs_are_held_against() -> None:
    reasons = assess(window(2), reference(FOLLOWED)).reasons
    assert "features and scores are held against what is usual of them at this time" in reasons
    assert not any("usual of" in reason for reason in assess(window(2), reference(MIX_ONLY)).reasons)


def test_a_window_that_does_not_say_when_it_was_is_held_against_any_time() -> None:
    timeless = replace(window(2), key=WindowKey())
    followed, mix_only = (assess(timeless, reference(season)) for season in (FOLLOWED, MIX_ONLY))
    assert followed.tests.keys() == mix_only.tests.keys()
    assert followed.evidence == mix_only.evidence


def test_a_window_at_a_time_that_the_hold_out_hardly_has_is_held_against_any_and_says_so() -> None:
    """At one of the hours nothing came but on three days."""
    rng = np.random.default_rng(3)
    hours = [hour for hour in range(12 * 24) if hour % 24 != 5 or hour < 72]
    scores, rows, labels, times = hours_of_events(hours, rng, lambda _: EVENTS)
    held = worlds.cheaply(SCHEMA, scores, labels, rows, cut("1h", labels.size, times, FOLLOWED))
    said = assess(window(5), held).reasons
    assert any("at this time is not known: they are held against the whole hold-out" in reason for reason in said)
    assert "features and scores are held against what is usual of them at this time" in assess(window(6), held).reasons


def test_inputs_that_do_not_follow_the_season_are_held_against_the_whole_hold_out() -> None:
    held = reference(FOLLOWED, daily=0.0, days=8)
    assert held.blocks.inputs_explained < 0.1
    assert held.blocks.seasonal is None


def test_recent_windows_do_without_the_season_too() -> None:
    """Within six hours each input goes all the way from its mean to its farthest."""
    normal, told = None, 0
    for hour in range(30):
        found, normal = against_recent(assess(window(hour, 9), reference(FOLLOWED)), reference(FOLLOWED), normal)
        told += found.recent.verdict is not Verdict.STABLE
    assert told <= 2
    late = against_recent(assess(window(30, 9, more=2.5), reference(FOLLOWED)), reference(FOLLOWED), normal)[0]
    assert late.recent.verdict is not Verdict.STABLE


def test_it_survives_the_file(tmp_path) -> None:
    reference(FOLLOWED).save(tmp_path / "hours.ref")
    shown = window(12, more=0.7)
    loaded = Reference.load(tmp_path / "hours.ref")
    assert assess(shown, loaded).to_json() == assess(shown, reference(FOLLOWED)).to_json()


def test_a_stream_that_leaves_an_input_out_compares_the_others_at_their_time() -> None:
    """Its map is another one than that which blocks were summed by."""
    held = reference(FOLLOWED, ("x3",))
    assert not_stable([window(hour) for hour in range(24)], held) <= 2
    assert not_stable([window(12, seed, more=3.0) for seed in range(4)], held) >= 3


def test_of_many_blocks_as_many_of_each_hour_are_kept_and_of_all_weekdays() -> None:
    times = np.repeat(np.arange(60 * 24), EVENTS) * HOUR
    followed = cut("1h", times.size, times, FOLLOWED)
    hours = followed.starts // HOUR
    assert np.bincount(hours % 24, minlength=24).min() >= 4
    assert np.bincount(hours[:-20] // 24 % 7, minlength=7).min() >= 8
    assert (np.diff(followed.starts) > 0).all()


@pytest.mark.parametrize(("days", "block"), [(3, "1h"), (3, "6h")])
def test_a_hold_out_of_few_seasons_is_refused_in_words(days, block) -> None:
    times = np.repeat(np.arange(days * 24), EVENTS) * HOUR
    with pytest.raises(InputError, match=f"blocks of {days} times 24h; want at least 4 at each time of it"):
        cut(block, times.size, times, FOLLOWED)


def test_inputs_without_a_season_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="say `season` too"):
        Reference.fit(np.eye(2)[[0, 1] * 50], [0, 1] * 50, block=50, season_inputs=True)
