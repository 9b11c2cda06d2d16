"""The job on a real standalone cluster of Flink and Apache Kafka: the bytes of a replay, each window once."""

import random
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.flink.cluster import FlinkCluster, python, unavailable
from tests.flink.watcher import Watcher
from tests.flink.world import PARTITIONS, STREAM, SpreadWorld, closed_by_watermark, config
from tests.kafka.apache import Cluster
from tests.kafka.conftest import require_apache
from tests.kafka.topics import Broker, read
from tests.processes import free_port, wait_until

PATIENCE = 300.0
STILL = 10.0
"""Seconds without a checkpoint, beside the two that lie between them and the three that Flink's answers may be old."""


class Feed:
    """Writes a world into a topic as far as it may, and beyond that a record every half second: nothing is silent."""

    def __init__(self, bootstrap: str, topic: str, world: SpreadWorld) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0, "enable.idempotence": True}
        )
        self._topic, self._records = topic, world.records
        self._sent = dict.fromkeys(world.records, 0)
        self._share = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def allow(self, share: float) -> None:
        """So much of each partition."""
        self._share = share

    def finish(self) -> None:
        """The rest at once."""
        self.allow(1.0)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the feed hangs"

    def _run(self) -> None:
        while any(sent < len(self._records[partition]) for partition, sent in self._sent.items()):
            for partition, records in self._records.items():
                sent = self._sent[partition]
                self._send(partition, sent, max(sent + 1, round(self._share * len(records))))
            time.sleep(0.5)
        while self._producer.flush(1):
            pass

    def _send(self, partition: int, first: int, stop: int) -> None:
        for record in self._records[partition][first:stop]:
            while True:
                try:
                    self._producer.produce(self._topic, value=record, partition=partition)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        self._sent[partition] = max(first, min(stop, len(self._records[partition])))
        self._producer.poll(0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[FlinkCluster]:
    why = unavailable()
    if why is not None:
        pytest.skip(why)
    require_apache()
    found = FlinkCluster(tmp_path / "flink")
    yield found
    found.close()


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Cluster]:
    require_apache()
    found = Cluster(tmp_path / "kafka")
    yield found
    found.close()


