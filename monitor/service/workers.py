"""Where closed windows are assessed: in the loop itself, or in worker processes beside it.

Either way results come back in the order in which the windows were handed in, with the same bytes. A worker is fed
and read through a pipe of its own. None outlives a process that was killed, and one that is killed itself is replaced:
an assessment is pure and may be done again.

Windows are pickled: at both ends together .5 ms for 10,000 events of two classes, beside 21 ms of assessment, and 1.1
beside 45 ms with ten classes and ten features. Memory that is shared would save no more than these 2 %.
"""

import logging
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Protocol, cast

from monitor.errors import WorkerError
from monitor.processes import CONTEXT, started
from monitor.service.memory import collect_garbage_rarely, keep_freed_memory
from monitor.service.publishing import Published, Watched, published
from monitor.windows import Window

log = logging.getLogger(__name__)

# One that is assessed, and one that waits beside it: the worker never waits for the loop.
_WINDOWS_PER_WORKER = 2
_CLOSING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Timed:
    """The answer about one part of a window, and the seconds that it took."""

    published: Published
    seconds: float


Answers = Sequence[Timed]
"""About a window: one for each of its parts."""
Answer = Callable[[float], Answers | None]
"""Asks for the answers about a window, and waits for them for at most so many seconds."""


class Assessing(Protocol):
    """Takes windows in; their answers are asked for in the same order."""

    @property
    def room(self) -> bool:
        """Whether another window may be handed in now."""
        ...

    def hand_in(self, window: Window) -> Answer: ...

    def drop(self) -> None:
        """Forget the windows that were handed in: their answers are of no use any more."""
        ...

    def close(self) -> None: ...


class Here:
    """Assesses at once, on the loop."""

    room = True

    def __init__(self, watched: Mapping[str, Watched], elapsed: Callable[[], float] = time.monotonic) -> None:
        self._watched = watched
        self._elapsed = elapsed

    def hand_in(self, window: Window) -> Answer:
        """Assess the window now; its answer is ready when it is asked for."""
        answers = _answers(window, self._watched[window.key.stream], self._elapsed)
        return lambda _: answers

    def drop(self) -> None:
        """There is nothing to forget."""

    def close(self) -> None:
        """Nothing to close."""


class Workers:
    """Assesses in so many processes, which take turns."""

    def __init__(self, watched: Mapping[str, Watched], count: int) -> None:
        self._workers = [_Worker(watched) for _ in range(count)]
        self._turns = deque(self._workers)

    @property
    def room(self) -> bool:
        """Whether the next worker has less than it can take."""
        return len(self._turns[0].windows) < _WINDOWS_PER_WORKER

    def hand_in(self, window: Window) -> Answer:
        """To the worker whose turn it is."""
        worker = self._turns[0]
        self._turns.rotate(-1)
        worker.hand_in(window)
        return worker.take

    def drop(self) -> None:
        """The workers finish them; nobody looks at the answers."""
        for worker in self._workers:
            worker.drop()

    def close(self) -> None:
        """End the processes, whatever they are at."""
        for worker in self._workers:
            worker.close()


class _Worker:
    """One process, started again when it dies."""

    def __init__(self, watched: Mapping[str, Watched]) -> None:
        self._watched = watched
        self.windows: deque[Window] = deque()
        self._unwanted = 0
        """Answers still to come that nobody wants."""
        self._killed: Window | None = None
        """The window that the last process died over."""
        self._start()

    def hand_in(self, window: Window) -> None:
        self.windows.append(window)
        self._send(window)

    def take(self, timeout: float) -> Answers | None:
        """The answers about the oldest window, if they come in time."""
        while self._pipe.poll(timeout):
            try:
                answer = self._pipe.recv()
            except (EOFError, OSError):
                self._replace()
                continue
            if self._unwanted:
                self._unwanted -= 1
            elif isinstance(answer, str):
                raise WorkerError(f"window {self.windows[0].key.id} could not be assessed:\n{answer}")
            else:
                self.windows.popleft()
                return cast(Answers, answer)
        return None

    def drop(self) -> None:
        self._unwanted += len(self.windows)
        self.windows.clear()

    def close(self) -> None:
        self._pipe.close()
        self._process.join(_CLOSING_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _start(self) -> None:
        self._pipe, theirs = CONTEXT.Pipe()
        self._process = started("shiftwatch-worker", _work, theirs, self._watched)
        theirs.close()

    def _send(self, window: Window) -> None:
        """A worker that has died shows in `take`, which hands everything in again."""
        try:
            self._pipe.send(window)
        except OSError:
            log.debug("the worker has gone")

    def _replace(self) -> None:
        self._process.join(_CLOSING_SECONDS)
        code = self._process.exitcode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        self.close()
        window = self.windows[0] if self.windows else None
        if window is not None and window is self._killed:
            raise WorkerError(
                f"the process that assesses windows ended twice over window {window.key.id} ({window.events} events),"
                f" now {how}; signal 9 without anybody's doing means that memory ran out: lower `max_events` of the"
                " stream's windows, or set `workers = 0` under [pace]"
            )
        log.warning("the process that assesses windows ended %s: starting another", how)
        self._killed = window
        self._unwanted = 0
        self._start()
        for each in self.windows:
            self._send(each)


def _answers(window: Window, watched: Watched, elapsed: Callable[[], float]) -> list[Timed]:
    answers = []
    started = elapsed()
    for answer in published(window, watched):
        now = elapsed()
        answers.append(Timed(answer, now - started))
        started = now
    return answers


def _work(pipe: Connection, watched: Mapping[str, Watched]) -> None:
    """The whole life of a worker: windows come, and each gets one answer."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they are for the parent, which may want the answers still
    keep_freed_memory()
    collect_garbage_rarely()
    windows: SimpleQueue[Window] = SimpleQueue()
    Thread(target=_receive, args=(pipe, windows), daemon=True).start()
    while True:
        window = windows.get()
        try:
            answer: list[Timed] | str = _answers(window, watched[window.key.stream], time.monotonic)
        except Exception:  # noqa: BLE001 - whatever it is, the parent has to hear of it
            answer = traceback.format_exc()
        pipe.send(answer)


def _receive(pipe: Connection, windows: "SimpleQueue[Window]") -> None:
    """Take windows in while others are assessed; when the pipe ends, so does the process, whatever it is at."""
    try:
        while True:
            windows.put(pipe.recv())
    except (EOFError, OSError):
        os._exit(0)
