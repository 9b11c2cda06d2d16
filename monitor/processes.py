"""Processes beside this one, which end with it from their first moment on.

A new process comes through here before it imports anything that takes long: one that looked only once it is at work
would go on starting for many seconds where its parent is killed meanwhile, the longer the busier the machine is.
"""

import os
import pickle
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler
from threading import Thread
from typing import Any

# Not a fork: the client libraries' threads and locks must not be copied, and neither must the parent's end of a pipe.
CONTEXT = get_context("spawn")


def started(name: str, work: Callable[..., None], *arguments: Any) -> SpawnProcess:
    """A process that does the work; whatever becomes of this one, it does not outlive it."""
    process = CONTEXT.Process(target=_live, args=(_Packed(work, arguments),), name=name, daemon=True)
    process.start()
    return process


class _Packed:
    """What is unpacked when it is called for, as its modules are imported then."""

    def __init__(self, *values: Any) -> None:
        self._values = values

    def __reduce__(self) -> tuple[Any, ...]:
        return partial, (pickle.loads, bytes(ForkingPickler.dumps(self._values)))


def _live(unpack: Callable[[], tuple[Callable[..., None], tuple[Any, ...]]]) -> None:
    """The whole life of a process."""
    Thread(target=_end_with_parent, daemon=True).start()
    work, arguments = unpack()
    work(*arguments)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)
