"""The client of a scoring service: fetches the latest correction of a stream, keeps it, and applies it.

Needs nothing at all for posteriors in lists, thresholds and trees, and numpy for all else. It never stands in the way
of scoring: fetching happens in a thread of its own, and when there is no correction to be had, or the last one has
grown old, scores pass unchanged and `status` says why.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from monitor.recalibration.applying import (
    corrected_row,
    corrected_rows,
    experts_of_posteriors,
    pooled_row,
    pooled_thresholds,
    scored_threshold,
)
from monitor.recalibration.feeds import Feed, feed
from monitor.recalibration.message import InputCorrection, Recalibration, settled
from monitor.recalibration.relation import RegressionRecalibration, corrected_predictions, relation_inputs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

try:
    import numpy as np
except ImportError:  # lists can be corrected without, and thresholds moved
    _HAS_NUMPY = False
else:
    _HAS_NUMPY = True

START_SECONDS = 6.0
"""For so long the start of a service waits for the first look: a little longer than a monitor may take to answer."""

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

    and of a model that says margins, of two classes one number for each event:

            posteriors = client.apply(model.decision_function(X)[:, None])

    and of a regression stream, with columns by name or the relation's inputs alone:

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
        classes: Iterable[Any] | None = None,
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
        self._classes = None if classes is None else _names(classes)
        self._every = every
        self._expires_after = expires_after
        self._now = now
        self._known: _KnownMessage | None = None
        self._trouble = "nothing was fetched yet"
        self._looking = threading.Lock()
        self._taking = threading.Lock()
        self._stop = threading.Event()

    def __enter__(self) -> Self:
        """Fetch in the background from now on, and wait a little for the first answer."""
        self._stop, looked = threading.Event(), threading.Event()
        about = (self._stop, looked)
        threading.Thread(target=self._keep_fresh, args=about, name="shiftwatch-recalibration", daemon=True).start()
        looked.wait(START_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def refresh(self) -> Status:
        """Look for a newer message now. Never raises because of the feed."""
        before = self.status()
        with self._looking:
            try:
                message = self._feed()
                if message is not None:
                    self._take(message)
                self._trouble = "" if self._known else "the feed has no message for this stream yet"
            except Exception as error:  # noqa: BLE001 - whatever a feed does, scoring goes on, and so does looking
                self._trouble = f"the feed cannot be read: {error or repr(error)}"
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
        return Status(known.message.corrects, known.message.reason, known.message, self._trouble)

    def expect(self, classes: Iterable[Any]) -> None:
        """The order of the service's posteriors, unless `classes` said it: other models' corrections are dropped."""
        if self._classes is not None:
            return
        with self._taking:
            self._classes, known = _names(classes), self._known
            try:
                self._known = known and _known(known.message, self._classes, known.since)
            except ValueError as error:
                self._known, self._trouble = None, str(error)

    def apply(self, posteriors: ArrayLike) -> Any:
        """Corrected posteriors, rows summing to 1: an array for an array, lists for lists.

        Where scores are margins, these go in: one for each class, or a single column, which is the second of two. From
        the first message on they come out as posteriors, calibrated also where nothing is to be corrected, and after
        the message has expired; before it nobody knows how, and they come out as they are (`status` says so).

        ValueError where they have not as many columns as the message has classes, whether or not it is to be applied:
        that had better show on the first day than on the day on which the mix moves.
        """
        known = self._current()
        if isinstance(posteriors, list):
            single = bool(posteriors) and isinstance(posteriors[0], int | float)
            rows = [_corrected_row(row, known) for row in ([posteriors] if single else posteriors)]
            return rows[0] if single else rows
        _want_numpy("apply", "anything but lists")
        matrix = np.asarray(posteriors, dtype=np.float64)
        if known is None or not matrix.size:
            return matrix
        if _one_margin(matrix.shape[-1] if matrix.ndim else 0, known):
            matrix = np.concatenate([-matrix, matrix], axis=-1)
        _check_width(matrix.shape[-1] if matrix.ndim else 0, known)
        corrected = corrected_rows(matrix[..., known.columns], known.message)
        return corrected[..., np.argsort(known.columns)]

    def adjust_intercepts(self, intercepts: ArrayLike) -> NDArray[np.float64]:
        """A softmax layer's biases, moved so that it decides as it would by corrected posteriors.

        Biases can move, but not sharpen or flatten: where the calibration has another slope than 1, posteriors come
        out at the model's own; where it has none, or one for each class, by the class mix alone. Where labels have
        taught a pool of experts, biases follow what the correction would be without labels. `apply` does it all.
        Biases of margins can only be moved where one slope makes posteriors of all of them: else it is a ValueError.
        """
        _want_numpy("adjust_intercepts", "intercepts")
        known = self._current()
        margins = None if known is None else known.message.of_margins
        if margins is not None and margins.slope is None:
            raise ValueError("intercepts: each class has a slope of its own, which no bias can stand for: use `apply`")
        moved = np.asarray(intercepts, dtype=np.float64)
        if known is not None and moved.shape[-1:] != (len(known.columns),):
            raise ValueError(f"intercepts: want one for each of {list(known.message.classes)}, got {moved.shape}")
        return moved if known is None else moved + np.array(known.biases)

    def threshold(self, name: str, threshold: float = 0.5, *, cost_ratio: float | None = None) -> float:
        """The posterior of a class, as it was scored, at which its corrected posterior reaches `threshold`.

        With `cost_ratio`, what a missed event of the class costs in units of a false alarm, the threshold is the one
        of least expected cost: alarm where (1 - g') <= cost_ratio g', so at g' = 1 / (1 + cost_ratio). Where scores are
        margins it is the posterior as it is calibrated.
        """
        if cost_ratio is not None:
            if not cost_ratio > 0:
                raise ValueError(f"cost_ratio: want more than 0, got {cost_ratio}")
            threshold = 1 / (1 + cost_ratio)
        known = self._current()
        if known is not None and str(name) not in known.message.classes:
            raise ValueError(f"name: want one of {list(known.message.classes)}, got {name!r}")
        if known is None or not known.message.corrects:
            return threshold
        message = known.message
        if message.experts:
            pool = experts_of_posteriors(message)
            ys = (message.classes.index(str(name)),)
            priors = message.source_priors
            return pooled_thresholds(ys, threshold, priors, lambda rows: [pooled_row(row, pool) for row in rows])[0]
        calibrate = None if message.calibration is None or message.of_margins else message.calibration.row
        y = message.classes.index(str(name))
        return scored_threshold(y, threshold, message.source_priors, message.target_priors, calibrate)

    def correct_input(self, name: str, values: ArrayLike) -> NDArray[np.float64]:
        """Values of an input taken back to the scale that the model knows; as they are where that is not to be done."""
        _want_numpy("correct_input", "values")
        given = np.asarray(values, dtype=np.float64)
        message = self._message()
        correction = message.inputs.get(name) if message else None
        return given if correction is None or not correction.apply else corrected_input(correction, given)

    def correct_predictions(self, predictions: ArrayLike, features: Any = None) -> NDArray[np.float64]:
        """A regressor's predictions, moved by what the mean of the label has changed by.

        `features` are columns by name (a data frame will do), or a matrix of the relation's inputs in their order. A
        prediction without all of its inputs stays as it is; so do all while no correction is in force.
        """
        _want_numpy("correct_predictions", "predictions")
        given = np.array(predictions, dtype=np.float64)
        message = self._message()
        if not isinstance(message, RegressionRecalibration):
            return given
        # Looked at even if nothing is to be applied: inputs that are not there had better show on the first day.
        inputs = relation_inputs(message.relation.inputs, given.ravel(), features)
        return corrected_predictions(given, inputs, message)

    def tree(self) -> Mapping[str, Any] | None:
        """What `with_thresholds` of the stream's versatile tree or forest takes; None where none is to be applied."""
        message = self._message()
        return message.tree if message is not None and message.tree and message.tree["apply"] else None

    def _message(self) -> Recalibration | None:
        """The last one, until it expires."""
        known = self._known
        return None if known is None or self._now() - known.since > self._expires_after else known.message

    def _current(self) -> _KnownMessage | None:
        """The same, where it is about posteriors."""
        known = self._known
        if known is None or not known.columns:
            return None
        if self._now() - known.since <= self._expires_after:
            return known
        if known.message.of_margins is None:
            return None
        # What makes posteriors of margins belongs to the model, and does not grow old.
        return replace(known, message=known.message.withheld(known.message.cause, known.message.reason))

    def _take(self, message: Recalibration) -> None:
        with self._taking:
            previous = self._known.message if self._known else None
            if previous is not None and previous.validity == message.validity:
                return
            self._known = _known(settled(previous, message), self._classes, self._now())

    def _keep_fresh(self, stop: threading.Event, looked: threading.Event) -> None:
        self.refresh()
        looked.set()
        while not stop.wait(self._every):
            self.refresh()
        close = getattr(self._feed, "close", None)  # a topic's consumer keeps connections
        if close is not None:
            close()


@dataclass(frozen=True, slots=True, eq=False)
class _KnownMessage:
    """A message, where the service has each of its classes, and since when it is known."""

    message: Recalibration
    columns: tuple[int, ...]
    """The service's column of each class of the message."""
    since: float

    @property
    def biases(self) -> tuple[float, ...]:
        """What a softmax layer's biases get on top, in the service's order."""
        message = self.message
        slope = message.calibration.slope if message.calibration else None
        if message.calibration is None or slope is None:
            shifts = message.log_multipliers
        else:
            both = zip(message.calibration.weights, message.log_multipliers, strict=True)
            shifts = tuple((weight + log) / slope for weight, log in both)
        return tuple(shift for _, shift in sorted(zip(self.columns, shifts, strict=True)))


def _known(message: Recalibration, classes: tuple[str, ...] | None, since: float) -> _KnownMessage:
    if classes is not None and sorted(classes) != sorted(message.classes):
        raise ValueError(f"the message is for classes {list(message.classes)}, the service has {list(classes)}")
    names = classes or message.classes
    return _KnownMessage(message, tuple(names.index(name) for name in message.classes), since)


def corrected_input(correction: InputCorrection, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values back on the reference's scale: along the knots of a monotone map, along the line elsewhere."""
    along_line = (values - correction.beta) / correction.alpha if correction.alpha else values
    if not correction.window:
        return np.asarray(along_line)
    knots = np.array(correction.window), np.array(correction.reference)
    inside = (values >= knots[0][0]) & (values <= knots[0][-1])
    return np.where(inside, np.interp(values, *knots), along_line)


def _want_numpy(method: str, what: str) -> None:
    """Said before anything is corrected, so that it shows on the first day."""
    if not _HAS_NUMPY:
        without = "without it there are `apply` to lists, `threshold` and `tree`"
        raise ModuleNotFoundError(f"{method}: {what} want numpy, which is not installed; {without}", name="numpy")


def _corrected_row(row: Sequence[float], known: _KnownMessage | None) -> list[float]:
    if known is None:
        return list(row)
    if _one_margin(len(row), known):
        row = (-row[0], row[0])
    _check_width(len(row), known)
    corrected = corrected_row([row[column] for column in known.columns], known.message)
    return [value for _, value in sorted(zip(known.columns, corrected, strict=True))]


def _one_margin(columns: int, known: _KnownMessage) -> bool:
    """Whether one number stands for two classes."""
    return columns == 1 and len(known.columns) == 2 and known.message.of_margins is not None


def _check_width(columns: int, known: _KnownMessage) -> None:
    if columns != len(known.columns):
        want = f"{len(known.columns)} columns {list(known.message.classes)}"
        raise ValueError(f"posteriors: want {want}, got {columns}")


def _names(classes: Iterable[Any]) -> tuple[str, ...]:
    """The classes as a reference names them: a model's classes may be numbers."""
    return tuple(str(name) for name in classes)
