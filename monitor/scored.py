"""Everything between decoded events of one stream and columns that can be trusted: extraction, checks, codes.

What comes in has the right names, lengths and types already (see `wire`); what is left is what only numbers can
say. Each check runs on the whole column at once, and the first that an event fails names its fault.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from monitor.arrays import UNLABELLED, Flags, Labels, Matrix, Vector
from monitor.schema import Feature, StreamSchema
from monitor.timestamps import BAD_TIME, NO_TIME, Times, from_epoch_ms, from_rfc3339
from monitor.tolerances import POSTERIOR_SUM, SEGMENT_LENGTH, SUM_ROUNDING
from monitor.windows import Segments, Window
from monitor.wire import Reason

_BAD_LABEL = UNLABELLED - 1
_Item = TypeVar("_Item", bound=np.generic)

_timestamp = attrgetter("timestamp")
_posteriors = attrgetter("posteriors")
_score = attrgetter("score")
_prediction = attrgetter("prediction")
_features = attrgetter("features")
_label = attrgetter("label")
_segment = attrgetter("segment")
_id = attrgetter("id")


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scored events of one stream, in the order of their records."""

    index: Labels
    """Which record of the batch each row came from; the events of an array share one."""
    rows: Window
    """Always with timestamps; with features, ids and segments if the stream has them."""


@dataclass(frozen=True, slots=True, eq=False)
class LateLabels:
    """Label events of one stream: what an earlier scored event was."""

    index: Labels
    timestamps: Times
    """`NO_TIME` where neither event nor record has one: a label joins by id."""
    labels: Labels
    """Class numbers; in a regression stream all `UNLABELLED`."""
    targets: Vector | None
    """What the regressor should have said; only in a regression stream."""
    ids: NDArray[np.object_] | None
    """None unless ids are asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The decoded events of one stream in one batch."""

    events: Sequence[Any]
    index: Labels
    record_times: Times | None

    def take(self, rows: Sequence[int]) -> "Part":
        """Only these events."""
        return Part([self.events[row] for row in rows], self.index[rows], self.record_times)


Misfit = tuple[int, Reason, str]
"""Which event of the part, why, and in what detail."""


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    reason: Reason
    failed: Flags
    detail: Callable[[int], str]


