"""The kafka-python driver. Public API only; each workaround names the measured behaviour that it is for."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.structs import MemberState, OffsetAndMetadata

from connectors.kafka import cluster
from connectors.kafka.driver import Change, Committed, Fetched, Place, PositionLostError, Record
from connectors.kafka.settings import Connection, SinkSettings, SourceSettings
from connectors.kafka.watchdog import within
from monitor.errors import CommitRefusedError, ConnectorError

log = logging.getLogger(__name__)

_MOVED_ON = (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
# close() otherwise waits for request_timeout_ms (30 s) when it meets a rebalance; the others notice a member that
# went without a word by its session timeout.
_CLOSE_MILLISECONDS = 1000
# Records of one poll, when it should leave none: as many as are fetched, which is limited in bytes.
_EVERYTHING = 2**31


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes what happened. It runs on the I/O thread, where anything more than a note blocks the heartbeat."""

    def __init__(self) -> None:
        self.changes: deque[Change] = deque()

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self.changes.append(Change("revoked", _places(revoked)))

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self.changes.append(Change("assigned", _places(assigned)))

    def on_partitions_lost(self, lost: Collection[Any]) -> None:
        """Overridden because the default tells the revoked callback, and lost is not revoked."""
        self.changes.append(Change("lost", _places(lost)))


class _Failures(logging.Filter):
    """Counts what the library only logs: a fetch that failed is made again, and nobody else is told."""

    LOGGER = logging.getLogger("kafka.consumer.fetcher")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        self.count += record.levelno >= logging.WARNING
        return True


