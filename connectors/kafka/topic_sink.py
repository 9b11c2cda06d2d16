"""Topics as a Sink: messages and positions in one transaction, or, without transactions, messages first.

Between commits messages wait here rather than in an open transaction: a transaction holds back every reader of the
topic, and one that a killed process left open holds them back until it times out. Only when much is waiting does the
transaction begin early.

With a Kafka source the positions are the group's committed offsets, so that any member can go on. With any other
source they are kept beside one offset of the results topic, under a group of the sink's own.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from connectors.kafka.driver import CommittedOffset, Partition, Reader, Record, Writer
from connectors.kafka.progress import Notes, table_from_metadata, table_to_metadata, to_metadata
from connectors.kafka.settings import SinkSettings, SourceSettings
from connectors.kafka.statistics import SinkStatistics
from connectors.kafka.watchdog import Guard
from monitor.errors import CommitRefusedError, ConnectorError, OutageError
from monitor.ports import Channel, Checkpoint, Message, SinkReport
from monitor.ports.certificates import CertificatesOnDisk

log = logging.getLogger(__name__)

# Waiting messages are cheap until they are many; then the transaction begins, and the client library sends them.
_BYTES_WAITING = 16 * 1024 * 1024
_TRUNCATED = "truncated-from"
_READ_BACK_POLL = 0.2  # seconds


class Positions(Protocol):
    """Where the positions of the source are kept."""

    def recover(self) -> Checkpoint | None: ...

    def offsets(self, checkpoint: Checkpoint) -> Mapping[Partition, CommittedOffset]:
        """A checkpoint as offsets of the group."""
        ...

    @property
    def membership(self) -> object | None:
        """What proves that they are ours to commit; None if that is in doubt."""
        ...

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        """Commit without a transaction."""
        ...

    def committed(self, offsets: Mapping[Partition, CommittedOffset]) -> None: ...

    def refused(self) -> None: ...

    def close(self) -> None: ...


class OwnGroup:
    """Positions of a source that is not Kafka: one table beside one offset."""

    def __init__(self, connect: Callable[[], Reader], topic: str) -> None:
        self._connect = connect
        self._partition = Partition(topic, 0)

    @cached_property
    def _reader(self) -> Reader:
        return self._connect()

    def recover(self) -> Checkpoint | None:
        committed = self._reader.committed([self._partition]).get(self._partition)
        return (
            None
            if committed is None
            else Checkpoint(table_from_metadata(committed.metadata) if committed.metadata else {})
        )

    def offsets(self, checkpoint: Checkpoint) -> Mapping[Partition, CommittedOffset]:
        return {self._partition: CommittedOffset(0, table_to_metadata(checkpoint.progress))}

    @property
    def membership(self) -> object | None:
        return self._reader.outsider()

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        self._reader.commit(offsets)

    def committed(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        """Nothing to remember: nobody else writes there."""

    def refused(self) -> None:
        """The source cannot be told to begin again: a start can."""
        raise OutageError("a commit to Kafka was given up: what is opened anew goes on where the last one stands")

    def close(self) -> None:
        if "_reader" in self.__dict__:
            self._reader.close()


class Member(Protocol):
    """What the sink needs of a Kafka source that is a member of a group."""

    def by_name(self) -> Mapping[str, Partition]: ...

    def notes(self, partition: Partition) -> Notes: ...

    @property
    def membership(self) -> object | None: ...

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None: ...

    def committed(self, offsets: Mapping[Partition, CommittedOffset]) -> None: ...

    def refused(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceGroup:
    """Positions of a Kafka source: its own group's offsets, with the rest of the progress as metadata."""

    source: Member

    def recover(self) -> Checkpoint | None:
        """Positions come with the partitions: the source reads them when they are assigned."""
        return None

    def offsets(self, checkpoint: Checkpoint) -> Mapping[Partition, CommittedOffset]:
        partitions = self.source.by_name()
        return {
            partitions[name]: CommittedOffset(
                progress.offset, to_metadata(progress, self.source.notes(partitions[name]))
            )
            for name, progress in checkpoint.progress.items()
            if name in partitions
        }

    @property
    def membership(self) -> object | None:
        return self.source.membership

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        self.source.commit(offsets)

    def committed(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        self.source.committed(offsets)

    def refused(self) -> None:
        self.source.refused()

    def close(self) -> None:
        """The source is closed by its owner."""


class KafkaSink:
    """A `Sink` on topics."""

    def __init__(
        self,
        settings: SinkSettings,
        connect: Callable[[SinkSettings], Writer],
        positions: Positions,
        guard: Guard,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._transactional = settings.delivery == "exactly-once"
        self._connect = connect
        self._positions = positions
        self._guard = guard
        self._clock = clock
        self._waiting: list[Record] = []
        self._bytes = 0
        self._open = False
        self._since_commit: Counter[str] = Counter()
        self._statistics = SinkStatistics()
        self._certificates = CertificatesOnDisk(*settings.connection.certificates)

    @cached_property
    def _writer(self) -> Writer:
        return self._connect(self.settings)

    def recover(self) -> Checkpoint | None:
        """What a killed process left open was aborted when the writer was made; see that we may write at all."""
        self._writer.check(self.settings.topics)
        warn_where_not_compacted(self.settings, self._writer.cleanup)
        return self._positions.recover()

    def write(self, message: Message) -> None:
        topic = self.settings.topic(message.channel)
        if topic is None:
            return
        record = fitting(topic, message, self.settings.max_message_bytes)
        if len(record.value) < len(message.value):
            self._statistics = replace(self._statistics, truncated=self._statistics.truncated + 1)
        self._waiting.append(record)
        self._bytes += len(record.key) + len(record.value)
        self._since_commit[message.channel] += 1
        if self._bytes > _BYTES_WAITING:
            self._begin_and_send()

    def commit(self, checkpoint: Checkpoint) -> None:
        started = self._clock()
        offsets = self._positions.offsets(checkpoint)
        with self._guard.limit("a commit to Kafka", self.settings.commit_timeout / 1e6):
            try:
                committed = self._commit(offsets)
            except CommitRefusedError:
                now = self._statistics
                self._statistics = replace(now, refused=now.refused + 1, aborted=now.aborted + self._open)
                self._positions.refused()
                self._forget()
                raise
        self._positions.committed(offsets)
        messages = Counter(self._statistics.messages) + self._since_commit
        self._forget()
        self._statistics = replace(
            self._statistics,
            messages=dict(messages),
            commits=self._statistics.commits + committed,
            commit_seconds=self._statistics.commit_seconds + self._clock() - started,
        )

    def keeps(self, channel: Channel) -> bool:
        """Whether the channel has a topic."""
        return self.settings.topic(channel) is not None

    def read_back(self, channel: Channel) -> Iterator[bytes]:
        """Every record of the topic up to its end as it is now; each look connects anew."""
        topic, connection = self.settings.topic(channel), self.settings.connection
        if topic is None:
            return
        # kafka-python whatever the driver: its position passes the markers that transactions leave behind records.
        from connectors.kafka import python_driver  # noqa: PLC0415 - slow to import

        settings = SourceSettings(connection, topics=(topic,))
        reader, beyond = (
            python_driver.reader(as_read) for as_read in (settings, replace(settings, isolation="read_uncommitted"))
        )
        seconds = self.settings.commit_timeout / 1e6
        with closing(reader), closing(beyond), self._guard.limit("reading messages back", seconds):
            partitions = [Partition(topic, number) for number in reader.partitions(topic)]
            # Where writing stands, not what is settled so far: a transaction whose offsets count already may be about
            # to be settled in this topic.
            ends = beyond.latest(partitions)
            reader.assign(partitions)
            reader.seek(reader.earliest(partitions))
            silent_since = self._clock()
            while any((reader.position(partition) or 0) < end for partition, end in ends.items()):
                for fetched in reader.poll(_READ_BACK_POLL):
                    silent_since = self._clock()
                    yield from (record for record in fetched.records if record is not None)
                if self._clock() - silent_since > seconds / 2:
                    raise OutageError(f"Kafka: nothing of topic {topic} could be read for {seconds / 2:.0f} s")

    def amend(self, messages: Iterable[Message]) -> None:
        """By a producer of its own, outside of any transaction."""
        from connectors.kafka import python_driver  # noqa: PLC0415 - slow to import

        writer = python_driver.writer(self.settings, None)
        with closing(writer), self._guard.limit("writing to Kafka", self.settings.commit_timeout / 1e6):
            topics = ((self.settings.topic(message.channel), message) for message in messages)
            writer.send([Record(topic, each.key, each.value, each.headers) for topic, each in topics if topic])
            writer.flush()

    def close(self) -> None:
        """A transaction that is still open is left to the brokers: asking them may take for ever."""
        if "_writer" in self.__dict__:
            self._writer.close()
        self._positions.close()
        self._guard.close()

    @property
    def statistics(self) -> SinkStatistics:
        """A snapshot, for metrics."""
        return self._statistics

    def report(self) -> SinkReport:
        """The transactions, for whoever knows nothing about Kafka."""
        now, expires = self._statistics, self._certificates.expires()
        return SinkReport(now.commits, now.aborted, expires) if self._transactional else SinkReport(0, 0, expires)

    def _commit(self, offsets: Mapping[Partition, CommittedOffset]) -> bool:
        """Whether there was anything to commit."""
        membership = self._positions.membership
        if membership is None:
            if self._open:
                self._writer.abort()
            raise CommitRefusedError("the group is moving partitions: nothing is published until that is over")
        if not offsets and not self._since_commit:
            return False
        self._begin_and_send()
        if self._transactional:
            self._writer.commit(offsets, membership)
        else:
            self._writer.flush()
            if offsets:
                self._positions.commit(offsets)
        return True

    def _begin_and_send(self) -> None:
        if self._transactional and not self._open:
            self._writer.begin()
            self._open = True
        self._writer.send(self._waiting)
        self._waiting = []
        self._bytes = 0

    def _forget(self) -> None:
        self._waiting = []
        self._bytes = 0
        self._open = False
        self._since_commit = Counter()


def warn_where_not_compacted(settings: SinkSettings, cleanup: Callable[[str], str | None]) -> None:
    """`cleanup` says what becomes of a topic's old records; None where that may not be asked."""
    for topic, lost in (
        (settings.recalibrations, "a stream's last recalibration will be deleted; clients that start later find none"),
        (settings.states, "what is known of a stream will be deleted, and a restart begins anew with it"),
    ):
        policy = None if topic is None else cleanup(topic)
        if policy is not None and "compact" not in policy:
            log.warning(
                "topic %s is not compacted (cleanup.policy=%s): in time %s. Set cleanup.policy=compact",
                topic,
                policy,
                lost,
            )


def fitting(topic: str, message: Message, most: int) -> Record:
    """The record of a message. A dead letter that is itself too long would stop everything that comes after it: of one
    with more bytes than `most` the beginning is kept."""
    record = Record(topic, message.key, message.value, message.headers)
    if message.channel != "dead-letters":
        return record
    headers = sum(len(name) + len(value) for name, value in record.headers)
    room = most - len(record.key) - headers - len(_TRUNCATED) - 32
    if len(record.value) <= room:
        return record
    if room < 0:
        raise ConnectorError(f"a dead letter's key and headers exceed {most} bytes")
    marked = (*record.headers, (_TRUNCATED, str(len(record.value)).encode()))
    return record._replace(value=record.value[:room], headers=marked)