class Columns:
    """Makes the columns of one stream."""

    def __init__(self, schema: StreamSchema, segment_fields: Sequence[str], identified: bool) -> None:
        self.schema = schema
        self._segment_fields = tuple(segment_fields)
        self._identified = identified
        self._labels = label_numbers(schema.classes)
        self._answer = _posteriors if schema.classes else _prediction
        self._coded = any(feature.kind == "category" for feature in schema.features)

    def of(self, part: Part, horizon: int) -> tuple[Scored | None, LateLabels | None, list[Misfit]]:
        """Scored events, label events and misfits; an event later than `horizon` is a misfit."""
        answers = list(map(self._answer, part.events))
        numbers = self._numbers(answers)
        if numbers is None:
            return self._mixed(part, answers, horizon)
        scored, misfits = self._scored(part, numbers, horizon)
        return scored, None, misfits

    def _mixed(
        self, part: Part, answers: Sequence[Any], horizon: int
    ) -> tuple[Scored | None, LateLabels | None, list[Misfit]]:
        """Some events carry a bare score, or only a label, or nothing; or some lists and some objects."""
        scores: Sequence[Any] = [None] * len(answers)
        if self.schema.positive is not None:
            scores = list(map(_score, part.events))
        answered = np.array([a is not None or s is not None for a, s in zip(answers, scores, strict=True)])
        labelled = np.array([_label(event) is not None for event in part.events]) & ~answered
        of_scored, of_labels = np.flatnonzero(answered).tolist(), np.flatnonzero(labelled).tolist()
        missing = Reason.MISSING_POSTERIORS if self.schema.classes else Reason.MISSING_PREDICTION
        neither = np.flatnonzero(~answered & ~labelled).tolist()
        misfits: list[Misfit] = [(row, missing, "neither scores nor a label") for row in neither]
        scored = late = None
        if of_scored:
            first = self.schema.positive in self.schema.classes[:1]
            filled = [_binary(scores[row], first) if answers[row] is None else answers[row] for row in of_scored]
            rows = _tuples(filled) if self.schema.classes else zip(filled)
            numbers = _flat(rows, len(filled), len(self.schema.classes) or 1)
            scored, some = self._scored(part.take(of_scored), numbers, horizon)
            misfits += [(of_scored[row], reason, detail) for row, reason, detail in some]
        if of_labels:
            late, some = self._late(part.take(of_labels), horizon)
            misfits += [(of_labels[row], reason, detail) for row, reason, detail in some]
        return scored, late, misfits

    def _numbers(self, answers: Sequence[Any]) -> Matrix | None:
        """Posteriors as rows, or predictions as the only column; None if they are not all alike."""
        if self.schema.classes:
            return _matrix(answers, len(self.schema.classes))
        return None if None in answers else _flat(zip(answers), len(answers), 1)

    def _scored(self, part: Part, numbers: Matrix, horizon: int) -> tuple[Scored | None, list[Misfit]]:
        classes = len(self.schema.classes)
        times = event_times(part)
        labels, targets = self._truth(part.events)
        matrix = numbers[:, :classes]
        sums = _row_sums(matrix)
        segments = self._segments(part.events)
        checks = [
            *_time_checks(times, horizon),
            *(_posterior_checks(matrix, sums) if classes else ()),
            *_label_checks(labels),
            *_segment_checks(segments),
        ]
        kept, misfits = _judge(checks, times.size)
        if not kept.size:
            return None, misfits
        if classes:
            with np.errstate(all="ignore"):  # rejected rows may divide by zero; they are dropped just below
                matrix = matrix / sums[:, None]
        whole = Window(
            posteriors=matrix,
            features=self._features(part.events),
            labels=labels,
            predictions=None if classes else numbers[:, 0],
            targets=targets,
            timestamps=times,
            ids=self._ids(part.events),
            segments=segments,
        )
        # `take` also makes the arrays read-only; a full slice copies nothing.
        rows = slice(None) if kept.size == times.size else kept
        return Scored(part.index[rows], whole.take(rows)), misfits

    def _late(self, part: Part, horizon: int) -> tuple[LateLabels | None, list[Misfit]]:
        times = event_times(part)
        labels, targets = self._truth(part.events)
        ids = self._ids(part.events)
        checks = [check for check in _time_checks(times, horizon) if check.reason != Reason.MISSING_TIMESTAMP]
        checks += _label_checks(labels)
        if ids is not None:
            checks.append(
                _Check(
                    Reason.BAD_ID,
                    np.array([one is None for one in ids]),
                    lambda _: "a label without an id joins nothing",
                )
            )
        kept, misfits = _judge(checks, times.size)
        if not kept.size:
            return None, misfits
        return LateLabels(
            index=part.index[kept],
            timestamps=times[kept],
            labels=np.full(kept.size, UNLABELLED) if labels is None else labels[kept],
            targets=None if targets is None else targets[kept],
            ids=None if ids is None else ids[kept],
        ), misfits

    def _truth(self, events: Sequence[Any]) -> tuple[Labels | None, Vector | None]:
        """Class numbers, or a regressor's targets; None where no event has one."""
        values = list(map(_label, events))
        if values.count(None) == len(values):
            return None, None
        if not self.schema.classes:
            return None, np.array(values, dtype=np.float64)  # None becomes NaN
        return np.fromiter(map(self._labels.get, values, repeat(_BAD_LABEL)), np.int64, len(values)), None

    def _features(self, events: Sequence[Any]) -> Matrix | None:
        features = self.schema.features
        if not features:
            return None
        given = list(map(_features, events))
        if not self._coded:
            matrix = _matrix(given, len(features))
            if matrix is not None:
                return matrix
        absent = (None,) * len(features)
        rows = _tuples(absent if row is None else row for row in given)
        if not self._coded:
            return _flat(rows, len(given), len(features))
        columns = zip(*rows, strict=True)
        return np.column_stack([coded(column, feature) for column, feature in zip(columns, features, strict=True)])

    def _ids(self, events: Sequence[Any]) -> NDArray[np.object_] | None:
        if not self._identified:
            return None
        ids = np.empty(len(events), dtype=np.object_)
        ids[:] = [None if given is None else str(given) for given in map(_id, events)]
        return ids

    def _segments(self, events: Sequence[Any]) -> Segments | None:
        if not self._segment_fields:
            return None
        absent = (None,) * len(self._segment_fields)
        names = [
            segment_name(self._segment_fields, absent if given is None else astuple(given))
            for given in map(_segment, events)
        ]
        known = sorted(set(names))
        codes = {name: code for code, name in enumerate(known)}
        return Segments(np.fromiter(map(codes.__getitem__, names), np.int32, len(names)), tuple(known))


def label_numbers(classes: Sequence[str]) -> dict[str | int | None, int]:
    """Class numbers by name; classes that are named by whole numbers may be written as JSON numbers too."""
    numbers: dict[str | int | None, int] = {None: UNLABELLED}
    for number, name in enumerate(classes):
        numbers[name] = number
        if name.lstrip("-").isdecimal() and str(int(name)) == name:
            numbers[int(name)] = number
    return numbers


