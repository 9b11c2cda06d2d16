"""Bytes into lines with their offsets, in bounded memory: where text comes from, and how it is cut."""

import gzip
import os
import select
import sys
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags
from monitor.errors import ConnectorError
from monitor.ports import RawBatch

Offsets = NDArray[np.int64]

GONE = "gone"
"""The mark of a file that was taken away since it was read: no other one is it."""
MARKED_BYTES = 4_096
"""Before an offset, by which a file is known again: some lines, each with its own time and scores."""
_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"
# A record of so few bytes cannot nest deeper than 750: far from the depth at which a decoder gives up, which is another
# for records in one text and for one alone. Longer ones gain little by company.
_SHALLOW = 1_500

_OPENING = np.isin(np.arange(256), list(b"{["))
_CLOSING = np.isin(np.arange(256), list(b"}]"))


class TextSource(Protocol):
    """Where bytes come from."""

    def seek(self, offset: int) -> None:
        """Go to a line start; once, before reading."""
        ...

    def read(self, size: int) -> bytes:
        """The next bytes; none if there are none now."""
        ...

    def more(self) -> bool:
        """Whether a read would bring something."""
        ...

    def mark(self, offset: int) -> str:
        """What stands before an offset, in short; empty where that would take reading it all again."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing will ever come again."""
        ...

    def close(self) -> None: ...


class PlainText:
    """A plain file. It is opened for each chunk only: a directory may hold more files than a process may open."""

    def __init__(self, path: Path, follow: bool) -> None:
        self._path = path
        self._follow = follow
        self._offset = 0
        self._identity = self._status().st_ino
        self.ended = False

    def seek(self, offset: int) -> None:
        """Go to a line start, and make sure that it is one: otherwise this is not the file that was read before."""
        if offset:
            size = self._status().st_size
            if size < offset:
                raise ConnectorError(f"{self._path}: it was read up to byte {offset}, and now has only {size}")
            with self._path.open("rb") as file:
                file.seek(offset - 1)
                # A last line without a line feed may have got one since.
                if offset < size and b"\n" not in file.read(2):
                    raise ConnectorError(f"{self._path}: no line starts at byte {offset}: the file was changed")
        self._offset = offset

    def read(self, size: int) -> bytes:
        """The next bytes of the file that was opened first, not of one that took its name."""
        with self._path.open("rb", buffering=0) as file:
            self._check(os.fstat(file.fileno()))
            file.seek(self._offset)
            data = file.read(size)
        self._offset += len(data)
        self.ended = not data and not self._follow
        return data

    def mark(self, offset: int) -> str:
        """A hash of the last bytes before it, and how many they are."""
        size = min(offset, MARKED_BYTES)
        try:
            with self._path.open("rb", buffering=0) as file:
                self._check(os.fstat(file.fileno()))
                file.seek(offset - size)
                return f"{size}:{blake2b(file.read(size), digest_size=8).hexdigest()}" if size else ""
        except (OSError, ConnectorError):
            return GONE

    def more(self) -> bool:
        """Whether the file is longer than what was read."""
        return self._status().st_size > self._offset

    def close(self) -> None:
        """Nothing stays open."""

    def _status(self) -> os.stat_result:
        try:
            return self._path.stat()
        except OSError as error:
            raise ConnectorError(f"{self._path}: {error.strerror}") from error

    def _check(self, status: os.stat_result) -> None:
        if status.st_ino != self._identity or status.st_size < self._offset:
            raise ConnectorError(
                f"{self._path}: the file was replaced or cut while it was read; "
                "where logs rotate, follow a directory in which each file keeps its name"
            )


