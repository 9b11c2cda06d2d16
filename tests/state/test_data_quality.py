"""Alarms on data quality: raised within the budget, by the same hour of earlier days, ended by windows or by a week."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from connectors.memory import MemoryLog
from monitor.assessment import DataQuality
from monitor.observers import Track
from monitor.state import AnyConcern, Budget, Seen, StatePlan, WindowSeen, concerns_of
from monitor.state.data_quality import SERIES
from monitor.windows import WindowKey
from tests.service import streams
from tests.state.test_states import last_of_each_key, run, taken_up
from tests.state.windows import HOUR, seen, story_of_faults, with_quality

PLAN = StatePlan(budget=Budget.of(1 / 1_000))
DAY = 24


def window(number: int, quality: DataQuality, segment: str = "", events: int = 400) -> WindowSeen:
    """Of that hour since the epoch."""
    one, key = seen(1, segment=segment, events=events), WindowKey("s", segment, number * HOUR, (number + 1) * HOUR)
    moved = replace(one, assessment=replace(one.assessment, key=key), window=replace(one.window, key=key))
    return with_quality(moved, quality)


def hours(qualities: Sequence[DataQuality], segment: str = "") -> list[Seen]:
    return [window(number, quality, segment) for number, quality in enumerate(qualities)]


def calm(days: int) -> list[DataQuality]:
    return [DataQuality()] * (days * DAY)


def quality_alarms(log: MemoryLog) -> list[dict[str, object]]:
    messages = map(json.loads, log.values("alarms"))
    return [message for message in messages if message["series"] in SERIES]


def concerns(plan: StatePlan = PLAN) -> list[AnyConcern]:
    """The one."""
    return [one for one in concerns_of(plan, streams.reference()) if one.name == "data-quality"]


def told(windows: Sequence[Seen], cuts: Sequence[int] = ()) -> MemoryLog:
    return run(windows, concerns(), cuts)


def states(log: MemoryLog) -> list[tuple[object, object]]:
    return [(one["series"], one["state"]) for one in quality_alarms(log)]


def hour_of(message: dict[str, object]) -> int:
    return int(str(message["window"]).split("/")[2]) // HOUR


def test_records_that_begin_to_be_rejected_raise_one_alarm_and_good_windows_end_it() -> None:
    log = told(hours([*calm(20), *[DataQuality(rejected=0.05)] * 30, *calm(2)]))
    raised, *updates, resolved = quality_alarms(log)
    assert (raised["series"], raised["state"], resolved["state"]) == ("rejected records", "raised", "resolved")
    assert {one["state"] for one in updates} == {"updated"}
    assert 20 * DAY <= hour_of(raised) < 20 * DAY + 15
    assert str(raised["since"]).startswith("1970-01-21T0")
    assert raised["once_in"] == pytest.approx(40_000)
    assert str(raised["reason"]).startswith(
        "rejected records: a share of 0.05 in the last window, where less than 0.001 was usual at "
    )
    assert "ShiftwatchDataQuality" in str(raised["silence"])
    assert hour_of(resolved) < 20 * DAY + 30 + 10


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        ("missing values", DataQuality(missing=0.04)),
        ("values out of range", DataQuality(outside_range=0.04)),
        ("new categories", DataQuality(new_categories=0.04)),
    ],
)
def test_each_kind_of_fault_has_an_alarm_of_its_own(name: str, worse: DataQuality) -> None:
    usual = DataQuality(missing=0.02, outside_range=0.02, new_categories=0.02)
    log = told(hours([usual] * (20 * DAY) + [replace(usual, **vars_of(worse))] * 20))
    assert states(log)[0] == (name, "raised")
    assert {series for series, _ in states(log)} == {name}
    assert "where 0.02 was usual" in str(quality_alarms(log)[0]["reason"])


def vars_of(quality: DataQuality) -> dict[str, float]:
    """What is not nothing."""
    names = ("rejected", "missing", "outside_range", "new_categories")
    return {name: getattr(quality, name) for name in names if getattr(quality, name)}


def test_what_comes_every_night_is_no_fault() -> None:
    night = [DataQuality(missing=0.1 if hour < 6 else 0.0) for hour in range(DAY)]
    assert not states(told(hours(night * 30)))


def test_what_has_lasted_for_a_week_is_normal_from_then_on() -> None:
    log = told(hours([*calm(20), *[DataQuality(missing=0.05)] * (30 * DAY)]))
    assert [state for _, state in states(log) if state != "updated"] == ["raised", "resolved"]
    last = quality_alarms(log)[-1]
    assert 20 * DAY + 7 * DAY - 1 <= hour_of(last) <= 20 * DAY + 7 * DAY
    assert "what has lasted for a week is normal from now on" in str(last["reason"])


def test_windows_without_events_tell_of_rejects_and_of_nothing_else() -> None:
    faulty = [window(20 * DAY + number, DataQuality(rejected=1.0), events=20) for number in range(20)]
    assert faulty[0].assessment.verdict.silent
    log = told([*hours(calm(20)), *faulty])
    assert states(log)[0] == ("rejected records", "raised")
    (state,) = taken_up(log, concerns())[0].of("s").states.values()
    assert sum(sum(steps.values()) for steps in state.series["missing values"].past.values()) == 20 * DAY


def test_segments_and_streams_without_a_budget_have_none() -> None:
    worse = [*calm(20), *[DataQuality(rejected=0.5)] * 30]
    assert not states(told(hours(worse, segment="country=BE")))
    assert not states(run(hours(worse), concerns(StatePlan())))


def test_windows_that_overlap_are_counted_once() -> None:
    course = hours([*calm(20), *[DataQuality(rejected=0.5)] * 30])
    twice: list[Seen] = [one for each in course for one in (each, each)]
    assert quality_alarms(told(twice)) == quality_alarms(told(course))


def test_a_restart_in_the_middle_of_an_alarm_changes_no_byte() -> None:
    """The story that every test of restarts is told, too (`STREAMS`)."""
    plan, story = StatePlan(budget=Budget.of(2.0)), story_of_faults()
    whole, cut = (run(story, concerns(plan), cuts) for cuts in ([], [3, 25, 26, 28, 30, 35]))
    assert quality_alarms(whole) == quality_alarms(cut)
    assert states(whole)[:2] == [("rejected records", "raised"), ("missing values", "raised")]
    assert [series for series, state in states(whole) if state == "resolved"] == ["rejected records"]
    assert last_of_each_key(whole) == last_of_each_key(cut)


def test_an_open_alarm_stands_among_those_of_the_stream_and_is_counted_apart() -> None:
    log = told(hours([*calm(20), *[DataQuality(rejected=0.05)] * 30]))
    track = Track(taken_up(log, concerns())[0].of("s"), assessed_at=0.0)
    assert list(track.open_alarms) == list(track.data_faults) == ["rejected records"]
    assert not track.gathered
    assert track.data_faults["rejected records"].size > 1


def test_a_budget_is_divided_between_distributions_labels_and_data_quality() -> None:
    budget = Budget.of(0.01)
    assert budget.of_events("", awaiting=True) + budget.of_labels + budget.of_quality == pytest.approx(0.01)
    assert budget.of_events("", awaiting=False) + budget.of_quality == pytest.approx(0.01)
    assert Budget.of(0.01, segments=5).of_events("country=BE", awaiting=True) == pytest.approx(0.001)
