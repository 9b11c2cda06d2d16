"""What notices that nothing happens any more, and says so.

Two kinds of nothing: a call into the client library that never returns (`Guard`, a thread, because the loop itself
hangs; `within`, where the call can be left behind), and calls that return without ever bringing a record that is known
to wait (`Stalls`, a pure table).
A process that ends is restarted where it stood; a process that hangs is noticed by nobody.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from connectors.kafka.driver import Partition

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")

EXIT_HUNG = 70
"""EX_SOFTWARE: what the process ends with when a call never came back."""


def end_process(message: str) -> None:
    """The last resort: the main thread hangs inside a library, so no exception could reach it."""
    log.critical(message)
    logging.shutdown()
    os._exit(EXIT_HUNG)


def within(seconds: float, call: Callable[[], _Result]) -> _Result:
    """What a call returns or raises; TimeoutError if that takes longer, and its thread is left to itself."""
    answer: Future[_Result] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised again where the answer is awaited
            answer.set_exception(error)

    threading.Thread(target=run, name="shiftwatch-kafka-call", daemon=True).start()
    return answer.result(seconds)


class Guard:
    """Ends the process when a guarded call takes longer than its limit."""

    def __init__(
        self,
        on_hang: Callable[[str], None] = end_process,
        clock: Callable[[], float] = time.monotonic,
        period: float = 1.0,
    ) -> None:
        self._on_hang = on_hang
        self._clock = clock
        self._period = period
        self._watched: tuple[str, float] | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def limit(self, what: str, seconds: float) -> Iterator[None]:
        """The block inside has to be left within so many seconds."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="shiftwatch-kafka-guard", daemon=True)
            self._thread.start()
        self._watched = (f"{what} did not return within {seconds:.0f} s", self._clock() + seconds)
        try:
            yield
        finally:
            self._watched = None

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._closed.wait(self._period):
            watched = self._watched
            if watched is not None and self._clock() > watched[1]:
                self._watched = None
                self._on_hang(f"{watched[0]}: ending the process; a restart goes on where it stood")


class Stalls:
    """Which partitions have had records waiting for too long without any being read."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._seen: dict[Partition, tuple[int | None, float]] = {}
        self._lagging: dict[Partition, tuple[int, float]] = {}

    def suspects(self, positions: Mapping[Partition, int | None], now: float) -> list[Partition]:
        """The partitions whose position has not moved for half the patience: worth asking how far they go."""
        moved = {partition: at for partition, at in positions.items() if self._seen.get(partition, (at, -1.0))[0] != at}
        kept = {partition: self._seen.get(partition, (at, now)) for partition, at in positions.items()}
        self._seen = kept | {partition: (at, now) for partition, at in moved.items()}
        return [partition for partition, (_, since) in self._seen.items() if now - since > self._patience / 2]

    def longest(self, lagging: Mapping[Partition, int], now: float) -> float:
        """For how long the worst of the partitions in which records wait has stood where it is, as far as was asked."""
        before = self._lagging
        self._lagging = {
            partition: before[partition] if before.get(partition, (None,))[0] == at else (at, now)
            for partition, at in lagging.items()
        }
        return max((now - since for _, since in self._lagging.values()), default=0.0)

    def stalled(self, ends: Mapping[Partition, int | None], now: float) -> list[Partition]:
        """The suspects that have not moved for the whole patience although records wait, or no one answers.

        A partition at its end waits for nothing: its patience begins again.
        """
        stalled = []
        for partition, end in ends.items():
            at, since = self._seen[partition]
            if at is not None and end is not None and at >= end:
                self._seen[partition] = (at, now)
            elif now - since > self._patience:
                stalled.append(partition)
        return stalled
