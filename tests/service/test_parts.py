"""Two stages on as many workers as there are say what one process says of the same records, byte for byte."""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from monitor.commands.run import replay
from monitor.commands.streams import decoder_of, watched_now
from monitor.errors import DeadLetterLimitError
from monitor.ports import Message, Progress, RawBatch
from monitor.service import DeadLetterLimits, PartMaker, PartMerger
from monitor.service.publishing import Watched
from monitor.settings import load
from tests.flink.world import PARTITIONS, START_MS, STREAM, SpreadWorld, closed_by_watermark, config

EVENTS, MOST = 8_000, 2_000
"""Of the later windows more events come than are kept."""
NAMES = [f"events-{partition}" for partition in range(PARTITIONS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spread")
    world().save(folder)
    (folder / "replay.toml").write_text(config('url = "jsonl:events"', 'url = "jsonl:unused.jsonl"', MOST))
    replay(folder / "replay.toml", folder / "want.jsonl")
    return folder


@pytest.fixture(scope="module")
def want(folder: Path) -> dict[str, bytes]:
    """By the window: all that closes by watermark."""
    return {name(result): result for result in closed_by_watermark(folder / "want.jsonl")}


def name(result: bytes) -> str:
    return result.split(b'"window":"')[1].split(b'"')[0].decode()


def world() -> SpreadWorld:
    return SpreadWorld(EVENTS, windows=4)


def stages(folder: Path, watched: dict[str, Watched] | None = None) -> tuple[PartMaker, PartMerger]:
    settings = load(folder / "replay.toml")
    streams = watched or watched_now(settings)
    return PartMaker(streams, partial(decoder_of, settings, streams), settings.dead_letters), PartMerger(streams, 8.0)


def batch(partition: str, records: list[bytes], first: int) -> RawBatch:
    return RawBatch(partition, records, np.arange(first, first + len(records)), first + len(records))


def batches(seed: int, largest: int) -> Iterator[RawBatch]:
    """All records in batches, in the order of their partitions, whose turns come at random."""
    rng, left = random.Random(seed), dict(world().records)
    at = dict.fromkeys(left, 0)
    while left:
        number = rng.choice(list(left))
        count = rng.randint(1, largest)
        some = left[number][at[number] : at[number] + count]
        yield batch(NAMES[number], some, at[number])
        at[number] += len(some)
        if at[number] == len(left[number]):
            del left[number]


class Workers:
    """The two stages with what an engine keeps for them; `restarted`, others go on from that."""

    def __init__(self, stages: Callable[[], tuple[PartMaker, PartMerger]]) -> None:
        self._stages = stages
        self.maker, self.merger = stages()
        self.progress: dict[str, Progress] = {}
        self.parts: dict[str, bytes] = {}
        self.known: dict[str, bytes] = {}
        self.said: list[Message] = []
        self.now = 0.0

    def restarted(self) -> None:
        self.maker, self.merger = self._stages()
        self.parts, self.known = dict(self.parts), dict(self.known)

    def take(self, records: RawBatch) -> None:
        made = self.maker.take(records, self.progress.get(records.partition), time.time_ns() // 1000)
        self.progress[records.partition] = made.progress
        self.said += made.dead_letters
        self.said += self.merger.take(STREAM, made.parts[STREAM], self.parts, self.known, self.now)

    def tell(self, seconds: float = 1.0, ends: dict[str, int] | None = None) -> None:
        """The ends of the partitions, of which the last one has no records, after some seconds."""
        self.now += seconds
        records = world().records
        known = {name: len(records.get(number, ())) for number, name in enumerate(NAMES)}
        self.said += self.merger.told(STREAM, ends or known, self.parts, self.known, self.now)

    @property
    def results(self) -> list[bytes]:
        return [message.value for message in self.said if message.channel == "results"]


@pytest.mark.parametrize(("seed", "largest", "restarts"), [(1, 700, 0.0), (2, 300, 0.1)])
def test_results_are_the_bytes_of_a_replay_whoever_makes_the_parts_and_whatever_ends(
    folder: Path, want: dict[str, bytes], seed: int, largest: int, restarts: float
) -> None:
    workers, rng = Workers(partial(stages, folder)), random.Random(seed)
    for records in batches(seed, largest):
        workers.take(records)
        if rng.random() < restarts:
            workers.restarted()
        workers.tell()
    for _ in range(12):
        workers.tell()
    assert {name(result): result for result in workers.results} == want
    assert len(workers.results) == len(want)
    assert 0 < sum(b'"sampled"' in result for result in want.values()) < len(want)
    assert sum(message.channel == "dead-letters" for message in workers.said) == world().rejected > 0


def test_nothing_is_closed_before_it_is_known_which_partitions_there_are(folder: Path, want: dict[str, bytes]) -> None:
    workers = Workers(partial(stages, folder))
    for records in batches(3, 2_000):
        workers.take(records)
    assert workers.results == []
    workers.tell()
    assert workers.results == []
    for _ in range(8):
        workers.tell()
    assert workers.results == []
    workers.tell()
    assert len(workers.results) == len(want)


def test_a_partition_with_records_to_read_is_never_idle_and_none_is_after_an_outage(
    folder: Path, want: dict[str, bytes]
) -> None:
    workers = Workers(partial(stages, folder))
    for records in batches(4, 2_000):
        workers.take(records)
    waiting = dict.fromkeys(NAMES, 0) | {NAMES[-1]: 1}
    for _ in range(30):
        workers.tell(ends=waiting)
    assert workers.results == []
    for _ in range(5):
        workers.tell(1.0)
    workers.tell(60.0)  # nobody knows what would have come meanwhile
    for _ in range(8):
        workers.tell()
    assert workers.results == []
    workers.tell()
    assert len(workers.results) == len(want)


def test_windows_close_when_all_partitions_fall_silent_together_after_a_restart(
    folder: Path, want: dict[str, bytes]
) -> None:
    workers, left = Workers(partial(stages, folder)), list(batches(5, 100))
    last = {records.partition: records for records in left}
    for records in left:
        if records is not last[records.partition]:
            workers.take(records)
            workers.tell()
    assert 0 < len(workers.results) < len(want)
    workers.restarted()
    for records in last.values():
        workers.take(records)
    for _ in range(10):
        workers.tell()
    assert {name(result): result for result in workers.results} == want


class SlowWorkers(Workers):
    """Records come one by one, and are read before the ends of their partitions are told."""

    def __init__(self, folder: Path) -> None:
        super().__init__(partial(stages, folder))
        self.ends: dict[str, int] = {}

    def bring(self, partition: str, second: int) -> None:
        """An event of this second."""
        event = b'{"stream":"s0","timestamp":%d,"posteriors":[0.5,0.5],"features":{"amount":0}}'
        first = self.ends.get(partition, 0)
        self.ends[partition] = first + 1
        self.take(batch(partition, [event % (START_MS + 1_000 * second)], first))

    @property
    def closed(self) -> bool:
        """Whether any window is."""
        return bool(self.results)


def test_a_partition_that_brings_a_record_now_and_then_is_waited_for(folder: Path) -> None:
    workers = SlowWorkers(folder)
    for second in range(20):
        workers.bring("ahead", 100)
        workers.bring("slow", second)
        workers.tell(ends=dict(workers.ends))
    assert not workers.closed
    workers.bring("slow", 100)
    assert workers.closed


def test_a_partition_that_was_idle_is_waited_for_from_its_next_record_on(folder: Path) -> None:
    workers = SlowWorkers(folder)
    workers.bring("idle", 20)
    for _ in range(12):
        workers.bring("other", 30)
        workers.tell(ends=dict(workers.ends))
    workers.bring("idle", 40)
    workers.bring("other", 100)
    assert not workers.closed
    workers.bring("idle", 100)
    assert workers.closed


def test_a_partition_that_is_added_and_stays_empty_grows_idle(folder: Path) -> None:
    workers = SlowWorkers(folder)
    workers.bring("first", 30)
    workers.tell(ends=dict(workers.ends))
    workers.ends["added"] = 0
    workers.tell(ends=dict(workers.ends))
    for _ in range(7):
        workers.bring("first", 100)
        workers.tell(ends=dict(workers.ends))
    assert not workers.closed
    for _ in range(4):
        workers.bring("first", 100)
        workers.tell(ends=dict(workers.ends))
    assert workers.closed


def test_too_many_rejected_records_stop_the_worker(folder: Path) -> None:
    maker, _ = stages(folder)
    strict = PartMaker(maker.watched, maker.decoder, DeadLetterLimits(consecutive=3))
    with pytest.raises(DeadLetterLimitError, match="3 records in a row"):
        strict.take(batch("events-0", [b"{"] * 4, 0), None, 0)
