"""The loop: what is published does not depend on batching, restarts or partitions, and nothing is published twice."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.errors import CommitRefusedError, DeadLetterLimitError
from monitor.events.decoding import Decoder
from monitor.ports import Checkpoint
from monitor.service.dead_letters import DeadLetterLimits
from monitor.service.loop import Clock, Pace, Service
from monitor.service.notices import BatchTaken, Happening, Reassigned, WindowAssessed
from monitor.service.publishing import Watched
from monitor.service.workers import Assessing
from monitor.windows import from_stored
from monitor.windows.assembly import Plan
from monitor.windows.by_count import CountPlan
from monitor.windows.by_time import TimePlan
from tests.service.streams import START_MS, lines, reference

SECOND = 1_000_000
MINUTES = TimePlan(size=60 * SECOND, slide=60 * SECOND, lateness=10 * SECOND, most=10_000)
BAD = b'{"stream": "s", "timestamp": 1750000000000, "posteriors": [0.9, 0.9]}'


@dataclass
class Heard:
    """Everything that the service told."""

    happenings: list[Happening] = field(default_factory=list)

    def __call__(self, happening: Happening) -> None:
        self.happenings.append(happening)

    def batches(self) -> list[BatchTaken]:
        return [one for one in self.happenings if isinstance(one, BatchTaken)]


@dataclass
class FakeClock:
    """Time that moves only when it is told to."""

    microseconds: int = START_MS * 1000

    def clock(self) -> Clock:
        return Clock(now=lambda: self.microseconds, elapsed=lambda: self.microseconds / 1e6)


def build(
    source: MemorySource,
    sink: MemorySink,
    plan: Plan = MINUTES,
    *,
    heard: Heard | None = None,
    limits: DeadLetterLimits = DeadLetterLimits(),
    pace: Pace = Pace(poll=0.0),
    clock: Clock = Clock(),
    segments: Sequence[str] = (),
    dead_letter_late: bool = False,
    assessing: Assessing | None = None,
) -> Service:
    watched = {"s": Watched(reference(), plan, dead_letter_late=dead_letter_late)}
    decoder = Decoder([reference().schema], segments={"s": segments})
    observers = [heard] if heard else []
    return Service(
        watched,
        decoder,
        source,
        sink,
        observers=observers,
        limits=limits,
        pace=pace,
        clock=clock,
        assessing=assessing,
    )


def after(turns: int) -> Callable[[], bool]:
    """Asks to stop after so many turns of the loop."""
    left = iter(range(turns))
    return lambda: next(left, None) is None


def published(partitions: dict[str, list[bytes | None]], batch: int = 1000, plan: Plan = MINUTES) -> MemoryLog:
    sink = MemorySink()
    build(MemorySource(partitions, batch=batch), sink, plan).run()
    return sink.log


@settings(max_examples=25, deadline=None)
@given(batch=st.integers(1, 700), stops=st.lists(st.integers(0, 6), max_size=5))
def test_results_are_the_same_bytes_whatever_the_batching_and_the_restarts(batch: int, stops: list[int]) -> None:
    records = lines(400, jitter_ms=20_000)
    records[50:50] = [BAD, None, b"not json"]
    log = MemoryLog()
    for turns in stops:
        build(MemorySource({"p": records}, batch=batch), MemorySink(log)).run(after(turns))
    build(MemorySource({"p": records}, batch=batch), MemorySink(log)).run()
    once = published({"p": records})
    assert log.values("results") == once.values("results")
    assert log.values("dead-letters") == once.values("dead-letters")
    assert len(once.values("results")) == 8


@settings(max_examples=15, deadline=None)
@given(batch=st.integers(1, 300), turns=st.integers(0, 8))
def test_partitions_may_interleave_in_any_way(batch: int, turns: int) -> None:
    partitions = {"a": lines(200, seed=3, jitter_ms=5_000), "b": lines(300, seed=4, jitter_ms=5_000)}
    log = MemoryLog()
    build(MemorySource(partitions, batch=batch), MemorySink(log)).run(after(turns))
    build(MemorySource(partitions, batch=batch), MemorySink(log)).run()
    assert log.values("results") == published(partitions).values("results")


@settings(max_examples=15, deadline=None)
@given(batch=st.integers(1, 300), turns=st.integers(0, 8))
def test_count_windows_survive_restarts_too(batch: int, turns: int) -> None:
    records = lines(330)
    log = MemoryLog()
    build(MemorySource({"p": records}, batch=batch), MemorySink(log), CountPlan(100)).run(after(turns))
    build(MemorySource({"p": records}, batch=batch), MemorySink(log), CountPlan(100)).run()
    assert log.values("results") == published({"p": records}, plan=CountPlan(100)).values("results")
    assert len(log.values("results")) == 4


def test_a_rejected_record_keeps_its_bytes_reason_and_position() -> None:
    records = lines(3)
    records[1:1] = [BAD]
    log = published({"p": records})
    (letter,) = [message for message in log.messages if message.channel == "dead-letters"]
    assert letter.value == BAD
    assert dict(letter.headers)["reason"] == b"posterior-sum"
    assert (dict(letter.headers)["partition"], dict(letter.headers)["offset"]) == (b"p", b"1")


def test_a_rejected_record_is_counted_in_its_window() -> None:
    records = lines(3)
    records[1:1] = [BAD]
    (result,) = published({"p": records}).values("results")
    assert json.loads(result)["events"]["rejected"] == 1


def test_records_judged_before_a_restart_are_not_counted_again() -> None:
    records = lines(150)
    records[10:10] = [BAD]
    heard, log = Heard(), MemoryLog()
    build(MemorySource({"p": records}, batch=40), MemorySink(log), heard=heard).run(after(2))
    build(MemorySource({"p": records}, batch=40), MemorySink(log), heard=heard).run()
    assert sum(batch.records for batch in heard.batches()) == len(records)
    assert sum(sum(batch.events.values()) for batch in heard.batches()) == 150
    assert sum(sum(batch.rejected.values()) for batch in heard.batches()) == 1


def test_late_events_are_counted_and_dead_lettered_if_wanted() -> None:
    records = lines(100)
    records.append(records[5])
    sink, heard = MemorySink(), Heard()
    build(MemorySource({"p": records}), sink, heard=heard, dead_letter_late=True).run()
    (letter,) = [message for message in sink.log.messages if message.channel == "dead-letters"]
    assert (letter.value, dict(letter.headers)["reason"]) == (records[5], b"late")
    assert sum(batch.late["s"] for batch in heard.batches()) == 1
    results = [json.loads(result) for result in sink.log.values("results")]
    assert sum(result["events"]["late"] for result in results) == 1


@pytest.mark.parametrize(
    ("limits", "complaint", "thrown_away"),
    [
        (DeadLetterLimits(consecutive=50, ratio=0), "50 records in a row", 0),
        (DeadLetterLimits(consecutive=0, ratio=0.3, ratio_over=200), "limit 30%", 100),
    ],
)
def test_a_broken_producer_stops_the_service_instead_of_filling_the_dead_letters(
    limits: DeadLetterLimits, complaint: str, thrown_away: int
) -> None:
    records = lines(200) + [BAD] * 200
    log = MemoryLog()
    with pytest.raises(DeadLetterLimitError, match=complaint):
        build(MemorySource({"p": records}, batch=100), MemorySink(log), limits=limits).run()
    assert len(log.values("dead-letters")) == thrown_away


def test_good_records_between_bad_ones_keep_the_service_going() -> None:
    records = [record for good in lines(200) for record in (good, BAD)]
    limits = DeadLetterLimits(consecutive=2, ratio=0.6, ratio_over=50)
    sink = MemorySink()
    build(MemorySource({"p": records}, batch=7), sink, limits=limits).run()
    assert len(sink.log.values("dead-letters")) == 200


def test_segments_are_assessed_beside_the_whole_stream() -> None:
    sink, heard = MemorySink(), Heard()
    build(MemorySource({"p": lines(60, segment=True)}), sink, heard=heard, segments=["country"]).run()
    windows = [one.window for one in heard.happenings if isinstance(one, WindowAssessed)]
    by_segment = {window.key.segment: window.events for window in windows if window.key.start == windows[0].key.start}
    assert len(by_segment) == 3
    whole = by_segment.pop("")
    assert whole == sum(by_segment.values())


def test_a_topic_that_falls_silent_has_its_windows_closed_once_the_clock_says_that_they_are_over() -> None:
    time = FakeClock()
    source, sink, heard = MemorySource({"p": lines(30)}, open_ended=True), MemorySink(), Heard()
    service = build(source, sink, heard=heard, pace=Pace(poll=0.0, idle=30.0), clock=time.clock())
    waited = iter(range(10))

    def a_minute_passes() -> bool:
        time.microseconds += 60 * SECOND
        return next(waited, None) is None

    service.run(a_minute_passes)
    windows = [one.window for one in heard.happenings if isinstance(one, WindowAssessed)]
    assert [window.closed_because for window in windows] == ["watermark"] * len(windows)
    assert sum(window.events for window in windows) == 30
    assert len(sink.log.values("results")) == len(windows)


def test_a_stop_drops_open_windows_and_the_next_start_finds_their_events_again() -> None:
    records, log = lines(90), MemoryLog()
    source = MemorySource({"p": records}, open_ended=True)
    build(source, MemorySink(log), pace=Pace(poll=0.0, commit=0.0)).run(after(3))
    assert len(log.values("results")) == 1
    assert log.checkpoint is not None
    progress = from_stored("p", log.checkpoint.progress["p"])
    assert progress.offset < progress.read == 90


class RefusingSink(MemorySink):
    """Refuses its first commit, as a group does that has moved on."""

    refused = False

    def commit(self, checkpoint: Checkpoint) -> None:
        if not self.refused:
            self.refused = True
            self.recover()
            raise CommitRefusedError("the group has moved on")
        super().commit(checkpoint)


def test_a_refused_commit_is_told_and_does_not_end_the_service() -> None:
    sink, heard = RefusingSink(), Heard()
    build(MemorySource({"p": lines(200)}, batch=100), sink, heard=heard).run()
    assert [one for one in heard.happenings if isinstance(one, Reassigned) and one.refused]
    assert sink.log.checkpoint is not None


def test_partitions_ahead_are_held_back_when_too_much_is_waiting() -> None:
    partitions = {"fast": lines(3_000), "slow": lines(300)}

    class Uneven(MemorySource):
        """Offers the slow partition only every tenth time."""

        turn = 0

        def poll(self, timeout: float, held: Sequence[str] = ()) -> Sequence[object]:  # type: ignore[override]
            self.turn += 1
            waits = {"slow"} if self.turn % 10 else set()
            return super().poll(timeout, {*held, *waits})

    heard, sink = Heard(), MemorySink()
    pace = Pace(poll=0.0, most_waiting=200)
    build(Uneven(partitions, batch=50), sink, heard=heard, pace=pace).run()
    waiting = [getattr(one, "waiting_events", 0) for one in heard.happenings]
    assert max(waiting) <= 400
    assert sink.log.values("results") == published(partitions).values("results")
