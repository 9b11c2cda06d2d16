"""HTTP: /metrics, health, the API, the status page. Read only, and on a thread of its own.

Every answer is made from an immutable snapshot, so whatever a client does, the loop does not wait for it. Without a
token it should listen on loopback only, which is the default.
"""

import hmac
import socket
import ssl
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from monitor.errors import ConfigurationError
from monitor.limits import BUSY_CHECKS, HEADER_BYTES, PROGRESS_SECONDS, REQUEST_SECONDS
from monitor.observers import History, metrics
from monitor.settings import ServerSettings
from monitor.web import page
from monitor.web.api import Api, answer
from monitor.web.paths import SlashesInNames, stream_of

OPEN = ("/healthz", "/readyz")
"""Probes know no token, and these say nothing worth one."""

HEADERS = {
    b"content-security-policy": b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


@contextmanager
def serving(settings: ServerSettings, history: History, base: Path = Path()) -> Iterator[str]:
    """Answer requests while the block runs; gives the address."""
    config = _config(settings, base)
    server = uvicorn.Server(config)
    config.app = application(history, settings.token, server)
    try:
        config.load()
        listener = socket.create_server((settings.host, settings.port), family=_family(settings.host))
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError([f"server: cannot listen on {settings.host}:{settings.port}: {error}"]) from error
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True)
    thread.start()
    scheme, port = "https" if settings.certificate else "http", listener.getsockname()[1]
    host = f"[{settings.host}]" if listener.family == socket.AF_INET6 else settings.host
    try:
        yield f"{scheme}://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def application(history: History, token: str = "", server: uvicorn.Server | None = None) -> Starlette:
    """Everything that answers requests."""
    handlers = _Handlers(history, metrics.registry(history))
    api = Api(history, lambda: server is not None and server.should_exit)
    return Starlette(
        routes=[*handlers.routes(), *api.routes()],
        middleware=[
            Middleware(_RequestGuard, token=token),
            Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=3),
            Middleware(SlashesInNames),
        ],
        exception_handlers={HTTPException: _refusal},
    )


@dataclass(frozen=True, slots=True)
class _Handlers:
    history: History
    registry: Any

    def routes(self) -> list[Route]:
        handlers = {
            "/": self.page,
            "/streams/{stream}": self.page,
            "/assets/{name}": self.asset,
            "/metrics": self.metrics,
            "/healthz": self.alive,
            "/readyz": self.ready,
        }
        return [Route(path, handler, methods=["GET"]) for path, handler in handlers.items()]

    async def page(self, request: Request) -> Response:
        """The status page, of all streams or of one."""
        snapshot, stream = self.history.snapshot, stream_of(request)
        if stream and stream not in snapshot.facts:
            raise HTTPException(404, f"there is no stream {stream!r}")
        html = page.document(snapshot, self.history.now(), stream)
        return HTMLResponse(html, headers={"Cache-Control": "no-store"})

    async def asset(self, request: Request) -> Response:
        """The page's style and script."""
        name = request.path_params["name"]
        if name not in page.ASSETS:
            raise HTTPException(404, f"there is no asset {name!r}")
        kind, content = page.ASSETS[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "max-age=300"})

    async def metrics(self, request: Request) -> Response:
        """For Prometheus, in the format that it asks for."""
        encoder, kind = choose_encoder(request.headers.get("accept", ""))
        return Response(encoder(self.registry), headers={"Content-Type": kind, "Cache-Control": "no-store"})

    async def alive(self, _: Request) -> Response:
        """The process is there and answers."""
        return PlainTextResponse("alive\n")

    async def ready(self, _: Request) -> Response:
        """Whether it has something to read, and goes on reading."""
        problem = not_ready(self.history)
        return PlainTextResponse(f"{problem or 'ready'}\n", status_code=503 if problem else 200)


def not_ready(history: History) -> str:
    """Why the service is not ready; empty if it is."""
    flow = history.snapshot.flow
    if flow.outage:
        return flow.outage
    if flow.last_turn is None:
        return "the loop has not turned yet"
    if history.now() - flow.last_turn > PROGRESS_SECONDS:
        return f"the loop has not turned for {history.now() - flow.last_turn:.0f} s"
    if flow.unpublished:
        return f"windows of {', '.join(sorted(flow.unpublished))} are not published: several members get its events"
    return "" if flow.partitions else "no partition is assigned"


class _RequestGuard:
    """Refuses bodies and who lacks the token, and puts the same headers on every answer. Plain ASGI."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS.items()]
            await send(message)

        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = dict(scope["headers"])
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            # Nothing here takes a body: it is not read, and the connection is over.
            return PlainTextResponse("no body is wanted\n", status_code=413, headers={"Connection": "close"})
        if self._token and scope["path"] not in OPEN and not self._may(headers.get(b"authorization", b"")):
            asked = {"WWW-Authenticate": 'Basic realm="Shiftwatch, token as password"'}
            return PlainTextResponse("a token is needed\n", status_code=401, headers=asked)
        return None

    def _may(self, given: bytes) -> bool:
        """`Bearer TOKEN` from programs, or the token as the password of any user from browsers."""
        scheme, _, credentials = given.partition(b" ")
        if scheme.lower() == b"basic":
            try:
                credentials = b64decode(credentials, validate=True).partition(b":")[2]
            except ValueError:
                return False
        return hmac.compare_digest(credentials.strip(), self._token)


class _Impatient(H11Protocol):
    """Ends connections that bring no whole request, or take no whole answer, in reasonable time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._seen: Any = None
        self._checks = 0
        self._check = self.loop.call_later(REQUEST_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Close if nothing was asked since the last look, or the same answer has been under way for many."""
        self._checks = self._checks + 1 if self.cycle is self._seen else 0
        self._seen = self.cycle
        answering = self.cycle is not None and not self.cycle.response_complete
        if self._checks >= (BUSY_CHECKS if answering else 1) or self.cycle is None:
            self.transport.abort()
        else:
            self._check = self.loop.call_later(REQUEST_SECONDS, self._look)


def _config(settings: ServerSettings, base: Path) -> uvicorn.Config:
    return uvicorn.Config(
        app=lambda: None,
        http=_Impatient,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="error",  # what clients do wrong is theirs to know: it must not fill our log
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=settings.max_connections,
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=1,
        ssl_certfile=base / settings.certificate if settings.certificate else None,
        ssl_keyfile=base / settings.key if settings.key else None,
    )


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


async def _refusal(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "an error of our own"
    response = answer(request, {"error": detail})
    response.status_code = status
    return response
