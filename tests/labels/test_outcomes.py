"""Outcomes: the same whatever the batching, the partitions and the crashes; and right."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink, MemorySource
from connectors.protocols import Checkpoint
from monitor.countwindows import CountPlan
from monitor.events import Decoder
from monitor.labels.store import Awaited
from monitor.publishing import Watched
from monitor.service import Pace, Service
from monitor.timewindows import TimePlan
from monitor.windowing import Plan
from tests.labels.streams import Feedback
from tests.service.streams import reference
from tests.service.test_service import after

SECOND = 1_000_000
MINUTES = TimePlan(size=60 * SECOND, slide=60 * SECOND, lateness=10 * SECOND, most=10_000)
FEEDBACK = Feedback()


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
) -> Service:
    watched = {"s": Watched(reference(), plan, awaited=Awaited(wait=wait, most=most, store=store))}
    decoder = Decoder([reference().schema], identified=["s"])
    return Service(watched, decoder, MemorySource(partitions, batch=batch), sink, pace=pace)


def results(partitions: dict[str, list[bytes | None]], **options: Any) -> list[bytes]:
    with TemporaryDirectory() as folder:
        sink = MemorySink()
        service(partitions, sink, Path(folder) / "labels.sqlite", **options).run()
        return sink.log.values("results")


@cache
def uninterrupted(plan: Plan) -> list[bytes]:
    """One record at a time, and no crash."""
    return results(FEEDBACK.together, batch=1, plan=plan, pace=Pace(poll=0.0))


def outcomes_in(values: list[bytes]) -> list[dict[str, Any]]:
    tables = [json.loads(value) for value in values]
    return [table for table in tables if table["schema"] == "shiftwatch.outcome.v1"]


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    batch=st.integers(1, 300),
    crashes=st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=4),
    stop=st.integers(0, 6),
    plan=st.sampled_from([MINUTES, TimePlan(60 * SECOND, 20 * SECOND, 10 * SECOND, 10_000), CountPlan(70)]),
)
def test_crashes_anywhere_change_no_byte(batch: int, crashes: list[tuple[int, bool]], stop: int, plan: Plan) -> None:
    with TemporaryDirectory() as folder:
        log, store = MemoryLog(), Path(folder) / "labels.sqlite"
        for commits, published in crashes:
            with suppress(Crash):
                service(FEEDBACK.together, Crashing(log, commits, published), store, batch=batch, plan=plan).run()
        service(FEEDBACK.together, MemorySink(log), store, batch=batch, plan=plan).run(after(stop))
        service(FEEDBACK.together, MemorySink(log), store, batch=batch, plan=plan).run()
    once = uninterrupted(plan)
    assert log.values("results") == once
    assert len(outcomes_in(once)) >= 6


@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(batch=st.integers(1, 300), stop=st.integers(0, 6))
def test_labels_in_a_partition_of_their_own_count_the_same(batch: int, stop: int) -> None:
    with TemporaryDirectory() as folder:
        log, store = MemoryLog(), Path(folder) / "labels.sqlite"
        service(FEEDBACK.apart, MemorySink(log), store, batch=batch).run(after(stop))
        service(FEEDBACK.apart, MemorySink(log), store, batch=batch).run()
    assert log.values("results") == results(FEEDBACK.apart, batch=1000)
