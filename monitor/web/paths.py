"""Names of streams in paths: a slash inside a name is written %2F, and separates nothing."""

from urllib.parse import quote, unquote_to_bytes

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH = "\0"
"""What stands for one while a path is taken apart: names are printable, so that none holds it."""


class SlashesInNames:
    """Has routes see the parts of a path as they were sent; servers decode it as a whole. Plain ASGI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if b"/streams/" in raw and b"%2f" in raw.lower():
            parts = (unquote_to_bytes(part).decode("utf-8", "replace") for part in raw.split(b"/"))
            scope = {**scope, "path": "/".join(part.replace("/", _SLASH) for part in parts)}
        await self._app(scope, receive, send)


def stream_of(request: Request) -> str:
    """The stream that a path names; empty where it names none."""
    return str(request.path_params.get("stream", "")).replace(_SLASH, "/")


def waits(scope: Scope) -> bool:
    """Whether a request waits for the next recalibration, as a scoring service's does for most of its time."""
    return b"wait=" in scope.get("query_string", b"") and scope["path"].endswith("/recalibration")


def in_path(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")
