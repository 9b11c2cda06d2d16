"""The confluent-kafka driver (extra `fast`): records are parsed in C, for those who need more than Python can parse.

Cooperative rebalancing only. Reaching the cluster and looking at topics goes through cluster.py with kafka-python,
so that errors at start read the same with both drivers.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from connectors.kafka import cluster
from connectors.kafka.driver import CommittedOffset, Fetched, OwnershipChange, Partition, PositionLostError, Record
from connectors.kafka.settings import RECONNECT_MILLISECONDS, Connection, SinkSettings, SourceSettings
from connectors.kafka.watchdog import within
from monitor.errors import CommitRefusedError, ConfigurationError, ConnectorError, OutageError

try:
    from confluent_kafka import (
        OFFSET_END,
        OFFSET_INVALID,
        Consumer,
        KafkaError,
        KafkaException,
        Producer,
        TopicPartition,
    )
except ImportError as error:
    raise ConfigurationError(['driver: "fast" needs confluent-kafka: pip install confluent-kafka']) from error

log = logging.getLogger(__name__)
_LIBRARY = logging.getLogger("kafka.librdkafka")
"""What the library says goes where the other driver's does: it repeats itself."""

# A partition whose queue is full is fetched again only after this, by default a second: queues are empty long before.
_FULL_QUEUE_MILLISECONDS = 20
_ANSWER_SECONDS = 30.0
_MOVED_ON = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._STATE,
    KafkaError._ASSIGNMENT_LOST,
)
_OUTAGES = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
)
"""Asking again may help, whatever the library has given up."""
_CLOSE_SECONDS = 5.0
_LEAST_SECONDS = 0.5
"""What a call is given at least, and how much later it is left to itself."""


