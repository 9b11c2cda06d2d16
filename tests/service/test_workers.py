"""Windows assessed beside the loop: the same bytes in the same order, and a process that may die at any time."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.errors import CommitRefusedError, WorkerError
from monitor.ports import Checkpoint, Message, Reassignment
from monitor.service.loop import Pace, Service
from monitor.service.publishing import Watched
from monitor.service.under_way import UnderWay
from monitor.service.workers import Answer, Answers, Assessing, Here, Workers
from monitor.windows import WindowCheckpoint
from monitor.windows.window import Window, WindowKey
from tests.service.streams import lines, reference
from tests.service.test_loop import MINUTES, Heard, after, build, published

WATCHED = {"s": Watched(reference(), MINUTES)}


@pytest.fixture
def workers() -> Iterator[Callable[[int], Workers]]:
    opened: list[Workers] = []

    def open_them(count: int) -> Workers:
        opened.append(Workers(WATCHED, count))
        return opened[-1]

    yield open_them
    for each in opened:
        each.close()


def window(number: int, events: int = 200) -> Window:
    positive = np.random.default_rng(number).beta(2, 5, events)
    made = Window.of(np.column_stack([1 - positive, positive]))
    return replace(made, key=WindowKey("s", "", number, number + 1))


def all_of(assessing: Assessing, windows: list[Window], asked: Sequence[Answer] = ()) -> list[Answers]:
    """The answers about the windows, after those that were asked for already."""
    waiting, done = deque(asked), list[Answers]()
    for each in windows:
        while not assessing.room:
            done.append(taken(waiting.popleft()))
        waiting.append(assessing.hand_in(each))
    return [*done, *map(taken, waiting)]


def taken(answer: Answer) -> Answers:
    answers = answer(10.0)
    assert answers is not None
    return answers


def said(done: list[Answers]) -> list[bytes]:
    written = [answer.published.written for answers in done for answer in answers]
    return [message for one in written for message in (one.result, one.recalibration)]


def process_of_worker() -> int:
    """Of the one that runs."""
    (process,) = multiprocessing.active_children()
    assert process.pid is not None
    return process.pid


def kill_worker() -> None:
    """And wait for all of its threads: until the last one is gone the pipe is open."""
    (process,) = multiprocessing.active_children()
    process.kill()
    process.join()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("count", [1, 2])
def test_workers_give_the_bytes_of_the_loop_in_the_order_of_the_windows(
    workers: Callable[[int], Workers], count: int
) -> None:
    windows = [window(number, events=50 + 400 * (number % 3)) for number in range(12)]
    assert said(all_of(workers(count), windows)) == said(all_of(Here(WATCHED), windows))


def test_a_worker_takes_no_more_than_it_can_do_soon(workers: Callable[[int], Workers]) -> None:
    assessing = workers(1)
    asked = [assessing.hand_in(window(1))]
    assert assessing.room
    asked.append(assessing.hand_in(window(2)))
    assert not assessing.room
    assert len(all_of(assessing, [], asked)) == 2
    assert assessing.room


def test_answers_about_dropped_windows_are_not_taken_for_those_of_others(workers: Callable[[int], Workers]) -> None:
    assessing = workers(1)
    for number in (1, 2):
        assessing.hand_in(window(number))
    assessing.drop()
    assert said(all_of(assessing, [window(3)])) == said(all_of(Here(WATCHED), [window(3)]))


def test_a_killed_worker_is_replaced_and_its_windows_are_assessed_again(workers: Callable[[int], Workers]) -> None:
    assessing, windows = workers(1), [window(number) for number in range(4)]
    done = all_of(assessing, windows[:1])
    asked = [assessing.hand_in(each) for each in windows[1:3]]
    kill_worker()
    done += all_of(assessing, windows[3:], asked)
    assert said(done) == said(all_of(Here(WATCHED), windows))


def test_a_worker_that_dies_while_it_has_nothing_to_do_is_replaced_too(workers: Callable[[int], Workers]) -> None:
    assessing = workers(1)
    all_of(assessing, [window(1)])
    kill_worker()
    assert said(all_of(assessing, [window(2)])) == said(all_of(Here(WATCHED), [window(2)]))


def test_a_window_that_kills_every_worker_is_a_clear_error(workers: Callable[[int], Workers]) -> None:
    assessing = workers(1)
    answer = assessing.hand_in(window(7, events=400_000))
    kill_worker()
    assert answer(0.0) is None
    kill_worker()
    with pytest.raises(WorkerError, match=r"ended twice over window s//7/8 \(400000 events\), now by signal 9"):
        answer(10.0)


def test_a_window_that_cannot_be_assessed_is_an_error_with_its_cause(workers: Callable[[int], Workers]) -> None:
    assessing = workers(1)
    answer = assessing.hand_in(replace(window(1), posteriors=np.ones((5, 3))))
    with pytest.raises(WorkerError, match=r"(?s)window s//1/2 could not be assessed:.*want 2 columns"):
        answer(30.0)


def test_workers_ignore_the_signals_that_are_for_the_service_and_end_with_it(
    workers: Callable[[int], Workers],
) -> None:
    assessing = workers(1)
    all_of(assessing, [window(1)])
    pid = process_of_worker()
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(pid, number)
    assert len(all_of(assessing, [window(2)])) == 1
    assert process_of_worker() == pid
    assessing.close()
    assert not alive(pid)


def letter(number: int) -> Message:
    return Message("dead-letters", b"", b"%d" % number)


def test_nothing_of_a_turn_is_ready_before_all_of_it_is() -> None:
    under_way, answers = UnderWay[Message](), dict.fromkeys((11, 12, 31), False)
    for number, windows in enumerate([[], [11, 12], [], [31]]):
        under_way.put([letter(number)])
        for each in windows:
            under_way.expect(0, window(each), lambda _, each=each: letter(each) if answers[each] else None)
        under_way.end_turn(WindowCheckpoint())

    def ready() -> list[Message] | None:
        for step, answer in under_way.steps(0.0):
            assert answer is not None
            step.turn.messages.append(answer)
        found = under_way.ready()
        return None if found is None else list(found.messages)

    assert ready() == [letter(0)]
    answers[12] = True
    assert ready() is None
    assert under_way.windows == 3
    answers[11] = True
    assert ready() == [letter(1), letter(11), letter(12), letter(2)]
    answers[31] = True
    assert ready() == [letter(3), letter(31)]
    assert under_way.empty


def test_a_settlement_waits_for_the_windows_before_it_and_holds_its_turn() -> None:
    under_way, answered = UnderWay[str](), False
    under_way.expect(1, window(1), lambda _: "answer" if answered else None)
    under_way.settle(2)
    under_way.end_turn(WindowCheckpoint())
    assert [*under_way.steps(0.0)] == []
    assert under_way.ready() is None
    answered = True
    assert [(step.mark, answer) for step, answer in under_way.steps(0.0)] == [(1, "answer"), (2, None)]
    assert under_way.ready() is not None


class Slow(Here):
    """Answers only every so many times it is asked, and has little room: a worker in slow motion."""

    def __init__(self, patience: int) -> None:
        super().__init__(WATCHED)
        self._patience = patience
        self._asked = self._busy = 0

    @property
    def room(self) -> bool:  # type: ignore[override]
        return self._busy < 2

    def hand_in(self, window: Window) -> Answer:
        answer = super().hand_in(window)
        self._busy += 1

        def slowly(timeout: float) -> Answers | None:
            self._asked += 1
            if self._asked % self._patience:
                return None
            self._busy -= 1
            return answer(timeout)

        return slowly

    def drop(self) -> None:
        self._busy = 0


def slowly(source: MemorySource, sink: MemorySink, patience: int, heard: Heard | None = None) -> Service:
    return build(
        source,
        sink,
        heard=heard,
        pace=Pace(poll=0.0, commit=0.0, answers=0.0, sign_of_life=0.0, stop=0.0),
        assessing=Slow(patience),
    )


@settings(max_examples=12, deadline=None)
@given(batch=st.integers(1, 700), patience=st.integers(1, 9), stops=st.lists(st.integers(0, 9), max_size=5))
def test_results_are_the_same_bytes_however_long_assessments_take(batch: int, patience: int, stops: list[int]) -> None:
    records = lines(400, jitter_ms=20_000)
    records[50:50] = [b"not json", None]
    log = MemoryLog()
    for turns in stops:
        slowly(MemorySource({"p": records}, batch=batch), MemorySink(log), patience).run(after(turns))
    slowly(MemorySource({"p": records}, batch=batch), MemorySink(log), patience).run()
    once = published({"p": records})
    assert log.values("results") == once.values("results")
    assert log.values("dead-letters") == once.values("dead-letters")


class Moving(MemorySource):
    """A group of which this is one of two members, that loses its partition now and then and gets it back.

    What the other member read meanwhile is nothing: it goes on where the last commit was.
    """

    def __init__(self, log: MemoryLog, every: int, records: list[bytes | None]) -> None:
        super().__init__({"p": records}, batch=60)
        self._log = log
        self._every = every
        self._asked = 0
        self.refuses = False

    def reassigned(self, settle: Callable[[], None]) -> Reassignment | None:
        self._asked += 1
        if not self.refuses and self._asked % self._every:
            return None
        settle()
        self.refuses = False
        progress = self._log.checkpoint.progress["p"] if self._log.checkpoint else None
        self._next["p"] = progress.offset if progress else 0
        return Reassignment(gone=frozenset({"p"}), came={"p": progress})


class Refusing(MemorySink):
    """Refuses every so many-th commit, and all that follow until the source has been asked where to begin again."""

    def __init__(self, log: MemoryLog, source: Moving, every: int) -> None:
        super().__init__(log)
        self._source = source
        self._every = every
        self._commits = 0

    def commit(self, checkpoint: Checkpoint) -> None:
        self._commits += 1
        if self._source.refuses or self._commits % self._every == 0:
            self._source.refuses = True
            self.recover()
            raise CommitRefusedError("the group has moved on")
        super().commit(checkpoint)


@settings(max_examples=15, deadline=None)
@given(every=st.integers(3, 7), refused=st.integers(3, 12), patience=st.integers(2, 9))
def test_partitions_that_move_while_windows_are_assessed_cost_and_double_nothing(
    every: int, refused: int, patience: int
) -> None:
    records = lines(400, jitter_ms=5_000)
    log = MemoryLog()
    source = Moving(log, every, records)
    slowly(source, Refusing(log, source, refused), patience).run(after(40))
    # It may have come nowhere, or its last commit may have been refused: whoever has the partition then goes on.
    build(MemorySource({"p": records}), MemorySink(log)).run()
    assert log.values("results") == published({"p": records}).values("results")


def test_while_the_assessments_are_behind_the_source_is_polled_without_being_read() -> None:
    polled: list[tuple[int, int]] = []

    class Watching(MemorySource):
        def poll(self, timeout: float, held=()) -> list[object]:  # type: ignore[no-untyped-def, override]
            batches = super().poll(timeout, held)
            polled.append((len(held), len(batches)))
            return batches  # type: ignore[return-value]

    sink = MemorySink()
    slowly(Watching({"p": lines(400)}, batch=400), sink, patience=50).run()
    assert polled.count((0, 1)) == 1
    assert polled.count((0, 1)) < len(polled)
    assert all(batches == 0 for held, batches in polled if held)
    assert sink.log.values("results") == published({"p": lines(400)}).values("results")


def test_a_stop_does_not_wait_for_an_assessment_that_takes_long() -> None:
    log = MemoryLog()
    slowly(MemorySource({"p": lines(400)}, batch=50), MemorySink(log), patience=10**9).run(after(40))
    assert log.values("results") == []
    build(MemorySource({"p": lines(400)}), MemorySink(log)).run()
    assert log.values("results") == published({"p": lines(400)}).values("results")
