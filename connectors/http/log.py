"""A log on disk of what was posted: appended to, durable at each answer, bounded, and read by position.

A folder of files, each named after the position of its first byte. Whoever appends hands over all that was posted at
once: a frame. It is there whole or not at all: a frame that was cut short by a kill was never answered, and is cut off
when the log is opened. What was posted under a key that is known is not appended again: its sender did not hear of it.

    frame   = FRAME of (MAGIC, number of keys, bytes of lines, checksum of keys and lines), keys, lines
    keys    = 16 bytes each
    lines   = records, each ending in a line feed
"""

import fcntl
import os
import struct
import threading
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from monitor.errors import ConnectorError

MAGIC = b"SWF1"
FRAME = struct.Struct("<4sIII")
KEY_BYTES = 16
FILE_BYTES = 64 << 20
"""Of one file: whole files are deleted, so that few bytes beyond what is needed are kept."""
FILES = 8
"""A log of few bytes has at least so many files."""
KEYS_KNOWN = 200_000
"""Keys that are remembered, 30 MB: a sender that heard nothing sends again within minutes."""


@dataclass(frozen=True, slots=True)
class Posted:
    """Some records that came together."""

    lines: bytes
    """Each ends in a line feed."""
    key: bytes = b""
    """By which it is known when it is sent again; empty if by nothing."""


@dataclass(frozen=True, slots=True)
class LogFrame:
    """The records of one append."""

    position: int
    """Of the first of their bytes."""
    lines: bytes


