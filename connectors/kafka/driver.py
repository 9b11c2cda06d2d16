"""What a Kafka client library has to do for us: the boundary behind which the two drivers are interchangeable.

A driver translates a library's calls, records and errors, and decides nothing. What a rebalance, a lost position or a
refused commit means is decided once, in topic_source.py and topic_sink.py.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from connectors.kafka.settings import Connection, SinkSettings, SourceSettings
from monitor.errors import ConnectorError


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    @property
    def name(self) -> str:
        """What the service calls it."""
        return f"{self.topic}-{self.partition}"


class CommittedOffset(NamedTuple):
    """What the group has committed for one partition."""

    offset: int
    metadata: str


@dataclass(frozen=True, slots=True, eq=False)
class Fetched:
    """Consecutive records of one partition."""

    partition: Partition
    records: Sequence[bytes | None]
    offsets: NDArray[np.int64]
    timestamps: NDArray[np.int64]
    """Microseconds since the epoch."""
    headers: Callable[[], Sequence[Sequence[tuple[str, bytes]] | None]]
    """Of each record, for whoever wants them."""


class OwnershipChange(NamedTuple):
    """One thing that a rebalance did."""

    kind: Literal["assigned", "revoked", "lost"]
    partitions: frozenset[Partition]


class PositionLostError(ConnectorError):
    """The next record to read has been deleted; carries where reading stood."""

    def __init__(self, positions: Mapping[Partition, int]) -> None:
        self.positions = dict(positions)
        super().__init__(f"positions out of range: {self.positions}")


class Reader(Protocol):
    """A consumer. Raises ConnectorError, or one of its kinds, and nothing else."""

    def partitions(self, topic: str) -> frozenset[int]:
        """The partitions of a topic; an error in words if it does not exist or must not be read."""
        ...

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group; assignments arrive as `changes` while polling."""
        ...

    def assign(self, partitions: Collection[Partition]) -> None:
        """Take these partitions without a group; that too is told by `changes`."""
        ...

    def changes(self) -> Sequence[OwnershipChange]:
        """What rebalances did since the last call, in order."""
        ...

    def changed(self) -> bool:
        """Whether `changes` would say something."""
        ...

    def seek(self, positions: Mapping[Partition, int]) -> None: ...

    def poll(self, timeout: float) -> Sequence[Fetched]: ...

    def hold(self, partitions: Collection[Partition]) -> None:
        """Fetch nothing of these partitions, and go on with all others."""
        ...

    def committed(self, partitions: Collection[Partition]) -> Mapping[Partition, CommittedOffset]:
        """What is committed; partitions without a commit are left out."""
        ...

    def earliest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]: ...

    def latest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]: ...

    def at_time(self, partitions: Collection[Partition], milliseconds: int) -> Mapping[Partition, int]:
        """The first record not older than this; the end if there is none."""
        ...

    def position(self, partition: Partition) -> int | None: ...

    def highwater(self, partition: Partition) -> int | None:
        """Where the next record will be written, as far as fetches have told."""
        ...

    @property
    def errors(self) -> int:
        """Requests for records that failed so far, and were made again."""
        ...

    def membership(self) -> object | None:
        """Proof of belonging to the group's current generation; None while it is not settled."""
        ...

    def outsider(self) -> object:
        """What signs a commit to a group that has no members."""
        ...

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        """Commit to the group outside of a transaction."""
        ...

    def close(self) -> None: ...


class Record(NamedTuple):
    """One record to write."""

    topic: str
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class Writer(Protocol):
    """A producer, transactional or not. Raises ConnectorError, or one of its kinds, and nothing else."""

    def check(self, topics: Collection[str]) -> None:
        """An error in words for every topic that does not exist or must not be written to."""
        ...

    def cleanup(self, topic: str) -> str | None:
        """What becomes of a topic's old records: delete, compact or both; None where that may not be asked."""
        ...

    def begin(self) -> None: ...

    def send(self, records: Sequence[Record]) -> None:
        """Hand over; a failed delivery shows in `flush` or `commit`."""
        ...

    def flush(self) -> None:
        """Wait until all that was sent has been written, or raise."""
        ...

    def commit(self, offsets: Mapping[Partition, CommittedOffset], membership: object) -> None:
        """End the transaction with these offsets, or abort it and raise (CommitRefusedError if the group moved on)."""
        ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Driver(Protocol):
    """What the module of a driver offers; each opens a connection, or raises ConnectorError with the cause."""

    @property
    def reader(self) -> Callable[[SourceSettings], Reader]: ...

    @property
    def group_reader(self) -> Callable[[Connection, str], Reader]:
        """A consumer that only looks at what a group has committed, and commits there."""
        ...

    @property
    def writer(self) -> Callable[[SinkSettings, str | None], Writer]:
        """A producer; with a transactional id it first ends what an earlier process of that name left open."""
        ...
