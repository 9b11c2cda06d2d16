"""A log that rotates is one partition: its bytes are numbered on from file to file, as if it were one file.

A file is read to its end, also under another name, before the next one begins: no result shows where one was cut off.
What a commit keeps of the log (`LogMark`) names its files from the one that open windows need again; what was rotated
while nothing ran is found by when it was written. Records that are nowhere any more are a gap: it is logged, counted as
one skipped record (nobody knows how many they were), and windows around it are incomplete.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from connectors.lines import Lines
from connectors.logfiles import Head, LogFile, Named, digest, here, known, opened, rotated
from monitor.errors import ConnectorError
from monitor.ports import RawBatch

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
"""Seconds between two looks whether the log was rotated, while there is something to read."""
GRACE = 2.0
"""For so many seconds nobody has written to a file that was renamed before it is taken to be over: writers hold it open
for a moment."""
TAIL_BYTES = 4_096
"""Before the next byte, by which a file that was cut and has grown again is told from one that has only grown."""
REMEMBERED = 10_000
"""Files that are known to be read, or to be older than the first one that was."""


class LogMark(msgspec.Struct, omit_defaults=True):
    """What a commit keeps of the log beside the offset."""

    before: str
    """How many bytes before the offset, and their hash; empty where none are."""
    files: tuple[tuple[int, int, str], ...]
    """Where each file begins in the log, and its head: from the one before that of the offset to the one being read."""
    read: int
    """How far the log was read."""
    written: int
    """When the last of the files was last written to: an unknown file that was written to since comes after it."""


@dataclass(slots=True)
class _FileOfLog:
    """One file of the log, as text."""

    head: Head | None
    """None for a file of which nothing is known."""
    base: int = 0
    """Where it begins in the log."""
    least: int = 0
    """So many of its bytes were read before this process began."""
    final: int | None = None
    """Its length, where that is known."""
    position: int = 0
    """How far it is read."""
    file: LogFile | None = None
    tail: bytes = b""
    changed: bool = False
    """Whether what was read does not stand in the file any more."""
    missing: bool = False
    """Whether some of it is gone, and nobody was told."""
    ended: bool = False

    def read(self, size: int) -> bytes:
        """The next bytes. What stands before them is looked at in the same go: the file may be cut at any time."""
        if self.file is None or self.ended or self.changed:
            return b""
        wanted = size if self.final is None else min(size, self.final - self.position)
        before = len(self.tail)
        data = self.file.at(self.position - before, before + max(wanted, self._told))
        if not self._goes_on(data):
            self.changed = True
            return b""
        data = data[before : before + wanted]
        self.position += len(data)
        if not self.file.packed:
            self.tail = (self.tail + data)[-TAIL_BYTES:]
        return data

    def take(self, file: LogFile, position: int) -> None:
        """Read on there."""
        self.close()
        before = 0 if file.packed else min(position, TAIL_BYTES)
        self.file, self.position, self.changed = file, position, False
        self.tail = file.at(position - before, before)

    def end(self) -> None:
        """Nothing more will come of it."""
        self.ended = True
        self.missing |= self.position < self.least or (self.final is not None and self.position < self.final)

    @property
    def stop(self) -> int:
        """Where the next file begins in the log, at the earliest."""
        return self.base + max(self.position, self.least if self.final is None else self.final)

    @property
    def written(self) -> int | None:
        """When it was last written to; None where it is not open, or was cut."""
        if self.file is None:
            return None
        last, before = self.file.written, len(self.tail)
        return last if self.file.at(self.position - before, before) == self.tail else None

    @property
    def quiet(self) -> bool:
        """Whether nobody has written to it for a while."""
        return self.file is None or time.time() - self.file.written / 1e9 > GRACE

    def close(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    @property
    def _told(self) -> int:
        """So many bytes tell the file from another one, where nothing was read of it yet."""
        return 0 if self.position or self.head is None else self.head.size

    def _goes_on(self, data: bytes) -> bool:
        return data.startswith(self.tail) if not self._told or self.head is None else self.head.begins(data)


@dataclass(slots=True)
class RotatedLog:
    """Reads the log at a path, whatever names its earlier files have by now."""

    path: Path
    longest: int
    chunk: int
    skipped: int = field(default=0, init=False)
    """Gaps so far."""
    finished: bool = field(default=False, init=False)
    """There may always be more."""
    _parts: list[_FileOfLog] = field(default_factory=list, init=False)
    """Those that a commit names; the last one is being read."""
    _queue: deque[_FileOfLog] = field(default_factory=deque, init=False)
    """Those that come after it."""
    _known: deque[Head] = field(default_factory=lambda: deque[Head](maxlen=REMEMBERED), init=False)
    _lines: Lines | None = field(default=None, init=False)
    _looked: float = field(default=float("-inf"), init=False)
    _written: int = field(default=0, init=False)
    _marked: tuple[int, str] = field(default=(-1, ""), init=False)
    """An offset, and what stands before it."""

    def start(self) -> None:
        """Begin with the file that is there: those that were rotated before are history."""
        for named in rotated(self.path):
            self._know(named)
            self._written = max(self._written, named.written + 1)

    def resume(self, offset: int, mark: str) -> None:
        """Go on where an earlier run stopped."""
        if not mark.startswith("{"):
            self._resume_one_file(offset, mark)
            return
        told = msgspec.json.decode(mark, type=LogMark)
        ends = [*(base for base, _, _ in told.files[1:]), None]
        for (base, size, of), end in zip(told.files, ends, strict=False):
            final = None if end is None else end - base
            head = Head(size, of) if size else None
            self._queue.append(_FileOfLog(head, base, final=final, least=told.read - base if final is None else final))
            self._known.extend([head] if head else [])
        while self._queue and self._queue[0].base <= offset:
            self._parts.append(self._queue.popleft())
        self._after(told.written)
        self._begin(offset - self._parts[-1].base, told.before)

    def read(self) -> RawBatch | None:
        """The next lines; None if there is no whole one yet."""
        if time.monotonic() - self._looked > LOOK_EVERY:
            self._look()
        while True:
            if self._lines is not None:
                batch = self._lines.read()
                if batch is not None:
                    return batch
                if not self._lines.finished:
                    if not self._went_on():
                        return None
                    continue
                if self._parts[-1].missing:
                    return self._gap(self._parts[-1])
            if not self._queue:
                return None
            begun = self._queue.popleft()
            if self._parts:
                self._parts[-1].close()
                begun.base = self._parts[-1].stop
            self._parts.append(begun)
            self._begin(0, "")

    def more(self) -> bool:
        """Whether a read would bring something."""
        current = self._parts[-1] if self._parts else None
        if self._queue or current is None or current.file is None:
            return bool(self._queue) or here(self.path) is not None
        return current.changed or bool(current.file.at(current.position, 1))

    def mark(self, offset: int) -> str:
        """By what the log is known again at an offset. Of the files before it, one is remembered: it is not new."""
        while len(self._parts) > 2 and self._parts[2].base <= offset:
            self._parts.pop(0)
        if not self._parts:
            return ""
        current = self._parts[-1]
        written = current.written
        if written is not None:
            self._written = written
        if self._marked[0] != offset:
            self._marked = offset, self._before(offset)
        files = tuple(
            (part.base, part.head.size, part.head.digest) if part.head else (part.base, 0, "") for part in self._parts
        )
        told = LogMark(self._marked[1], files, current.base + current.position, self._written)
        return msgspec.json.encode(told).decode()

    def close(self) -> None:
        """Close what is open."""
        for part in self._parts:
            part.close()

    def _resume_one_file(self, offset: int, mark: str) -> None:
        """A release that followed no rotation has kept no more than what stands before the offset."""
        for named in [*filter(None, [here(self.path)]), *reversed(rotated(self.path))]:
            head, file = Head.of(named.head), opened(named.path)
            if head is not None and file is not None and _stands(file, offset, mark):
                self._parts = [_FileOfLog(head, least=offset)]
                self._know(named)
                self._after(named.written)
                self._read_on(file, offset)
                return
            if file is not None:
                file.close()
        self.start()
        if offset:
            self._parts = [_FileOfLog(None, least=offset)]
            self._begin(offset, mark)

    def _after(self, written: int) -> None:
        """What was rotated since comes next; the rest is history."""
        self._written = written
        for named in rotated(self.path):
            if named.written >= written:
                self._follow(named)
            else:
                self._know(named)

    def _look(self) -> None:
        """Whether the log has another file by now, or several."""
        self._looked = time.monotonic()
        there = here(self.path)
        head = None if there is None else Head.of(there.head)
        if there is None or head is None:
            return
        newest = next(reversed([*self._parts, *self._queue]), None)
        if newest is not None and newest.head is not None and newest.head.begins(there.head):
            newest.head = max(head, newest.head, key=lambda each: each.size)
            return
        if newest is not None:
            for named in rotated(self.path):
                self._follow(named)
        self._queue.append(_FileOfLog(head))
        self._know(there)

    def _went_on(self) -> bool:
        """At the end of what can be read of a file: whether it is over, or is read on elsewhere."""
        part = self._parts[-1]
        if part.changed:
            self._find_copy(part)
            return True
        over = part.final is not None
        if not over:
            self._look()
            over = bool(self._queue) and part.quiet
        if over:
            part.end()
        return over

    def _begin(self, position: int, before: str) -> None:
        part = self._parts[-1]
        for file in self._files(part.head):
            if _stands(file, position, before):
                self._read_on(file, position)
                return
            size = file.size
            file.close()
            if file.path == self.path:
                raise ConnectorError(_refusal(self.path, position, size))
        part.position = position
        part.end()
        part.missing |= part.final is None
        self._lines = Lines(self.path.name, part, part.base + position, self.longest, self.chunk)

    def _read_on(self, file: LogFile, position: int) -> None:
        part = self._parts[-1]
        part.take(file, position)
        self._written = max(self._written, file.written)
        self._lines = Lines(self.path.name, part, part.base + position, self.longest, self.chunk)

    def _find_copy(self, part: _FileOfLog) -> None:
        """The file was copied and cut: what was not read of it stands in the copy, if anywhere."""
        copied = False
        for file in self._files(part.head):
            if file.at(part.position - len(part.tail), len(part.tail)) == part.tail:
                part.take(file, part.position)
                return
            size = file.size
            file.close()
            if file.path == self.path:
                raise ConnectorError(_refusal(self.path, part.position, size))
            copied = True
        part.end()
        part.missing |= not copied  # otherwise it was read beyond the copy's end

    def _files(self, head: Head | None) -> Iterator[LogFile]:
        """Those that begin so, open; that with the name of the log last."""
        if head is None:
            return
        for named in [*rotated(self.path), *filter(None, [here(self.path)])]:
            if head.begins(named.head) and (file := opened(named.path)) is not None:
                if head.begins(file.head()):
                    yield file
                else:  # renamed this moment
                    file.close()

    def _gap(self, part: _FileOfLog) -> RawBatch:
        part.missing = False
        self.skipped += 1
        log.warning(
            "%s: what followed byte %d of a rotated file is nowhere: the log goes on after a gap, and windows around "
            "it are incomplete",
            self.path,
            part.position,
        )
        return RawBatch(self.path.name, [], np.empty(0, dtype=np.int64), part.stop, skipped=1)

    def _before(self, offset: int) -> str:
        part = max((part for part in self._parts if part.base <= offset), key=lambda part: part.base)
        size = min(offset - part.base, TAIL_BYTES)
        if not size:
            return ""
        for file in [part.file] if part.file is not None and part.written is not None else self._files(part.head):
            data = b"" if file.packed else file.at(offset - part.base - size, size)
            if file is not part.file:
                file.close()
            if len(data) == size:
                return f"{size}:{digest(data)}"
        return ""

    def _follow(self, named: Named) -> None:
        if not known(self._known, named.head) and (head := Head.of(named.head)) is not None:
            self._queue.append(_FileOfLog(head))
            self._know(named)

    def _know(self, named: Named) -> None:
        head = Head.of(named.head)
        if head is not None:
            self._known.append(head)


def _stands(file: LogFile, position: int, before: str) -> bool:
    """Whether this is the file that was read so far; by its lines alone where no hash was kept."""
    if file.packed or not position:
        return True
    if file.size < position:
        return False
    if not before:
        return b"\n" in file.at(position - 1, 2) or file.size == position
    size, _, kept = before.partition(":")
    return size.isdigit() and digest(file.at(position - int(size), int(size))) == kept


def _refusal(path: Path, position: int, size: int) -> str:
    if size < position:
        return f"{path}: it was read up to byte {position}, and now has only {size}"
    return (
        f"{path}: this is not the file that was read up to byte {position}, though it begins like it: other lines "
        "stand before that. Put that file back; or, to read this one from its beginning, write to new results"
    )