class EventLog:
    """One process has it open. One thread appends; another one reads and forgets."""

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder
        self.limit = limit
        self._file_bytes = min(FILE_BYTES, limit // FILES)
        self._starts: list[int] = []
        """Of the files there are."""
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._grown = threading.Condition()
        self.end = 0
        """Where the next frame begins; all before is durable."""
        self.lost = False
        """Whether what had been read of it was gone when it was opened."""
        self._lock: BinaryIO | None = None
        self._file: BinaryIO | None = None

    def open(self, position: int | None) -> int:
        """Take up the log where it was read up to, or as it is; says where to read on.

        A log that is gone begins anew there.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._lock = (self._folder / "lock").open("wb")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConnectorError(f"{self._folder}: another process has this log open") from error
        self._starts = sorted(int(path.stem) for path in self._folder.glob("*.log"))
        self.lost = not self._starts and bool(position)
        if not self._starts:
            self._begin_file(position or 0)
        for start in self._starts:
            whole = self._look_through(start)
        self.end = self._starts[-1] + whole
        self._take_up(self._path(self._starts[-1]))
        os.truncate(self._path(self._starts[-1]), whole)
        position = self._starts[0] if position is None else position
        if not self._starts[0] <= position <= self.end:
            raise ConnectorError(
                f"{self._folder}: this is not the log that was read up to {position}: it goes from "
                f"{self._starts[0]} to {self.end}. Give that log back, or write to new results"
            )
        return position

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.end - self._starts[0]

    def append(self, posts: Iterable[Posted]) -> None:
        """Make them durable; raises OSError if that cannot be done, and then none of them is there."""
        keys: dict[bytes, None] = {}
        lines = []
        for post in posts:
            key = _digest(post.key) if post.key else b""
            if key not in self._known and key not in keys:
                lines.append(post.lines)
                keys |= {key: None} if key else {}
        if lines:
            self._write(b"".join(keys), b"".join(lines))
            self._remember(keys)

    def read(self, position: int, size: int) -> tuple[Sequence[LogFrame], int]:
        """The frames from one on, of about so many bytes, and where the next one begins."""
        frames, read = [], 0
        while read < size and position < self.end:
            start = self._starts[bisect_right(self._starts, position) - 1]
            with self._path(start).open("rb", buffering=0) as file:
                stop = min(self.end, self._next_start(start)) - start
                for frame, after in _frames(file, position - start, min(stop, position - start + size)):
                    frames.append(LogFrame(start + frame.position, frame.lines))
                    position, read = start + after, read + len(frame.lines)
                    if read >= size:
                        break
        return frames, position

    def frame_of(self, position: int) -> int:
        """Where the frame begins in which a position stands."""
        if position == self.end:
            return position
        start = self._starts[bisect_right(self._starts, position) - 1]
        with self._path(start).open("rb", buffering=0) as file:
            at = 0
            while start + (after := _after(file, at)) <= position and start + after < self.end:
                at = after
        return start + at

    def wait(self, position: int, timeout: float) -> None:
        """Until there is something beyond a position."""
        with self._grown:
            self._grown.wait_for(lambda: self.end > position, timeout)

    def forget(self, position: int) -> None:
        """Nothing before a position is needed any more. The file before it stays: its keys are those of just now."""
        while len(self._starts) > 2 and self._starts[2] <= position:
            self._path(self._starts[0]).unlink(missing_ok=True)
            self._starts.pop(0)

    def close(self) -> None:
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    def _write(self, keys: bytes, lines: bytes) -> None:
        if self._file is None:
            raise OSError("the log is closed")
        if self.end - self._starts[-1] >= self._file_bytes:
            self._begin_file(self.end)
        frame = (
            FRAME.pack(MAGIC, len(keys) // KEY_BYTES, len(lines), zlib.crc32(lines, zlib.crc32(keys))) + keys + lines
        )
        file, at = self._file.fileno(), self.end - self._starts[-1]
        try:
            rest = memoryview(frame)
            while rest:
                rest = rest[os.pwrite(file, rest, at + len(frame) - len(rest)) :]
            os.fsync(file)
        except OSError:
            with suppress(OSError):  # what is left behind `end` is written over, or cut off at the next start
                os.ftruncate(file, at)
            raise
        with self._grown:
            self.end += len(frame)
            self._grown.notify_all()

    def _begin_file(self, position: int) -> None:
        path = self._path(position)
        path.touch()
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._take_up(path)
        self._starts.append(position)

    def _take_up(self, path: Path) -> None:
        """Go on in a file. Where that fails, the one before stays open."""
        file = path.open("r+b", buffering=0)
        if self._file is not None:
            self._file.close()
        self._file = file

    def _look_through(self, start: int) -> int:
        """Remember the keys of a file; says how many of its bytes are whole frames, which only of the last one may be
        fewer than it has."""
        at = 0
        last = start == self._starts[-1]
        with self._path(start).open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            while at < size:
                head = _head(file, at)
                if head is None or (last and not head.whole(file, at)):
                    break
                keys = os.pread(file.fileno(), head.keys, at + FRAME.size)
                self._remember(keys[first : first + KEY_BYTES] for first in range(0, len(keys), KEY_BYTES))
                at += head.bytes
        if not last and start + at != self._next_start(start):
            raise ConnectorError(f"{self._path(start)}: damaged at byte {at}")
        return at

    def _remember(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._known[key] = None
        while len(self._known) > KEYS_KNOWN:
            self._known.popitem(last=False)

    def _next_start(self, start: int) -> int:
        number = bisect_right(self._starts, start)
        return self._starts[number] if number < len(self._starts) else self.end

    def _path(self, start: int) -> Path:
        return self._folder / f"{start:020d}.log"


@dataclass(frozen=True, slots=True)
class _FrameHead:
    keys: int
    """In bytes, as all of them."""
    lines: int
    checksum: int

    @property
    def bytes(self) -> int:
        return FRAME.size + self.keys + self.lines

    def whole(self, file: BinaryIO, at: int) -> bool:
        body = os.pread(file.fileno(), self.keys + self.lines, at + FRAME.size)
        return len(body) == self.keys + self.lines and zlib.crc32(body) == self.checksum


def _head(file: BinaryIO, at: int) -> _FrameHead | None:
    data = os.pread(file.fileno(), FRAME.size, at)
    if len(data) < FRAME.size:
        return None
    magic, keys, lines, checksum = FRAME.unpack(data)
    return _FrameHead(keys * KEY_BYTES, lines, checksum) if magic == MAGIC else None


def _after(file: BinaryIO, at: int) -> int:
    head = _head(file, at)
    if head is None:
        raise ConnectorError(f"{file.name}: damaged at byte {at}")
    return at + head.bytes


def _frames(file: BinaryIO, at: int, stop: int) -> Iterator[tuple[LogFrame, int]]:
    """The frames that begin before an offset of a file, and where each ends."""
    while at < stop:
        head = _head(file, at)
        body = b"" if head is None else os.pread(file.fileno(), head.keys + head.lines, at + FRAME.size)
        if head is None or zlib.crc32(body) != head.checksum:
            raise ConnectorError(f"{file.name}: damaged at byte {at}")
        yield LogFrame(at + FRAME.size + head.keys, body[head.keys :]), at + head.bytes
        at += head.bytes


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=KEY_BYTES).digest()
