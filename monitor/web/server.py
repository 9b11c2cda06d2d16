"""HTTP: /metrics, health, the API, the status page. Read only, and on a thread of its own.

Every answer is made from an immutable snapshot, so whatever a client does, the loop does not wait for it. Without a
token it should listen on loopback only, which is the default.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from monitor.limits import CONNECTIONS_BESIDE, PROGRESS_SECONDS
from monitor.observers import History, metrics
from monitor.ports.access import Access
from monitor.ports.listening import Address, HttpListener
from monitor.settings import ServerSettings
from monitor.web import page
from monitor.web.access import RequestGuard
from monitor.web.api import Api, answer
from monitor.web.paths import SlashesInNames, stream_of, waits
from monitor.web.renewal import Renewed, renewing


@contextmanager
def serving(
    settings: ServerSettings,
    history: History,
    base: Path = Path(),
    again: Callable[[], ServerSettings | None] | None = None,
) -> Iterator[str]:
    """Answer requests while the block runs; gives the address. `again` reads the settings anew."""
    address = Address(settings.host, settings.port, _under(base, settings.certificate), _under(base, settings.key))
    listener = HttpListener(address, settings.max_connections + CONNECTIONS_BESIDE, waits)
    renewed = Renewed.of(settings, base)
    app = application(
        history, lambda: renewed.access, listener, settings.max_connections, expires=lambda: renewed.expires
    )
    with listener.listening(app, "server") as there, renewing(renewed, base, listener.tls, again):
        yield there


def application(
    history: History,
    access: Callable[[], Access] = Access,
    listener: HttpListener | None = None,
    most_waiting: int = ServerSettings().max_connections,
    *,
    expires: Callable[[], float | None] = lambda: None,
) -> Starlette:
    """Everything that answers requests; `expires` says when our certificate does."""
    handlers = _Handlers(history, metrics.registry(history, expires))
    api = Api(history, lambda: listener is not None and listener.leaving, most_waiting)
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


def _under(base: Path, path: Path | None) -> Path | None:
    return None if path is None else base / path


async def _refusal(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "an error of our own"
    response = answer(request, {"error": detail})
    response.status_code = status
    return response
