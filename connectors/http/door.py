"""What answers a post: 200 once its events are durable, 429 where there is no room for them. Plain ASGI.

The log is written on the server's own thread, which has nothing else to do: all its answers wait for the disk. Posts
that come meanwhile wait in their sockets, and are made durable together, with one wait for all of them. A thread for
the writing would share them out in smaller groups, and wait for Python's lock twice more for each.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from connectors.http.bodies import RefusedPostError, posted
from connectors.http.log import EventLog, Posted
from monitor.limits import HEADER_BYTES
from monitor.ports.access import Access

BYTES_UNDER_WAY = 64 << 20
"""Of bodies that are read, or wait to become durable, all together."""
RETRY = 5
"""Seconds, where the log is full or cannot be written: room comes with the next window that closes."""
RETRY_SOON = 1
"""Where too much came at once."""


class Door:
    """The application. It runs on the server's thread."""

    def __init__(self, path: str, access: Access, log: EventLog, max_body_bytes: int) -> None:
        self._path = path or "/"
        self._access = access
        self._log = log
        self._max_body_bytes = max_body_bytes
        self._under_way = 0
        self._pending: list[tuple[Sequence[Posted], asyncio.Future[None]]] = []
        self._answered: Counter[str] = Counter()
        self._counting = threading.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            self._check(scope)
            body = await self._body(receive)
            try:
                await self._durable(posted(dict(scope["headers"]), body))
            finally:
                self._under_way -= len(body)
        except RefusedPostError as error:
            self._count(error.reason)
            await _answer(send, error.status, str(error), error.retry)
        else:
            self._count("accepted")
            await _answer(send, 200)

    def answered(self) -> Mapping[str, int]:
        """How many posts by what became of them; asked from another thread."""
        with self._counting:
            return dict(self._answered)

    def _count(self, reason: str) -> None:
        with self._counting:
            self._answered[reason] += 1

    def _check(self, scope: Any) -> None:
        """Refuse what needs no look at its body."""
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["raw_path"]) > HEADER_BYTES:
            raise RefusedPostError(431, "too-large", "too many headers")
        if not self._access.knows(headers):
            raise RefusedPostError(421, "unauthorized", "not the host that is meant: see `hosts` in [source]")
        if not self._access.lets_in(headers):
            raise RefusedPostError(401, "unauthorized", "a token is needed")
        if scope["path"] != self._path:
            raise RefusedPostError(404, "elsewhere", f"events are posted to {self._path}")
        if scope["method"] != "POST":
            raise RefusedPostError(405, "elsewhere", "want a POST")
        if length.isdigit() and int(length) > self._max_body_bytes:
            raise self._too_large()

    def _too_large(self) -> RefusedPostError:
        return RefusedPostError(413, "too-large", f"want at most {self._max_body_bytes} bytes")

    async def _body(self, receive: Any) -> bytes:
        """The whole body, which counts as under way from now on; raises RefusedPostError."""
        parts: list[bytes] = []
        size = 0
        try:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedPostError(400, "unreadable", "the body is not whole")
                part, more = message.get("body", b""), message.get("more_body", False)
                parts.append(part)
                size += len(part)
                self._under_way += len(part)
                if size > self._max_body_bytes:
                    raise self._too_large()
                if self._under_way > BYTES_UNDER_WAY:
                    raise RefusedPostError(429, "busy", "too much at once", RETRY_SOON)
        except BaseException:
            self._under_way -= size
            raise
        return b"".join(parts)

    async def _durable(self, posts: Sequence[Posted]) -> None:
        """Wait until these are in the log."""
        if self._log.size + self._under_way > self._log.limit:
            raise RefusedPostError(429, "full", "the log is full until windows close: send it again later", RETRY)
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        if not self._pending:
            loop.call_soon(self._write)  # after all that have come by now
        self._pending.append((posts, done))
        await done

    def _write(self) -> None:
        together, self._pending = self._pending, []
        failure = None
        try:
            self._log.append([post for posts, _ in together for post in posts])
        except OSError as error:
            failure = RefusedPostError(503, "failed", f"the log cannot be written: {error.strerror}", RETRY)
        for _, done in together:
            if done.done():  # cancelled: the server stops, and its sender hears nothing
                continue
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(failure)


async def _answer(send: Any, status: int, detail: str = "", retry: int = 0) -> None:
    body = f"{detail}\n".encode() if detail else b""
    headers = [(b"content-length", str(len(body)).encode()), (b"x-content-type-options", b"nosniff")]
    if body:
        headers.append((b"content-type", b"text/plain; charset=utf-8"))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 405:
        headers.append((b"allow", b"POST"))
    if retry:
        headers.append((b"retry-after", str(retry).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
