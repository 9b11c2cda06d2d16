"""How far each partition has come, and the text in which a connector keeps it between two runs.

A connector stores an offset and one text that it never reads (`ports.Progress`). What stands in the text is decided
here alone: JSON with a version. The version before had none, and two spellings: one beside Kafka's offsets, one in
checkpoint files. Both are still read. Any other text is refused: to begin afresh could publish windows twice.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from monitor.errors import ConnectorError
from monitor.ports import NEVER, Checkpoint, Progress
from monitor.windows.origin import Gap, Stretch

VERSION = 2

PUBLISHED_BYTES = 1_024
"""Of names of streams in what is kept of published windows. Kafka has 4,096 beside an offset for everything; it is
enough for a hundred streams a partition. Of those beyond, a new partition could publish a window once more after a
restart."""
_SPAN_BYTES = 45  # two times and what stands around them


@dataclass(frozen=True, slots=True)
class CountedWindows:
    """How far one stream's count windows have come in one partition."""

    windows: int
    """How many windows the stream has closed."""
    offset: int
    """The record that holds the first event of the open window, or the next record."""
    skip: int
    """How many events of that record already went into closed windows (a record may carry many events)."""


@dataclass(frozen=True, slots=True)
class PublishedSpan:
    """Windows of some streams that are published: those that begin at `first` or later, and were due by `last`."""

    streams: tuple[str, ...]
    first: int
    last: int | None
    """End plus allowed lateness. None: whatever the partition's own `closed` says."""


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """What a restart needs of one partition to go on as if nothing had happened."""

    offset: int
    """Where to read again: the earliest record that an open window still needs, or the next one."""
    running_max: int
    """The newest event time seen before `offset`; microseconds, `NEVER` before the first event."""
    read: int
    """Records before this have been judged already: on a re-read they are not dead-lettered again."""
    closed: int
    """Windows whose end plus allowed lateness is not after this have been published."""
    counted: Mapping[str, CountedWindows] = field(default_factory=dict)
    """By stream, for streams with count windows."""
    outcomes: str = ""
    """Names the outcomes of windows that were published with this commit, if any."""
    lacks: tuple[Stretch, ...] = ()
    """What windows to come will not have of it."""
    published: tuple[PublishedSpan, ...] = ()
    """Since when windows have had events of it, and which had been published without it before it came."""
    reread: tuple[int, int] | None = None
    """Where events are joined of two records: from which offset on earlier ones have to be read once more to know which
    of them wait for the other, and the newest of their times before."""


@dataclass(frozen=True, slots=True)
class WindowCheckpoint:
    """How far all partitions have come."""

    progress: Mapping[str, PartitionProgress] = field(default_factory=dict)

    def stored(self) -> Checkpoint:
        """The progress as a sink commits it."""
        return Checkpoint({partition: to_stored(each) for partition, each in self.progress.items()})


class _PartitionState(msgspec.Struct, omit_defaults=True):
    """Short names: every commit carries this for every partition."""

    v: int
    max: int
    read: int
    closed: int
    counted: dict[str, tuple[int, int, int]] = {}
    outcomes: str = ""
    lacks: tuple[tuple[Gap, str, int, int], ...] = ()
    published: tuple[tuple[tuple[str, ...], int, int | None], ...] = ()
    joined: tuple[int, int] | None = None
    """Where windows go on, of an offset that is one to read again from, and the newest time before that one."""


class _BesideOffset(msgspec.Struct):
    """The version before, as it stood beside an offset of Kafka's."""

    max: int
    read: int
    closed: int
    counted: dict[str, tuple[int, int, int]] = {}
    outcomes: str = ""


class _InFile(msgspec.Struct):
    """The version before, as it stood in a checkpoint file."""

    running_max: int
    read: int
    closed: int
    counted: dict[str, CountedWindows] = {}
    outcomes: str = ""


