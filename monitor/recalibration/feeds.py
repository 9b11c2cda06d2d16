"""Where a client hears of corrections: the monitor's address, a topic, or a file that grows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from monitor.recalibration.decoding import decoded, parsed
from monitor.recalibration.kafka_feed import KafkaFeed
from monitor.recalibration.message import Recalibration

Feed = Callable[[], Recalibration | None]
"""Asks for the latest message; None when it has none. Raises OSError or ValueError when it cannot be asked."""

NOT_MODIFIED = 304

MOST_BYTES = 64_000_000
"""Of an answer: a forest of adapted thresholds is large, more than this is something else."""


def feed(source: str | Path | Feed, stream: str, segment: str, token: str | None) -> Feed:
    """Where messages come from: an address, a topic, a file, or a callable as it is."""
    if callable(source):
        return source
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return HttpFeed(source, stream, segment, token)
    if isinstance(source, str) and source.startswith("kafka://"):
        return KafkaFeed(source, stream, segment)
    return FileFeed(Path(source), stream, segment)


class HttpFeed:
    """The monitor's `/api/streams/STREAM/recalibration`, asked with the ETag of what is known."""

    TIMEOUT = 5.0

    def __init__(self, address: str, stream: str, segment: str, token: str | None) -> None:
        self._url = f"{address.rstrip('/')}/api/streams/{quote(stream, safe='')}/recalibration"
        if segment:
            self._url += f"?segment={quote(segment, safe='')}"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._tag = ""
        self._latest: Recalibration | None = None

    def __call__(self) -> Recalibration | None:
        """The latest message; the known one when there is no newer."""
        headers = {**self._headers, "If-None-Match": self._tag} if self._tag else self._headers
        request = Request(self._url, headers=headers)  # noqa: S310 - the scheme has been checked
        try:
            with urlopen(request, timeout=self.TIMEOUT) as answer:  # noqa: S310 - as above
                self._latest = decoded(parsed(self._body(answer)))
                self._tag = answer.headers.get("ETag", "")
        except HTTPError as error:
            if error.code != NOT_MODIFIED:
                raise
        except HTTPException as error:  # not an OSError, though the peer's fault as well
            raise OSError(f"no HTTP answer: {error!r}") from error
        return self._latest

    def _body(self, answer: HTTPResponse) -> bytes:
        """All of it, if it comes in time and is no larger than any message: a timeout of sockets bounds neither."""
        body, until = bytearray(), time.monotonic() + self.TIMEOUT
        while piece := answer.read1(65_536):
            body += piece
            if len(body) > MOST_BYTES:
                raise ValueError(f"an answer of more than {MOST_BYTES:,} bytes")
            if time.monotonic() > until:
                raise TimeoutError(f"the answer was not over after {self.TIMEOUT:.0f} s")
        return bytes(body)


class FileFeed:
    """The last line for the stream in a recalibrations or results file; only what was appended is read again.

    A line that is no message costs itself alone, and is told of while no better one has followed.
    """

    def __init__(self, path: Path, stream: str, segment: str) -> None:
        self._path = path
        self._of = (stream, segment)
        self._file = (0, 0)
        self._offset = 0
        self._latest: Recalibration | None = None

    def __call__(self) -> Recalibration | None:
        """The latest message for the stream in the file; None while there is none."""
        bad: ValueError | None = None
        with self._path.open("rb") as file:
            now = os.fstat(file.fileno())
            if (now.st_dev, now.st_ino) != self._file or now.st_size < self._offset:
                # Another file, or uncommitted lines were cut off.
                self._file, self._offset = (now.st_dev, now.st_ino), 0
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                bad = None
                try:
                    self._read(line)
                except ValueError as error:
                    bad = error
        if bad is not None:
            raise bad
        return self._latest

    def _read(self, line: bytes) -> None:
        table = parsed(line)
        if table.get("schema") and "recalibration" not in table:
            return  # a results file says other things, too
        message = decoded(table.get("recalibration", table))
        if (message.validity.stream, message.validity.segment) == self._of:
            self._latest = message
