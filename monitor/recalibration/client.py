"""The client of a scoring service: fetches the latest correction of a stream, keeps it, and applies it.

Needs numpy for arrays, and nothing at all for lists. It never stands in the way of scoring: fetching happens in a
thread of its own, and when there is no correction to be had, or the last one has grown old, scores pass unchanged and
`status` says why.
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from monitor.recalibration.message import InputCorrection, Recalibration, Validity, settled
from monitor.recalibration.relation import (
    RegressionRecalibration,
    of_regression,
    relation_inputs,
    settled_relation,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

with suppress(ImportError):  # without it lists can be corrected, and thresholds moved
    import numpy as np

Feed = Callable[[], Recalibration | None]
"""Asks for the latest message; None when it has none. Raises OSError or ValueError when it cannot be asked."""

NOT_MODIFIED = 304

_LOG = logging.getLogger("shiftwatch.client")


@dataclass(frozen=True, slots=True)
class Status:
    """What the client does to scores just now, and why."""

    correcting: bool
    reason: str
    recalibration: Recalibration | None
    trouble: str
    """Why the last look at the feed brought nothing; empty if it did. A correction outlives it until it expires."""


class RecalibrationClient:
    """Applies the correction that is in force.

        with RecalibrationClient("http://127.0.0.1:8080", stream="fraud-v3") as client:
            corrected = client.apply(model.predict_proba(X))

    and of a regression stream:

            corrected = client.correct_predictions(model.predict(X), X)

    `source` is the monitor's address, a topic (`kafka://BROKER:PORT/TOPIC`; for TLS and SASL see `KafkaFeed`), the
    path of a recalibrations file, or any callable that returns the latest message. Safe to use from many threads.
    """

    def __init__(
        self,
        source: str | Path | Feed,
        stream: str,
        *,
        segment: str = "",
        classes: Sequence[str] | None = None,
        every: float = 5.0,
        expires_after: float = 3600.0,
        token: str | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`classes` is the order of the service's posteriors if it is not the reference's.

        `every` and `expires_after` are seconds: between two looks, and until a correction of which no newer window was
        heard is dropped.
        """
        self._feed = feed(source, stream, segment, token)
        self._classes = tuple(classes) if classes is not None else None
        self._every = every
        self._expires_after = expires_after
        self._now = now
        self._known: _Known | None = None
        self._trouble = "nothing was fetched yet"
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Fetch once, then go on fetching in the background."""
        self.refresh()
        self._thread = threading.Thread(target=self._keep_fresh, name="shiftwatch-recalibration", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def refresh(self) -> Status:
        """Look for a newer message now. Never raises because of the feed."""
        before = self.status()
        try:
            message = self._feed()
            if message is not None:
                self._take(message)
            self._trouble = "" if self._known else "the feed has no message for this stream yet"
        except (OSError, ValueError, HTTPException) as error:
            self._trouble = f"the feed cannot be read: {error}"
        status = self.status()
        if (status.correcting, status.reason) != (before.correcting, before.reason):
            _LOG.info("correcting=%s: %s", status.correcting, status.reason)
        return status

    def status(self) -> Status:
        """What is done to scores just now, and why."""
        known = self._known
        if known is None:
            return Status(False, self._trouble, None, self._trouble)
        age = self._now() - known.since
        if age > self._expires_after:
            reason = f"the last message is {age:.0f} s old: expired" + (f" ({self._trouble})" if self._trouble else "")
            return Status(False, reason, known.message, self._trouble)
        return Status(known.message.apply, known.message.reason, known.message, self._trouble)

    def apply(self, posteriors: ArrayLike) -> Any:
        """Corrected posteriors, rows summing to 1: an array for an array, lists for lists."""
        known = self._in_force()
        if isinstance(posteriors, list):
            return [row if known is None else _corrected_row(row, known.multipliers) for row in posteriors]
        matrix = np.asarray(posteriors, dtype=np.float64)
        if known is None:
            return matrix
        weighted = matrix * np.array(known.multipliers)
        totals = weighted.sum(axis=-1, keepdims=True)
        # A row with all its mass on classes that are gone says nothing that the correction could use.
        return np.divide(weighted, totals, out=matrix.copy(), where=totals > 0)

    def adjust_intercepts(self, intercepts: ArrayLike) -> NDArray[np.float64]:
        """A softmax layer's biases, moved so that its posteriors come out corrected."""
        known = self._in_force()
        moved = np.asarray(intercepts, dtype=np.float64)
        return moved if known is None else moved + np.array(known.logs)

    def threshold(self, name: str, threshold: float = 0.5, *, cost_ratio: float | None = None) -> float:
        """The uncorrected posterior of a class at which its corrected posterior reaches `threshold`.

        With `cost_ratio`, what a missed event of the class costs in units of a false alarm, the threshold is the one
        of least expected cost: alarm where (1 - g') <= cost_ratio g', so at g' = 1 / (1 + cost_ratio).
        """
        if cost_ratio is not None:
            if not cost_ratio > 0:
                raise ValueError(f"cost_ratio: want more than 0, got {cost_ratio}")
            threshold = 1 / (1 + cost_ratio)
        known = self._in_force()
        if known is None:
            return threshold
        message = known.message
        y = message.classes.index(name)
        source, target = message.source_priors[y], message.target_priors[y]
        # g' = r g / (r g + s (1 - g)) with s the multiplier of all other classes together.
        r, s = target / source, (1 - target) / (1 - source)
        total = r * (1 - threshold) + s * threshold
        return s * threshold / total if total > 0 else threshold

    def correct_input(self, name: str, values: ArrayLike) -> NDArray[np.float64]:
        """Values of an input taken back to the scale that the model knows."""
        given = np.asarray(values, dtype=np.float64)
        status = self.status()
        correction = status.recalibration.inputs.get(name) if status.recalibration else None
        expired = self._known is not None and self._now() - self._known.since > self._expires_after
        return given if correction is None or expired else corrected_input(correction, given)

    def correct_predictions(self, predictions: ArrayLike, features: Any = None) -> NDArray[np.float64]:
        """A regressor's predictions, moved by what the mean of the label has changed by.

        `features` are columns by name (a data frame will do), or a matrix of the relation's inputs in their order. A
        prediction without all of its inputs stays as it is; so do all while no correction is in force.
        """
        given = np.array(predictions, dtype=np.float64)
        status = self.status()
        message = status.recalibration
        if not status.correcting or not isinstance(message, RegressionRecalibration):
            return given
        change = message.relation.change(relation_inputs(message.relation.inputs, given, features))
        return np.where(np.isfinite(change), given + change, given)

    def tree(self) -> Mapping[str, Any] | None:
        """What `with_thresholds` of the stream's versatile tree or forest takes; None if the feed has none in force."""
        status, known = self.status(), self._known
        expired = known is not None and self._now() - known.since > self._expires_after
        return None if status.recalibration is None or expired else status.recalibration.tree

    def _in_force(self) -> _Known | None:
        known = self._known if self.status().correcting else None
        return known if known is not None and known.message.classes else None

    def _take(self, message: Recalibration) -> None:
        previous = self._known.message if self._known else None
        if previous is not None and previous.validity.window == message.validity.window:
            return
        if isinstance(message, RegressionRecalibration):
            message = settled_relation(previous, message)
        self._known = _known(settled(previous, message), self._classes, self._now())

    def _keep_fresh(self) -> None:
        while not self._stop.wait(self._every):
            self.refresh()


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """A message with its numbers in the service's class order, and since when it is known."""

    message: Recalibration
    multipliers: tuple[float, ...]
    logs: tuple[float, ...]
    since: float


