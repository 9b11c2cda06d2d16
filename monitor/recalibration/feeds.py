"""Where a client hears of corrections: the monitor's address, or a file that grows; and what a message must look like.

Whatever comes is checked here, once: what is not a whole message with usable numbers never gets to scores.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from monitor.recalibration.calibration_map import calibration_map
from monitor.recalibration.causes import Cause
from monitor.recalibration.first_version import cause_of, tree_of
from monitor.recalibration.message import InputCorrection, Recalibration, Validity
from monitor.recalibration.numbers import finite
from monitor.recalibration.relation import of_regression

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
        from monitor.recalibration.kafka_feed import KafkaFeed  # noqa: PLC0415 - it imports this module

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
            with urlopen(request, timeout=self.TIMEOUT) as answer:  # noqa: S310
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
        """The latest message."""
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


def parsed(raw: bytes) -> dict[str, Any]:
    """The object that some JSON is; ValueError if it is none."""
    try:
        table = json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(table, dict):
        raise ValueError(f"want an object, got {type(table).__name__}")
    return table


def decoded(table: Mapping[str, Any]) -> Recalibration:
    """A message from its JSON; ValueError if it is none, or has numbers that nobody can apply."""
    try:
        classes = tuple(table["classes"])
        vectors = {
            name: finite(table[name], len(classes))
            for name in ("source_priors", "target_priors", "multipliers", "log_multipliers")
        }
        if not all(0 < p < 1 for p in vectors["source_priors"]):
            raise ValueError(f"source_priors: want all between 0 and 1, got {list(vectors['source_priors'])}")
        if min((*vectors["target_priors"], *vectors["multipliers"]), default=0) < 0:
            raise ValueError("target_priors, multipliers: want none below 0")
        calibration = table.get("calibration")
        plain = Recalibration(
            classes=classes,
            **vectors,
            thresholds=dict(table["thresholds"]),
            inputs={name: _input(correction) for name, correction in table["inputs"].items()},
            validity=Validity(**table["validity"]),
            apply=bool(table["apply"]),
            cause=Cause(table["cause"]) if "cause" in table else cause_of(table),
            reason=str(table["reason"]),
            target_errors=finite(table["target_errors"]) if "target_errors" in table else (),
            against=finite((table.get("against", 0.0),))[0],
            calibration=None if calibration is None else calibration_map(calibration, len(classes)),
            tree=tree_of(table),
        )
        return of_regression(plain, table["relation"]) if "relation" in table else plain
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"not a recalibration message: {error!r}") from error


def _input(table: Mapping[str, Any]) -> InputCorrection:
    window = finite(table["window"])
    alpha, beta = finite((table["alpha"], table["beta"]))
    return InputCorrection(
        kind=str(table["kind"]),
        alpha=alpha,
        beta=beta,
        window=window,
        reference=finite(table["reference"], len(window)),
        apply=bool(table.get("apply")),
        reason=str(table.get("reason", "")),
    )
