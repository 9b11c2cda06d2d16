"""The kafka-python driver. Public API only; each workaround names the measured behaviour that it is for."""

import gc
import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import (
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from kafka.structs import MemberState

from connectors.kafka import cluster
from connectors.kafka.driver import CommittedOffset, Fetched, OwnershipChange, Partition, PositionLostError
from connectors.kafka.python_values import CLOSE_MILLISECONDS, MOVED_ON, as_offsets, as_partitions, as_topic_partition
from connectors.kafka.python_writer import PythonWriter
from connectors.kafka.settings import Connection, SinkSettings, SourceSettings
from monitor.errors import CommitRefusedError

log = logging.getLogger(__name__)

# Records of one poll, when it should leave none: as many as are fetched, which is limited in bytes.
_EVERYTHING = 2**31
# What a poll is given at least while the group is joined: kafka-python 3.0.12 drops the answer to a join that comes
# between two polls, and joins once more, which has all other members join again, too. Where polls were moments only and
# the loop was busy between them, groups did not come to rest for minutes.
_JOINING_SECONDS = 0.5

TIDY_SECONDS = 60.0
"""After which connections that came to nothing are looked for: so many of them stay open at most, of each client."""


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Notes what happened. It runs on the I/O thread, where anything more than a note blocks the heartbeat."""

    def __init__(self) -> None:
        self.changes: deque[OwnershipChange] = deque()

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self.changes.append(OwnershipChange("revoked", as_partitions(revoked)))

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self.changes.append(OwnershipChange("assigned", as_partitions(assigned)))

    def on_partitions_lost(self, lost: Collection[Any]) -> None:
        """Overridden because the default tells the revoked callback, and lost is not revoked."""
        self.changes.append(OwnershipChange("lost", as_partitions(lost)))


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
        self._subscribed = False
        self._held: frozenset[Partition] = frozenset()
        self._kept: list[Fetched] = []
        """Fetched and not handed on yet: its partition is held, or was when it came."""
        self._settled = time.monotonic()
        """When this member was last not joining."""
        self._tidied = time.monotonic()
        """When what connections left behind was last collected."""
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
        return cluster.partitions(self._settings.connection, [topic])[topic]

    def subscribe(self, topics: Sequence[str]) -> None:
        self._subscribed = True
        self._consumer.subscribe(list(topics), listener=self._listener)
        # Metadata in this client before the first poll: without it 3-5 % of starts got an empty assignment. And after
        # subscribing: what came before counts as a change of the topics, and the group is joined twice.
        for topic in topics:
            self._ask(self._consumer.partitions_for_topic, topic)

    def assign(self, partitions: Collection[Partition]) -> None:
        self._consumer.assign([as_topic_partition(partition) for partition in partitions])
        self._listener.changes.append(OwnershipChange("assigned", frozenset(partitions)))

    def changes(self) -> Sequence[OwnershipChange]:
        waiting = self._listener.changes
        return [waiting.popleft() for _ in range(len(waiting))]  # one noted meanwhile is left for the next call

    def changed(self) -> bool:
        return bool(self._listener.changes)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        self._kept = [each for each in self._kept if each.partition not in positions]
        for partition, offset in positions.items():
            self._consumer.seek(as_topic_partition(partition), offset)

    def poll(self, timeout: float) -> Sequence[Fetched]:
        self._tidy()
        ready = [each for each in self._kept if each.partition not in self._held]
        if ready:
            self._kept = [each for each in self._kept if each.partition in self._held]
            return ready
        joining = self._joining()
        if self._subscribed and self.membership() is None:
            timeout = max(timeout, _JOINING_SECONDS)
        fetched = self._fetch(timeout, _EVERYTHING if self._held else None)
        self._see_to_joining(joining, bool(fetched))
        return fetched

    def _tidy(self) -> None:
        """Close the sockets of connections that were refused.

        kafka-python 3.0.12 leaves each to the collector of cycles, one a second while a broker is away. The service has
        that look rarely: after seventeen minutes the thousand descriptors are used up that a process may have by
        default. So it looks once a minute, also while records come: they may come from other brokers.
        """
        now = time.monotonic()
        if now - self._tidied > TIDY_SECONDS:
            gc.collect()
            self._tidied = now

    def _joining(self) -> bool:
        return self._consumer.group_metadata().state is MemberState.REBALANCING

    def _see_to_joining(self, before: bool, records: bool) -> None:
        """Join anew if the client has forgotten that it is joining.

        kafka-python 3.0.12 does when a topic's partitions have changed and the poll that began to join ends before the
        answer comes. Such a member sends no heartbeats, and stays as it is. While a member does join, polls bring
        nothing: records tell, and where there are none, time does.
        """
        now = time.monotonic()
        if not self._joining():
            self._settled = now
        elif (before and records) or now - self._settled > self._settings.assignment_timeout / 2e6:
            self._join_anew()
            self._settled = now

    def _join_anew(self) -> None:
        log.warning("Kafka: joining group %s anew: the client forgot that it was joining", self._settings.group)
        ours = as_partitions(self._consumer.assignment())
        self._ask(self._consumer.unsubscribe)
        self._listener.changes.append(OwnershipChange("revoked", ours))
        self.subscribe(self._settings.topics)

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
            raise cluster.failed("cannot read from Kafka", error) from error
        return [_fetched(partition, records) for partition, records in polled.items() if records]

    def hold(self, partitions: Collection[Partition]) -> None:
        """A partition that is paused in the middle of what was fetched of it may never be read again.

        kafka-python 3.0.12 puts such a rest aside and fetches nothing of the partition until it takes the rest up,
        which it does not once another partition's has been read. So there is no rest: all that has been fetched is
        kept here before a pause, and while anything is paused, polls take all there is.
        """
        wanted = {as_topic_partition(partition) for partition in partitions} & self._consumer.assignment()
        paused = self._consumer.paused()
        if wanted - paused:
            with suppress(PositionLostError):  # it comes again with the next poll
                self._kept += self._fetch(0.0, _EVERYTHING)
        self._held = frozenset(partitions)
        self._consumer.pause(*(wanted - paused))
        self._consumer.resume(*(paused - wanted))

    def committed(self, partitions: Collection[Partition]) -> Mapping[Partition, CommittedOffset]:
        committed = {
            partition: self._ask(self._consumer.committed, as_topic_partition(partition), metadata=True)
            for partition in partitions
        }
        return {
            partition: CommittedOffset(each.offset, each.metadata or "")
            for partition, each in committed.items()
            if each is not None
        }

    def earliest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        return self._offsets(self._consumer.beginning_offsets, partitions)

    def latest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        return self._offsets(self._consumer.end_offsets, partitions)

    def at_time(self, partitions: Collection[Partition], milliseconds: int) -> Mapping[Partition, int]:
        ends = self.latest(partitions)
        wanted = {as_topic_partition(partition): milliseconds for partition in partitions}
        answered = self._ask(self._consumer.offsets_for_times, wanted)
        return {
            partition: ends[partition]
            if answered.get(as_topic_partition(partition)) is None
            else answered[as_topic_partition(partition)].offset
            for partition in partitions
        }

    def position(self, partition: Partition) -> int | None:
        if as_topic_partition(partition) not in self._consumer.assignment():
            return None
        for each in self._kept:
            if each.partition == partition:
                return int(each.offsets[0])
        try:
            offset: int | None = self._consumer.position(as_topic_partition(partition), timeout_ms=0)
        except NoOffsetForPartitionError:
            # Others came meanwhile, without a commit, and are not sought yet. The client looks at all of them.
            return None
        except KafkaError as error:
            raise cluster.failed("Kafka does not answer", error) from error
        return offset

    def highwater(self, partition: Partition) -> int | None:
        if as_topic_partition(partition) not in self._consumer.assignment():
            return None
        offset: int | None = self._ask(self._consumer.highwater, as_topic_partition(partition))
        return offset

    @property
    def errors(self) -> int:
        return self._failures.count

    def membership(self) -> object | None:
        metadata = self._consumer.group_metadata()
        return metadata if metadata.state is MemberState.STABLE else None

    def outsider(self) -> object:
        return self._settings.group

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        try:
            self._consumer.commit(as_offsets(offsets), timeout_ms=self._settings.poll_interval // 1000)
        except MOVED_ON as error:
            raise CommitRefusedError(f"the group moved on: {error}") from error
        except KafkaError as error:
            raise cluster.failed("cannot commit offsets", error) from error

    def close(self) -> None:
        _Failures.LOGGER.removeFilter(self._failures)
        with suppress(KafkaError):  # the brokers may be away: they notice by themselves
            self._consumer.close(autocommit=False, timeout_ms=CLOSE_MILLISECONDS)

    def _offsets(self, ask: Callable[..., Any], partitions: Collection[Partition]) -> Mapping[Partition, int]:
        offsets = self._ask(ask, [as_topic_partition(partition) for partition in partitions])
        return {Partition(*partition): offset for partition, offset in offsets.items()}

    def _ask(self, question: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return question(*arguments, **options)
        except KafkaError as error:
            raise cluster.failed("Kafka does not answer", error) from error


class GroupOffsets:
    """What a group has committed, in one request: a consumer of kafka-python asks for one partition after the other,
    and waits for ever where no broker answers."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._group, self._seconds = group, connection.connect_timeout / 1e6
        self._admin = cluster.connect(connection, KafkaAdminClient)

    def committed(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        """The offsets; partitions without a commit are left out."""
        wanted = [as_topic_partition(partition) for partition in partitions]
        try:
            # The first group that a cluster is asked for has to wait for its coordinator.
            asked = cluster.answered(lambda: self._admin.list_group_offsets({self._group: wanted}), self._seconds)
        except KafkaError as error:
            raise cluster.failed("Kafka does not answer", error) from error
        offsets = asked[self._group].items()
        return {Partition(*partition): each.offset for partition, each in offsets if each.offset >= 0}

    def close(self) -> None:
        self._admin.close()


def reader(settings: SourceSettings) -> PythonReader:
    """A consumer of kafka-python with these settings, not yet in a group."""
    return PythonReader(settings)


def group_reader(connection: Connection, group: str) -> PythonReader:
    """A consumer that only looks at what a group has committed."""
    return PythonReader(SourceSettings(connection, topics=(), group=group))


def writer(settings: SinkSettings, transactional_id: str | None) -> PythonWriter:
    """Open a producer; with a transactional id it ends whatever an earlier process of that name left open."""
    return PythonWriter(settings, transactional_id)


def _lost(error: OffsetOutOfRangeError) -> dict[Partition, int]:
    """The library passes {partition: position} as the error's argument."""
    positions = next((argument for argument in error.args if isinstance(argument, dict)), {})
    return {Partition(*partition): int(at) for partition, at in positions.items()}


def _fetched(partition: Any, records: list[Any]) -> Fetched:
    first, last, count = records[0].offset, records[-1].offset, len(records)
    dense = last - first + 1 == count  # nothing compacted away, no transaction marker in between
    offsets = np.arange(first, last + 1) if dense else np.fromiter((r.offset for r in records), np.int64, count)
    return Fetched(
        partition=Partition(*partition),
        records=[record.value for record in records],
        offsets=offsets,
        timestamps=np.fromiter((record.timestamp for record in records), np.int64, count) * 1000,
        headers=lambda: [record.headers for record in records],
    )