class FastReader:
    """A `Reader` on confluent_kafka.Consumer. Its callbacks run inside `poll`, on the caller's thread."""

    def __init__(self, settings: SourceSettings) -> None:
        if settings.strategy != "cooperative":
            raise ConfigurationError(["strategy: the fast driver knows cooperative only"])
        self._settings = settings
        self._changes: list[OwnershipChange] = []
        self._assigned: frozenset[Partition] = frozenset()
        self._positions: dict[Partition, int] = {}
        self._held: frozenset[Partition] = frozenset()
        self._lost: set[Partition] = set()
        """Whose next record has been deleted, which the next poll says: this one brought records of others."""
        self._membership: object | None = None
        self._closing = False
        self._errors = 0
        cluster.partitions(settings.connection, settings.topics)
        options = _client_options(settings.connection) | {
            "group.id": settings.group or "shiftwatch-without-group",
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "allow.auto.create.topics": False,
            "isolation.level": settings.isolation,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": settings.session_timeout // 1000,
            "heartbeat.interval.ms": settings.session_timeout // 4000,
            "max.poll.interval.ms": settings.poll_interval // 1000,
            # Says where a partition ends, past transaction markers that never show as records.
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": _FULL_QUEUE_MILLISECONDS,
        }
        if settings.instance is not None:
            options["group.instance.id"] = settings.instance
        self._consumer = Consumer(options, logger=_LIBRARY)

    def partitions(self, topic: str) -> frozenset[int]:
        return cluster.partitions(self._settings.connection, [topic])[topic]

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def assign(self, partitions: Collection[Partition]) -> None:
        self._assigned = frozenset(partitions)
        self._consumer.assign([TopicPartition(*partition, OFFSET_END) for partition in partitions])
        self._changes.append(OwnershipChange("assigned", self._assigned))

    def changes(self) -> Sequence[OwnershipChange]:
        changes, self._changes = self._changes, []
        return changes

    def changed(self) -> bool:
        return bool(self._changes)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        """Assign anew from these offsets: a seek right after an assignment is refused, an assignment never is."""
        if not positions:
            return
        self._positions |= positions
        self._lost -= positions.keys()
        self._consumer.incremental_unassign([TopicPartition(*partition) for partition in positions])
        self._consumer.incremental_assign(
            [TopicPartition(*partition, offset) for partition, offset in positions.items()]
        )
        # The pause of `_on_assign` outlives the new assignment.
        self._consumer.resume([TopicPartition(*partition) for partition in positions if partition not in self._held])

    def poll(self, timeout: float) -> Sequence[Fetched]:
        self._tell_lost()
        try:
            messages = self._consumer.consume(self._settings.poll_records, timeout)
        except KafkaException as error:
            raise _translated(error, "cannot read from Kafka") from error
        runs: dict[tuple[Any, Any], list[Any]] = {}
        for message in messages:
            partition: tuple[Any, Any] = (message.topic(), message.partition())
            if message.error() is None:
                runs.setdefault(partition, []).append(message)
            else:
                self._take_error(Partition(*partition), message)
        fetched = [_fetched(Partition(*partition), run) for partition, run in runs.items()]
        for each in fetched:
            end = int(each.offsets[-1]) + 1
            self._positions[each.partition] = max(end, self._positions.get(each.partition, 0))
        if not fetched:
            self._tell_lost()
        return fetched

    def _tell_lost(self) -> None:
        if self._lost:
            lost = {partition: self._positions.get(partition, 0) for partition in self._lost}
            self._lost.clear()
            raise PositionLostError(lost)

    def hold(self, partitions: Collection[Partition]) -> None:
        wanted = frozenset(partitions) & self._assigned
        held = self._held & self._assigned
        if wanted - held:
            self._consumer.pause([TopicPartition(*partition) for partition in wanted - held])
        if held - wanted:
            self._consumer.resume([TopicPartition(*partition) for partition in held - wanted])
        self._held = wanted

    def committed(self, partitions: Collection[Partition]) -> Mapping[Partition, CommittedOffset]:
        if not partitions:
            return {}
        asked = [TopicPartition(*partition) for partition in partitions]
        committed = self._ask(lambda: self._consumer.committed(asked, timeout=_ANSWER_SECONDS))
        for each in committed:
            if each.error is not None:
                raise _failed(each.error, "Kafka does not answer")
        return {
            Partition(each.topic, each.partition): CommittedOffset(each.offset, each.metadata or "")
            for each in committed
            if each.offset != OFFSET_INVALID
        }

    def earliest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        return {partition: self._watermarks(partition)[0] for partition in partitions}

    def latest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        return {partition: self._watermarks(partition)[1] for partition in partitions}

    def at_time(self, partitions: Collection[Partition], milliseconds: int) -> Mapping[Partition, int]:
        asked = [TopicPartition(*partition, milliseconds) for partition in partitions]
        answered = self._ask(lambda: self._consumer.offsets_for_times(asked, timeout=_ANSWER_SECONDS))
        ends = self.latest(partitions)
        at = {Partition(each.topic, each.partition): each.offset for each in answered}
        return {partition: at[partition] if at[partition] >= 0 else ends[partition] for partition in partitions}

    def position(self, partition: Partition) -> int | None:
        return self._positions.get(partition)

    def highwater(self, partition: Partition) -> int | None:
        if partition not in self._assigned:
            return None
        answer = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
        return None if answer is None or answer[1] < 0 else int(answer[1])

    @property
    def errors(self) -> int:
        return self._errors

    def membership(self) -> object | None:
        return self._membership

    def outsider(self) -> object:
        return self._consumer.consumer_group_metadata()

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        try:
            self._consumer.commit(offsets=_offsets(offsets), asynchronous=False)
        except KafkaException as error:
            raise _translated(error, "cannot commit offsets") from error

    def close(self) -> None:
        """Leave the group, if that does not take too long: the others notice in any case."""
        self._closing = True
        try:
            within(_CLOSE_SECONDS, self._consumer.close)
        except (KafkaException, RuntimeError, SystemError, TimeoutError) as error:
            log.warning("closing the consumer: %r", error)

    def _on_assign(self, consumer: Any, partitions: Sequence[Any]) -> None:
        if self._closing:
            return
        assigned = _as_partitions(partitions)
        # At the end, and paused: nothing is fetched until `seek` says where to begin.
        at_end = [TopicPartition(*partition, OFFSET_END) for partition in assigned]
        consumer.incremental_assign(at_end)
        if at_end:
            consumer.pause(at_end)
        self._assigned |= assigned
        self._changes.append(OwnershipChange("assigned", assigned))
        self._membership = consumer.consumer_group_metadata()

    def _on_revoke(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._drop(consumer, partitions, OwnershipChange("revoked", _as_partitions(partitions)))

    def _on_lost(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._drop(consumer, partitions, OwnershipChange("lost", _as_partitions(partitions)))
        self._membership = None

    def _drop(self, consumer: Any, partitions: Sequence[Any], change: OwnershipChange) -> None:
        if self._closing:  # an error in here would come out of `close` as none of the library's own
            return
        consumer.incremental_unassign(partitions)
        self._assigned -= change.partitions
        self._lost -= change.partitions
        for partition in change.partitions:
            self._positions.pop(partition, None)
        self._changes.append(change)

    def _take_error(self, partition: Partition, message: Any) -> None:
        error = message.error()
        if error.code() == KafkaError._PARTITION_EOF:
            if partition in self._positions:
                self._positions[partition] = max(self._positions[partition], message.offset())
        elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            self._lost.add(partition)
        elif error.code() in _OUTAGES:
            self._errors += 1  # the library goes on by itself
        elif error.fatal() or not error.retriable():
            raise ConnectorError(f"cannot read {partition.name}: {error}")
        else:
            self._errors += 1

    def _watermarks(self, partition: Partition) -> tuple[int, int]:
        answer = self._ask(
            lambda: self._consumer.get_watermark_offsets(TopicPartition(*partition), timeout=_ANSWER_SECONDS)
        )
        if answer is None:
            raise OutageError(f"Kafka does not say where {partition.name} begins and ends")
        return int(answer[0]), int(answer[1])

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except KafkaException as error:
            raise _translated(error, "Kafka does not answer") from error


class FastWriter:
    """A `Writer` on confluent_kafka.Producer."""

    def __init__(self, settings: SinkSettings, transactional_id: str | None) -> None:
        self._settings = settings
        self._failed: list[ConnectorError] = []
        # The brokers abort a transaction that takes longer, so there is nothing to wait for after that.
        self._patience = settings.transaction_timeout / 1e6
        cluster.partitions(settings.connection, settings.topics)
        options = _client_options(settings.connection) | {
            "enable.idempotence": True,
            "allow.auto.create.topics": False,
            "linger.ms": 5,
            "compression.type": settings.compression,
            # Head room over the longest message that the sink sends: keys, headers and framing.
            "message.max.bytes": settings.max_message_bytes + 64 * 1024,
        }
        if transactional_id is not None:
            options["transactional.id"] = transactional_id
            options["transaction.timeout.ms"] = settings.transaction_timeout // 1000
        self._producer = Producer(options, logger=_LIBRARY)
        if transactional_id is not None:
            self._persist(f"start transactions as {transactional_id}", self._producer.init_transactions)

    def check(self, topics: Collection[str]) -> None:
        cluster.partitions(self._settings.connection, topics)

    def cleanup(self, topic: str) -> str | None:
        return cluster.cleanup(self._settings.connection, topic)

    def begin(self) -> None:
        self._persist("begin a transaction", lambda _: self._producer.begin_transaction())

    def send(self, records: Sequence[Record]) -> None:
        for record in records:
            self._produce(record)
            self._producer.poll(0)

    def flush(self) -> None:
        deadline = time.monotonic() + self._patience
        while self._producer.flush(1.0):
            if time.monotonic() > deadline:
                raise OutageError(f"Kafka: nothing could be written for {self._patience:.0f} s")
        if self._failed:
            raise self._failed[0]

    def commit(self, offsets: Mapping[Partition, CommittedOffset], membership: object) -> None:
        self.flush()
        try:
            if offsets:
                self._persist(
                    "commit offsets", self._producer.send_offsets_to_transaction, _offsets(offsets), membership
                )
            self._persist("commit", self._producer.commit_transaction)
        except CommitRefusedError:
            self.abort()
            raise

    def abort(self) -> None:
        self._persist("abort the transaction", self._producer.abort_transaction)
        self._failed.clear()

    def close(self) -> None:
        self._producer.flush(1.0)

    def _produce(self, record: Record) -> None:
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise _translated(error, f"Kafka: cannot write to {record.topic}") from error
            else:
                return

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(_failed(error, f"Kafka: cannot write to {message.topic()}"))

    def _persist(self, what: str, call: Callable[..., Any], *arguments: Any) -> None:
        """Transaction calls may be repeated as long as the library says so, and for a while.

        After an outage librdkafka may not keep to the time that a call is given: who calls does not wait for that.
        """
        deadline = time.monotonic() + self._patience
        while True:
            seconds = max(deadline - time.monotonic(), _LEAST_SECONDS)
            try:
                within(seconds + _LEAST_SECONDS, partial(call, *arguments, seconds))
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise _translated(error, f"Kafka: cannot {what}") from error
                time.sleep(0.05)
            except TimeoutError as error:
                raise OutageError(f"Kafka: cannot {what}: no answer within {self._patience:.0f} s") from error
            else:
                return


def reader(settings: SourceSettings) -> FastReader:
    """A consumer of librdkafka with these settings, not yet in a group."""
    return FastReader(settings)


def group_reader(connection: Connection, group: str) -> FastReader:
    """A consumer that only looks at what a group has committed."""
    return FastReader(SourceSettings(connection, topics=(), group=group))


def writer(settings: SinkSettings, transactional_id: str | None) -> FastWriter:
    """Open a producer; with a transactional id it ends whatever an earlier process of that name left open."""
    return FastWriter(settings, transactional_id)


def _client_options(connection: Connection) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap.servers": ",".join(connection.bootstrap),
        "client.id": connection.client_id,
        "security.protocol": connection.protocol.lower(),
        "reconnect.backoff.max.ms": RECONNECT_MILLISECONDS,
        # Broker outages are the library's to survive; their noise is not ours to repeat.
        "log.connection.close": False,
    }
    if connection.tls:
        given = {
            "ssl.ca.location": connection.ca_file,
            "ssl.certificate.location": connection.certificate_file,
            "ssl.key.location": connection.key_file,
            "ssl.key.password": connection.key_password,
        }
        options |= {key: str(value) for key, value in given.items() if value is not None}
        options["ssl.endpoint.identification.algorithm"] = "https" if connection.check_hostname else "none"
    if connection.mechanism is not None:
        options |= {
            "sasl.mechanism": connection.mechanism,
            "sasl.username": connection.username,
            "sasl.password": connection.password,
        }
    return options


def _translated(error: KafkaException, what: str) -> ConnectorError:
    if error.args[0].code() in _MOVED_ON:
        return CommitRefusedError(f"the group moved on: {error}")
    return _failed(error.args[0], what)


def _failed(error: Any, what: str) -> ConnectorError:
    """The error in words: an outage, where asking again may help."""
    away = error.code() in _OUTAGES or error.retriable()
    return (OutageError if away else ConnectorError)(f"{what}: {error}")


def _as_partitions(given: Sequence[Any]) -> frozenset[Partition]:
    return frozenset(Partition(each.topic, each.partition) for each in given)


def _offsets(offsets: Mapping[Partition, CommittedOffset]) -> list[Any]:
    return [TopicPartition(*partition, each.offset, metadata=each.metadata) for partition, each in offsets.items()]


def _fetched(partition: Partition, messages: Sequence[Any]) -> Fetched:
    count = len(messages)
    first, last = messages[0].offset(), messages[-1].offset()
    dense = last - first + 1 == count  # nothing compacted away, no transaction marker in between
    offsets = np.arange(first, last + 1) if dense else np.fromiter((m.offset() for m in messages), np.int64, count)
    return Fetched(
        partition=partition,
        records=[message.value() for message in messages],
        offsets=offsets,
        timestamps=np.fromiter((message.timestamp()[1] for message in messages), np.int64, count) * 1000,
        headers=lambda: [message.headers() for message in messages],
    )
