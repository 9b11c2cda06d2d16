"""Who may ask what: the token, the names under which this is us, and requests as they should be. Plain ASGI."""

import hmac
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from monitor.limits import HEADER_BYTES
from monitor.settings import ServerSettings

OPEN = ("/healthz", "/readyz")
"""Probes know no token, and these say nothing worth one."""

HEADERS = {
    b"content-security-policy": b"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Who may ask."""

    token: bytes = field(default=b"", repr=False)
    hosts: frozenset[str] | None = None
    """The names under which clients may reach us; None: any. Asked where no token is: a page from elsewhere could
    have its own name point to us (DNS rebinding), and read what only this machine may."""

    @classmethod
    def of(cls, settings: ServerSettings) -> "Access":
        """What the settings allow."""
        checked = not settings.token and _of_this_machine(settings.host)
        names = {"localhost", "127.0.0.1", "::1", settings.host, *settings.hosts}
        return cls(settings.token.encode(), frozenset(map(str.lower, names)) if checked else None)


def _of_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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
    host = headers.get(b"host", b"").decode("latin-1")
    if access.hosts is not None and _name(host) not in access.hosts:
        return PlainTextResponse(f"not the host {host[:80]!r}: see `hosts` in [server]\n", status_code=421)
    if access.token and scope["path"] not in OPEN and not _may(headers.get(b"authorization", b""), access.token):
        asked = {"WWW-Authenticate": 'Basic realm="Shiftwatch, token as password"'}
        return PlainTextResponse("a token is needed\n", status_code=401, headers=asked)
    return None


def _name(host: str) -> str:
    """Without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _may(given: bytes, token: bytes) -> bool:
    """`Bearer TOKEN` from programs, or the token as the password of any user from browsers."""
    scheme, _, credentials = given.partition(b" ")
    if scheme.lower() == b"basic":
        try:
            credentials = b64decode(credentials, validate=True).partition(b":")[2]
        except ValueError:
            return False
    return hmac.compare_digest(credentials.strip(), token)
