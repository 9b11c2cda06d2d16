"""The way of each window as a trace of OpenTelemetry: how long it and its segments were assessed, and how long it took
until its results were committed.

A trace is made when the window is committed, so that one whose commit was refused, and which is done again, has one
trace. Segments are assessed one after the other, and their spans lie as if the last had ended when all were handed on.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from opentelemetry.context import Context
from opentelemetry.trace import Tracer, set_span_in_context

from monitor.observers.logs import facts_of
from monitor.service import Committed, Happening, Opened, Reassigned, WindowAssessed
from monitor.state import WindowSeen


class _Told(NamedTuple):
    """A window, or the part of it that a segment is, and when it was told of."""

    seen: WindowSeen
    at: float


class WindowTraces:
    """An observer that makes the traces; `now` is the wall clock, in seconds."""

    def __init__(self, tracer: Tracer, now: Callable[[], float]) -> None:
        self._tracer = tracer
        self._now = now
        self._told: deque[_Told] = deque()

    def __call__(self, happening: Happening) -> None:
        """Take a window in, or make the traces of those that are committed."""
        if isinstance(happening, WindowAssessed):
            self._told.append(_Told(happening, self._now()))
        elif isinstance(happening, Committed):
            told = [self._told.popleft() for _ in range(happening.windows)]
            for _, parts in groupby(told, key=lambda each: (each.seen.window.key.stream, each.seen.window.key.end)):
                self._trace(list(parts), self._now(), happening.seconds)
        elif isinstance(happening, Opened) or (isinstance(happening, Reassigned) and happening.refused):
            self._told.clear()  # they are told of again

    def _trace(self, parts: Sequence[_Told], committed: float, seconds: float) -> None:
        whole = parts[0]
        begun = parts[-1].at - sum(part.seen.seconds for part in parts)
        root = self._tracer.start_span(
            "window", context=Context(), attributes=facts_of(whole.seen), start_time=_nanoseconds(begun)
        )
        within = set_span_in_context(root, Context())
        for name, segment, start, end in _steps(parts, begun, committed, seconds):
            attributes = {"segment": segment} if segment else {}
            span = self._tracer.start_span(name, within, attributes=attributes, start_time=_nanoseconds(start))
            span.end(_nanoseconds(end))
        root.end(_nanoseconds(committed))


def _steps(
    parts: Sequence[_Told], begun: float, committed: float, seconds: float
) -> Iterator[tuple[str, str, float, float]]:
    """The name of each, of which segment it is, and from when until when it took."""
    at = begun
    for part in parts:
        yield "assess", part.seen.window.key.segment, at, at + part.seen.seconds
        at += part.seen.seconds
    yield "wait", "", at, max(committed - seconds, at)
    yield "commit", "", committed - seconds, committed


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
