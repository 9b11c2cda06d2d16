"""A class mix that follows the hour of the day: no shift at its hour, and one at another."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from monitor import Reference
from monitor.assessment import assess
from monitor.assessment.verdict import Verdict
from monitor.errors import InputError
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.blocks import Seasonal, cut
from monitor.windows import WindowKey
from monitor.windows.window import Window
from tests.assessment import worlds

HOUR = 3_600_000_000
EVENTS = 250
DAYS = 8
SCHEMA = StreamSchema("hours", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
NIGHT, DAY = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])


def mix(hour):
    """By night the third class is frequent."""
    by_night = (1 + np.cos(2 * np.pi * (hour - 2) / 24)) / 2
    return by_night * NIGHT + (1 - by_night) * DAY


def hour_of_events(hour, rng):
    labels = rng.choice(3, size=EVENTS, p=mix(hour % 24))
    return worlds.features(labels, rng), labels


@cache
def reference(season):
    rng = np.random.default_rng(3)
    hours = range(DAYS * 24)
    rows, labels = (np.concatenate(part) for part in zip(*(hour_of_events(h, rng) for h in hours), strict=True))
    times = np.repeat(np.array(hours), EVENTS) * HOUR + np.tile(np.arange(EVENTS), DAYS * 24) * 1_000_000
    followed = None if season is None else Seasonal(season)
    return worlds.cheaply(SCHEMA, worlds.posteriors(rows), labels, rows, cut("1h", labels.size, times, followed))


def window(hour, like=None, seed=0):
    """The events of an hour, with the class mix of another one where that is said."""
    x, labels = hour_of_events(hour if like is None else like, np.random.default_rng([seed, hour]))
    start = (30 * 24 + hour) * HOUR
    shown = replace(Window.of(worlds.posteriors(x), x), key=WindowKey("hours", "", start, start + HOUR))
    return shown, np.bincount(labels, minlength=3) / EVENTS


def moved(verdict):
    return verdict in {Verdict.PRIOR_SHIFT, Verdict.PRIOR_AND_COVARIATE_SHIFT}


def test_hours_as_they_always_are_are_no_shift() -> None:
    verdicts = [assess(window(hour, seed=seed)[0], reference("24h")).verdict for hour in range(24) for seed in range(2)]
    assert sum(verdict is not Verdict.STABLE for verdict in verdicts) <= 2


def test_a_night_in_the_middle_of_the_day_is_a_shift_that_only_the_season_shows() -> None:
    seasonal = [assess(window(hour, like=2)[0], reference("24h")) for hour in range(10, 18)]
    blind = [assess(window(hour, like=2)[0], reference(None)) for hour in range(10, 18)]
    assert sum(moved(one.verdict) for one in seasonal) >= 7
    assert sum(moved(one.verdict) for one in blind) <= 2
    assert any("which is usual at this time" in reason for reason in seasonal[0].reasons)


def test_the_mix_of_the_whole_hold_out_at_the_wrong_time_is_a_shift_too() -> None:
    evening = 20  # about the mean of all hours
    answers = [assess(window(2, like=evening, seed=seed)[0], reference("24h")).verdict for seed in range(6)]
    assert sum(moved(verdict) for verdict in answers) >= 5


def test_the_published_mix_starts_from_that_of_the_hour() -> None:
    def errors(season):
        pairs = [window(hour, seed=7) for hour in range(0, 24, 2)]
        pairs = [(assess(shown, reference(season)).prevalence, truth) for shown, truth in pairs]
        held = [(said.lower <= truth) & (truth <= said.upper) for said, truth in pairs]
        return np.mean([np.abs(said.priors - truth).mean() for said, truth in pairs]), np.mean(held)

    seasonal, blind = errors("24h"), errors(None)
    assert seasonal[0] <= 1.05 * blind[0]
    assert seasonal[1] >= 0.9


def test_a_window_that_does_not_say_when_it_was_is_held_against_the_whole() -> None:
    shown, _ = window(2)
    timeless = replace(shown, key=WindowKey())
    assert assess(timeless, reference("24h")).evidence == assess(timeless, reference(None)).evidence


def test_a_season_survives_its_file(tmp_path) -> None:
    reference("24h").save(tmp_path / "hours.ref")
    shown, _ = window(12, like=2)
    assert assess(shown, Reference.load(tmp_path / "hours.ref")).to_json() == assess(shown, reference("24h")).to_json()


@pytest.mark.parametrize(
    ("block", "season", "days", "words"),
    [
        (500, "24h", 8, "a block that is a duration"),
        ("1h", "90m", 8, "at least two blocks of 1h"),
        ("1h", "7d", 8, "covers 1.1 of 7d"),
        ("1h", "1y", 8, "covers 0.022 of 1y"),
        ("1h", "a day", 8, "season: want a duration"),
    ],
)
def test_a_season_that_the_hold_out_cannot_know_is_refused_in_words(block, season, days, words) -> None:
    times = np.arange(days * 24 * 10) * (HOUR // 10)
    with pytest.raises(InputError, match=words):
        cut(block, times.size, times, Seasonal(season))
