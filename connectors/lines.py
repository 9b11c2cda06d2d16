"""Bytes into lines with their offsets, in bounded memory."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags
from monitor.ports import RawBatch

Offsets = NDArray[np.int64]

_LINE_FEED, _CARRIAGE_RETURN = b"\n\r"
# A record of so few bytes cannot nest deeper than 750: far from the depth at which a decoder gives up, which is another
# for records in one text and for one alone. Longer ones gain little by company.
_SHALLOW = 1_500

_OPENING = np.isin(np.arange(256), list(b"{["))
_CLOSING = np.isin(np.arange(256), list(b"}]"))


class Text(Protocol):
    """Bytes that come one after another."""

    def read(self, size: int) -> bytes:
        """The next bytes; none if there are none now."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing will ever come again."""
        ...


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

    def __init__(self, partition: str, text: Text, offset: int, longest: int, chunk: int) -> None:
        self._text = text
        self.finished = False
        """Whether every line has been given out."""
        self._partition = partition
        self._longest = longest
        self._chunk = chunk
        self._textfset = offset  # of the line whose end has not been read
        self._start = b""  # of that line: at most one byte more than the longest
        self._length = 0  # of that line as far as it was read

    def read(self) -> RawBatch | None:
        """The next lines; None if there is no whole one yet, or nothing is left."""
        while not self.finished:
            data = self._text.read(self._chunk)
            batch = self._cut(data) if data else self._end()
            if batch is not None:
                return batch
            if not data:
                break
        return None

    def _cut(self, data: bytes) -> RawBatch | None:
        """The lines that end in this chunk; what follows the last of them is kept."""
        text, offset = self._start + data, self._textfset
        line_feeds = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED)
        if not line_feeds.size:
            self._keep(data)
            return None
        end = int(line_feeds[-1]) + 1
        too_long = self._length - len(self._start)  # bytes of the first line that were skipped
        self._textfset, self._start, self._length = offset + too_long + end, b"", 0
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
        if not self._text.ended:
            return None
        self.finished = True
        text, offsets = self._start, np.array([self._textfset])
        self._textfset, self._start, self._length = self._textfset + self._length, b"", 0
        return self._batch(TextRecords(text, np.array([0]), np.array([len(text)]), self._longest), offsets)

    def _batch(self, records: "TextRecords", offsets: Offsets) -> RawBatch | None:
        """Blank lines are no records."""
        filled = ~records.blank
        if not filled.all():
            records, offsets = records.only(filled), offsets[filled]
        return RawBatch(self._partition, records, offsets, self._textfset) if len(records) else None
