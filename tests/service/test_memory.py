"""What the loop and its workers are compared with is in memory once."""

import platform
from collections.abc import Mapping
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from monitor.arrays import Vector
from monitor.service.memory import Shared, give_back_freed_memory, keep_freed_memory
from monitor.service.publishing import Watched
from tests.service.streams import reference
from tests.service.test_loop import MINUTES

MEGABYTE = 131_072
"""Numbers."""


def own_mb() -> float:
    """Of this process alone, without what it shares with others."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1e3


def look(values: Mapping[str, Vector], pipe: Connection) -> None:
    """In another process: look at every number, and say what that took."""
    before = own_mb()
    total = float(values["a"].sum() + values["b"].sum())
    pipe.send((total, own_mb() - before, values["a"].flags.writeable))
    pipe.recv()


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="nothing says what processes share")
def test_arrays_are_in_memory_once_however_many_processes_look_at_them() -> None:
    shared = Shared.of({"a": np.arange(40.0 * MEGABYTE), "b": np.ones(8 * MEGABYTE)})
    total = float(shared["a"].sum() + shared["b"].sum())
    processes = get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=look, args=(shared, theirs))
    process.start()
    seen, took, writable = ours.recv()
    ours.send(None)
    process.join()
    assert seen == total
    assert took < 8  # of 48
    assert not writable


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another")
def test_what_is_free_between_blocks_in_use_is_given_back() -> None:
    keep_freed_memory()
    blocks = [np.ones(size) for _ in range(60) for size in (MEGABYTE, 300)]
    del blocks[::2]  # those of a megabyte
    before = own_mb()
    give_back_freed_memory()
    assert own_mb() < before - 40  # of 60
    assert len(blocks) == 60


def test_what_is_shared_is_what_was_given() -> None:
    watched = Watched(reference(), MINUTES)
    shared = Shared.of({"s": watched})
    assert list(shared) == ["s"]
    assert shared["s"].plan == watched.plan
    mine, theirs = watched.reference.arrays(), shared["s"].reference.arrays()
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    assert not any(array.flags.writeable for array in theirs.values() if array.base is not None)