def grouped(since: Mapping[str, int], before: Mapping[str, Iterable[tuple[int, int]]]) -> tuple[PublishedSpan, ...]:
    """What a partition knows of published windows, by span: streams mostly share theirs."""
    streams = defaultdict[tuple[int, int | None], list[str]](list)
    for stream, first in since.items():
        streams[first, None].append(stream)
    for stream, spans in before.items():
        for span in spans:
            streams[span].append(stream)
    kept, room = [], PUBLISHED_BYTES
    for (first, last), names in sorted(streams.items(), key=str):
        room -= _SPAN_BYTES
        fitting = [name for name in sorted(names) if (room := room - len(name.encode()) - 3) >= 0]
        kept.append(PublishedSpan(tuple(fitting), first, last))
    return tuple(span for span in kept if span.streams)


def ungrouped(kept: Iterable[PublishedSpan]) -> tuple[dict[str, int], dict[str, list[tuple[int, int]]]]:
    """The inverse of `grouped`."""
    since, before = dict[str, int](), defaultdict[str, list[tuple[int, int]]](list)
    for span in kept:
        for stream in span.streams:
            if span.last is None:
                since[stream] = span.first
            else:
                before[stream].append((span.first, span.last))
    return since, {stream: sorted(spans) for stream, spans in before.items()}


def to_stored(progress: PartitionProgress) -> Progress:
    """The offset, and everything else as compact JSON."""
    counted = {stream: (each.windows, each.offset, each.skip) for stream, each in sorted(progress.counted.items())}
    state = _PartitionState(
        VERSION,
        progress.running_max,
        progress.read,
        progress.closed,
        counted,
        progress.outcomes,
        tuple((stretch.gap, stretch.stream, stretch.first, stretch.last) for stretch in progress.lacks),
        tuple((span.streams, span.first, span.last) for span in progress.published),
        None if progress.reread is None else (progress.offset, progress.reread[1]),
    )
    return Progress(
        progress.offset if progress.reread is None else progress.reread[0], msgspec.json.encode(state).decode()
    )


def from_stored(partition: str, stored: Progress) -> PartitionProgress:
    """The inverse of `to_stored`, and of what the version before wrote. No text at all begins fresh at the offset."""
    if not stored.state:
        return PartitionProgress(offset=stored.offset, running_max=NEVER, read=stored.offset, closed=NEVER)
    try:
        state = _read(stored.state)
    except msgspec.DecodeError as error:
        raise ConnectorError(
            f"{partition}: the progress kept at offset {stored.offset} is none that Shiftwatch has written ({error}): "
            "without it closed windows could be published twice. Restore it, or begin elsewhere afresh (another group, "
            "another results file)"
        ) from error
    if state.v != VERSION:
        raise ConnectorError(
            f"{partition}: the progress kept at offset {stored.offset} has version {state.v}, and this release reads "
            f"up to {VERSION}: run the release that wrote it, or a newer one"
        )
    counted = {stream: CountedWindows(*each) for stream, each in state.counted.items()}
    lacks = tuple(Stretch(*each) for each in state.lacks)
    published = tuple(PublishedSpan(*each) for each in state.published)
    progress = PartitionProgress(
        stored.offset, state.max, state.read, state.closed, counted, state.outcomes, lacks, published
    )
    if state.joined is None:
        return progress
    return replace(progress, offset=state.joined[0], reread=(stored.offset, state.joined[1]))


class _Version(msgspec.Struct):
    v: int = VERSION - 1


def _read(text: str) -> _PartitionState:
    """The state in a text; of another version its number alone counts."""
    version = msgspec.json.decode(text, type=_Version).v
    if version == VERSION:
        return msgspec.json.decode(text, type=_PartitionState)
    if version != VERSION - 1:
        return _PartitionState(version, 0, 0, 0)
    if "running_max" in msgspec.json.decode(text, type=dict[str, msgspec.Raw]):
        filed = msgspec.json.decode(text, type=_InFile)
        counted = {stream: (each.windows, each.offset, each.skip) for stream, each in filed.counted.items()}
        return _PartitionState(VERSION, filed.running_max, filed.read, filed.closed, counted, filed.outcomes)
    beside = msgspec.json.decode(text, type=_BesideOffset)
    return _PartitionState(VERSION, beside.max, beside.read, beside.closed, beside.counted, beside.outcomes)
