"""What the job runs between its ends: the two stages, which are somebody else's, and where their results go."""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from connectors.flink.frames import framed
from connectors.kafka.topic_sink import fitting
from monitor.ports import Channel, Message, Progress, RawBatch

Tables = MutableMapping[str, bytes]


class Made(Protocol):
    """What the first stage made of a batch."""

    @property
    def progress(self) -> Progress: ...
    @property
    def parts(self) -> Mapping[str, bytes]:
        """By stream."""
        ...

    @property
    def dead_letters(self) -> Sequence[Message]: ...


class Maker(Protocol):
    """The first stage: it knows of a partition what it is given as its progress."""

    def take(self, batch: RawBatch, before: Progress | None, now: int) -> Made: ...


class Merger(Protocol):
    """The second stage: it keeps what it knows of a stream in two tables."""

    def take(self, stream: str, made: bytes, parts: Tables, known: Tables, now: float) -> Sequence[Message]: ...
    def told(
        self, stream: str, ends: Mapping[str, int], parts: Tables, known: Tables, now: float
    ) -> Sequence[Message]: ...


@dataclass(frozen=True, slots=True)
class Stages:
    """All of a job that differs between configurations. It is sent to the workers."""

    maker: Maker
    merger: Merger
    streams: Sequence[str]
    topics: Mapping[Channel, str]
    """Where messages of each channel go; others go nowhere."""
    most: int
    """Bytes of a message."""

    def frames(self, messages: Sequence[Message]) -> Iterator[bytes]:
        """Those that have a topic, for the operator that writes them."""
        for message in messages:
            if message.channel in self.topics:
                yield framed(fitting(self.topics[message.channel], message, self.most))
