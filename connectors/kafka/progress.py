"""How far a partition has come, as the text that travels with its committed offset.

The text begins with a line of ours: the format's version, how far the partition was read, and the streams that it
brings, each as a hash with the second of its oldest event, and the seconds from there to its newest. After it stands
the progress as the service has written it, unread. Kafka keeps at most 4,096 bytes of metadata beside an offset by
default; without count windows and with one stream it takes about 140. The offset itself is the commit's own.

The format before this one was a JSON object without a version, which held both; it is still read. Text of any other
kind is refused: to begin fresh with it could publish windows twice. No text at all is an offset that another tool set.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import msgspec

from monitor.errors import ConnectorError
from monitor.ports import Progress

MAX_BYTES = 4096
MARK = "shiftwatch/"
FORMAT = "2"
# Of each partition, the streams with the smallest hashes are noted: the same ones wherever a stream comes up, so that
# two partitions that share streams show it in what they note, however many there are.
NOTED_STREAMS = 64


class Span(NamedTuple):
    """From when to when a partition has brought events of a stream; seconds since the epoch."""

    oldest: int
    newest: int

    def around(self, other: "Span") -> "Span":
        """Both."""
        return Span(min(self.oldest, other.oldest), max(self.newest, other.newest))


ALWAYS = Span(-(2**62), 2**62)
"""Of streams that were noted without times."""


@dataclass(frozen=True, slots=True)
class Notes:
    """What is noted of a partition beside its progress."""

    streams: Mapping[int, Span] = field(default_factory=dict)
    """By the hash of the stream's name."""
    read: int = -1
    """The next record to be read."""


class _Before(msgspec.Struct):
    """What matters here of the format before."""

    max: int
    streams: tuple[int, ...] = ()


class _PartitionRow(msgspec.Struct, array_like=True):
    """A partition of a source that is not Kafka."""

    offset: int
    state: str
    mark: str = ""


class _TableBefore(msgspec.Struct):
    progress: dict[str, tuple[int, str]]


def hashed(stream: str) -> int:
    """What stands for a stream in the notes."""
    return crc32(stream.encode())


def to_metadata(progress: Progress, notes: Notes = Notes()) -> str:
    """Everything of a Progress but its offset; and which streams the partition brings."""
    noted = [f"{name}{_times(span)}" for name, span in sorted(notes.streams.items())[:NOTED_STREAMS]]
    read = [] if notes.read < 0 else [f"@{notes.read}"]
    room = MAX_BYTES - len(progress.state.encode()) - len(MARK) - 3
    while noted and len(",".join([*read, *noted])) > room:
        noted.pop()
    return _fitting(",".join([*read, *noted]), progress.state, "the progress of a partition")


def from_metadata(partition: str, offset: int, metadata: str) -> Progress:
    """What a commit says; an offset that another tool has set (no metadata) begins fresh at that offset."""
    if not metadata:
        return Progress(offset)
    body = _body(partition, metadata)
    if body is not None:
        return Progress(offset, body)
    try:
        msgspec.json.decode(metadata, type=_Before)
    except msgspec.DecodeError as error:
        raise _foreign(partition, metadata) from error
    return Progress(offset, metadata)


def notes_of(metadata: str) -> Notes:
    """What a commit notes; nothing where it has no text, or one that is not ours."""
    try:
        if not metadata.startswith(MARK):
            return Notes(dict.fromkeys(msgspec.json.decode(metadata, type=_Before).streams, ALWAYS))
        noted = metadata.partition("\n")[0].partition(" ")[2].split(",")
        streams = dict(_note(text) for text in noted if text and not text.startswith("@"))
        return Notes(streams, next((int(text[1:]) for text in noted if text.startswith("@")), -1))
    except ValueError:
        return Notes()


def _times(span: Span) -> str:
    return "" if span == ALWAYS else f":{span.oldest}+{span.newest - span.oldest}"


def _note(text: str) -> tuple[int, Span]:
    name, _, span = text.partition(":")
    if not span:
        return int(name), ALWAYS
    oldest, _, length = span.partition("+")
    return int(name), Span(int(oldest), int(oldest) + int(length))


def table_to_metadata(progress: Mapping[str, Progress]) -> str:
    """The progress of all partitions of a source that is not Kafka, kept beside one offset."""
    rows = {
        name: (each.offset, each.state, each.mark) if each.mark else (each.offset, each.state)
        for name, each in sorted(progress.items())
    }
    return _fitting("", msgspec.json.encode(rows).decode(), f"the positions of {len(rows)} partitions")


def table_from_metadata(metadata: str) -> dict[str, Progress]:
    """The inverse of `table_to_metadata`."""
    what = "the source's positions"
    body = _body(what, metadata)
    try:
        if body is None:
            before = msgspec.json.decode(metadata, type=_TableBefore).progress
            return {name: from_metadata(name, *row) for name, row in before.items()}
        rows = msgspec.json.decode(body, type=dict[str, _PartitionRow])
    except msgspec.DecodeError as error:
        raise _foreign(what, metadata) from error
    return {name: Progress(row.offset, row.state, row.mark) for name, row in rows.items()}


def _fitting(noted: str, body: str, what: str) -> str:
    metadata = f"{MARK}{FORMAT} {noted}\n{body}"
    size = len(metadata.encode())
    if size > MAX_BYTES:
        raise ConnectorError(
            f"{what} takes {size} bytes, and Kafka keeps {MAX_BYTES} beside an offset: spread streams with count "
            "windows over more partitions, read fewer files at once, or write the results to files"
        )
    return metadata


def _body(what: str, metadata: str) -> str | None:
    """What stands after our line; None where there is no such line."""
    if not metadata.startswith(MARK):
        return None
    head, _, body = metadata.partition("\n")
    version = head.removeprefix(MARK).partition(" ")[0]
    if version != FORMAT:
        raise ConnectorError(
            f"{what}: was committed in format {version!r}, and this release reads up to {FORMAT}: run the release that "
            "wrote it, or a newer one"
        )
    return body


def _foreign(what: str, metadata: str) -> ConnectorError:
    return ConnectorError(
        f"{what}: the group's commit carries metadata that Shiftwatch has not written ({metadata[:40]!r}): without "
        "ours, closed windows could be published twice. Use a group of its own, or set the group's offsets anew"
    )
