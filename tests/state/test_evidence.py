"""Alarms with a budget, on assessed windows: raised once, gone on with, resolved, and the same whatever the cuts."""

import itertools
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from connectors.memory import MemoryLog
from monitor.assessment import assess
from monitor.assessment.completeness import as_far_as_seen
from monitor.errors import ConfigurationError
from monitor.reference.classifier import Reference
from monitor.settings import Config, load
from monitor.state import Budget, EvidenceState, StatePlan, WindowSeen, concerns_of
from monitor.state.alarm_message import silencing
from monitor.windows import Gap, Origin, Window, WindowKey, WindowSummary
from tests.service import streams
from tests.state.test_states import run, taken_up

RATE = 1 / 2_000
"""False alarms a window."""
PLAN = StatePlan(budget=Budget.of(RATE))


@cache
def many() -> Reference:
    """A reference so large that windows of 500 share next to nothing with it."""
    posteriors, labels = streams.scores(50_000, 0.3, seed=1)
    return Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s")


def windows(mixes: Sequence[float], reference: Reference, events: int = 500, seed: int = 1_000) -> list[WindowSeen]:
    found = []
    for number, positives in enumerate(mixes):
        posteriors, _ = streams.scores(events, positives, seed=seed + number)
        window = replace(Window.of(posteriors), key=WindowKey("s", "", number * 60_000_000, (number + 1) * 60_000_000))
        found.append(WindowSeen(assess(window, reference), WindowSummary.of(window, 2), 0.0))
    return found


def said(log: MemoryLog) -> list[dict[str, object]]:
    return [json.loads(value) for value in log.values("alarms")]


def test_a_shift_of_one_standard_error_is_raised_once_updated_and_resolved() -> None:
    """The standard error of the share of `yes` in 500 events is about .027."""
    concerns = concerns_of(PLAN, many())
    course = windows([0.3] * 30 + [0.335] * 40 + [0.3] * 40, many())
    assert sum(window.assessment.verdict.moved for window in course) < 20
    log = run(course, concerns)
    events = [one for one in said(log) if one["series"] == "share of yes rises"]
    states = [one["state"] for one in events]
    assert states[0] == "raised"
    assert states[-1] == "resolved"
    assert states.count("raised") == 1
    assert len({one["id"] for one in events}) == 1
    raised = int(str(events[0]["window"]).split("/")[2]) // 60_000_000
    assert 31 <= raised <= 65
    assert "by chance so much evidence comes about once in" in str(events[0]["reason"])
    assert not taken_up(log, concerns)[0].of("s").state(EvidenceState).alarms


def test_an_alarm_says_how_to_be_quiet_about_it_until_when() -> None:
    log = run(windows([0.3] * 5 + [0.5] * 20 + [0.3] * 10, many()), concerns_of(PLAN, many()))
    of_one = [one for one in said(log) if one["series"] == "share of yes rises"]
    raised, updated, resolved = of_one[0], of_one[1], of_one[-1]
    assert raised["silence"] == (
        "amtool silence add 'alertname=\"ShiftwatchEvidence\"' 'stream=\"s\"' 'segment=\"\"' "
        f"--end={raised['silence_until']} --comment=known"
    )
    for known, later in itertools.pairwise(one for one in of_one if one["state"] != "resolved"):
        assert str(known["silence_until"]) >= str(later["end"])
    assert updated["silence_until"] > raised["silence_until"]
    assert (resolved["state"], resolved["silence_until"], resolved["silence"]) == ("resolved", "", "")


def test_names_with_quotes_and_spaces_are_silenced_as_they_are() -> None:
    command = silencing("ShiftwatchEvidence", 'it\'s "new"', "a=b c", "2026-11-19T00:00:00Z")
    assert shlex.split(command)[3:6] == [
        'alertname="ShiftwatchEvidence"',
        'stream="it\'s \\"new\\""',
        'segment="a=b c"',
    ]


def test_windows_that_lack_events_by_a_fault_are_no_evidence() -> None:
    course = windows([0.3] * 5 + [0.6] * 10, many())
    lacking = [
        replace(seen, assessment=as_far_as_seen(replace(seen.assessment, origin=Origin(gaps=(Gap.SKIPPED,)))))
        for seen in course
    ]
    assert said(run(course, concerns_of(PLAN, many())))
    assert not said(run(lacking, concerns_of(PLAN, many())))


