"""Topics for tests: made, filled and read back with librdkafka, which none of the tests are about."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.apache import Cluster
from tests.kafka.mock import API_VERSION, MockCluster
from tests.processes import wait_until

_QUIET = {"log_level": 0, "log.connection.close": False}


@dataclass(frozen=True)
class Broker:
    """A cluster, real or mock, as the tests see it."""

    cluster: Cluster | MockCluster
    options: Mapping[str, str] = field(default_factory=dict)
    """What the connectors have to be told about it."""
    transactions: bool = True

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def create(self, *names: str, partitions: int = 1, replicas: int = 1, **settings: str) -> None:
        """Topics, with Kafka's own names for their settings (dots as underscores)."""
        if isinstance(self.cluster, MockCluster):
            for name in names:
                self.cluster.create_topic(name, partitions)
            return
        admin = AdminClient({"bootstrap.servers": self.bootstrap, **_QUIET})
        config = {key.replace("_", "."): value for key, value in settings.items()}
        for made in admin.create_topics(
            [NewTopic(name, partitions, replicas, config=config) for name in names]
        ).values():
            try:
                made.result(30)
            except KafkaException as error:
                # A busy broker made it and did not answer in time: librdkafka asked again.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
        # A broker that is busy answers for a topic a moment after it was made.
        wait_until(lambda: set(names) <= admin.list_topics(timeout=30).topics.keys(), f"{names} to be there")

    def produce(
        self,
        topic: str,
        records: Mapping[int, Sequence[bytes | None]],
        *,
        compression: str = "none",
        transactional: bool = False,
    ) -> None:
        """Write records to the partitions of a topic."""
        settings = {"bootstrap.servers": self.bootstrap, "compression.type": compression, **_QUIET}
        settings |= {"linger.ms": 20, "message.max.bytes": 4_000_000}
        if transactional:
            settings["transactional.id"] = unique("producer")
        producer = Producer(settings)
        if transactional:
            producer.init_transactions()
            producer.begin_transaction()
        for partition, values in records.items():
            for value in values:
                _produce(producer, topic, partition, value)
        assert producer.flush(60) == 0
        if transactional:
            producer.commit_transaction()

    def first(self, topic: str) -> int:
        """Where the first partition of a topic begins now."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": unique("looker"), **_QUIET})
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        consumer.close()
        return low


@dataclass(frozen=True)
class Written:
    """A record that was read back."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def read(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[Written]:
    """Everything that a reader of a topic sees, to its end."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": unique("reader"),
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 20,
        **_QUIET,
    }
    consumer = Consumer(settings)
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    found, open_ends = [], set(partitions)
    while open_ends:
        for message in consumer.consume(10_000, 0.2):
            error = message.error()
            if error is None:
                headers = tuple((name, bytes(value or b"")) for name, value in message.headers() or ())
                found.append(Written(message.partition() or 0, message.key(), message.value(), headers))  # type: ignore[arg-type]
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                open_ends.discard(message.partition())
    consumer.close()
    return found


def mock_broker(cluster: MockCluster) -> Broker:
    version = ".".join(map(str, API_VERSION))
    return Broker(cluster, {"broker_version": version, "session_timeout": "2s"}, transactions=False)


def unique(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def _produce(producer: Producer, topic: str, partition: int, value: bytes | None) -> None:
    while True:
        try:
            producer.produce(topic, value=value, key=b"k", partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            return