def event_times(part: Part) -> Times:
    """The events' own times, else their records'; `NO_TIME` and `BAD_TIME` where there is none or none readable."""
    stamps = list(map(_timestamp, part.events))
    with suppress(TypeError):  # not all of them are text
        return from_rfc3339(stamps)
    if set(map(type, stamps)) == {float}:
        return from_epoch_ms(np.array(stamps))
    times = np.full(len(stamps), NO_TIME, dtype=np.int64)
    if part.record_times is not None:
        recorded = part.record_times[part.index]
        times = np.where(recorded < 0, NO_TIME, recorded)  # brokers write -1 for "none"
    texts = [row for row, stamp in enumerate(stamps) if type(stamp) is str]
    numbers = [row for row, stamp in enumerate(stamps) if type(stamp) is float]
    if texts:
        times[texts] = from_rfc3339([stamps[row] for row in texts])
    if numbers:
        times[numbers] = from_epoch_ms(np.array([stamps[row] for row in numbers]))
    return times


def coded(column: Sequence[Any], feature: Feature) -> Vector:
    """One feature as numbers: categories by their place in the schema's list, anything else by its own value."""
    if feature.kind != "category":
        return np.array(column, dtype=np.float64)  # None becomes NaN
    codes: dict[Any, float] = {name: float(code) for code, name in enumerate(feature.categories)}
    unseen = float(len(feature.categories))
    return np.array([np.nan if value is None else codes.get(str(value), unseen) for value in column])


def segment_name(fields: Sequence[str], values: Sequence[Any]) -> str:
    """`country=BE,plan=gold`; a missing value reads as an empty one."""
    return ",".join(f"{field}={_segment_text(value)}" for field, value in zip(fields, values, strict=True))


def _segment_text(value: str | bool | int | float | None) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("\\", "\\\\").replace(",", "\\,")


def _binary(score: float, positive_first: bool) -> tuple[float, float]:
    return (score, 1.0 - score) if positive_first else (1.0 - score, score)


def _tuples(rows: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
    """Lists and objects alike, as tuples in the schema's order."""
    return (row if type(row) is tuple else astuple(row) for row in rows)


def _flat(rows: Iterable[tuple[Any, ...]], count: int, columns: int) -> Matrix:
    """Tuples of numbers as a matrix; None becomes NaN."""
    return np.fromiter(chain.from_iterable(rows), np.float64, count * columns).reshape(count, columns)


def _matrix(rows: Sequence[Any], columns: int) -> Matrix | None:
    """The same for rows that are all tuples, or all objects; None for a mixture."""
    for unpacked in (rows, map(astuple, rows)):
        with suppress(TypeError):
            return _flat(unpacked, len(rows), columns)
    return None


def _row_sums(matrix: Matrix) -> Vector:
    """Column after column: several times faster than along short rows, and the same sum whatever the other rows."""
    sums = np.zeros(matrix.shape[0])
    for column in matrix.T:
        sums += column
    return sums


def _time_checks(times: Times, horizon: int) -> Iterable[_Check]:
    yield _Check(Reason.BAD_TIMESTAMP, times == BAD_TIME, lambda _: "want RFC 3339 with an offset, or epoch ms")
    yield _Check(Reason.MISSING_TIMESTAMP, times == NO_TIME, lambda _: "neither the event nor its record has a time")
    yield _Check(
        Reason.FUTURE_TIMESTAMP,
        times > horizon,
        # No word of the clock: a record that is read again after a restart must give the same dead letter.
        lambda row: f"{np.datetime64(int(times[row]), 'us')}Z lies further ahead of the clock than allowed",
    )


def _posterior_checks(matrix: Matrix, sums: Vector) -> Iterable[_Check]:
    off = ~(np.abs(sums - 1.0) <= POSTERIOR_SUM + SUM_ROUNDING)  # so written, NaN is off too
    if matrix.size and not matrix.min() >= 0:
        negative = np.asarray((matrix < 0).any(axis=1))
        yield _Check(Reason.NEGATIVE, negative, lambda row: f"the smallest posterior is {matrix[row].min():.6g}")
    yield _Check(Reason.NOT_FINITE, off & ~np.isfinite(sums), lambda _: "posteriors are not finite")
    yield _Check(Reason.POSTERIOR_SUM, off, lambda row: f"posteriors sum to {sums[row]:.6g}")


def _label_checks(labels: Labels | None) -> Iterable[_Check]:
    if labels is not None:
        yield _Check(Reason.BAD_LABEL, labels == _BAD_LABEL, lambda _: "the label is not one of the classes")


def _segment_checks(segments: Segments | None) -> Iterable[_Check]:
    if segments is not None:
        long = np.array([len(name) > SEGMENT_LENGTH for name in segments.names])
        yield _Check(Reason.BAD_SEGMENT, long[segments.codes], lambda _: f"longer than {SEGMENT_LENGTH} characters")


def _judge(checks: Iterable[_Check], count: int) -> tuple[Labels, list[Misfit]]:
    """Which events pass every check, and for each of the others the first that it failed."""
    misfits: dict[int, Misfit] = {}
    for check in checks:
        if check.failed.any():
            for row in np.flatnonzero(check.failed).tolist():
                misfits.setdefault(row, (row, check.reason, check.detail(row)))
    kept = np.arange(count)
    return (np.delete(kept, list(misfits)) if misfits else kept), list(misfits.values())
