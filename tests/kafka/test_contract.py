"""The contract that every connector keeps, on Kafka: both drivers on the mock, exactly once on the real thing."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from connectors.kafka import KafkaSource, open_sink, open_source, sink_settings, source_settings, topic_sink
from connectors.protocols import Checkpoint, Message, RawBatch, Reassignment
from tests.connectors import test_contract as contract
from tests.connectors.harness import RECORDS, SinkCase, SourceCase, checkpoint, nothing
from tests.kafka.apache import Cluster
from tests.kafka.mock import MockCluster
from tests.kafka.topics import Broker, mock_broker, read, unique

CHANNELS = ("results", "recalibrations", "events")


class UntilNow:
    """A Kafka source as one that ends: where its topics end now, and with its partitions known from the start."""

    def __init__(self, source: KafkaSource) -> None:
        self._source = source

    def start(self, checkpoint: Checkpoint | None) -> None:
        self._source.start(checkpoint)
        assert self._source.reassigned(nothing) is not None

    def reassigned(self, settle: Callable[[], None]) -> Reassignment | None:
        return self._source.reassigned(settle)

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        return self._source.poll(timeout, held)

    def partitions(self) -> Sequence[str]:
        return [name for name in self._source.partitions() if self._source.waiting(name)]

    def waiting(self, partition: str) -> bool:
        return self._source.waiting(partition)

    @property
    def finished(self) -> bool:
        return not self.partitions()

    def close(self) -> None:
        """Kept open: the tests ask on."""


@dataclass(frozen=True)
class Where:
    """A broker, a driver, and how results are delivered there."""

    broker: Broker
    driver: str

    def options(self, **more: object) -> dict[str, object]:
        given: dict[str, object] = {"bootstrap": self.broker.bootstrap, "driver": self.driver}
        if "broker_version" in self.broker.options:
            given["broker_version"] = self.broker.options["broker_version"]
        return given | more


# Everywhere: both drivers, both brokers, once. In CI also the other two combinations.
_WHERE = ["mock-fast", "apache-python"]
if os.environ.get("CI") == "true":
    _WHERE += ["mock-python", "apache-fast"]


@pytest.fixture(params=_WHERE)
def where(request: pytest.FixtureRequest) -> Where:
    kind, driver = request.param.split("-")
    if kind == "mock":
        mock: MockCluster = request.getfixturevalue("mock_cluster")
        return Where(mock_broker(mock), driver)
    cluster: Cluster = request.getfixturevalue("apache_kafka")
    return Where(Broker(cluster), driver)


@pytest.fixture
def source(where: Where) -> Iterator[SourceCase]:
    topic = unique("in")
    where.broker.create(topic, partitions=len(RECORDS))
    where.broker.produce(topic, dict(enumerate(RECORDS.values())))
    opened: list[KafkaSource] = []

    def open_it() -> UntilNow:
        opened.append(open_source(source_settings(where.options(topics=topic))))
        return UntilNow(opened[-1])

    yield SourceCase(open_it, {f"{topic}-{number}": records for number, records in enumerate(RECORDS.values())})
    for each in opened:
        each.close()


@pytest.fixture
def sink(where: Where, monkeypatch: pytest.MonkeyPatch) -> SinkCase:
    """With transactions everything is sent at once, so that a crash leaves one open; the mock has none."""
    if where.broker.transactions:
        monkeypatch.setattr(topic_sink, "_BYTES_WAITING", -1)
    return sink_case(where)


def sink_case(where: Where) -> SinkCase:
    topics = {channel: unique(channel) for channel in CHANNELS}
    where.broker.create(*topics.values())
    delivery = "exactly-once" if where.broker.transactions else "at-least-once"
    settings = sink_settings(where.options(group=unique("g"), delivery=delivery, **topics))

    def published() -> Mapping[str, list[bytes]]:
        seen = {channel: read(where.broker.bootstrap, topic) for channel, topic in topics.items()}
        return {channel: [record.value or b"" for record in records] for channel, records in seen.items()}

    return SinkCase(lambda: open_sink(settings), published, CHANNELS)


# Batches of a network cannot be cut the same way twice, and with a poll that does not wait a fixed number of polls
# reads no fixed number of records: these two promises are tested elsewhere.
test_every_record = contract.test_a_source_yields_every_record_of_every_partition_in_order
test_offsets = contract.test_offsets_rise_within_a_partition_and_each_batch_ends_where_the_next_begins
test_any_record = contract.test_a_source_goes_on_from_any_record
test_finished = contract.test_a_source_is_finished_once_all_is_read_and_stays_so
test_waiting = contract.test_a_partition_waits_until_it_is_read
test_not_reassigned = contract.test_partitions_that_do_not_change_are_not_reassigned
test_new_sink = contract.test_a_new_sink_has_no_checkpoint
test_committed = contract.test_what_is_committed_is_published_in_order_with_its_checkpoint
test_not_committed = contract.test_what_is_not_committed_is_taken_back
test_crash_before_the_first = contract.test_a_crash_before_the_first_commit_starts_afresh
test_empty_commit = contract.test_a_commit_without_messages_moves_the_checkpoint


def test_nothing_comes_of_held_partitions(source: SourceCase) -> None:
    reading = source.open()
    reading.start(None)
    first, second, _ = source.records
    before: list[RawBatch] = []
    while reading.waiting(second):
        before += reading.poll(0.1, [first])
    assert {batch.partition for batch in before} == {second}
    assert reading.waiting(first)
    after: list[RawBatch] = []
    while not reading.finished:
        after += reading.poll(0.1)
    assert sum(len(batch.records) for batch in after) == len(source.records[first])


@pytest.mark.parametrize("course", ["wwcwxwcxcwwc", "cxwxwwwxccwc"])
def test_any_course_of_writes_commits_and_crashes(where: Where, course: str) -> None:
    case = sink_case(where)
    committed: list[bytes] = []
    pending: list[bytes] = []
    last: Checkpoint | None = None
    writing = case.open()
    assert writing.recover() is None
    for number, step in enumerate(course):
        if step == "w":
            pending.append(str(number).encode())
            writing.write(Message("results", b"k", pending[-1]))
        elif step == "c":
            last = checkpoint({"a": number})
            writing.commit(last)
            committed, pending = committed + pending, []
        else:
            writing.close()
            writing, pending = case.open(), []
            assert writing.recover() == last
    writing.close()
    assert case.published()["results"] == committed
