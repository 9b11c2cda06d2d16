"""Bytes into lines with their offsets, in bounded memory: where text comes from, and how it is cut."""

import gzip
import os
import select
import sys
import zlib
from pathlib import Path
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from connectors.protocols import RawBatch
from monitor.errors import ConnectorError

Offsets = NDArray[np.int64]


class Text(Protocol):
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
            raise ConnectorError(f"{self._path}: the file was replaced or cut while it was read")


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

    def more(self) -> bool:
        """Whether something has come."""
        return not self.ended and self.wait(0)

    def wait(self, timeout: float) -> bool:
        """Wait until something comes, or the end."""
        return bool(select.select([self._descriptor], [], [], timeout)[0])

    def close(self) -> None:
        """Standard input is not ours to close."""


class Lines:
    """One text, cut into records. It holds at most one chunk and one line of the longest length allowed."""

    def __init__(self, partition: str, text: Text, offset: int, longest: int, chunk: int) -> None:
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
        records = data.split(b"\n")
        rest = records.pop()
        if not records:
            self._keep(rest)
            return None
        sizes = np.fromiter(map(len, records), np.int64, len(records))
        sizes[0] += self._length
        records[0] = self._start + records[0][: self._longest + 1 - len(self._start)] if self._start else records[0]
        ends = self._offset + np.cumsum(sizes + 1)
        self._offset, self._start, self._length = int(ends[-1]), b"", 0
        self._keep(rest)
        return self._batch(records, ends - sizes - 1, sizes)

    def _keep(self, part: bytes) -> None:
        self._start += part[: self._longest + 1 - len(self._start)]
        self._length += len(part)

    def _end(self) -> RawBatch | None:
        """The last line, if it came without a line feed."""
        if not self.text.ended:
            return None
        self.finished = True
        record, sizes = self._start, np.array([self._length])
        offsets = np.array([self._offset])
        self._offset, self._start, self._length = self._offset + self._length, b"", 0
        return self._batch([record], offsets, sizes)

    def _batch(self, records: list[bytes], offsets: Offsets, sizes: Offsets) -> RawBatch | None:
        """Blank lines are no records."""
        if sizes.min() < 2:
            kept = [number for number, record in enumerate(records) if record not in (b"", b"\r")]
            records, offsets = [records[number] for number in kept], offsets[kept]
        return RawBatch(self._partition, records, offsets, self._offset) if records else None
