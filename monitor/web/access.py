"""Requests as they should be, from those who may ask. Plain ASGI."""

from collections.abc import Callable

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.limits import HEADER_BYTES
from monitor.ports.access import Access

OPEN = ("/healthz", "/readyz")
"""Probes know no token, and these say nothing worth one."""

HEADERS = {
    b"content-security-policy": b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


class RequestGuard:
    """Refuses bodies, endless headers, who lacks the token and who means another host; the same headers on every
    answer."""

    def __init__(self, app: ASGIApp, access: Callable[[], Access]) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *HEADERS.items()]
            await send(message)

        refusal = _refusal(scope, self._access()) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, with_headers)


def _refusal(scope: Scope, access: Access) -> Response | None:
    headers = dict(scope["headers"])
    if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["raw_path"]) > HEADER_BYTES:
        return PlainTextResponse("too many headers\n", status_code=431, headers={"Connection": "close"})
    if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
        # Nothing here takes a body: it is not read, and the connection is over.
        return PlainTextResponse("no body is wanted\n", status_code=413, headers={"Connection": "close"})
    if not access.knows(headers):
        host = headers.get(b"host", b"").decode("latin-1")
        return PlainTextResponse(f"not the host {host[:80]!r}: see `hosts` in [server]\n", status_code=421)
    if scope["path"] not in OPEN and not access.lets_in(headers):
        asked = {"WWW-Authenticate": 'Basic realm="Shiftwatch, token as password"'}
        return PlainTextResponse("a token is needed\n", status_code=401, headers=asked)
    return None