class Run:
    """One job, whatever happens to it."""

    def __init__(self, folder: Path, kafka: Cluster, cluster: FlinkCluster) -> None:
        self.kafka, self.cluster = kafka, cluster
        self.config = folder / "flink.toml"
        source = f'url = "kafka://{kafka.bootstrap}/events"\ngroup = "g"'
        topics = 'recalibrations = "feed"\nalarms = "alarms"\ndead_letters = "dead"\nstates = "states"'
        sink = f'url = "kafka://{kafka.bootstrap}/results"\n{topics}'
        self.config.write_text(f"[server]\nport = {free_port()}\n{config(source, sink, MOST)}")
        self.job = cluster.submit(self.config, "--parallelism", "4")

    @property
    def results(self) -> list[bytes]:
        """All that a reader of committed records sees."""
        return [record.value or b"" for record in read(self.kafka.bootstrap, "results")]

    def published(self, count: int) -> None:
        """Wait until there are so many results."""
        self._wait(lambda: len(self.results) >= count, f"{count} results", pause=2.0)

    def checkpointed(self) -> None:
        """Wait until it has completed two checkpoints more."""
        before = self.cluster.checkpoints(self.job)
        self._wait(lambda: self.cluster.checkpoints(self.job) >= before + 2, "checkpoints")

    def _stands_still(self) -> None:
        """Tasks wait for the worker. One that does not yet would notice by itself that a TaskManager is gone: it fails,
        and is not cancelled, and Beam closes what it has for minutes before it ends the worker."""
        latest = self.cluster.checkpoints(self.job), time.monotonic()

        def stands() -> bool:
            nonlocal latest
            completed = self.cluster.checkpoints(self.job)
            latest = latest if completed == latest[0] else (completed, time.monotonic())
            return time.monotonic() - latest[1] > STILL

        self._wait(stands, "no checkpoints")

    def _restarted(self, before: int) -> None:
        """Flink has missed what was killed, so that checkpoints from now on are those of what took its place."""
        self._wait(lambda: self.cluster.checkpoints(self.job, "restored") > before, "a restart")

    def _wait(self, reached: Callable[[], bool], what: str, pause: float = 0.5) -> None:
        def tended() -> bool:
            self.cluster.tend()
            return reached()

        try:
            wait_until(tended, what, PATIENCE, pause=pause)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.cluster.account(self.job)}") from error

    def kill_python(self) -> None:
        self.checkpointed()  # one that is killed while it starts may be waited for
        restored = self.cluster.checkpoints(self.job, "restored")
        self._wait(lambda: self.cluster.kill_python() > 0, "a worker that runs Python")
        self._restarted(restored)

    def freeze_python(self) -> None:
        """A worker no longer answers, and then its tasks have to be cancelled, as another TaskManager is killed: theirs
        ends, too."""
        self.checkpointed()  # all workers are there, and at work
        restored = self.cluster.checkpoints(self.job, "restored")
        self._wait(lambda: self.cluster.kill_python(signal.SIGSTOP) > 0, "a worker that runs Python")
        self._stands_still()
        self.cluster.kill_worker(-1)
        self._restarted(restored)

    def kill_task_manager(self) -> None:
        restored = self.cluster.checkpoints(self.job, "restored")
        self.cluster.kill_worker()
        self._restarted(restored)

    def outage(self) -> None:
        """The broker is killed, and is away for longer than a partition may be silent."""
        (broker,) = self.kafka.brokers
        broker.stop(signal.SIGKILL)
        time.sleep(10)
        broker.start()

    def on_one_task(self) -> None:
        """Stop with a savepoint, and go on from it without anything side by side."""
        savepoint = self.cluster.stop(self.job)
        self.job = self.cluster.submit(self.config, "--savepoint", savepoint, "--parallelism", "1")

    def on_four_tasks(self) -> None:
        """The same the other way round, by Flink's own client."""
        self.job = self.cluster.run_program(self.config, 4, self.cluster.stop(self.job))


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_windows_on_flink_are_those_of_a_replay_each_once_whatever_is_killed(
    cluster: FlinkCluster, kafka: Cluster, tmp_path: Path
) -> None:
    world, rng = SpreadWorld(EVENTS), random.Random(1)
    run, feed, replay = begun(world, cluster, kafka, tmp_path)
    with closing(Watcher(run.config)) as watcher:
        found = watcher.found(STREAM)
        disturbances = (
            run.kill_python,
            run.kill_task_manager,
            run.on_one_task,
            run.outage,
            run.on_four_tasks,
            run.freeze_python,
        )
        for number, disturb in enumerate(disturbances, start=1):
            published = len(run.results)
            feed.allow((number + 1) / (len(disturbances) + 2))  # enough for windows to close
            time.sleep(rng.uniform(0.0, 3.0))
            disturb()
            run.published(published + 1)
        want = compared(run, feed, replay, tmp_path)
        whole = [result for result in want if b'"segment":""' in result]
        wait_until(lambda: watcher.shown(STREAM) == whole[-1], "the last window to be shown")
        assert len(watcher.remembered(STREAM)) == len(whole)
        assert watcher.windows == len(whole) - found
    assert 0 < sum(b'"sampled"' in result for result in want) < len(want)
    places = Counter(record.key for record in read(kafka.bootstrap, "dead"))
    assert len(places) == world.rejected
    assert set(places.values()) == {1}


EVENTS, MOST = 1_000_000, 50_000
"""The windows of the second half have more events than are kept: the others are counted."""


def replaying(folder: Path) -> "subprocess.Popen[str]":
    """A replay of the same records with the same numpy."""
    (folder / "replay.toml").write_text(config('url = "jsonl:events"', 'url = "jsonl:unused.jsonl"', MOST))
    command = [str(python()), "-m", "monitor", "replay", "replay.toml", "-o", "want.jsonl"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def replayed(folder: Path, replay: "subprocess.Popen[str]") -> list[bytes]:
    """What it says, but for the window of the last events: nothing closes it in a topic."""
    _, errors = replay.communicate(timeout=PATIENCE)
    assert replay.returncode == 0, errors[-3000:]
    return closed_by_watermark(folder / "want.jsonl")


def begun(
    world: SpreadWorld, cluster: FlinkCluster, kafka: Cluster, folder: Path
) -> "tuple[Run, Feed, subprocess.Popen[str]]":
    """A job that publishes windows, what feeds it, and a replay of the same records."""
    broker = Broker(kafka)
    world.save(folder)
    broker.create("events", partitions=PARTITIONS)
    broker.create("results", "dead", "alarms")
    broker.create("feed", "states", cleanup_policy="compact")
    feed, replay = Feed(kafka.bootstrap, "events", world), replaying(folder)
    feed.allow(1 / 8)
    run = Run(folder, kafka, cluster)
    run.published(1)
    return run, feed, replay


def compared(run: Run, feed: Feed, replay: "subprocess.Popen[str]", folder: Path) -> list[bytes]:
    """All results of the replay, which are those of the job, each once."""
    feed.finish()
    want = replayed(folder, replay)
    run.published(len(want))
    run.checkpointed()  # time for a second answer, if there were to be one
    assert Counter(run.results) == Counter(want)
    return want
