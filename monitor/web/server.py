"""HTTP: /metrics, health, the API, the status page. Read only, and on a thread of its own.

Every answer is made from an immutable snapshot, so whatever a client does, the loop does not wait for it. Without a
token it should listen on loopback only, which is the default.
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
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from monitor.errors import ConfigurationError
from monitor.limits import HEADER_BYTES, PROGRESS_SECONDS
from monitor.observers import History, metrics
from monitor.settings import ServerSettings
from monitor.web import page
from monitor.web.access import Access, RequestGuard
from monitor.web.api import Api, answer
from monitor.web.connections import Impatient
from monitor.web.paths import SlashesInNames, stream_of
from monitor.web.renewal import Renewed, renewing


@contextmanager
def serving(
    settings: ServerSettings,
    history: History,
    base: Path = Path(),
    again: Callable[[], ServerSettings | None] | None = None,
) -> Iterator[str]:
    """Answer requests while the block runs; gives the address. `again` reads the settings anew."""
    config, renewed = _config(settings, base), Renewed.of(settings, base)
    server = uvicorn.Server(config)
    config.app = application(
        history, lambda: renewed.access, server, settings.max_connections, expires=lambda: renewed.expires
    )
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
        with renewing(renewed, base, config.ssl, again):
            yield f"{scheme}://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def application(
    history: History,
    access: Callable[[], Access] = Access,
    server: uvicorn.Server | None = None,
    most_waiting: int = ServerSettings().max_connections,
    *,
    expires: Callable[[], float | None] = lambda: None,
) -> Starlette:
    """Everything that answers requests; `expires` says when our certificate does."""
    handlers = _Handlers(history, metrics.registry(history, expires))
    api = Api(history, lambda: server is not None and server.should_exit, most_waiting)
    return Starlette(
        routes=[*handlers.routes(), *api.routes()],
        middleware=[
            Middleware(RequestGuard, access=access),
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
            "/streams/{stream}/windows/{window}": self.page,
            "/assets/{name}": self.asset,
            "/metrics": self.metrics,
            "/healthz": self.alive,
            "/readyz": self.ready,
        }
        return [Route(path, handler, methods=["GET"]) for path, handler in handlers.items()]

    async def page(self, request: Request) -> Response:
        """The status page: of all streams, of one, or of one window."""
        choice = page.chosen(stream_of(request), request.path_params.get("window", ""), request.query_params)
        html = page.document(self.history.snapshot, self.history.now(), choice)
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
        """Whether the loop goes on, and reaches what it reads and writes."""
        problem = not_ready(self.history)
        return PlainTextResponse(f"{problem or 'ready'}\n", status_code=503 if problem else 200)


def not_ready(history: History) -> str:
    """Why the service is not ready; empty if it is.

    A member of a group that has more members than partitions is ready without one: it waits to take over.
    """
    flow = history.snapshot.flow
    if flow.outage:
        return flow.outage
    if flow.last_turn is None:
        return "the loop has not turned yet"
    if history.now() - flow.last_turn > PROGRESS_SECONDS:
        return f"the loop has not turned for {history.now() - flow.last_turn:.0f} s"
    if flow.unpublished:
        return f"windows of {', '.join(sorted(flow.unpublished))} are not published: several members get its events"
    return ""


def _config(settings: ServerSettings, base: Path) -> uvicorn.Config:
    return uvicorn.Config(
        app=lambda: None,
        http=partial(Impatient, most=settings.max_connections),  # type: ignore[arg-type]
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
