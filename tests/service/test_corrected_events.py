"""Events as they come, corrected by the latest recalibration: exactly once, and by the window that each one names."""

import json
import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.arrays import Matrix
from monitor.commands.streams import opened
from monitor.errors import ConfigurationError
from monitor.events.checks import Scored
from monitor.events.decoding import Decoder
from monitor.labels.values import Awaited
from monitor.priors import bayes
from monitor.recalibration import Cause, Recalibration, Validity, identity
from monitor.recalibration.applying import corrected_row
from monitor.recalibration.decoding import decoded
from monitor.service.corrected_events import messages
from monitor.service.live_correction import Correcting
from monitor.service.loop import Pace, Service
from monitor.service.publishing import Watched
from monitor.settings.config import load
from monitor.state import InForce, Known
from monitor.state.in_force import after as in_force_after
from monitor.windows import Streams, Window
from tests.marks import in_chaos
from tests.processes import started, wait_until
from tests.service.regression_streams import reference as regression_reference
from tests.service.streams import ONLY_MIX, SECOND_MS, START_MS, reference, scores
from tests.service.test_loop import BAD, MINUTES, SECOND, RefusingSink, after

EVENTS = 1_200
QUIET = 600
"""So many events until the mix moves."""
WATCHED = Watched(
    reference(), replace(MINUTES, size=120 * SECOND, slide=120 * SECOND), corrected="live", declared=ONLY_MIX
)


def records(events: int = EVENTS, moved: int = QUIET) -> list[bytes]:
    """One event a second; the class mix moves far in the middle."""
    before, _ = scores(moved, 0.3, seed=5)
    rest, _ = scores(events - moved, 0.8, seed=6)
    return [
        json.dumps({"stream": "s", "id": f"e{n}", "timestamp": START_MS + n * SECOND_MS, "posteriors": row}).encode()
        for n, row in enumerate([*before.tolist(), *rest.tolist()])
    ]


def run(
    source: MemorySource, sink: MemorySink, stop: Callable[[], bool] = lambda: False, watched: Watched = WATCHED
) -> None:
    decoder = Decoder([reference().schema], identified=["s"])
    Service({"s": watched}, decoder, source, sink, pace=Pace(poll=0.0)).run(stop)


def events_in(log: MemoryLog) -> list[dict[str, object]]:
    return [json.loads(value) for value in log.values("events")]


def recalibrations_in(lines: Sequence[bytes]) -> dict[str, dict[str, object]]:
    tables = [json.loads(line) for line in lines]
    return {table["validity"]["window"]: table for table in tables}


def assert_corrected_by_the_window_they_name(
    events: Sequence[Mapping[str, object]], recalibrations: Mapping[str, Mapping[str, object]]
) -> None:
    for event in events:
        before, found = (list(event[name].values()) for name in ("original", "posteriors"))  # type: ignore[attr-defined]
        assert event["corrected"] == (event["window"] is not None)
        if event["window"] is None:
            assert found == before
        else:
            one = recalibrations[event["window"]]  # type: ignore[index]
            assert one["apply"]
            assert one["calibration"] is not None
            assert found == pytest.approx(corrected_row(before, decoded(one)), rel=1e-9)


@settings(deadline=None, max_examples=8)
@given(batch=st.integers(7, 400), stops=st.lists(st.integers(1, 12), max_size=3))
def test_every_event_comes_once_corrected_by_a_window_that_was_published_before_it(
    batch: int, stops: list[int]
) -> None:
    log = MemoryLog()
    partitions = {"p": [*records()[:300], BAD, b"{", *records()[300:]]}
    for turns in stops:
        run(MemorySource(partitions, batch=batch), MemorySink(log), after(turns))
    run(MemorySource(partitions, batch=batch), MemorySink(log))
    events = events_in(log)
    assert [event["id"] for event in events] == [f"e{n}" for n in range(EVENTS)]
    assert_corrected_by_the_window_they_name(events, recalibrations_in(log.values("recalibrations")))
    published: set[object] = {None}
    for message in log.messages:
        if message.channel == "recalibrations":
            published.add(json.loads(message.value)["validity"]["window"])
        elif message.channel == "events":
            assert json.loads(message.value)["window"] in published


def test_a_shift_is_corrected_from_the_window_after_it_on_and_also_after_a_restart() -> None:
    log, whole = MemoryLog(), records()
    run(MemorySource({"p": whole}, batch=60), MemorySink(log), after(19))
    stopped = events_in(log)
    assert stopped[-1]["corrected"]
    run(MemorySource({"p": whole}, batch=60), MemorySink(log))
    events = events_in(log)
    first = next(n for n, event in enumerate(events) if event["corrected"])
    assert QUIET < first <= QUIET + 200
    # Not one event waits for a new window after the restart, although the service knew nothing by itself.
    assert all(event["corrected"] for event in events[first:])
    assert len({event["window"] for event in events[len(stopped) : len(stopped) + 60]}) == 1


