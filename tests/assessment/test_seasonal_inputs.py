"""Inputs that follow the hour of the day: what is far from all of the hold-out may be as usual at its hour, and what
lies in the middle of it may not."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

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
EVENTS, DAYS = 120, 20
SCHEMA = StreamSchema("hours", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
DAILY = 1.2


def hour_of_events(hour, rng, more=0.0):
    """The last two inputs follow the hour, and no hour is quite as it was the day before."""
    labels = rng.choice(3, size=EVENTS, p=[0.4, 0.3, 0.3])
    x = worlds.features(labels, rng)
    angle = 2 * np.pi * (hour % 24) / 24
    scores = worlds.posteriors(x)
    x[:, 2] += DAILY * np.sin(angle) + 0.15 * rng.normal() + more
    x[:, 3] += DAILY * np.cos(angle) + 0.15 * rng.normal()
    return scores, x, labels


@cache
def reference(season, ignored=()):
    rng = np.random.default_rng(3)
    hours = np.arange(DAYS * 24)
    scores, rows, labels = (np.concatenate(part) for part in zip(*(hour_of_events(h, rng) for h in hours), strict=True))
    times = np.repeat(hours, EVENTS) * HOUR + np.tile(np.arange(EVENTS), hours.size) * 1_000_000
    return worlds.cheaply(SCHEMA, scores, labels, rows, cut("1h", labels.size, times, season)).ignoring(ignored)


def window(hour, seed=0, more=0.0, at=None):
    scores, x, _ = hour_of_events(hour, np.random.default_rng([seed, hour]), more)
    start = (30 * 24 + (hour if at is None else at)) * HOUR
    return replace(Window.of(scores, x), key=WindowKey("hours", "", start, start + HOUR))


FOLLOWED, MIX_ONLY = Seasonal("24h", inputs=True), Seasonal("24h")


def moved(season, **how):
    found = [assess(window(hour, seed=seed, **how), reference(season)) for hour in range(24) for seed in range(2)]
    return sum(one.verdict is not Verdict.STABLE for one in found)


def test_hours_as_they_always_are_are_no_shift() -> None:
    assert moved(FOLLOWED) <= 2


def test_less_of_a_shift_is_seen_where_it_is_known_what_is_usual_at_the_hour() -> None:
    assert moved(FOLLOWED, more=0.7) >= 1.5 * moved(MIX_ONLY, more=0.7)
    assert moved(FOLLOWED, more=0.7) >= 16


def test_noon_at_midnight_is_a_shift_though_the_hold_out_has_many_noons() -> None:
    at_midnight = [window(12, seed=seed, at=24) for seed in range(8)]
    assert sum(assess(one, reference(FOLLOWED)).verdict is not Verdict.STABLE for one in at_midnight) >= 7
    assert sum(assess(one, reference(MIX_ONLY)).verdict is not Verdict.STABLE for one in at_midnight) <= 2


def test_a_window_that_does_not_say_when_it_was_is_held_against_any_time() -> None:
    timeless = replace(window(2), key=WindowKey())
    assert assess(timeless, reference(FOLLOWED)).evidence == assess(timeless, reference(MIX_ONLY)).evidence


def test_it_survives_the_file(tmp_path) -> None:
    reference(FOLLOWED).save(tmp_path / "hours.ref")
    shown = window(12, more=0.7)
    loaded = Reference.load(tmp_path / "hours.ref")
    assert assess(shown, loaded).to_json() == assess(shown, reference(FOLLOWED)).to_json()


def test_a_stream_that_leaves_an_input_out_compares_the_others_at_their_time() -> None:
    """Its map is another one than that which blocks were summed by."""
    calm = [assess(window(hour), reference(FOLLOWED, ("x3",))).verdict for hour in range(24)]
    late = [assess(window(12, seed=seed, more=3.0), reference(FOLLOWED, ("x3",))).verdict for seed in range(4)]
    assert sum(verdict is not Verdict.STABLE for verdict in calm) <= 2
    assert sum(verdict is not Verdict.STABLE for verdict in late) >= 3


def test_of_many_blocks_as_many_of_each_hour_are_kept() -> None:
    hours = np.arange(60 * 24)
    times = np.repeat(hours, EVENTS) * HOUR
    plain, followed = (cut("1h", times.size, times, season) for season in (None, FOLLOWED))
    counts = [np.bincount(one.starts // HOUR % 24, minlength=24) for one in (plain, followed)]
    assert counts[1].min() >= 4
    assert counts[0].min() < 4
    assert all((np.diff(one.starts) > 0).all() for one in (plain, followed))
    assert all(a < b for a, b in pairwise(np.unique(followed.of_row[followed.of_row >= 0]).tolist()))


def test_inputs_without_a_season_are_refused_in_words() -> None:
    with pytest.raises(InputError, match="say `season` too"):
        Reference.fit(np.eye(2)[[0, 1] * 50], [0, 1] * 50, block=50, season_inputs=True)
