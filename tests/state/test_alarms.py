"""What windows say one after another: alarms that persist, changes of level, and a memory that is bounded."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.memory import MemorySink
from monitor.commands.run import watch
from monitor.errors import ConfigurationError, InputError
from monitor.limits import SEGMENT_TRACKS
from monitor.observers.history import History
from monitor.observers.snapshot import facts
from monitor.service.publishing import Watched
from monitor.service.stream_states import StreamStates
from monitor.settings.config import load
from monitor.state import AlarmState, ChangeState, StatePlan, concerns_of
from monitor.state.alarms import persistent
from monitor.windows.by_count import CountPlan
from monitor.windows.window import Window, WindowKey
from tests.service import streams
from tests.state.windows import assessed


class Told:
    """A stream's windows, and what is known with each of them."""

    def __init__(self, plan: StatePlan) -> None:
        self.plan = plan
        self.states = StreamStates({"s": concerns_of(plan, streams.reference())}, MemorySink())
        self.alarms: list[AlarmState] = []
        self.changes: list[ChangeState] = []
        self.number = 0

    def window(self, positives: float, events: int = 500, segment: str = "") -> AlarmState:
        self.number += 1
        g, _ = streams.scores(events, positives, seed=self.number)
        window = replace(Window.of(g), key=WindowKey("s", segment, self.number, self.number + 1))
        self.states.advance(assessed(window, streams.reference(), self.plan), {})
        known = self.states.of("s", segment)
        self.alarms.append(known.state(AlarmState))
        self.changes.append(known.state(ChangeState))
        return self.alarms[-1]


def test_an_alarm_persists_when_k_of_the_last_m_windows_have_it() -> None:
    assert persistent([True, False, True], 2, 3)
    assert not persistent([True, True, False, False, False], 2, 3)
    assert not persistent([], 1, 3)
    with pytest.raises(InputError):
        persistent([True], 4, 3)


def test_one_odd_window_raises_no_alarm_two_of_three_do_and_calm_ones_end_it() -> None:
    told = Told(StatePlan(2, 3))
    for positives in (0.3, 0.6, 0.3, 0.3, 0.6, 0.6, 0.6, 0.3, 0.3):
        told.window(positives)
    assert [one.alarm for one in told.alarms] == [False] * 5 + [True, True, True, False]
    assert [one.turned for one in told.alarms] == [False] * 5 + [True, False, False, True]
    assert [len(one.flags) for one in told.alarms[:4]] == [1, 2, 3, 3]


def test_windows_with_too_few_events_neither_raise_nor_end_an_alarm() -> None:
    told = Told(StatePlan(1, 1))
    told.window(0.6)
    assert told.window(0.3, events=20).alarm
    assert not told.window(0.3).alarm


def test_segments_have_alarms_of_their_own_and_those_not_seen_for_longest_are_forgotten() -> None:
    told = Told(StatePlan(1, 1))
    assert told.window(0.6, segment="country=BE").alarm
    assert not told.window(0.3).alarm
    assert told.window(0.3, events=20, segment="country=BE").alarm
    for number in range(SEGMENT_TRACKS):
        told.window(0.3, events=20, segment=f"country={number}")
    assert not told.window(0.3, events=20, segment="country=BE").alarm


@pytest.mark.parametrize("detector", ["adwin", "page-hinkley"])
def test_a_creeping_change_is_found_once_and_named(detector: str) -> None:
    told = Told(StatePlan(2, 3, detector))
    for _ in range(40):
        told.window(0.3)
    assert not any(one.last for one in told.changes)
    for _ in range(30):
        told.window(0.55)
    found = [one for one in told.changes if one.last]
    assert found
    assert set(found[0].last) == {"share of yes"}
    assert found[0].detector == detector


def test_windows_too_small_to_tell_show_a_prior_shift_together() -> None:
    told = Told(StatePlan(2, 3, "prior-shift"))
    for _ in range(10):
        told.window(0.3, events=300)
    assert not any(one.last for one in told.changes)
    for _ in range(8):
        told.window(0.45, events=300)
    assert ("class mix",) in [one.last for one in told.changes]


CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
[sink]
url = "jsonl:results.jsonl"
[pace]
workers = 0
[streams.s]
reference = "s.ref"
window = { count = 500 }
alarm = { windows = 2, of = 2 }
changes = "adwin"
"""


def test_the_service_tells_of_alarms_in_its_history_and_its_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    streams.reference().save(tmp_path / "s.ref")
    records = streams.lines(1_000, 0.3, seed=3) + streams.lines(1_500, 0.7, seed=4)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(one for one in records if one) + b"\n")
    (tmp_path / "watch.toml").write_text(CONFIGURATION, encoding="utf-8")
    watched = {"s": Watched(streams.reference(), CountPlan(500))}
    history = History({"s": facts("s", watched["s"])})
    with caplog.at_level(logging.INFO, "shiftwatch"):
        assert watch(load(tmp_path / "watch.toml"), tmp_path, [history])
    assert history.snapshot.tracks["s"][""].alarm.alarm
    assert "alarm" in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("alarm = { windows = 4, of = 3 }", "want `windows` from 1 to `of`"),
        ("alarm = { windows = 0, of = 3 }", "want `windows` from 1 to `of`"),
        ('changes = "adwim"', "did you mean 'adwin'"),
    ],
)
def test_settings_that_make_no_sense_are_named(tmp_path: Path, line: str, complaint: str) -> None:
    text = CONFIGURATION.replace("alarm = { windows = 2, of = 2 }\n", "").replace('changes = "adwin"\n', "") + line
    (tmp_path / "watch.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=complaint):
        load(tmp_path / "watch.toml")