def _known(message: Recalibration, classes: tuple[str, ...] | None, since: float) -> _Known:
    if classes is not None and sorted(classes) != sorted(message.classes):
        raise ValueError(f"the message is for classes {list(message.classes)}, the service has {list(classes)}")
    order = [message.classes.index(name) for name in classes or message.classes]
    multipliers = tuple(message.multipliers[y] for y in order)
    logs = tuple(message.log_multipliers[y] for y in order)
    return _Known(message, multipliers, logs, since)


def corrected_input(correction: InputCorrection, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values back on the reference's scale: along the knots of a monotone map, along the line elsewhere."""
    along_line = (values - correction.beta) / correction.alpha if correction.alpha else values
    if not correction.window:
        return np.asarray(along_line)
    knots = np.array(correction.window), np.array(correction.reference)
    inside = (values >= knots[0][0]) & (values <= knots[0][-1])
    return np.where(inside, np.interp(values, *knots), along_line)


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
                self._latest = decoded(json.load(answer))
                self._tag = answer.headers.get("ETag", "")
        except HTTPError as error:
            if error.code != NOT_MODIFIED:
                raise
        return self._latest


class FileFeed:
    """The last line for the stream in a recalibrations or results file; only what was appended is read again."""

    def __init__(self, path: Path, stream: str, segment: str) -> None:
        self._path = path
        self._of = (stream, segment)
        self._offset = 0
        self._latest: Recalibration | None = None

    def __call__(self) -> Recalibration | None:
        """The latest message."""
        if self._path.stat().st_size < self._offset:
            self._offset = 0  # uncommitted lines were cut off, or the file was replaced
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                table = json.loads(line)
                if not isinstance(table, dict):
                    raise ValueError(f"{self._path}: a line is no JSON object")
                if table.get("schema") and "recalibration" not in table:
                    continue  # a results file says other things, too
                message = decoded(table.get("recalibration", table))
                if (message.validity.stream, message.validity.segment) == self._of:
                    self._latest = message
        return self._latest


def decoded(table: Mapping[str, Any]) -> Recalibration:
    """A message from its JSON; ValueError if it is none."""
    try:
        classes = tuple(table["classes"])
        plain = Recalibration(
            classes=classes,
            source_priors=_numbers(table["source_priors"], len(classes)),
            target_priors=_numbers(table["target_priors"], len(classes)),
            multipliers=_numbers(table["multipliers"], len(classes)),
            log_multipliers=_numbers(table["log_multipliers"], len(classes)),
            thresholds=dict(table["thresholds"]),
            inputs={name: _input(one) for name, one in table["inputs"].items()},
            validity=Validity(**table["validity"]),
            apply=bool(table["apply"]),
            reason=str(table["reason"]),
            tree=table.get("tree"),
        )
        return of_regression(plain, table["relation"]) if "relation" in table else plain
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a recalibration message: {error!r}") from error


def _input(table: Mapping[str, Any]) -> InputCorrection:
    alpha, beta = _numbers([table["alpha"], table["beta"]], 2)
    count = len(table["window"])
    knots = {place: _numbers(table[place], count) for place in ("window", "reference")}
    return InputCorrection(kind=table["kind"], alpha=alpha, beta=beta, **knots)


def _numbers(values: Sequence[Any], count: int) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise ValueError(f"not a recalibration message: want {count} finite numbers, got {values}")
    return numbers


def _corrected_row(row: Sequence[float], multipliers: Sequence[float]) -> list[float]:
    weighted = [value * multiplier for value, multiplier in zip(row, multipliers, strict=True)]
    total = sum(weighted)
    return [value / total for value in weighted] if total > 0 else list(row)
