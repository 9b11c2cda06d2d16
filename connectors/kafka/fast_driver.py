"""The confluent-kafka driver (extra `fast`): records are parsed in C, for those who need more than Python can parse.

Cooperative rebalancing only. Reaching the cluster and looking at topics goes through cluster.py with kafka-python,
so that errors at start read the same with both drivers.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from connectors.kafka import cluster
from connectors.kafka.driver import CommittedOffset, Fetched, OwnershipChange, Partition, PositionLostError
from connectors.kafka.fast_values import LIBRARY, OUTAGES, as_offsets, as_partitions, client_options, failed, translated
from connectors.kafka.fast_writer import FastWriter
from connectors.kafka.settings import Connection, SinkSettings, SourceSettings
from connectors.kafka.watchdog import within
from monitor.errors import ConfigurationError, ConnectorError, OutageError

log = logging.getLogger(__name__)

# A partition whose queue is full is fetched again only after this, by default a second: queues are empty long before.
_FULL_QUEUE_MILLISECONDS = 20
_ANSWER_SECONDS = 30.0
# Where a partition stands, paused, until `seek` says where to begin. Never at its end: the library asks the broker
# where that is, and an answer that comes after `seek` may move reading there, past all that was still to be read.
_NOWHERE = 0
_CLOSE_SECONDS = 5.0


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
        options = client_options(settings.connection) | {
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
        self._consumer = Consumer(options, logger=LIBRARY)

    def partitions(self, topic: str) -> frozenset[int]:
        return cluster.partitions(self._settings.connection, [topic])[topic]

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def assign(self, partitions: Collection[Partition]) -> None:
        self._assigned = frozenset(partitions)
        self._consumer.assign([TopicPartition(*partition, _NOWHERE) for partition in partitions])
        self._consumer.pause([TopicPartition(*partition) for partition in partitions])
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
            raise translated(error, "cannot read from Kafka") from error
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
                raise failed(each.error, "Kafka does not answer")
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
            self._consumer.commit(offsets=as_offsets(offsets), asynchronous=False)
        except KafkaException as error:
            raise translated(error, "cannot commit offsets") from error

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
        assigned = as_partitions(partitions)
        nowhere = [TopicPartition(*partition, _NOWHERE) for partition in assigned]
        consumer.incremental_assign(nowhere)
        if nowhere:
            consumer.pause(nowhere)
        self._assigned |= assigned
        self._changes.append(OwnershipChange("assigned", assigned))
        self._membership = consumer.consumer_group_metadata()

    def _on_revoke(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._drop(consumer, partitions, OwnershipChange("revoked", as_partitions(partitions)))

    def _on_lost(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._drop(consumer, partitions, OwnershipChange("lost", as_partitions(partitions)))
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
        elif error.code() in OUTAGES:
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
            raise translated(error, "Kafka does not answer") from error


def reader(settings: SourceSettings) -> FastReader:
    """A consumer of librdkafka with these settings, not yet in a group."""
    return FastReader(settings)


def group_reader(connection: Connection, group: str) -> FastReader:
    """A consumer that only looks at what a group has committed."""
    return FastReader(SourceSettings(connection, topics=(), group=group))


def writer(settings: SinkSettings, transactional_id: str | None) -> FastWriter:
    """Open a producer; with a transactional id it ends whatever an earlier process of that name left open."""
    return FastWriter(settings, transactional_id)


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
