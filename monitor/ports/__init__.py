"""What a source and a sink are. Everything that the service knows about the outside stands on this page.

`connectors` implements it, and so does any connector of somebody else's; `options` reads what a connector is told.

A source yields batches of raw records with their positions; it never interprets them. A sink takes messages, and
publishes all that it was given together with a checkpoint, or nothing: that is the whole of exactly once.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Channel = Literal["results", "recalibrations", "events", "alarms", "dead-letters", "states"]
"""Where a message goes. Of `recalibrations` and `states` only the last message of each key counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Translated:
    """Records that came in another format than JSON, as a connector has read them."""

    records: Sequence[bytes | None]
    """Each as JSON, or as rows of a table (`Tabular`)."""
    index: NDArray[np.int64]
    """Which record of the batch each of them is."""
    faults: Mapping[int, str]
    """Of the others: why they cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class RawBatch:
    """Consecutive records of one partition (a file, a topic's partition), undecoded."""

    partition: str
    records: Sequence[bytes | None]
    """None is a record without a value (a tombstone): it is rejected by name, not skipped."""
    offsets: NDArray[np.int64]
    """Where each record starts; strictly increasing inside a partition."""
    next_offset: int
    """Where reading goes on after this batch."""
    timestamps: NDArray[np.int64] | None = None
    """The records' own times (microseconds since the epoch), for events that carry none."""
    skipped: int = 0
    """Records before these that were deleted before they could be read. A batch may say only that, without records."""
    translated: Translated | None = None
    """What the records say, where they are not JSON themselves."""


@runtime_checkable
class Joined(Protocol):
    """Records of a batch that lie in one text, a line each. Optional: decoded as one text they cost less."""

    def __len__(self) -> int: ...

    def joined(self, first: int, stop: int) -> memoryview | None:
        """These records with line feeds between them; None if it is not plain that each is one JSON value."""
        ...


Column = NDArray[Any] | Sequence[Any] | Mapping[str, "Column | None"]
"""Values of a table: numbers (null as NaN) or times (`datetime64[us]`) as an array, lists of numbers of equal length as
the rows of one, objects by their members, anything else as Python's own values."""


@runtime_checkable
class Tabular(Protocol):
    """Records of a batch that are rows of a table; taken one by one they are JSON. Optional: columns cost less."""

    def __len__(self) -> int: ...

    def column(self, steps: Sequence[str | int]) -> "Column | None":
        """What stands at a path, by the names of members and the places in lists; None if nothing does."""
        ...


@dataclass(frozen=True, slots=True)
class Progress:
    """How far one partition has come: what a restart needs to go on as if nothing had happened."""

    offset: int
    """Where to read again: the earliest record that an open window still needs, or the next one."""
    state: str = ""
    """What else the service needs. A connector stores it as it is, and never reads it; empty: begin fresh there."""
    mark: str = ""
    """By what the source knows the partition again (`Marking`); empty where it would not know."""


NEVER = -(2**62)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything that is committed together with the messages: the progress of each partition."""

    progress: Mapping[str, Progress] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One thing to publish."""

    channel: Channel
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Reassignment:
    """Partitions that came and went, because members of a group did, or because a commit was refused.

    What was read of the partitions in `gone` and is not committed leaves the open windows without a trace: their new
    owner reads it again. The partitions in `came` begin at their `Progress`, exactly as after a restart (None: no one
    has ever committed there, they begin fresh). A partition in both was away and is back: forget it, then begin it.
    """

    gone: frozenset[str] = frozenset()
    came: Mapping[str, Progress | None] = field(default_factory=dict)


class Source(Protocol):
    """Yields raw records with positions. Not thread-safe: one loop owns it."""

    def start(self, checkpoint: Checkpoint | None) -> Collection[str] | None:
        """Open, and go to the checkpoint's offsets; partitions it does not name start where the source is told to.

        Says which partitions of the checkpoint are not there any more (None: it knows of none): the service ends where
        it still needs them.
        """
        ...

    def reassigned(self, settle: Callable[[], None], /) -> Reassignment | None:
        """What changed in `partitions()` since the last call; None if nothing did (always, for plain files).

        A source that has to give partitions away calls `settle` first: while they still are its own, the service
        commits what it has of them.

        Asked before every poll. A group source has no partitions after `start`: they come this way. Until a change
        has been fetched here, `poll` yields nothing of the partitions that came and nothing of those that went.
        """
        ...

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        """The next batches, in order within each partition; empty if nothing came within `timeout` seconds.

        Nothing of the partitions in `held`: the service has enough of them until the others catch up. It goes on
        polling all the same, which keeps connections and group membership alive.
        """
        ...

    def partitions(self) -> Sequence[str]:
        """The partitions that may still bring records; a window waits for every one of them.

        A file that was read to its end (and is not followed) is no longer among them.
        """
        ...

    def waiting(self, partition: str) -> bool:
        """Whether records are known to wait unread in this partition: only a partition without any can be idle."""
        ...

    @property
    def finished(self) -> bool:
        """True when nothing more will ever come (the end of plain files)."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Marking(Protocol):
    """A source whose partitions may be exchanged while nobody looks, as files may. Optional; asked with each commit."""

    def mark(self, partition: str, offset: int) -> str:
        """What stands before an offset, in short. A start at that offset refuses a partition with another mark."""
        ...


class Sink(Protocol):
    """Takes messages and publishes them together with a checkpoint, or not at all."""

    def recover(self) -> Checkpoint | None:
        """Take back whatever was written and never committed; return the last committed checkpoint."""
        ...

    def write(self, message: Message) -> None: ...

    def commit(self, checkpoint: Checkpoint) -> None:
        """Publish everything written since the last commit together with the checkpoint: all or nothing.

        Raises CommitRefusedError when the group has moved on and the partitions may belong to someone else, or when
        nobody answered: what was written is dropped, and the source's next `reassigned` says where to begin again,
        which is after it if it was published all the same.
        """
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """How one partition of a topic stands."""

    partition: str
    """The name that `Source.partitions` has for it."""
    topic: str
    position: int
    """The next record to read."""
    lag: int | None = None
    """Records not read yet, as far as is known."""
    commit_lag: int | None = None
    """Records that a restart would read, as far as is known."""


@dataclass(frozen=True, slots=True)
class Intake:
    """What a source that is posted to has answered, and how full the log is that it keeps posts in."""

    posts: Mapping[str, int]
    """By what became of them: "accepted", or why they were refused."""
    log_bytes: int
    log_limit_bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """What a source says about itself at one instant. Totals count since the start of the process."""

    partitions: tuple[PartitionReport, ...] = ()
    rebalances: int = 0
    lost: int = 0
    """Partitions that were taken away because the group had given this member up."""
    skipped: int = 0
    """Records that were deleted before they could be read."""
    spread: tuple[str, ...] = ()
    """Streams that also come to other members of the group."""
    fetch_errors: int = 0
    """Requests for records that failed and were made again."""
    unassigned: float = 0.0
    """For how many seconds this process has not been a settled member of its group."""
    stalled: float = 0.0
    """For how many seconds records have waited in some partition without any being read."""
    intake: Intake | None = None
    """Of a source that is posted to."""
    certificate_expires: float | None = None
    """When the first of the certificates that it shows does; wall clock, seconds."""


@runtime_checkable
class Reporting(Protocol):
    """A source that can say how far behind it is. Optional; asked on the loop, about once a second."""

    def report(self) -> Report: ...


@dataclass(frozen=True, slots=True)
class SinkReport:
    """What a sink says about itself. Totals count since the start of the process."""

    committed: int = 0
    """Transactions that published what they held."""
    aborted: int = 0
    """Transactions whose work is done again."""
    certificate_expires: float | None = None
    """When the certificate that it shows does; wall clock, seconds."""


@runtime_checkable
class ReportingSink(Protocol):
    """A sink that works in transactions. Optional; asked on the loop, about once a second."""

    def report(self) -> SinkReport: ...


@runtime_checkable
class ReadBack(Protocol):
    """A sink whose messages can be read back, after `recover`. Optional."""

    def keeps(self, channel: Channel) -> bool:
        """Whether the messages of a channel go anywhere."""
        ...

    def read_back(self, channel: Channel) -> Iterator[bytes]:
        """The values of the committed messages of a channel, oldest first; of a compacted topic those that are left.

        Raises ConnectorError when they cannot be read.
        """
        ...


@runtime_checkable
class Amendable(ReadBack, Protocol):
    """A sink that an operator may change while nothing runs. Optional."""

    def amend(self, messages: Iterable[Message]) -> None:
        """Publish these by themselves, in the place of a `recover`; progress stays as it is."""
        ...


@runtime_checkable
class SharedOut(Protocol):
    """A source that is shared out among members, each of which has some of the partitions. Optional.

    Windows of a stream are whole only where no other member gets events of it: the service asks before it publishes.
    """

    @property
    def member(self) -> str:
        """A name for this member."""
        ...

    @property
    def known(self) -> bool:
        """Whether it is known by now what the other members get: no window is closed before."""
        ...

    @property
    def spread(self) -> frozenset[str]:
        """The streams of which this member and others get events just now."""
        ...

    @property
    def handed_out(self) -> bool:
        """Whether other members have partitions, and may get those of this one."""
        ...

    def saw(self, partition: str, streams: Mapping[str, tuple[int, int]]) -> None:
        """A batch of this partition held events of these streams, the oldest and the newest at these times."""
        ...

    def elsewhere(self, stream: str, start: int, end: int) -> bool:
        """Whether other members get events of a stream from this time."""
        ...

    def brings(self, streams: Collection[str]) -> Collection[str]:
        """Which of these streams come to this member, as far as commits tell."""
        ...
