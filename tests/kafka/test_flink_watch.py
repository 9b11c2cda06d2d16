"""Page, metrics and API of a job on Flink, from the topics that it writes; the stages run here, without Flink."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from monitor.commands.flink_plan import JobPlan
from monitor.ports import Message
from tests.deploy.parts import need, prometheus, until
from tests.flink.watcher import Watcher, address
from tests.flink.world import PARTITIONS, STREAM, config
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read, unique
from tests.outside import answer, assert_soon_the_same, only, shown
from tests.processes import free_port, started, wait_until
from tests.service.test_parts import MOST, NAMES, Workers, batches, world

SEGMENTS = ("country=be", "country=fr", "country=nl")


class Job:
    """The two stages between topics, transaction by transaction, as a job does it."""

    def __init__(self, broker: Broker, path: Path) -> None:
        self._broker, self.plan = broker, JobPlan(path)
        self._workers = Workers(lambda: (self.plan.maker, self.plan.merger))
        settings = {"bootstrap.servers": broker.bootstrap, "transactional.id": unique("job"), "log_level": 0}
        self._producer = Producer(settings)
        self._producer.init_transactions()
        self._batches = list(batches(1, 300))

    def go_on(self, share: float) -> None:
        """Read so much of what is left, publish what comes of it, and commit."""
        self._producer.begin_transaction()
        count = round(share * len(self._batches))
        for batch in self._batches[:count]:
            self._workers.take(batch)
            self._workers.tell()
        del self._batches[:count]
        for _ in range(0 if self._batches else 12):
            self._workers.tell()
        for message in self._workers.said:
            if message.channel in self.plan.topics:
                self._write(self.plan.topics[message.channel], message)
        self._workers.said.clear()
        self._producer.commit_transaction()
        self._commit()

    def _write(self, topic: str, message: Message) -> None:
        self._producer.produce(topic, message.value, message.key, headers=list(message.headers))
        self._producer.poll(0)

    def _commit(self) -> None:
        group = Consumer({"bootstrap.servers": self._broker.bootstrap, "group.id": self.plan.source.group or ""})
        (topic,) = self.plan.source.topics
        at = {name: progress.offset for name, progress in self._workers.progress.items()}
        offsets = [TopicPartition(topic, number, at[name]) for number, name in enumerate(NAMES) if name in at]
        group.commit(offsets=offsets, asynchronous=False)
        group.close()


@pytest.fixture
def broker(apache_kafka: Cluster) -> Broker:
    return Broker(apache_kafka)


@pytest.fixture
def ending() -> Iterator[ExitStack]:
    """Ends what was begun."""
    with ExitStack() as stack:
        yield stack


def written(folder: Path, name: str, broker: Broker) -> Path:
    """A configuration with topics of its own."""
    broker.create(f"{name}-results", f"{name}-dead")
    broker.create(f"{name}-states", cleanup_policy="compact")
    source = f'url = "kafka://{broker.bootstrap}/events"\ngroup = "{name}"'
    topics = f'dead_letters = "{name}-dead"\nstates = "{name}-states"'
    sink = f'url = "kafka://{broker.bootstrap}/{name}-results"\n{topics}'
    path = folder / f"{name}.toml"
    path.write_text(f"[server]\nport = {free_port()}\n{config(source, sink, MOST)}")
    return path


@pytest.mark.chaos
def test_a_job_is_shown_as_one_process_that_reads_all_shows_itself(
    broker: Broker, tmp_path: Path, ending: ExitStack
) -> None:
    need("prometheus", "promtool")
    world().save(tmp_path)
    broker.create("events", partitions=PARTITIONS)  # the name is in the results
    broker.produce("events", world().records)
    job, one = (written(tmp_path, unique(name), broker) for name in ("job", "one"))
    running = Job(broker, job)
    running.go_on(0.5)

    watcher = ending.enter_context(closing(Watcher(job)))
    watcher.wait_until_ready()
    before = Counter(record.key for record in read(broker.bootstrap, f"{job.stem}-results"))
    dead = len(read(broker.bootstrap, f"{job.stem}-dead"))
    assert before
    wait_until(lambda: bool(watcher.samples("shiftwatch_verdict")), "the last window")
    assert watcher.windows == 0
    wait_until(lambda: sum(watcher.samples("shiftwatch_lag_records").values()) > 0, "a job that lags")

    running.go_on(1.0)
    reading = started(tmp_path, one.name)
    ending.callback(reading.communicate)
    ending.callback(reading.kill)

    def results(path: Path) -> list[bytes]:
        return [record.value or b"" for record in read(broker.bootstrap, f"{path.stem}-results")]

    wait_until(lambda: len(results(one)) == len(results(job)), "the results of one process", pause=0.5)
    assert sorted(results(one)) == sorted(results(job))
    new = [json.loads(result) for result in results(job)][len(before) :]
    wait_until(lambda: watcher.windows == sum(not result["segment"] for result in new), "the windows")
    assert_soon_the_same(
        lambda: only(shown(watcher.address, [STREAM], SEGMENTS), [STREAM]),
        only(shown(address(one), [STREAM], SEGMENTS), [STREAM]),
    )
    wait_until(lambda: sum(watcher.samples("shiftwatch_lag_records").values()) == 0, "a job without lag")
    rejected = watcher.samples("shiftwatch_rejected_total")
    assert sum(rejected.values()) == len(read(broker.bootstrap, f"{job.stem}-dead")) - dead > 0
    assert watcher.samples("shiftwatch_events_total")[STREAM,] == sum(
        result["events"]["used"] + result["events"]["sampled_out"] for result in new if not result["segment"]
    )
    with prometheus(tmp_path, [watcher.address], rules=True) as server:
        until(lambda: server.query('ALERTS{alertname="ShiftwatchPriorShift",alertstate="firing"}'), 90, "the alert")
    scrape = answer(f"{watcher.address}/metrics").encode()
    checked = subprocess.run(["promtool", "check", "metrics"], input=scrape, capture_output=True, check=False)
    assert not checked.stdout + checked.stderr
    assert watcher.stop() == 0
