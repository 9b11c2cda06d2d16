"""What the loop and its workers are compared with is in memory once."""

import gc
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from monitor.arrays import Vector
from monitor.service.memory import Shared, give_back_freed_memory, keep_freed_memory
from monitor.service.publishing import Watched, published
from monitor.windows import Window
from monitor.windows.by_count import CountPlan
from monitor.windows.window import WindowKey
from tests.service import regression_streams
from tests.service.streams import reference, scores
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


ARENAS = """
import ctypes, sys, threading
from monitor.service.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
together = threading.Barrier(8)

def work():
    together.wait()
    ctypes.CDLL(None).malloc(100)  # without the interpreter's lock, as a client library does it
    together.wait()

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
library = ctypes.CDLL(None)
library.fdopen.restype = ctypes.c_void_p
library.malloc_info(0, ctypes.c_void_p(library.fdopen(1, b"w")))
library.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is another")
def test_threads_that_come_and_go_leave_no_arenas_of_their_own() -> None:
    arenas = {
        how: subprocess.run([sys.executable, "-c", ARENAS, how], check=True, capture_output=True).stdout.count(
            b"<heap nr"
        )
        for how in ("kept", "as it is")
    }
    assert arenas["kept"] <= 2
    assert arenas["as it is"] > 2, "or this test can see nothing"


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


def in_cycles(work: Callable[[], object]) -> list[str]:
    """What the work leaves to the collector of cycles, which looks rarely, and does not see how large arrays are."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        work()
        gc.collect()
        return sorted({type(each).__qualname__ for each in gc.garbage})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("moved", [False, True])
def test_nothing_of_a_window_outlives_its_assessment(moved: bool) -> None:
    of_classifier = Watched(reference(), MINUTES), Window.of(scores(600, 0.6 if moved else 0.3, seed=5)[0])
    of_regressor = (
        Watched(regression_streams.reference(), CountPlan(600)),
        regression_streams.window(600, shift=1.0 if moved else 0.0),
    )
    for watched, window in (of_classifier, of_regressor):
        stream = watched.reference.schema.stream
        named = replace(window, key=WindowKey(stream, "", 0, 1))
        [*published(named, watched)]  # what is worked out once a reference stays
        assert in_cycles(lambda named=named, watched=watched: [*published(named, watched)]) == []
