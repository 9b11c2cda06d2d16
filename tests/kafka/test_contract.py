"""The contract that every connector keeps, on Kafka: both drivers on the mock, exactly once on the real thing."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from connectors.kafka import KafkaSource, open_sink, open_source, sink_settings, source_settings, topic_sink
from monitor.ports import Checkpoint, RawBatch, Reassignment
from tests.connectors.contract import SinkContract, SourceContract
from tests.connectors.harness import RECORDS, SinkCase, SourceCase, nothing
from tests.kafka.apache import Cluster
from tests.kafka.mock import MockCluster
from tests.kafka.topics import Broker, mock_broker, read, unique
from tests.marks import in_chaos

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


# Everywhere: both drivers, both brokers, once. Among the long forms also the other two combinations.
@pytest.fixture(params=["mock-fast", "apache-python", in_chaos("mock-python"), in_chaos("apache-fast")])
def where(request: pytest.FixtureRequest) -> Where:
    kind, driver = request.param.split("-")
    if kind == "mock":
        mock: MockCluster = request.getfixturevalue("mock_cluster")
        return Where(mock_broker(mock), driver)
    cluster: Cluster = request.getfixturevalue("apache_kafka")
    return Where(Broker(cluster), driver)


class TestSources(SourceContract):
    @pytest.fixture
    def source(self, where: Where) -> Iterator[SourceCase]:
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


class TestSinks(SinkContract):
    @pytest.fixture
    def sink(self, where: Where, monkeypatch: pytest.MonkeyPatch) -> SinkCase:
        """With transactions everything is sent at once, so that a crash leaves one open; the mock has none."""
        if where.broker.transactions:
            monkeypatch.setattr(topic_sink, "_BYTES_WAITING", -1)
        topics = {channel: unique(channel) for channel in CHANNELS}
        where.broker.create(*topics.values())
        delivery = "exactly-once" if where.broker.transactions else "at-least-once"
        settings = sink_settings(where.options(group=unique("g"), delivery=delivery, **topics))

        def published() -> Mapping[str, list[bytes]]:
            seen = {channel: read(where.broker.bootstrap, topic) for channel, topic in topics.items()}
            return {channel: [record.value or b"" for record in records] for channel, records in seen.items()}

        return SinkCase(lambda: open_sink(settings), published, CHANNELS)