def test_what_a_refused_commit_would_have_published_is_not_published_and_corrects_nothing() -> None:
    sink = RefusingSink()
    run(MemorySource({"p": records()}, batch=60), sink)
    published = recalibrations_in(sink.log.values("recalibrations"))
    assert {event["window"] for event in events_in(sink.log)} <= {None, *published}


def test_labelled_copies_of_earlier_events_are_no_events(tmp_path: Path) -> None:
    awaited = Awaited(wait=600 * SECOND, most=10_000, store=tmp_path / "labels.sqlite")
    watched = replace(WATCHED, plan=replace(MINUTES, lateness=0), awaited=awaited)
    scored = records()[:400]
    copies = [json.dumps({**json.loads(record), "label": "no"}).encode() for record in scored[:390]]
    log = MemoryLog()
    run(MemorySource({"p": [*scored, *copies]}, batch=100), MemorySink(log), watched=watched)
    assert [event["id"] for event in events_in(log)] == [f"e{n}" for n in range(400)]


# What is in force, window by window.

SURE = Cause.PRIOR_SHIFT
UNSURE = Cause.WITHIN_CHANCE


def said(window: int, yes: float, cause: Cause = SURE, version: str = reference().version) -> Recalibration:
    plain = identity(("no", "yes"), (0.7, 0.3), Validity("s", "", f"w{window}", window, window + 1, version), cause)
    applied = {"multipliers": ((1 - yes) / 0.7, yes / 0.3), "apply": True} if cause == SURE else {}
    return replace(plain, target_priors=(1 - yes, yes), **applied)


def correcting(*course: Recalibration) -> Correcting:
    """After these were published."""
    state, version = InForce(), reference().version
    for one in course:
        state = in_force_after(state, one)
    return Correcting({"s": WATCHED}, lambda _: Known(version, states={"in-force": state}))


def corrected_after(*course: Recalibration) -> tuple[str | None, Matrix]:
    """Which window corrects an event after these were published, and what becomes of its posteriors."""
    rows = Window(np.array([[0.6, 0.4]]), timestamps=np.array([0]))
    (message,) = correcting(*course).corrected([(Scored(np.array([0]), rows, Streams(("s",))), np.array([True]))])
    event = json.loads(message.value)
    return event["window"], np.array([list(event["posteriors"].values())])


@pytest.mark.parametrize(
    ("course", "window", "yes"),
    [
        ([], None, 0.3),
        ([said(1, 0.6)], "w1", 0.6),
        ([said(1, 0.6), said(2, 0.7)], "w2", 0.7),
        ([said(1, 0.6), said(2, 0.55, UNSURE)], "w1", 0.6),
        ([said(1, 0.6), said(2, 0.55, UNSURE), said(3, 0.55, UNSURE)], "w1", 0.6),
        ([said(1, 0.6), said(2, 0.32, UNSURE)], None, 0.3),
        ([said(1, 0.6), said(2, 0.6, Cause.OTHER_SHIFT)], None, 0.3),
        (
            [said(1, 0.6), said(2, 0.6).withheld(Cause.LABELS_DISAGREE, "labels show that the estimate was off")],
            None,
            0.3,
        ),
    ],
)
def test_a_correction_stays_until_a_window_contradicts_it(
    course: list[Recalibration], window: str | None, yes: float
) -> None:
    named, found = corrected_after(*course)
    assert named == window
    assert found == pytest.approx(bayes.correct([[0.6, 0.4]], [0.7, 0.3], [1 - yes, yes]), rel=1e-12)


def test_what_was_in_force_for_another_reference_corrects_nothing() -> None:
    known = Known("another model", states={"in-force": in_force_after(InForce(), said(1, 0.6))})
    rows = Window(np.array([[0.6, 0.4]]), timestamps=np.array([0]))
    live = Correcting({"s": WATCHED}, lambda _: known)
    (message,) = live.corrected([(Scored(np.array([0]), rows, Streams(("s",))), np.array([True]))])
    assert json.loads(message.value)["window"] is None


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.none(), min_size=1, max_size=20))
def test_whatever_its_id_each_event_is_one_line(ids: list[str | None]) -> None:
    names = np.empty(len(ids), dtype=np.object_)
    names[:] = ids
    rows = Window(np.full((len(ids), 2), 0.5), timestamps=np.arange(len(ids)), ids=names)
    classes = ("a b", "\u2028")
    found = list(messages(rows, (), identity(classes, []), stream="s", corrected=False, window=None))
    assert [msgspec.json.decode(one.value)["id"] for one in found] == ids
    assert all(tuple(msgspec.json.decode(one.value)["original"]) == classes for one in found)


