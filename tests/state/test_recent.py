"""The recent normal as a concern: what it changes of a result, that alarms follow it, and that a restart goes on."""

from functools import cache

import httpx
import msgspec

from connectors.memory import MemorySink
from monitor.assessment import RecentNormal, Verdict, encode
from monitor.assessment.message import WindowResult
from monitor.observers.history import History
from monitor.observers.metrics import families
from monitor.observers.snapshot import facts
from monitor.reference.classifier import Reference
from monitor.service.loop import Clock
from monitor.service.publishing import Watched
from monitor.service.stream_states import StreamStates
from monitor.settings import ServerSettings
from monitor.state import AlarmState, StatePlan, advance, concerns_of
from monitor.state.records import read, states_record
from monitor.web.page.document import document
from monitor.web.server import serving
from monitor.windows.by_count import CountPlan
from tests.assessment.test_recent_normal import reference
from tests.state.windows import HOUR, Shown, hours

PLAN = StatePlan(windows=2, of=3)


@cache
def known() -> Reference:
    """A reference that knows time."""
    return reference()


def test_alarms_follow_the_recent_normal_and_the_reference_stays_a_state() -> None:
    states = StreamStates({"s": concerns_of(PLAN, known())}, MemorySink())
    alarms, published = [], []
    for seen in hours(30, change_at=10):
        told, _ = states.advance(seen, {})
        result = msgspec.json.decode(told.result_message, type=WindowResult)
        published.append(result)
        # What windows say together stands in the message alone.
        assert encode(msgspec.structs.replace(result, volume=None, smoothed=None)) == told.assessment.to_json()
        alarms.append(states.of("s").state(AlarmState))
    assert any(one.alarm for one in alarms[10:14])
    assert not any(one.alarm for one in alarms[20:])
    assert published[10].baselines["recent"].verdict.moved
    assert "x1" in published[10].baselines["recent"].moved
    assert published[25].baselines["recent"].verdict is Verdict.STABLE
    assert published[25].verdict is published[25].baselines["reference"].verdict is not Verdict.STABLE
    assert alarms[-1].since == 11 * HOUR
    assert "x1" in alarms[-1].by
    assert alarms[5].since == 0


def drifted() -> History:
    """A history of windows after a change of regime."""
    watched = Watched(known(), CountPlan(250))
    history = History({"s": facts("s", watched)}, clock=Clock(now=lambda: 15 * 3_600_000_000, elapsed=lambda: 0.0))
    shown = Shown("s", watched.concerns, history)
    for seen in hours(14, change_at=4):
        shown.show(seen)
    return history


def test_metrics_page_and_api_tell_both_baselines() -> None:
    history = drifted()
    samples = {
        (sample.name, sample.labels.get("verdict")): sample.value
        for family in families(history.snapshot, history.now())
        for sample in family.samples
    }
    assert samples["shiftwatch_recent_verdict", "stable"] == 1
    assert samples["shiftwatch_verdict", "stable"] == 0
    assert samples["shiftwatch_reference_left_timestamp_seconds", None] == 5 * 3_600
    page = document(history.snapshot, history.now())
    assert "Against recent windows" in page
    assert "not as in the reference" in page
    with serving(ServerSettings(port=0), history) as url, httpx.Client(base_url=url) as client:
        [told] = client.get("/api/streams").json()
    assert told["alarm"]["reference_left"]["since"].startswith("1970-01-01T05:00")
    assert told["latest"]["recent"]["verdict"] == "stable"


def test_a_restart_goes_on_where_the_normal_stood() -> None:
    concerns = concerns_of(PLAN, known())
    states = StreamStates({"s": concerns}, MemorySink())
    seen = list(hours(12, change_at=8))
    for one in seen[:6]:
        states.advance(one, {})
    record = states_record(("s", ""), states.of("s"), concerns).value
    assert len(record) < 60_000
    again = read([record], {"s": concerns})["s", ""]
    assert again.state(RecentNormal) == states.of("s").state(RecentNormal)
    known_again = again
    for one in seen[6:]:
        states.advance(one, {})
        known_again = advance(known_again, concerns, one).known
    assert known_again.state(RecentNormal) == states.of("s").state(RecentNormal)


def test_a_reference_without_blocks_has_no_recent_normal() -> None:
    names = {concern.name for concern in concerns_of(PLAN, reference(cut_up=False))}
    assert "recent" not in names
