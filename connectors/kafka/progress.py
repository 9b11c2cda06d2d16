"""How far a partition has come, as the text that travels with its committed offset.

Kafka keeps at most 4,096 bytes of metadata beside an offset by default; a Progress without count windows takes about
70. The offset itself is the commit's own.
"""

from collections.abc import Collection, Mapping
from zlib import crc32

import msgspec

from monitor.errors import ConnectorError
from monitor.ports import NEVER, Counted, Progress

MAX_BYTES = 4096
# Of each partition, the streams with the smallest hashes are noted: the same ones wherever a stream comes up, so that
# two partitions that share streams show it in what they note, however many there are.
NOTED_STREAMS = 32


class _Note(msgspec.Struct, omit_defaults=True):
    """Short names: every commit carries this for every partition."""

    max: int
    read: int
    closed: int
    counted: dict[str, tuple[int, int, int]] = {}
    streams: tuple[int, ...] = ()
    outcomes: str = ""


def to_metadata(progress: Progress, streams: Collection[str] = ()) -> str:
    """Everything of a Progress but its offset, as compact JSON; and which streams the partition brings."""
    counted = {stream: (each.windows, each.offset, each.skip) for stream, each in sorted(progress.counted.items())}
    note = _Note(progress.running_max, progress.read, progress.closed, counted, _noted(streams), progress.outcomes)
    encoded = msgspec.json.encode(note)
    if len(encoded) > MAX_BYTES:
        raise ConnectorError(
            f"the progress of a partition takes {len(encoded)} bytes with {len(counted)} count-window streams, and"
            f" Kafka keeps {MAX_BYTES} beside an offset: spread these streams over more partitions"
        )
    return encoded.decode()


def from_metadata(offset: int, metadata: str) -> Progress:
    """What a commit says; an offset that another tool has set (no metadata of ours) begins fresh at that offset."""
    try:
        note = msgspec.json.decode(metadata, type=_Note)
    except msgspec.DecodeError:
        return Progress(offset=offset, running_max=NEVER, read=offset, closed=NEVER)
    return Progress(
        offset=offset,
        running_max=note.max,
        read=note.read,
        closed=note.closed,
        counted={stream: Counted(*each) for stream, each in note.counted.items()},
        outcomes=note.outcomes,
    )


def shared_with(metadata: str, streams: Collection[str]) -> frozenset[str]:
    """Those of our streams that another partition's commit notes as well."""
    try:
        theirs = set(msgspec.json.decode(metadata, type=_Note).streams)
    except msgspec.DecodeError:
        return frozenset()
    return frozenset(stream for stream in streams if crc32(stream.encode()) in theirs)


def _noted(streams: Collection[str]) -> tuple[int, ...]:
    return tuple(sorted(crc32(stream.encode()) for stream in streams)[:NOTED_STREAMS])


class _Table(msgspec.Struct):
    progress: Mapping[str, tuple[int, str]]


def table_to_metadata(progress: Mapping[str, Progress]) -> str:
    """The progress of all partitions of a source that is not Kafka, kept beside one offset."""
    rows = {name: (each.offset, to_metadata(each)) for name, each in sorted(progress.items())}
    encoded = msgspec.json.encode(_Table(rows))
    if len(encoded) > MAX_BYTES:
        raise ConnectorError(
            f"the positions of {len(rows)} partitions take {len(encoded)} bytes, and Kafka keeps {MAX_BYTES} beside an"
            " offset: read fewer files at once, or write the results to files"
        )
    return encoded.decode()


def table_from_metadata(metadata: str) -> dict[str, Progress]:
    """The inverse of `table_to_metadata`."""
    rows = msgspec.json.decode(metadata, type=_Table).progress
    return {name: from_metadata(offset, text) for name, (offset, text) in rows.items()}
