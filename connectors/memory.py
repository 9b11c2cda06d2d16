"""Records and results in memory: for tests, and for programs that embed the monitor. Nothing here is a mock.

`MemorySource` reads what it was given and what is added later; `MemorySink` publishes into a `MemoryLog`, which
outlives it as a file outlives a process.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from monitor.errors import ConnectorError
from monitor.ports import Channel, Checkpoint, Message, RawBatch, Reassignment

Records = Sequence[bytes | None]


class MemorySource:
    """Partitions of records; positions are record numbers."""

    def __init__(
        self,
        partitions: Mapping[str, Records],
        *,
        timestamps: Mapping[str, Sequence[int]] | None = None,
        batch: int = 1000,
        open_ended: bool = False,
    ) -> None:
        """`timestamps` are the records' own times; an `open_ended` source may be added to until it is told to end."""
        self._records = {name: list(records) for name, records in partitions.items()}
        self._timestamps = {name: list(times) for name, times in (timestamps or {}).items()}
        self._batch = batch
        self._open_ended = open_ended
        self._next = dict.fromkeys(self._records, 0)

    def add(self, partition: str, *records: bytes | None) -> None:
        """Append records to a partition that exists; only while open-ended, and without own times."""
        if not self._open_ended:
            raise ConnectorError("memory: records can be added to an open-ended source only")
        self._records[partition].extend(records)

    def end(self) -> None:
        """Nothing more will be added."""
        self._open_ended = False

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Go to the checkpoint's positions."""
        progress = checkpoint.progress if checkpoint else {}
        self._next |= {name: each.offset for name, each in progress.items() if name in self._next}
        return progress.keys() - self._next.keys()

    def reassigned(self, _: Callable[[], None]) -> Reassignment | None:
        """Never: the partitions are fixed."""
        return None

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        """One batch of every partition that has something and is not held."""
        ready = [name for name in self._records if name not in held and self.waiting(name)]
        if not ready and not self.finished:
            time.sleep(timeout)
        return [self._read(name) for name in ready]

    def partitions(self) -> Sequence[str]:
        """The partitions that may still bring records."""
        return [name for name in self._records if self._open_ended or self.waiting(name)]

    def waiting(self, partition: str) -> bool:
        """Whether there are records left."""
        return self._next[partition] < len(self._records[partition])

    @property
    def finished(self) -> bool:
        """Whether everything was read, and nothing will be added."""
        return not self.partitions()

    def close(self) -> None:
        """Nothing to close."""

    def _read(self, name: str) -> RawBatch:
        first = self._next[name]
        records = self._records[name][first : first + self._batch]
        after = first + len(records)
        self._next[name] = after
        times = self._timestamps.get(name)
        return RawBatch(
            partition=name,
            records=records,
            offsets=np.arange(first, after),
            next_offset=after,
            timestamps=None if times is None else np.array(times[first:after], dtype=np.int64),
        )


@dataclass(slots=True)
class MemoryLog:
    """What has been published, and up to where; it outlives the sinks that write to it."""

    messages: list[Message] = field(default_factory=list)
    checkpoint: Checkpoint | None = None

    def values(self, channel: str) -> list[bytes]:
        """The published messages of one channel."""
        return [message.value for message in self.messages if message.channel == channel]


class MemorySink:
    """Publishes into a log at each commit."""

    def __init__(self, log: MemoryLog | None = None) -> None:
        self.log = MemoryLog() if log is None else log
        self._pending: list[Message] = []

    def recover(self) -> Checkpoint | None:
        """Drop what was not committed."""
        self._pending = []
        return self.log.checkpoint

    def write(self, message: Message) -> None:
        """Keep a message until the commit."""
        self._pending.append(message)

    def commit(self, checkpoint: Checkpoint) -> None:
        """Publish what was sent, with the checkpoint, in one step."""
        self.log.messages.extend(self._pending)
        self.log.checkpoint = checkpoint
        self._pending = []

    def keeps(self, channel: Channel) -> bool:  # noqa: ARG002 - the log takes every channel
        """Yes: the log takes every channel."""
        return True

    def read_back(self, channel: Channel) -> Iterator[bytes]:
        """What the log has."""
        return iter(self.log.values(channel))

    def close(self) -> None:
        """Nothing to close."""