def test_a_hundred_thousand_events_take_less_than_a_second() -> None:
    posteriors, _ = scores(100_000, 0.3, seed=1)
    names = np.array([f"event-{n}" for n in range(100_000)], dtype=np.object_)
    rows = Window(posteriors, timestamps=np.arange(100_000), ids=names)
    live = correcting(said(1, 0.6))
    best = np.inf
    for _ in range(3):
        began = time.process_time()
        count = sum(
            1 for _ in live.corrected([(Scored(np.arange(100_000), rows, Streams(("s",))), np.ones(100_000, bool))])
        )
        best = min(best, time.process_time() - began)
    assert count == 100_000
    assert best < 1.0


# As a user has it: a configuration, files, and SIGKILL.

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
follow = true

[sink]
url = "jsonl:results.jsonl"
recalibrations = "recalibrations.jsonl"
events = "corrected.jsonl"

[pace]
workers = 0

[streams.s]
reference = "s.ref"
window = { size = "2m", lateness = "0s" }
may = "change-mix"
corrected = "live"
"""


@pytest.mark.parametrize("kills", [range(5, 6), in_chaos(range(5, 25, 2))], ids=len)
def test_a_run_that_is_killed_again_and_again_corrects_each_event_once_and_goes_on_correcting(
    tmp_path: Path, kills: range
) -> None:
    size, rng = 250, random.Random(3)
    whole = records((kills[-1] + 2) * size)
    reference().save(tmp_path / "s.ref")
    (tmp_path / "shiftwatch.toml").write_text(CONFIGURATION, encoding="utf-8")
    (tmp_path / "events.jsonl").touch()
    corrected = tmp_path / "corrected.jsonl"

    def corrected_events() -> int:
        return corrected.read_bytes().count(b"\n") if corrected.exists() else 0

    process = started(tmp_path, "shiftwatch.toml")
    for part in range(len(whole) // size):
        with (tmp_path / "events.jsonl").open("ab") as file:
            file.writelines(record + b"\n" for record in whole[part * size : (part + 1) * size])
        if part in kills:
            time.sleep(rng.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            process = started(tmp_path, "shiftwatch.toml")
        wanted = (part + 1) * size
        wait_until(lambda: corrected_events() >= wanted or process.poll() is not None, "corrected events")  # noqa: B023
        assert process.poll() is None
    process.terminate()
    process.communicate(timeout=30)
    events = [json.loads(line) for line in corrected.read_bytes().splitlines()]
    assert [event["id"] for event in events] == [f"e{n}" for n in range(len(whole))]
    recalibrations = recalibrations_in((tmp_path / "recalibrations.jsonl").read_bytes().splitlines())
    assert_corrected_by_the_window_they_name(events, recalibrations)
    first = next(n for n, event in enumerate(events) if event["corrected"])
    assert first < kills[0] * size
    assert all(event["corrected"] for event in events[first:])


@pytest.mark.parametrize(
    ("without", "complaint"),
    [("recalibrations", "wants `recalibrations` in [sink]"), ("events", "wants `events` in [sink]")],
)
def test_live_correction_asks_for_what_it_needs(tmp_path: Path, without: str, complaint: str) -> None:
    lines = [line for line in CONFIGURATION.splitlines() if not line.startswith(f"{without} =")]
    (tmp_path / "shiftwatch.toml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path / "shiftwatch.toml")
    assert caught.value.problems == (f'configuration: streams.s: `corrected = "live"` {complaint}',)


def test_live_correction_asks_for_a_sink_that_keeps_states(tmp_path: Path) -> None:
    text = CONFIGURATION.replace('url = "jsonl:results.jsonl"', 'url = "kafka://localhost:9092/results"\ngroup = "g"')
    (tmp_path / "shiftwatch.toml").write_text(text, encoding="utf-8")
    (tmp_path / "events.jsonl").touch()
    reference().save(tmp_path / "s.ref")
    with pytest.raises(ConfigurationError, match="live correction wants a sink that keeps `states`"):
        opened(load(tmp_path / "shiftwatch.toml"), tmp_path)


@pytest.mark.parametrize("corrected", ["window", "live"])
def test_a_regression_stream_can_be_corrected(tmp_path: Path, corrected: str) -> None:
    regression_reference().save(tmp_path / "s.ref")
    text = CONFIGURATION.replace('"live"', f'"{corrected}"').replace('may = "change-mix"\n', "")
    (tmp_path / "shiftwatch.toml").write_text(text, encoding="utf-8")
    (tmp_path / "events.jsonl").touch()
    _, _, watched = opened(load(tmp_path / "shiftwatch.toml"), tmp_path)
    assert watched["s"].corrected == corrected
