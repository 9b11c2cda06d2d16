"""The files of a log that rotates: which are its own, by what each is known again, and where they are now.

A file is known by its first bytes, whatever its name and its inode are: `mv` keeps contents and inode, `cp` keeps
contents alone, and a new file may well get the inode of one that was deleted. Only a file with a whole line in it is
known; an empty one holds nothing that could be missed.
"""

import gzip
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, cast

from monitor.errors import ConnectorError

HEAD_BYTES = 4_096
"""By which a file is known again: some lines, each with its own time and scores."""
PACKED = ".gz"
_ROTATED = re.compile(r"[-._](\d[-._:TZ+\d]*|old)")
"""What rotation puts into a name: a number or a date, at its end or before the suffix; or `old`."""


def digest(data: bytes) -> str:
    """Some bytes, in short."""
    return blake2b(data, digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The first bytes of a file."""

    size: int
    digest: str

    @classmethod
    def of(cls, data: bytes) -> "Head | None":
        """None while there is no whole line, by which one file is told from another."""
        whole = len(data) if len(data) >= HEAD_BYTES else data.rfind(b"\n") + 1
        return cls(whole, digest(data[:whole])) if whole else None

    def begins(self, data: bytes) -> bool:
        """Whether a file that starts so is that one."""
        return len(data) >= self.size and digest(data[: self.size]) == self.digest


class LogFile:
    """One file, open: it is read under whatever name it has by now, or has none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.packed = path.suffix == PACKED
        try:
            packed = gzip.open(path, "rb") if self.packed else None  # noqa: SIM115 - closed by close()
            self._file = path.open("rb", buffering=0) if packed is None else cast(BinaryIO, packed)
        except PermissionError as error:
            raise ConnectorError(f"{path}: {error.strerror}") from error

    @property
    def written(self) -> int:
        """When it was last written to, in nanoseconds."""
        return os.fstat(self._file.fileno()).st_mtime_ns

    @property
    def size(self) -> int:
        """How many bytes it has; packed, where it is packed."""
        return os.fstat(self._file.fileno()).st_size

    def at(self, offset: int, size: int) -> bytes:
        """So many bytes from there on, or as many as there are."""
        try:
            if not self.packed:
                return os.pread(self._file.fileno(), size, offset)
            return self._file.read(size) if self._file.seek(offset) == offset else b""
        except (OSError, EOFError, zlib.error) as error:
            raise ConnectorError(f"{self.path}: cannot be read: {error}") from error

    def head(self) -> bytes:
        """Its first bytes."""
        return self.at(0, HEAD_BYTES)

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class Named:
    """A file as it was found under a name."""

    path: Path
    written: int
    head: bytes


def here(path: Path) -> Named | None:
    """The file of that name; None if there is none, or none that can be read just now."""
    file = opened(path)
    if file is None:
        return None
    try:
        return Named(path, file.written, file.head())
    except ConnectorError:  # being packed just now
        return None
    finally:
        file.close()


def rotated(path: Path) -> list[Named]:
    """The files into which a log was rotated, the one that was written to first at the front.

    Of a file that is there packed and unpacked, the packed one is not whole yet.
    """
    paths = {each for each in path.parent.iterdir() if _is_rotated(each.name, path)}
    whole = (each for each in paths if each.suffix != PACKED or each.with_suffix("") not in paths)
    return sorted(filter(None, map(here, whole)), key=lambda named: (named.written, named.path))


def known(heads: Iterable[Head], data: bytes) -> bool:
    """Whether a file that starts so is one of those."""
    return any(head.begins(data) for head in heads)


def opened(path: Path) -> LogFile | None:
    """The file of that name, if it still has it."""
    try:
        return LogFile(path)
    except FileNotFoundError:
        return None


def _is_rotated(name: str, path: Path) -> bool:
    if name == path.name or not name.startswith(path.stem):
        return False
    rest = name.removesuffix(PACKED).removeprefix(path.stem)
    rest = rest.removeprefix(path.suffix) if rest.startswith(path.suffix) else rest.removesuffix(path.suffix)
    return _ROTATED.fullmatch(rest) is not None
