"""What is known over windows: the same after any restart, refused where it cannot be read, bounded, and told."""

import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink
from monitor.assessment.to_message import sketches_part
from monitor.errors import ConnectorError
from monitor.limits import SEGMENT_TRACKS
from monitor.observers import Track
from monitor.ports import Checkpoint
from monitor.recalibration import Cause
from monitor.reference.classifier import Reference
from monitor.service.stream_states import StreamStates
from monitor.state import (
    CONCERNS,
    WINDOWS,
    Advanced,
    AlarmState,
    AnyConcern,
    Changed,
    Concern,
    Seen,
    StatePlan,
    WindowSeen,
    concerns_of,
)
from tests.service import streams
from tests.state.windows import STREAMS, Told, seen, seen_under


def taken_up(log: MemoryLog, concerns: Sequence[AnyConcern]) -> tuple[StreamStates, MemorySink]:
    sink = MemorySink(log)
    states = StreamStates({"s": concerns}, sink)
    states.begin()
    return states, sink


def committed(states: StreamStates, sink: MemorySink, windows: Sequence[Seen]) -> None:
    """Several windows in one commit."""
    changed: Changed = {}
    for window in windows:
        for message in states.advance(window, changed)[1]:
            sink.write(message)
    for message in states.records(changed):
        sink.write(message)
    sink.commit(Checkpoint())
    states.committed(changed)


def last_of_each_key(log: MemoryLog) -> dict[bytes, bytes]:
    return {message.key: message.value for message in log.messages if message.channel == "states"}


def states_of(states: StreamStates) -> dict[str, tuple[object, ...]]:
    """By segment."""
    return {
        segment: (known.reference, known.until, known.states, [reading.key for reading in known.entries(WINDOWS)])
        for segment, known in states.all()["s"].items()
    }


def run(windows: Sequence[Seen], concerns: Sequence[AnyConcern], cuts: Sequence[int] = ()) -> MemoryLog:
    """All windows, with a restart at each of the cuts."""
    log, ends = MemoryLog(), [*sorted(cuts), len(windows)]
    for start, end in zip([0, *ends], ends, strict=False):
        states, sink = taken_up(log, concerns)
        committed(states, sink, windows[start:end])
    return log


@settings(max_examples=20, deadline=None)
@given(told=st.sampled_from(STREAMS), cuts=st.lists(st.integers(0, 30), max_size=6))
def test_any_cut_of_the_windows_into_runs_gives_the_same_states_and_bytes(told: Told, cuts: list[int]) -> None:
    concerns, story = told.concerns, told.story()
    whole, cut = run(story, concerns), run(story, concerns, [min(place, len(story)) for place in cuts])
    assert last_of_each_key(cut) == last_of_each_key(whole)
    assert states_of(taken_up(cut, concerns)[0]) == states_of(taken_up(whole, concerns)[0])
    assert last_of_each_key(whole)


@pytest.mark.parametrize("told", STREAMS, ids=lambda told: told.plan.changes)
def test_what_is_taken_up_is_what_was_known_in_the_same_order(told: Told) -> None:
    states, sink = taken_up(MemoryLog(), told.concerns)
    committed(states, sink, told.story())
    again, _ = taken_up(sink.log, told.concerns)
    assert states_of(again) == states_of(states)
    for segment, known in states.all()["s"].items():
        restored = again.of("s", segment).entries(WINDOWS)
        assert [list(one.tests) for one in restored] == [list(one.tests) for one in known.entries(WINDOWS)]


def test_what_a_refused_commit_held_is_taken_back() -> None:
    concerns = concerns_of(StatePlan(1, 1), streams.reference())
    states, sink = taken_up(MemoryLog(), concerns)
    committed(states, sink, [seen(1)])
    before = states_of(states)
    states.advance(seen(2, 0.6), {})
    assert states.of("s").state(AlarmState).alarm
    states.refused()
    assert states_of(states) == before


def test_only_what_has_advanced_is_written() -> None:
    concerns = concerns_of(StatePlan(), streams.reference())
    states, sink = taken_up(MemoryLog(), concerns)
    committed(states, sink, [seen(1), seen(1, segment="country=BE")])
    written = len(sink.log.values("states"))
    committed(states, sink, [seen(2), seen(3)])
    heads = [json.loads(message.key) for message in sink.log.messages[written:] if len(json.loads(message.key)) == 2]
    assert heads == [["s", ""]]


def test_a_segment_that_was_not_seen_for_longest_is_let_go_after_a_restart_too() -> None:
    concerns = concerns_of(StatePlan(), streams.reference())
    windows: list[WindowSeen] = [seen(1, segment="country=BE", events=20), seen(1, events=20)]
    windows += [seen(2 + number, segment=f"country={number}", events=20) for number in range(SEGMENT_TRACKS)]
    log = run(windows, concerns, cuts=[20])
    kept = taken_up(log, concerns)[0].all()["s"]
    assert len(kept) == SEGMENT_TRACKS + 1 - 1
    assert "country=BE" not in kept
    assert "" in kept


def other_reference() -> Reference:
    posteriors, labels = streams.scores(2_000, 0.3, seed=77)
    return Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s")


