"""Listening for HTTP on a thread of its own: the server, and who may hold a connection to it.

A connection is silent while it brings no whole request. Where there are too many, the one that has been silent for
longest is cut; where none is, the one that has taken longest over its answer, but none that `may_wait` lets wait: those
are counted apart.
"""

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.errors import ConfigurationError
from monitor.limits import BUSY_CHECKS, HEADER_BYTES, REQUEST_SECONDS


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen."""

    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None
    """TLS, in PEM."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"


class HttpListener:
    """A server that is not there yet."""

    def __init__(self, address: Address, most: int, may_wait: Callable[[Any], bool] = lambda _: False) -> None:
        """At most so many connections; `may_wait` tells a scope whose request may take its time."""
        self._address = address
        self._config = uvicorn.Config(
            app=lambda: None,
            http=partial(Impatient, most=most, may_wait=may_wait),  # type: ignore[arg-type]
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="error",  # what clients do wrong is theirs to know: it must not fill our log
            access_log=False,
            server_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=HEADER_BYTES,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
            ssl_certfile=address.certificate,
            ssl_keyfile=address.key,
        )
        self._server = uvicorn.Server(self._config)

    @property
    def leaving(self) -> bool:
        """Whether it is about to stop."""
        return self._server.should_exit

    @property
    def tls(self) -> ssl.SSLContext | None:
        """What new connections are made with, while it listens."""
        return self._config.ssl

    @contextmanager
    def listening(self, app: Any, name: str) -> Iterator[str]:
        """Answer requests while the block runs; gives the address. `name` is that of the table in the settings."""
        self._config.app = app
        host, port = self._address.host, self._address.port
        try:
            self._config.load()
            listener = socket.create_server((host, port), family=_family(host))
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError([f"{name}: cannot listen on {host}:{port}: {error}"]) from error
        thread = Thread(target=self._server.run, kwargs={"sockets": [listener]}, name=f"http-{name}", daemon=True)
        thread.start()
        try:
            there = Address(host, listener.getsockname()[1], self._address.certificate)
            yield str(there)
        finally:
            self._server.should_exit = True
            thread.join()
            listener.close()


class Impatient(H11Protocol):
    """Ends connections that bring no whole request, or take no whole answer, in reasonable time, and those too many."""

    def __init__(self, *arguments: Any, most: int, may_wait: Callable[[Any], bool], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most = most
        self._may_wait = may_wait

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
        others = [
            other for other in everybody if other is not self and not (other.answering and self._may_wait(other.scope))
        ]
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


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
