"""The second of two stages that may run on many machines: parts of one stream's windows become results.

All that has to outlive a worker stands in two tables, which whoever runs this keeps for each stream: parts of open
windows, and what is known of the stream. Both hold bytes with versions.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field

import msgspec

from monitor.ports import Channel, Message
from monitor.service.idleness import Idleness
from monitor.service.notices import WindowAssessed
from monitor.service.publishing import Watched, messages, published
from monitor.service.stream_states import StreamStates
from monitor.state import Changed
from monitor.windows import Part, PartWindows, TimePlan, Window

log = logging.getLogger(__name__)

_PROGRESS = "windows"
_STATES = "states/"
Tables = MutableMapping[str, bytes]


@dataclass(frozen=True, slots=True)
class StatesInTable:
    """The messages of the channel `states`, by key, as a compacted topic has them."""

    table: Tables

    def keeps(self, channel: Channel) -> bool:
        """States alone."""
        return channel == "states"

    def read_back(self, _: Channel) -> Iterator[bytes]:
        """The last message of each key."""
        return iter([value for key, value in self.table.items() if key.startswith(_STATES)])

    def write(self, message: Message) -> None:
        """Keep a message in the place of the one with its key."""
        key = _STATES + message.key.decode()
        if message.value:
            self.table[key] = message.value
        else:
            self.table.pop(key, None)


@dataclass(slots=True)
class _Open:
    """What a worker has in memory of a stream; another one reads it from the tables."""

    windows: PartWindows
    states: StreamStates
    idleness: Idleness
    ends: Mapping[str, int] = field(default_factory=dict)
    told: float = float("-inf")
    """When the ends of the partitions were last told,"""
    idle: frozenset[str] = frozenset()
    """which were idle then, but for those from which something has come since,"""
    mark: int | None = None
    """and how far event time is taken to have come where all are."""


@dataclass
class PartMerger:
    """Any worker's, of some streams. It may be sent to another process before it is used."""

    watched: Mapping[str, Watched]
    patience: float
    """Seconds after which a partition that has nothing to read is idle; zero: never."""
    _streams: dict[str, _Open] = field(default_factory=dict)

    def take(self, stream: str, made: bytes, parts: Tables, known: Tables, now: float) -> list[Message]:
        """Parts that the first stage made of one batch; `now` are seconds that only ever go forward."""
        opened = self._opened(stream, parts, known)
        some = [(Part.decoded(data), data) for data in msgspec.msgpack.decode(made, type=list[bytes])]
        missed = opened.windows.take(some)
        if missed:
            log.warning(
                "stream %s: %d events came for windows that were closed as their partition was idle", stream, missed
            )
        heard = {name for part, _ in some for name in part.seen}
        for partition in heard:
            opened.idleness.hear(partition, now, opened.windows.reached(partition))
        opened.idle -= heard
        return self._due(opened, known)

    def told(self, stream: str, ends: Mapping[str, int], parts: Tables, known: Tables, now: float) -> list[Message]:
        """Which partitions there are now, and the offset after the last record of each.

        It is told about every second. After a longer pause nobody knows what producers would have sent meanwhile: no
        silence counts that was before.
        """
        opened = self._opened(stream, parts, known)
        outage = now - opened.told > self.patience / 2
        for partition, end in ends.items():
            if outage or partition not in opened.ends or opened.windows.read(partition) < end:
                opened.idleness.hear(partition, now, opened.windows.reached(partition))
        opened.ends, opened.told = ends, now
        opened.idle = opened.idleness.idle(ends, now, lambda name: opened.windows.read(name) < ends[name])
        opened.mark = opened.idleness.mark(ends, now)
        return self._due(opened, known)

    def _opened(self, stream: str, parts: Tables, known: Tables) -> _Open:
        if stream not in self._streams:
            watched = self.watched[stream]
            assert isinstance(watched.plan, TimePlan)  # noqa: S101 - others are refused at the start
            states = StreamStates({stream: watched.concerns}, StatesInTable(known))
            states.begin()
            windows = PartWindows.begun(stream, watched.plan, parts, known.get(_PROGRESS))
            self._streams[stream] = _Open(windows, states, Idleness(self.patience))
        return self._streams[stream]

    def _due(self, opened: _Open, known: Tables) -> list[Message]:
        """What is published now. Nothing before it is known which partitions there are."""
        said: list[Message] = []
        if opened.ends:
            for window in opened.windows.close(opened.ends, opened.idle, opened.mark):
                said += self._said(window, opened.states)
        for message in said:
            if message.channel == "states":
                StatesInTable(known).write(message)
        known[_PROGRESS] = opened.windows.progress
        return said

    def _said(self, window: Window, states: StreamStates) -> Iterable[Message]:
        watched, changed = self.watched[window.key.stream], Changed()
        for answer in published(window, watched):
            written = answer.written
            assessed = WindowAssessed(written.assessment, answer.window, 0.0, examined=answer.examined, written=written)
            seen, further = states.advance(assessed, changed)
            yield from messages(answer, seen, window, watched)
            yield from further
        yield from states.records(changed)
