"""Where text comes from: a file, a packed one, or standard input; from its beginning or where a run stopped."""

import gzip
import os
import select
import sys
import zlib
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Protocol

from monitor.errors import ConnectorError

GONE = "gone"
"""The mark of a file that was taken away since it was read: no other one is it."""
MARKED_BYTES = 4_096
"""Before an offset, by which a file is known again: some lines, each with its own time and scores."""


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
                "follow a log that rotates by its own path, or a directory in which each file keeps its name"
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
