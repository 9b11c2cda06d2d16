"""Who may hold a connection. Silent ones make room for newcomers, so that probes and scrapes always get in.

A connection is silent while it brings no whole request. Where there are too many, the one that has been silent for
longest is cut; where none is, the one that has taken longest over its answer, but no service that waits for its next
recalibration: those are counted apart.
"""

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.limits import BUSY_CHECKS, CONNECTIONS_BESIDE, REQUEST_SECONDS
from monitor.web.paths import waits


class Impatient(H11Protocol):
    """Ends connections that bring no whole request, or take no whole answer, in reasonable time, and those too many."""

    def __init__(self, *arguments: Any, most: int, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most = most + CONNECTIONS_BESIDE

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._seen: Any = None
        self._checks = 0
        self.since = self.loop.time()
        self._check = self.loop.call_later(REQUEST_SECONDS, self._look)
        if len(self.connections) > self._most:
            self._make_room(self.connections)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        super().connection_lost(exc)

    @property
    def answering(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def _make_room(self, everybody: set[Any]) -> None:
        others = [other for other in everybody if other is not self and not (other.answering and waits(other.scope))]
        leaving = min(others, key=lambda other: (other.answering, other.since), default=self)
        everybody.discard(leaving)
        leaving.transport.abort()

    def _look(self) -> None:
        """Close if nothing was asked since the last look, or the same answer has been under way for many."""
        self._checks = self._checks + 1 if self.cycle is self._seen else 0
        self._seen = self.cycle
        if self._checks >= (BUSY_CHECKS if self.answering else 1) or self.cycle is None:
            self.transport.abort()
        else:
            self._check = self.loop.call_later(REQUEST_SECONDS, self._look)