def test_a_segment_shares_the_error_of_its_own_part_of_the_hold_out() -> None:
    """Its windows are held against that part: with all of the hold-out they would pass its error for a change."""
    posteriors, labels = streams.scores(5_000, 0.3, seed=1)
    countries = pd.DataFrame({"country": np.where(np.arange(labels.size) < 300, "BE", "FR")})
    reference = Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s", segments=countries)
    rows, _ = streams.scores(100, 0.3, seed=2)
    window = replace(Window.of(rows), key=WindowKey("s", "country=BE", 0, 60))
    assert assess(window, reference).hold_out_events < 400
    assert assess(replace(window, key=WindowKey("s", "", 0, 60)), reference).hold_out_events == 5_000


def test_calm_windows_raise_no_more_than_the_budget_allows() -> None:
    log = run(windows([0.294] * 300, streams.reference(), seed=5_000), concerns_of(PLAN, streams.reference()))
    assert [one["state"] for one in said(log)].count("raised") <= 2


def test_any_cut_gives_the_same_bytes_and_alarms() -> None:
    concerns = concerns_of(PLAN, many())
    course = windows([0.3] * 10 + [0.45] * 10 + [0.3] * 10, many())
    whole, cut = run(course, concerns), run(course, concerns, cuts=[7, 11, 12, 25])
    assert said(whole) == said(cut)
    assert next(one["state"] for one in said(whole)) == "raised"
    assert whole.values("states")[-1] == cut.values("states")[-1]


def test_windows_that_overlap_are_counted_once() -> None:
    concerns = concerns_of(PLAN, many())
    course = windows([0.3] * 3, many())
    overlapping = [replace(window, window=replace(window.window, key=WindowKey("s", "", 30, 90))) for window in course]
    known = taken_up(run(overlapping, concerns), concerns)[0].of("s").state(EvidenceState)
    assert {series.windows for series in known.series.values()} == {1}


CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
[sink]
url = "jsonl:results.jsonl"
alarms = "alarms.jsonl"
[alarms]
false = "{false}"
[streams.a]
reference = "s.ref"
window = {{ size = "5m", lateness = "0s" }}
[streams.b]
reference = "s.ref"
window = {window}
segments = ["country"]
"""


def configured(folder: Path, false: str, window: str = '{ size = "1h", lateness = "0s" }') -> Config:
    path = folder / "shiftwatch.toml"
    path.write_text(CONFIGURATION.format(false=false, window=window), encoding="utf-8")
    return load(path)


def test_a_budget_in_the_words_of_an_operator_is_shared_by_streams_and_segments(tmp_path: Path) -> None:
    config = configured(tmp_path, "2 per 30d")
    a, b = config.budget("a"), config.budget("b")
    assert a is not None
    assert b is not None
    assert a.whole * 30 * 288 == pytest.approx(1)
    assert (b.whole + 21 * b.segment) * 30 * 24 == pytest.approx(1)


@pytest.mark.parametrize("false", ["often", "0 per 30d", "1 per month", "1 in 30d", "-1 per 3d", "1 per 0s"])
def test_a_budget_that_makes_no_sense_is_named(tmp_path: Path, false: str) -> None:
    with pytest.raises(ConfigurationError, match='want `false` like "1 per 30d"'):
        configured(tmp_path, false)


def test_a_budget_wants_windows_by_time(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"streams\.b: a budget of false alarms wants windows by time"):
        configured(tmp_path, "1 per 30d", "{ count = 500 }")


def test_a_budget_is_halved_between_a_stream_and_its_segments() -> None:
    budget = Budget.of(0.01, segments=20)
    assert budget.whole + 20 * budget.segment == pytest.approx(0.01)
    assert np.isclose(Budget.of(0.01).whole, 0.01)


def test_an_alarm_begins_with_the_window_that_jumped_however_long_the_series_had_not_been_calm() -> None:
    course = windows([0.3] * 40 + [0.45] * 3, many(), seed=3_000)
    first = next(
        event for event in said(run(course, concerns_of(PLAN, many()))) if event["series"] == "share of yes rises"
    )
    assert (first["state"], first["since"]) == ("raised", "1970-01-01T00:40:00.000000Z")
