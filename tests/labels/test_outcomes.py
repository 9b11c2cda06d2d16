"""Outcomes: the same whatever the batching, the partitions and the crashes; and right."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.errors import CommitRefusedError
from monitor.events.decoding import Decoder
from monitor.labels.values import Awaited
from monitor.observers import History, facts
from monitor.ports import Checkpoint, Progress, Reassignment
from monitor.reference.classifier import Reference
from monitor.service.loop import Pace, Service
from monitor.service.notices import Observer
from monitor.service.publishing import Watched
from monitor.windows.assembly import Plan
from monitor.windows.by_count import CountPlan
from monitor.windows.by_time import TimePlan
from tests.labels.streams import Feedback, told
from tests.service.streams import ONLY_MIX, SECOND_MS, START_MS, reference, scores
from tests.service.test_loop import after

SECOND = 1_000_000
MINUTES = TimePlan(size=60 * SECOND, slide=60 * SECOND, lateness=10 * SECOND, most=10_000)
FEEDBACK = Feedback()
OF_COUNTRIES = Feedback(segments=True)


class Crash(BaseException):
    """The process is gone: nothing after this line happens."""


class Crashing(MemorySink):
    """Crashes at one of its commits, before or after it has taken effect."""

    def __init__(self, log: MemoryLog, commits: int, published: bool) -> None:
        super().__init__(log)
        self._left = commits
        self._published = published

    def commit(self, checkpoint: Checkpoint) -> None:
        self._left -= 1
        if self._left == 0 and not self._published:
            raise Crash
        super().commit(checkpoint)
        if self._left == 0:
            raise Crash


def service(
    partitions: dict[str, list[bytes | None]],
    sink: MemorySink,
    store: Path,
    *,
    batch: int = 50,
    plan: Plan = MINUTES,
    wait: int = 60 * SECOND,
    most: int = 1_000_000,
    pace: Pace = Pace(poll=0.0, commit=0.01),
    source: MemorySource | None = None,
    compared: Reference | None = None,
    observers: Sequence[Observer] = (),
    segments: bool = False,
) -> Service:
    """With segments the two biggest countries of a window are watched apart, and the others together."""
    compared = compared or reference()
    awaited = Awaited(wait=wait, most=most, store=store)
    watched = {"s": Watched(compared, plan, awaited=awaited, most_segments=2, declared=ONLY_MIX)}
    decoder = Decoder([compared.schema], identified=["s"], segments={"s": ["country"] if segments else []})
    return Service(
        watched, decoder, source or MemorySource(partitions, batch=batch), sink, observers=observers, pace=pace
    )


def results(partitions: dict[str, list[bytes | None]], **options: Any) -> list[bytes]:
    with TemporaryDirectory() as folder:
        sink = MemorySink()
        service(partitions, sink, Path(folder) / "labels.sqlite", **options).run()
        return sink.log.values("results")


@cache
def uninterrupted(plan: Plan, *, segments: bool = False) -> list[bytes]:
    """One record at a time, and no crash."""
    feedback = OF_COUNTRIES if segments else FEEDBACK
    return results(feedback.together, batch=1, plan=plan, pace=Pace(poll=0.0), segments=segments)


def outcomes_in(values: list[bytes]) -> list[dict[str, Any]]:
    tables = [json.loads(value) for value in values]
    return [table for table in tables if table["schema"] == "shiftwatch.outcome.v1"]


@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    batch=st.integers(1, 300),
    crashes=st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=4),
    stop=st.integers(0, 6),
    plan=st.sampled_from([MINUTES, TimePlan(60 * SECOND, 20 * SECOND, 10 * SECOND, 10_000), CountPlan(70)]),
    segments=st.booleans(),
)
def test_crashes_anywhere_change_no_byte(
    batch: int, crashes: list[tuple[int, bool]], stop: int, plan: Plan, segments: bool
) -> None:
    records = (OF_COUNTRIES if segments else FEEDBACK).together
    options: dict[str, Any] = {"batch": batch, "plan": plan, "segments": segments}
    with TemporaryDirectory() as folder:
        log, store = MemoryLog(), Path(folder) / "labels.sqlite"
        for commits, published in crashes:
            with suppress(Crash):
                service(records, Crashing(log, commits, published), store, **options).run()
        service(records, MemorySink(log), store, **options).run(after(stop))
        service(records, MemorySink(log), store, **options).run()
    once = uninterrupted(plan, segments=segments)
    assert log.values("results") == once
    assert len(outcomes_in(once)) >= 6


@pytest.mark.parametrize("commits", range(2, 7))
def test_windows_that_a_crash_left_behind_have_no_outcome_before_they_come_again(tmp_path: Path, commits: int) -> None:
    """Count windows of another stream close first, at times at which those outcomes are due."""
    counted = replace(reference(), schema=replace(reference().schema, stream="c"))
    of_s = [each for each in FEEDBACK.together["p"] if each is not None]
    of_c = [each.replace(b'"stream": "s"', b'"stream": "c"') if b"posteriors" in each else None for each in of_s]
    records = [record for pair in zip(of_s, of_c, strict=True) for record in pair if record is not None]

    def run(sink: MemorySink, store: Path, batch: int = 2_000) -> None:
        awaited = Awaited(wait=60 * SECOND, most=1_000_000, store=store)
        watched = {
            "s": Watched(reference(), MINUTES, awaited=awaited, declared=ONLY_MIX),
            "c": Watched(counted, CountPlan(70)),
        }
        decoder = Decoder([reference().schema, counted.schema], identified=["s"])
        pace = Pace(poll=0.0, commit=0.0)
        with suppress(Crash):
            Service(watched, decoder, MemorySource({"p": records}, batch=batch), sink, pace=pace).run()

    def by_kind(log: MemoryLog) -> dict[tuple[str, str], list[bytes]]:
        found: dict[tuple[str, str], list[bytes]] = {}
        for value in log.values("results"):
            said = json.loads(value)
            found.setdefault((said["schema"], said["stream"]), []).append(value)
        return found

    whole, broken = MemoryLog(), MemoryLog()
    run(MemorySink(whole), tmp_path / "whole.sqlite")
    run(Crashing(broken, commits, published=False), tmp_path / "broken.sqlite", batch=150)
    run(MemorySink(broken), tmp_path / "broken.sqlite")
    assert by_kind(broken) == by_kind(whole)
    names = [(said["window"], said["schema"].split(".")[1]) for said in map(json.loads, broken.values("results"))]
    outcomes = [window for window, kind in names if kind == "outcome"]
    assert len(outcomes) >= 6
    assert all(names.index((window, "window")) < names.index((window, "outcome")) for window in outcomes)


def retrained(classes: list[str]) -> Reference:
    """A reference of the same stream with its classes in another order, or with one more."""
    posteriors, labels = scores(2_000, 0.3, 9)
    names = np.array(reference().classes)[labels]
    wide = np.zeros((len(names), len(classes)))
    wide[:, [classes.index(name) for name in reference().classes]] = posteriors
    if len(classes) > 2:
        new = np.arange(len(names)) % 10 == 0
        names = np.where(new, classes[-1], names)
        wide[new] = np.eye(len(classes))[-1]
    return Reference.fit(wide, names, classes=classes, stream="s")


@pytest.mark.parametrize("classes", [["yes", "no"], ["yes", "no", "maybe"]])
def test_labels_and_windows_that_wait_outlive_the_reference(classes: list[str], tmp_path: Path) -> None:
    named = {"p": [_by_name(record, classes) for record in FEEDBACK.together["p"]]}
    half = {"p": named["p"][: len(named["p"]) // 2]}
    if len(classes) > 2:  # the old model's windows cannot know this class
        when = START_MS + 200 * SECOND_MS
        named["p"].insert(len(half["p"]), told("e150", classes[-1], when))
    log, store = MemoryLog(), tmp_path / "labels.sqlite"
    before = {"p": [_by_name(record, ["no", "yes"]) for record in FEEDBACK.together["p"]][: len(half["p"])]}
    with suppress(Crash):
        service(before, Crashing(log, 6, True), store, batch=20, pace=Pace(poll=0.0, commit=0.0)).run()
    service(named, MemorySink(log), store, batch=20, compared=retrained(classes)).run()
    usual = {one["window"]: one for one in outcomes_in(uninterrupted(MINUTES))}
    found = outcomes_in(log.values("results"))
    assert len({one["versions"]["reference"] for one in found}) == 2
    for one in found:
        assert abs(one["labels"]["joined"] - usual[one["window"]]["labels"]["joined"]) <= (len(classes) > 2)
        for name, share in usual[one["window"]]["classes"].items():
            assert one["classes"][name]["realised"] == pytest.approx(share["realised"], abs=0.03)


def test_what_settles_under_a_new_reference_before_its_first_window_is_no_window_to_be_shown(tmp_path: Path) -> None:
    log, store, wait, now = MemoryLog(), tmp_path / "labels.sqlite", 40 * SECOND, retrained(["no", "yes"])
    with suppress(Crash):
        service(FEEDBACK.together, Crashing(log, 3, True), store, batch=20, wait=wait, pace=Pace(commit=0.0)).run()
    before = len(log.values("results"))
    history = History({"s": facts("s", Watched(now, MINUTES))})
    again = service(FEEDBACK.together, MemorySink(log), store, wait=wait, compared=now, observers=[history])
    again.run()
    assert [json.loads(value)["schema"] for value in log.values("results")[before:][:2]] == [
        "shiftwatch.outcome.v1",
        "shiftwatch.window.v1",
    ]
    assert history.snapshot.tracks["s"][""].readings


def _by_name(record: bytes | None, classes: list[str]) -> bytes | None:
    """Posteriors under their names, so that a model with more classes may say them."""
    event = json.loads(record or b"{}")
    if "posteriors" in event:
        event["posteriors"] = dict.fromkeys(classes, 0.0) | dict(zip(("no", "yes"), event["posteriors"], strict=True))
    return json.dumps(event).encode()


@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(batch=st.integers(1, 300), stop=st.integers(0, 6))
def test_labels_in_a_partition_of_their_own_count_the_same(batch: int, stop: int) -> None:
    with TemporaryDirectory() as folder:
        log, store = MemoryLog(), Path(folder) / "labels.sqlite"
        service(FEEDBACK.apart, MemorySink(log), store, batch=batch).run(after(stop))
        service(FEEDBACK.apart, MemorySink(log), store, batch=batch).run()
    assert log.values("results") == results(FEEDBACK.apart, batch=1000)


class Moved(MemorySink):
    """Refuses some commits, as a group does that is moving partitions."""

    def __init__(self, refused: set[int]) -> None:
        super().__init__()
        self._commits = 0
        self._refused = refused
        self.rewind = False

    def commit(self, checkpoint: Checkpoint) -> None:
        self._commits += 1
        if self._commits in self._refused:
            self.recover()
            self.rewind = True
            raise CommitRefusedError("the group is moving partitions")
        super().commit(checkpoint)


class Rewound(MemorySource):
    """Begins again where the last commit was whenever one is refused."""

    def __init__(self, records: dict[str, list[bytes | None]], sink: Moved, batch: int) -> None:
        super().__init__(records, batch=batch)
        self._sink = sink

    def reassigned(self, settle: Callable[[], None]) -> Reassignment | None:
        if not self._sink.rewind:
            return None
        self._sink.rewind = False
        checkpoint = self._sink.recover()
        self.start(checkpoint or Checkpoint({"p": Progress(0)}))
        return Reassignment(frozenset({"p"}), {"p": checkpoint.progress["p"] if checkpoint else None})

    def partitions(self) -> Sequence[str]:
        return ["p"] if self._sink.rewind else super().partitions()


@pytest.mark.parametrize("refused", [{1}, {2, 5}, {3, 4, 5}])
def test_refused_commits_change_no_byte(refused: set[int], tmp_path: Path) -> None:
    sink = Moved(refused)
    source = Rewound(FEEDBACK.together, sink, batch=60)
    service({}, sink, tmp_path / "labels.sqlite", source=source).run()
    assert sink.log.values("results") == uninterrupted(MINUTES)


def test_realised_shares_and_counts_are_those_of_the_labels() -> None:
    feedback = Feedback(events=60, delay=20, copies=0.3)
    (outcome,) = [
        one for one in outcomes_in(results(feedback.together)) if one["start"] == "2025-06-15T15:06:00.000000Z"
    ]
    assert outcome["window"].split("/")[2:] == [str(START_MS * 1000 // MINUTES.size * MINUTES.size), "1750000020000000"]
    first = [name for name in feedback.truth if int(name[1:]) < 20]
    assert outcome["labels"]["joined"] == len(first)
    assert outcome["labels"]["missing"] == 20 - len(first)
    positives = sum(feedback.truth[name] for name in first) / len(first)
    assert outcome["classes"]["yes"]["realised"] == pytest.approx(positives)
    assert outcome["classes"]["yes"]["error"] == pytest.approx(outcome["classes"]["yes"]["estimate"] - positives)


def event(name: str, second: int, positive: float = 0.5, **more: object) -> bytes:
    table = {"stream": "s", "id": name, "timestamp": START_MS + second * SECOND_MS, **more}
    return json.dumps({**table, "posteriors": [1 - positive, positive]}).encode()


def first_outcome(*records: bytes, **options: Any) -> dict[str, Any]:
    """Of the first 20 seconds, when these records are followed by an event that lets everything come due."""
    return outcomes_in(results({"p": [*records, event("last", 1_000)]}, **options))[0]


def label(name: str, word: str, second: int) -> bytes:
    return told(name, word, START_MS + second * SECOND_MS)


def test_the_last_label_holds_and_what_came_before_it_is_counted() -> None:
    outcome = first_outcome(
        event("a", 1),
        event("b", 2),
        label("a", "no", 5),
        label("a", "no", 6),
        label("a", "yes", 7),
        label("x", "no", 8),
    )
    expected = {"joined": 1, "missing": 1, "stateless": 0, "duplicate": 1, "contradicting": 1, "early": 0, "unknown": 1}
    assert outcome["labels"] == expected
    assert outcome["classes"]["yes"]["realised"] == 1


def test_a_label_that_comes_first_is_counted_and_joins() -> None:
    labels = first_outcome(label("a", "yes", 1), event("a", 4))["labels"]
    assert (labels["joined"], labels["early"]) == (1, 1)


def test_a_label_counts_until_the_clock_of_its_partition_passes_the_deadline() -> None:
    """The window ends at second 20, and waits 60 seconds and 10 for stragglers: until second 90."""
    assert first_outcome(event("a", 1), label("a", "yes", 89))["labels"]["joined"] == 1
    assert first_outcome(event("a", 1), label("a", "yes", 90))["labels"]["joined"] == 0
    assert first_outcome(event("a", 1), event("b", 95), label("a", "yes", 60))["labels"]["joined"] == 0


def test_a_late_copy_with_its_label_joins_its_event_and_is_no_late_event() -> None:
    values = results({"p": [event("a", 1), event("b", 50), event("a", 1, label="yes"), event("last", 1_000)]})
    assert outcomes_in(values)[0]["labels"]["joined"] == 1
    windows = [json.loads(value) for value in values if b"window.v1" in value]
    assert [one["events"]["late"] for one in windows] == [0, 0, 0]
    assert [one["events"]["used"] for one in windows] == [1, 1, 1]


def test_a_copy_of_an_event_that_was_never_seen_counts_by_its_own_time_and_posteriors() -> None:
    outcome = first_outcome(event("a", 1), event("b", 50), event("z", 3, 0.9, label="yes"))
    assert (outcome["labels"]["joined"], outcome["labels"]["stateless"], outcome["labels"]["missing"]) == (1, 1, 1)
    assert outcome["brier"]["before"] == pytest.approx(0.01)


def test_a_copy_within_the_lateness_does_not_count_twice() -> None:
    values = results({"p": [event("a", 1), event("a", 1, label="yes"), event("last", 1_000)]})
    assert json.loads(values[0])["events"]["used"] == 1
    assert outcomes_in(values)[0]["labels"]["joined"] == 1


def test_beyond_the_bound_the_oldest_windows_lose_their_events_and_keep_their_outcome() -> None:
    records = [event(f"e{second}", second) for second in range(200)]
    kept = [(one["kept"], one["labels"]["joined"]) for one in outcomes_in(results({"p": records}, most=130))]
    labelled = [*records, *(label(f"e{second}", "no", 205) for second in range(200))]
    assert kept == [(True, 0)] * 4
    found = [
        (one["kept"], one["labels"]["joined"])
        for one in outcomes_in(results({"p": labelled}, wait=600 * SECOND, most=130))
    ]
    assert found == [(False, 0), (False, 0), (True, 60), (True, 60)]