class GzipText:
    """A gzip file; offsets are those of the uncompressed text. It is never followed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = gzip.open(path, "rb")  # noqa: SIM115 - closed by close()
        self.ended = False

    def seek(self, offset: int) -> None:
        """Go there by uncompressing everything before."""
        try:
            reached = self._file.seek(offset)
        except (OSError, EOFError, zlib.error) as error:
            raise ConnectorError(f"{self._path}: damaged gzip file: {error}") from error
        if reached != offset:
            raise ConnectorError(f"{self._path}: it was read up to byte {offset}, and now has only {reached}")

    def read(self, size: int) -> bytes:
        """The next uncompressed bytes."""
        try:
            data = self._file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise ConnectorError(f"{self._path}: damaged gzip file: {error}") from error
        self.ended = not data
        return data

    def mark(self, offset: int) -> str:  # noqa: ARG002 - a packed file is not written to
        """A packed file cannot be read backwards."""
        return ""

    def more(self) -> bool:
        """Whether the end was not reached."""
        return not self.ended

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class StandardInput:
    """What is piped in. It cannot be read twice, except when it is a file."""

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._descriptor = (sys.stdin if file is None else file).fileno()
        self.ended = False

    def seek(self, offset: int) -> None:
        """Only a redirected file can go back to where an earlier run stopped."""
        if not offset:
            return
        try:
            os.lseek(self._descriptor, offset, os.SEEK_SET)
        except OSError as error:
            raise ConnectorError(
                f"standard input cannot be read again from byte {offset}, where the last run stopped: "
                "read from a file, or write to new results"
            ) from error

    def read(self, size: int) -> bytes:
        """What has come, without waiting. A pipe gives little at a time: it is read until it is empty."""
        parts: list[bytes] = []
        while size > 0 and not self.ended and self.wait(0):
            part = os.read(self._descriptor, size)
            parts.append(part)
            size -= len(part)
            self.ended = not part
        return b"".join(parts)

    def mark(self, offset: int) -> str:  # noqa: ARG002 - what was piped in is gone
        """What was read cannot be read again."""
        return ""

    def more(self) -> bool:
        """Whether something has come."""
        return not self.ended and self.wait(0)

    def wait(self, timeout: float) -> bool:
        """Wait until something comes, or the end."""
        return bool(select.select([self._descriptor], [], [], timeout)[0])

    def close(self) -> None:
        """Standard input is not ours to close."""


class TextRecords(Sequence[bytes]):
    """Lines of one text. None is cut out before it is asked for: decoders may take many of them as one text."""

    def __init__(self, text: bytes, starts: Offsets, ends: Offsets, longest: int) -> None:
        """Of a line that is too long, one byte more than the `longest` is kept: enough to see that it is."""
        self._text = text
        self._starts = starts
        self._ends = ends
        self._longest = longest

    def __len__(self) -> int:
        return self._starts.size

    @overload
    def __getitem__(self, which: int) -> bytes: ...
    @overload
    def __getitem__(self, which: slice) -> list[bytes]: ...
    def __getitem__(self, which: int | slice) -> bytes | list[bytes]:
        if isinstance(which, slice):
            starts, ends = self._starts[which].tolist(), self._ends[which].tolist()
            return [self._line(start, end) for start, end in zip(starts, ends, strict=True)]
        return self._line(int(self._starts[which]), int(self._ends[which]))

    def __iter__(self) -> Iterator[bytes]:
        return iter(self[:])

    def joined(self, first: int, stop: int) -> memoryview | None:
        """These lines as they lie in the text, if each opens and closes like one JSON array or object.

        Then no value can reach from one line into the next: after a closing bracket no value may open.
        """
        if not self._plain[first:stop].all():
            return None
        return memoryview(self._text)[self._starts[first] : self._ends[stop - 1]]

    @cached_property
    def _plain(self) -> Flags:
        opening, closing = self._bytes[self._starts], self._bytes[self._ends - 1]
        short = self._ends - self._starts <= min(self._longest, _SHALLOW)
        plain: Flags = _OPENING[opening] & _CLOSING[closing] & short
        return plain

    @property
    def blank(self) -> Flags:
        """Which lines hold nothing, or a carriage return alone."""
        sizes = self._ends - self._starts
        blank: Flags = sizes == 0
        single = np.flatnonzero(sizes == 1)
        if single.size:
            blank[single] = self._bytes[self._starts[single]] == _CARRIAGE_RETURN
        return blank

    def only(self, which: Flags) -> "TextRecords":
        """Some of the lines."""
        return TextRecords(self._text, self._starts[which], self._ends[which], self._longest)

    @property
    def _bytes(self) -> NDArray[np.uint8]:
        return np.frombuffer(self._text, np.uint8)

    def _line(self, start: int, end: int) -> bytes:
        return self._text[start : min(end, start + self._longest + 1)]


class Lines:
    """One text, cut into records. It holds at most one chunk and one line of the longest length allowed."""

    def __init__(self, partition: str, text: TextSource, offset: int, longest: int, chunk: int) -> None:
        self.text = text
        self.finished = False
        """Whether every line has been given out."""
        self._partition = partition
        self._longest = longest
        self._chunk = chunk
        self._offset = offset  # of the line whose end has not been read
        self._start = b""  # of that line: at most one byte more than the longest
        self._length = 0  # of that line as far as it was read

    def read(self) -> RawBatch | None:
        """The next lines; None if there is no whole one yet, or nothing is left."""
        while not self.finished:
            data = self.text.read(self._chunk)
            batch = self._cut(data) if data else self._end()
            if batch is not None:
                return batch
            if not data:
                break
        return None

    def _cut(self, data: bytes) -> RawBatch | None:
        """The lines that end in this chunk; what follows the last of them is kept."""
        text, offset = self._start + data, self._offset
        line_feeds = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED)
        if not line_feeds.size:
            self._keep(data)
            return None
        end = int(line_feeds[-1]) + 1
        too_long = self._length - len(self._start)  # bytes of the first line that were skipped
        self._offset, self._start, self._length = offset + too_long + end, b"", 0
        self._keep(text[end:])
        starts = np.concatenate([[0], line_feeds[:-1] + 1])
        offsets = offset + starts
        offsets[1:] += too_long
        return self._batch(TextRecords(text, starts, line_feeds, self._longest), offsets)

    def _keep(self, part: bytes) -> None:
        self._start += part[: self._longest + 1 - len(self._start)]
        self._length += len(part)

    def _end(self) -> RawBatch | None:
        """The last line, if it came without a line feed."""
        if not self.text.ended:
            return None
        self.finished = True
        text, offsets = self._start, np.array([self._offset])
        self._offset, self._start, self._length = self._offset + self._length, b"", 0
        return self._batch(TextRecords(text, np.array([0]), np.array([len(text)]), self._longest), offsets)

    def _batch(self, records: "TextRecords", offsets: Offsets) -> RawBatch | None:
        """Blank lines are no records."""
        filled = ~records.blank
        if not filled.all():
            records, offsets = records.only(filled), offsets[filled]
        return RawBatch(self._partition, records, offsets, self._offset) if len(records) else None
