"""A file of which only the last record of each key counts: appended to, and now and then written anew without the rest.

A line is a key, a tab, and a record; an empty record says that its key is no more. The file is written anew under
another name: the checkpoint, which names the file and its committed length, goes from one whole file to the next.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from monitor.errors import ConnectorError

# Below this it is not worth it; above, when more than half of the file does not count any more.
_SMALL = 1 << 20


def committed_records(path: Path, length: int) -> Iterator[bytes]:
    """What counts among the committed bytes of a file that another process may be writing to, the oldest first."""
    last: dict[bytes, bytes] = {}
    with path.open("rb") as file:
        for line in file.read(length).splitlines():
            key, _, record = line.partition(b"\t")
            last.pop(key, None)
            if record:
                last[key] = record
    yield from last.values()


class CompactedFile:
    """One generation after the other: `BASE`, `BASE.1`, `BASE.2` ..."""

    def __init__(self, base: Path, name: str | None, length: int) -> None:
        """Take up the committed generation at its committed length, and let go of the others."""
        self._base = base
        self._places: dict[bytes, tuple[int, int]] = {}
        """Of each key the start and the length of its last line."""
        self._live = 0
        committed = base if name is None else base.with_name(name)
        self.path = committed
        self._drop_all_but(committed)
        self._file: BinaryIO = committed.open("a+b")
        if self._file.seek(0, os.SEEK_END) < length:
            raise ConnectorError(f"{committed}: {length} bytes were committed, and only {self._file.tell()} are left")
        self._file.truncate(length)
        self._index()

    @property
    def length(self) -> int:
        """How long the file is, in bytes."""
        return self._file.tell()

    def write(self, key: bytes, record: bytes) -> None:
        """Append a record, durable with the next commit."""
        line = b"%b\t%b\n" % (key, record)
        self._place(key, self._file.tell(), len(line), gone=not record)
        self._file.write(line)

    def flush(self) -> None:
        """Make durable what was written; and write the file anew where most of it does not count any more."""
        if self._file.tell() > max(2 * self._live, _SMALL):
            self._write_anew()
        self._file.flush()
        os.fsync(self._file.fileno())

    def records(self) -> Iterator[bytes]:
        """What counts, the oldest first."""
        self._file.flush()
        with self.path.open("rb") as file:
            for start, length in sorted(self._places.values()):
                file.seek(start)
                yield file.read(length).partition(b"\t")[2].rstrip(b"\n")

    def close(self) -> None:
        """What is not in a checkpoint is cut off when the file is opened again."""
        self._file.close()

    def _index(self) -> None:
        self._file.seek(0)
        start = 0
        for line in self._file:
            key, _, record = line.partition(b"\t")
            self._place(key, start, len(line), gone=record == b"\n")
            start += len(line)
        self._file.seek(0, os.SEEK_END)

    def _place(self, key: bytes, start: int, length: int, *, gone: bool) -> None:
        self._live -= self._places.pop(key, (0, 0))[1]
        if not gone:
            self._places[key] = (start, length)
            self._live += length

    def _write_anew(self) -> None:
        """The next generation. This one stays until then, for the checkpoint names it as yet."""
        self._drop_all_but(self.path)
        anew = self._base.with_name(f"{self._base.name}.{self._number(self.path) + 1}")
        self._file.flush()
        with anew.open("wb") as written, self.path.open("rb") as file:
            places = {}
            for key, (start, length) in sorted(self._places.items(), key=lambda item: item[1]):
                file.seek(start)
                places[key] = (written.tell(), length)
                written.write(file.read(length))
        self._file.close()
        self._places, self.path = places, anew
        self._file = anew.open("a+b")
        self._file.seek(0, os.SEEK_END)

    def _number(self, path: Path) -> int:
        return int(path.name.removeprefix(f"{self._base.name}.")) if path != self._base else 0

    def _drop_all_but(self, path: Path) -> None:
        for other in self._base.parent.glob(f"{self._base.name}*"):
            number = other.name.removeprefix(self._base.name)
            if other != path and (not number or number.removeprefix(".").isdigit()):
                other.unlink()