class PythonReader:
    """A `Reader` on KafkaConsumer."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._failures = _Failures()
        _Failures.LOGGER.addFilter(self._failures)
        self._listener = _Listener()
        self._held: frozenset[Place] = frozenset()
        self._kept: list[Fetched] = []
        """Fetched and not handed on yet: its place is held, or was when it came."""
        strategy = {"cooperative": CooperativeStickyAssignor, "range": RangePartitionAssignor}[settings.strategy]
        self._consumer = cluster.connect(
            settings.connection,
            KafkaConsumer,
            group_id=settings.group,
            group_instance_id=settings.instance,
            # Never a silent reset: where to begin is decided in topic_source.py, and seeked to.
            auto_offset_reset="none",
            enable_auto_commit=False,
            allow_auto_create_topics=False,
            isolation_level=settings.isolation,
            partition_assignment_strategy=[strategy],
            session_timeout_ms=settings.session_timeout // 1000,
            heartbeat_interval_ms=settings.session_timeout // 4000,
            max_poll_interval_ms=settings.poll_interval // 1000,
            max_poll_records=settings.poll_records,
            # A deserializer would turn one undecodable record into a consumer that spins for ever: raw bytes only.
            value_deserializer=None,
        )

    def partitions(self, topic: str) -> frozenset[int]:
        found = cluster.partitions(self._settings.connection, [topic])[topic]
        # Metadata in this client before the first poll: without it 3-5 % of starts got an empty assignment.
        self._consumer.partitions_for_topic(topic)
        return found

    def subscribe(self, topics: Sequence[str]) -> None:
        self._consumer.subscribe(list(topics), listener=self._listener)

    def assign(self, places: Collection[Place]) -> None:
        self._consumer.assign([_partition(place) for place in places])
        self._listener.changes.append(Change("assigned", frozenset(places)))

    def changes(self) -> Sequence[Change]:
        found = list(self._listener.changes)
        self._listener.changes.clear()
        return found

    def changed(self) -> bool:
        return bool(self._listener.changes)

    def seek(self, positions: Mapping[Place, int]) -> None:
        self._kept = [each for each in self._kept if each.place not in positions]
        for place, offset in positions.items():
            self._consumer.seek(_partition(place), offset)

    def poll(self, timeout: float) -> Sequence[Fetched]:
        ready = [each for each in self._kept if each.place not in self._held]
        if ready:
            self._kept = [each for each in self._kept if each.place in self._held]
            return ready
        return self._fetch(timeout, _EVERYTHING if self._held else None)

    def _fetch(self, timeout: float, most: int | None) -> Sequence[Fetched]:
        try:
            polled = self._consumer.poll(int(timeout * 1000), max_records=most)
        except NoOffsetForPartitionError:
            # New partitions without a commit: whoever asks for `changes` will seek them.
            if self.changed():
                return ()
            raise
        except OffsetOutOfRangeError as error:
            raise PositionLostError(_lost(error)) from error
        except KafkaError as error:
            # Never poll again after this: after an error while unpacking, the next but one poll does not return.
            raise ConnectorError(f"cannot read from Kafka: {error}") from error
        return [_fetched(partition, records) for partition, records in polled.items() if records]

    def hold(self, places: Collection[Place]) -> None:
        """A partition that is paused in the middle of what was fetched of it may never be read again.

        kafka-python 3.0.12 puts such a rest aside and fetches nothing of the partition until it takes the rest up,
        which it does not once another partition's has been read. So there is no rest: all that has been fetched is
        kept here before a pause, and while anything is paused, polls take all there is.
        """
        wanted = {_partition(place) for place in places} & self._consumer.assignment()
        paused = self._consumer.paused()
        if wanted - paused:
            with suppress(PositionLostError):  # it comes again with the next poll
                self._kept += self._fetch(0.0, _EVERYTHING)
        self._held = frozenset(places)
        self._consumer.pause(*(wanted - paused))
        self._consumer.resume(*(paused - wanted))

    def committed(self, places: Collection[Place]) -> Mapping[Place, Committed]:
        found = {place: self._ask(self._consumer.committed, _partition(place), metadata=True) for place in places}
        return {place: Committed(each.offset, each.metadata or "") for place, each in found.items() if each is not None}

    def earliest(self, places: Collection[Place]) -> Mapping[Place, int]:
        return self._offsets(self._consumer.beginning_offsets, places)

    def latest(self, places: Collection[Place]) -> Mapping[Place, int]:
        return self._offsets(self._consumer.end_offsets, places)

    def at_time(self, places: Collection[Place], milliseconds: int) -> Mapping[Place, int]:
        ends = self.latest(places)
        wanted = {_partition(place): milliseconds for place in places}
        found = self._ask(self._consumer.offsets_for_times, wanted)
        return {
            place: ends[place] if found.get(_partition(place)) is None else found[_partition(place)].offset
            for place in places
        }

    def position(self, place: Place) -> int | None:
        if _partition(place) not in self._consumer.assignment():
            return None
        for each in self._kept:
            if each.place == place:
                return int(each.offsets[0])
        offset: int | None = self._ask(self._consumer.position, _partition(place), timeout_ms=0)
        return offset

    def highwater(self, place: Place) -> int | None:
        if _partition(place) not in self._consumer.assignment():
            return None
        offset: int | None = self._ask(self._consumer.highwater, _partition(place))
        return offset

    @property
    def errors(self) -> int:
        return self._failures.count

    def membership(self) -> object | None:
        metadata = self._consumer.group_metadata()
        return metadata if metadata.state is MemberState.STABLE else None

    def outsider(self) -> object:
        return self._settings.group

    def commit(self, offsets: Mapping[Place, Committed]) -> None:
        try:
            self._consumer.commit(_offsets(offsets), timeout_ms=self._settings.poll_interval // 1000)
        except _MOVED_ON as error:
            raise CommitRefusedError(f"the group moved on: {error}") from error
        except KafkaError as error:
            raise ConnectorError(f"cannot commit offsets: {error}") from error

    def close(self) -> None:
        _Failures.LOGGER.removeFilter(self._failures)
        self._consumer.close(autocommit=False, timeout_ms=_CLOSE_MILLISECONDS)

    def _offsets(self, ask: Callable[..., Any], places: Collection[Place]) -> Mapping[Place, int]:
        found = self._ask(ask, [_partition(place) for place in places])
        return {Place(*partition): offset for partition, offset in found.items()}

    def _ask(self, question: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return question(*arguments, **options)
        except KafkaError as error:
            raise ConnectorError(f"Kafka does not answer: {error}") from error


class PythonWriter:
    """A `Writer` on KafkaProducer."""

    def __init__(self, settings: SinkSettings, transactional_id: str | None) -> None:
        self._settings = settings
        self._transactional_id = transactional_id
        # The brokers abort a transaction that takes longer, so there is nothing to wait for after that.
        self._patience = settings.transaction_timeout / 1e6
        self._futures: list[Any] = []
        cluster.partitions(settings.connection, settings.topics)
        self._producer = self._connect()

    def _connect(self) -> Any:
        """A producer that may begin a transaction; what an earlier one of that name left open is ended."""
        deadline = time.monotonic() + self._settings.commit_timeout / 1e6
        while True:
            producer = self._make()
            if self._transactional_id is None:
                return producer
            what = f"start transactions as {self._transactional_id}"
            try:
                within(self._patience, partial(self._do, what, producer.init_transactions))
            except TimeoutError as error:
                _leave(producer)
                if time.monotonic() > deadline:
                    raise ConnectorError(f"Kafka: cannot {what}: no answer, asked again and again") from error
                log.warning("Kafka: no answer within %.0f s: trying again to %s", self._patience, what)
            else:
                return producer

    def _make(self) -> Any:
        settings = self._settings
        return cluster.connect(
            settings.connection,
            KafkaProducer,
            transactional_id=self._transactional_id,
            transaction_timeout_ms=settings.transaction_timeout // 1000,
            compression_type=None if settings.compression == "none" else settings.compression,
            allow_auto_create_topics=False,
            acks="all",
            linger_ms=5,
            batch_size=256 * 1024,
            # Head room over the longest message that the sink sends: keys, headers and framing.
            max_request_size=settings.max_message_bytes + 64 * 1024,
            # Adding offsets right after the last transaction is answered "not yet": ask again soon, not after 100 ms.
            retry_backoff_ms=10,
        )

    def check(self, topics: Collection[str]) -> None:
        for topic in topics:
            self._do(f"write to {topic}", self._producer.partitions_for, topic)

    def cleanup(self, topic: str) -> str | None:
        return cluster.cleanup(self._settings.connection, topic)

    def begin(self) -> None:
        self._do("begin a transaction", self._producer.begin_transaction)

    def send(self, records: Sequence[Record]) -> None:
        for record in records:
            future = self._do(
                f"write to {record.topic}",
                self._producer.send,
                record.topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
            )
            self._futures.append(future)

    def flush(self) -> None:
        futures, self._futures = self._futures, []
        self._flush(self._producer, futures)

    def commit(self, offsets: Mapping[Place, Committed], membership: object) -> None:
        """A producer that does not answer is replaced: its successor ends the transaction, one way or the other.

        A request to a coordinator whose broker refuses the connection is dropped by kafka-python 3.0.12, and whoever
        waits for its answer waits for ever. As nobody knows how far it came, it counts as refused: what is committed
        is read from the group.
        """
        futures, self._futures = self._futures, []
        try:
            within(self._patience, partial(self._end, self._producer, futures, offsets, membership))
        except _MOVED_ON as error:
            self.abort()
            raise CommitRefusedError(f"the group moved on: {error}") from error
        except KafkaError as error:
            raise ConnectorError(f"the transaction failed: {error}") from error
        except TimeoutError as error:
            self._replace("commit")
            raise CommitRefusedError(f"no answer to a commit within {self._patience:.0f} s") from error

    def abort(self) -> None:
        self._futures.clear()
        try:
            within(self._patience, partial(self._do, "abort the transaction", self._producer.abort_transaction))
        except TimeoutError:
            self._replace("abort")

    def _end(
        self, producer: Any, futures: Sequence[Any], offsets: Mapping[Place, Committed], membership: object
    ) -> None:
        """Of this very producer: when this is late, the next one has taken its place."""
        self._flush(producer, futures)
        if offsets:
            producer.send_offsets_to_transaction(_offsets(offsets), membership)
        producer.commit_transaction()

    def _flush(self, producer: Any, futures: Sequence[Any]) -> None:
        self._do("write", producer.flush)
        for future in futures:
            self._do("write", future.get)

    def _replace(self, what: str) -> None:
        log.warning("Kafka: no answer to a transaction's %s within %.0f s: connecting anew", what, self._patience)
        _leave(self._producer)
        self._producer = self._connect()

    def close(self) -> None:
        try:
            self._producer.close(timeout=_CLOSE_MILLISECONDS / 1000)
        except KafkaError as error:
            log.warning("closing the producer: %s", error)

    def _do(self, what: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except KafkaError as error:
            raise ConnectorError(f"Kafka: cannot {what}: {error}") from error


def reader(settings: SourceSettings) -> PythonReader:
    """Open a consumer."""
    return PythonReader(settings)


def group_reader(connection: Connection, group: str) -> PythonReader:
    """A consumer that only looks at what a group has committed."""
    return PythonReader(SourceSettings(connection, topics=(), group=group))


def writer(settings: SinkSettings, transactional_id: str | None) -> PythonWriter:
    """Open a producer; with a transactional id it ends whatever an earlier process of that name left open."""
    return PythonWriter(settings, transactional_id)


def _leave(producer: Any) -> None:
    """Close a producer that does not answer, and do not wait for it.

    The abort drops its messages: as long as it holds any it does not close, and keeps a processor busy.
    """

    def close() -> None:
        with suppress(KafkaError, TimeoutError):
            within(_CLOSE_MILLISECONDS / 1000, producer.abort_transaction)
        with suppress(KafkaError):
            producer.close(timeout=_CLOSE_MILLISECONDS / 1000)

    threading.Thread(target=close, name="shiftwatch-kafka-leave", daemon=True).start()


def _places(partitions: Collection[Any]) -> frozenset[Place]:
    return frozenset(Place(*partition) for partition in partitions)


def _partition(place: Place) -> Any:
    return TopicPartition(*place)


def _offsets(offsets: Mapping[Place, Committed]) -> dict[Any, Any]:
    return {_partition(place): OffsetAndMetadata(each.offset, each.metadata, -1) for place, each in offsets.items()}


def _lost(error: OffsetOutOfRangeError) -> dict[Place, int]:
    """The library passes {partition: position} as the error's argument."""
    positions = next((argument for argument in error.args if isinstance(argument, dict)), {})
    return {Place(*partition): int(at) for partition, at in positions.items()}


def _fetched(partition: Any, records: list[Any]) -> Fetched:
    first, last, count = records[0].offset, records[-1].offset, len(records)
    dense = last - first + 1 == count  # nothing compacted away, no transaction marker in between
    offsets = np.arange(first, last + 1) if dense else np.fromiter((r.offset for r in records), np.int64, count)
    return Fetched(
        place=Place(*partition),
        records=[record.value for record in records],
        offsets=offsets,
        timestamps=np.fromiter((record.timestamp for record in records), np.int64, count) * 1000,
    )