def test_a_new_reference_is_said_with_what_begins_anew_and_what_goes_on() -> None:
    reference = other_reference()
    concerns = (*concerns_of(StatePlan(2, 2), reference), counting())
    log = run([seen(1, 0.6), seen(2, 0.6)], concerns)
    states, sink = taken_up(log, concerns)
    assert states.of("s").state(AlarmState).alarm
    committed(states, sink, [seen_under(reference, 3, 0.6), seen_under(reference, 4, 0.3)])
    said = [json.loads(value) for value in log.values("results")]
    assert len(said) == 1
    assert said[0]["schema"] == "shiftwatch.continuity.v1"
    assert said[0]["window"] == "s//3/4"
    assert (said[0]["before"], said[0]["now"]) == (streams.reference().version, reference.version)
    assert said[0]["concerns"]["alarms"] == "begins anew"
    assert said[0]["concerns"]["counting"] == "goes on"
    assert len(states.of("s").state(AlarmState).flags) == 2
    assert states.of("s").state(Count).windows == 4


class Count(msgspec.Struct, frozen=True):
    windows: int = 0


class CountBefore(msgspec.Struct, frozen=True):
    """What the release before wrote."""

    seen: int = 0


def counting(version: int = 1, entries: int = 0) -> Concern[Count]:
    """A concern as its author writes it; its second version reads the first."""

    def advance(state: Count, what: Seen) -> Advanced[Count]:
        return Advanced(Count(state.windows + 1), entry=Count(state.windows + 1) if entries else None)

    earlier = {1: lambda raw: Count(msgspec.json.decode(raw, type=CountBefore).seen)} if version == 2 else {}
    return Concern(
        "counting", version, Count, advance, new_reference="goes on", earlier=earlier, entries=entries, entry=Count
    )


def counting_before() -> Concern[CountBefore]:
    return Concern("counting", 1, CountBefore, lambda state, _: Advanced(CountBefore(state.seen + 1)), "goes on")


def test_a_state_of_the_version_before_is_migrated_and_a_newer_one_is_refused_in_words() -> None:
    log = run([seen(1), seen(2)], [counting_before()])
    states, _ = taken_up(log, [counting(version=2)])
    assert states.of("s").state(Count) == Count(2)
    newer = run([seen(1)], [replace(counting(), version=3)])
    with pytest.raises(ConnectorError, match="stream s: counting was written in version 3, this release reads 1, 2"):
        taken_up(newer, [counting(version=2)])


def test_a_concern_that_is_new_begins_and_one_that_is_gone_is_left_out() -> None:
    log = run([seen(1)], concerns_of(StatePlan(), streams.reference()))
    states, sink = taken_up(log, [counting()])
    committed(states, sink, [seen(2)])
    assert states.of("s").state(Count) == Count(1)
    assert set(states.of("s").states) == {"counting"}


def test_the_last_entries_are_remembered_each_under_a_key_of_its_own() -> None:
    concerns = [counting(entries=3)]
    log = run([seen(number) for number in range(8)], concerns, cuts=[2, 5])
    assert len(last_of_each_key(log)) == 1 + 3
    ring = taken_up(log, concerns)[0].of("s").rings["counting"]
    assert ring.entries == (Count(6), Count(7), Count(8))
    assert ring.count == 8


def withholding() -> Concern[Count]:
    """Corrects nothing in the second window, and looks at events."""

    def advance(state: Count, what: Seen) -> Advanced[Count]:
        if not isinstance(what, WindowSeen):
            return Advanced(state)
        refused = what.recalibration.withheld(Cause.LABELS_DISAGREE, f"{what.examined['withholding']} events")
        second = state.windows == 1
        return Advanced(Count(state.windows + 1), seen=replace(what, feed=refused) if second else None)

    return Concern(
        "withholding", 1, Count, advance, new_reference="goes on", examine=lambda window, _: int(window.events)
    )


def test_what_one_concern_makes_of_a_window_is_what_later_ones_the_feed_and_observers_see() -> None:
    heard: list[str] = []

    def hear(state: Count, what: Seen) -> Advanced[Count]:
        if isinstance(what, WindowSeen):
            heard.append(what.recalibration.reason)
        return Advanced(state)

    concerns = [withholding(), Concern("hearing", 1, Count, hear, new_reference="goes on")]
    states, _ = taken_up(MemoryLog(), concerns)
    for number, window in enumerate([seen(1, 0.6), seen(2, 0.6), seen(3, 0.6)]):
        before = replace(window, examined={"withholding": 400})
        after, _ = states.advance(before, {})
        assert after.assessment is before.assessment
        assert after.recalibration.apply == (number != 1)
        assert heard[-1] == after.recalibration.reason
    assert heard[1] == "400 events"


def test_a_record_that_was_changed_or_is_none_of_ours_is_refused_in_words() -> None:
    log = run([seen(1)], [counting()])
    at = next(number for number, message in enumerate(log.messages) if message.channel == "states")
    good = log.messages[at]
    log.messages[at] = replace(good, value=good.value.replace(b'"windows":1', b'"windows":7'))
    with pytest.raises(ConnectorError, match="does not have the checksum"):
        taken_up(log, [counting()])


def test_every_concern_has_a_name_of_its_own_and_a_state_that_begins_by_itself() -> None:
    made = [concern for told in STREAMS for concern in told.concerns]
    assert len({concern.name for concern in made}) == len(CONCERNS)
    for concern in made:
        assert msgspec.json.decode(msgspec.json.encode(concern.state()), type=concern.state) == concern.state()


def test_the_sketches_of_the_last_windows_are_there_after_a_restart() -> None:
    windows = [seen(number) for number in range(1, 4)]
    concerns = concerns_of(StatePlan(remembered=2), streams.reference())
    known = taken_up(run(windows, concerns), concerns)[0].of("s")
    track = Track(known, assessed_at=0.0)
    assert track.sketches(windows[0].window.key.id) is None, "only so many are remembered"
    for window in windows[1:]:
        assert track.sketches(window.window.key.id) == sketches_part(window.assessment.sketches)
