"""How the process keeps its memory: settings for processes that decode batch after batch, and what several share."""

import ctypes
import gc
import mmap
import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.reduction import DupFd
from tempfile import TemporaryFile
from typing import Any, Generic, Self, TypeVar
from weakref import finalize

import numpy as np

ValueT = TypeVar("ValueT")

# The widest that numpy's loops want their arrays aligned to.
_ALIGNED = 64

_Part = tuple[int, int]  # where it begins in the file, and where it ends

# As in malloc.h.
_M_ARENA_MAX = -8

# The largest block that glibc may move its thresholds for is 32 MiB.
_LARGEST = 31 << 20


def keep_freed_memory() -> None:
    """Have the C library reuse freed arrays instead of handing them back to the system and asking again.

    glibc takes the size of the largest block that was ever freed as the sign of what to keep (mallopt(3),
    M_MMAP_THRESHOLD): one block is enough. Without it a fifth of the time of decoding goes into page faults. It keeps
    at most twice that block, and does nothing where the C library is another.

    And have all threads but the first share one arena. Clients of Kafka have threads of their own, fresh ones after
    every outage, and glibc gives each an arena, up to eight a core, that keeps what the thread freed: a service of
    sixty streams had seven of 17 to 46 MB after eight outages.
    """
    block = np.empty(_LARGEST, dtype=np.uint8)
    del block
    with suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def give_back_freed_memory() -> None:
    """Have glibc hand all free pages back, also those between blocks that are in use, which it keeps for good.

    After references were loaded and moved to where all processes see them, that is as much as they are. And when
    reading begins anew, windows that were open are gone, and others are filled as fast as can be read: the heap is left
    with more holes each time, some 3 MB an outage with thirty streams (malloc_trim(3)).
    """
    with suppress(AttributeError):  # the C library is another
        ctypes.CDLL(None).malloc_trim(0)


def collect_garbage_rarely() -> None:
    """Have the cycle collector leave alone what start-up made, and look at the rest a hundred times less often.

    A client library makes an object per record, and none of them is part of a cycle: by default the collector walks
    through them after every 700. A tenth of the time of reading a topic goes into that.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(70_000, 10, 10)


class Shared(Mapping[str, ValueT], Generic[ValueT]):
    """Values by name, each of whose arrays is in memory once, however many processes they are handed to.

    They lie pickled in a file without a name, the arrays out of band (PEP 574), so that each process maps them, to be
    read and never written. The files that references were loaded from would not do: whoever copies another over one of
    them would change it under our feet.
    """

    def __init__(self, descriptor: int, parts: Sequence[_Part]) -> None:
        """In a file that `of` has written."""
        self._descriptor, self._parts = descriptor, parts
        finalize(self, os.close, descriptor)
        whole = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
        pickled, *arrays = (whole[first:last] for first, last in parts)
        self._values: Mapping[str, ValueT] = pickle.loads(pickled, buffers=arrays)  # noqa: S301 - written by `of`

    @classmethod
    def of(cls, values: Mapping[str, ValueT]) -> Self:
        """The same values; those that were given may be let go."""
        arrays: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(dict(values), protocol=5, buffer_callback=arrays.append)
        descriptor, parts = _nameless(), list[_Part]()
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            for part in [memoryview(pickled), *(array.raw() for array in arrays)]:
                first = file.seek(-file.tell() % _ALIGNED, os.SEEK_CUR)
                parts.append((first, first + file.write(part)))
        return cls(descriptor, parts)

    def __getitem__(self, name: str) -> ValueT:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[Callable[..., "Shared[Any]"], tuple[Any, ...]]:
        return _handed_over, (DupFd(self._descriptor), self._parts)


def _handed_over(handle: Any, parts: Sequence[_Part]) -> Shared[Any]:
    """In the process that it is handed to."""
    return Shared(handle.detach(), parts)


def _nameless() -> int:
    """In memory where the system has such files; never in /dev/shm, which containers keep small."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("shiftwatch")
    with TemporaryFile() as file:
        return os.dup(file.fileno())
