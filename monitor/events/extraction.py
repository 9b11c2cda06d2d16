"""From decoded events to plain arrays: the only place that touches good events one by one.

Streams that are read alike (the same classes, features and settings) are taken apart together: what a batch costs does
not depend on how many of them it holds.

It goes through a few hundred events at a time, while they are still in the processor's cache: touching them again
later costs more than decoding them. Nothing is judged here; what an event does not have is NaN or `UNLABELLED`.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat, starmap
from typing import Any

import numpy as np
from msgspec.structs import astuple

from monitor.arrays import UNLABELLED, Labels, Matrix, Vector
from monitor.events.timestamps import AS_THEY_SAY, TimeReading, Times, from_epoch, from_values
from monitor.events.wire import Wire
from monitor.ports.schema import Feature, category_text

BAD_LABEL = UNLABELLED - 1
"""The label is not one of the classes."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodedPart:
    """Some decoded events of streams that are read alike, and where in the batch they stand."""

    events: Sequence[Any]
    index: Labels
    position: Labels | None
    """The place inside its record's array; None when no record is an array."""
    record_times: Times | None
    """Of all records of the batch."""


def together(parts: Sequence[DecodedPart]) -> DecodedPart:
    """Parts of one batch, in their order, as one."""
    if len(parts) == 1:
        return parts[0]
    position = None
    if any(part.position is not None for part in parts):
        position = np.concatenate([_positions(part) for part in parts])
    events = [event for part in parts for event in part.events]
    return DecodedPart(events, np.concatenate([part.index for part in parts]), position, parts[0].record_times)


def _positions(part: DecodedPart) -> Labels:
    return np.zeros(part.index.size, dtype=np.int64) if part.position is None else part.position


@dataclass(frozen=True, slots=True, eq=False)
class Extract:
    """The same events as arrays, in the same order."""

    index: Labels
    streams: Labels | None
    """Which of the streams that are read alike each event is of; None where there is only one."""
    position: Labels | None
    answers: Matrix
    """Posteriors, margins, or predictions as the only column; NaN for an event without."""
    times: str | Times
    """RFC 3339, one a line, to be read with those of other parts; or times, `NO_TIME` and `BAD_TIME`."""
    labels: Labels | None
    """Class numbers, `UNLABELLED` and `BAD_LABEL`; None when no event has a label."""
    targets: Vector | None
    """A regression stream's labels; None when no event has one."""
    features: Matrix | None
    ids: Sequence[str | None] | None
    segments: Sequence[str] | None


class Extractor:
    """Takes the events of streams that are read alike apart."""

    def __init__(self, wires: Sequence[Wire], reading: TimeReading = AS_THEY_SAY) -> None:
        """The wires differ in nothing but the name of their stream."""
        wire = wires[0]
        self.names = tuple(each.schema.stream for each in wires)
        self.schema = schema = wire.schema
        self.reading = reading
        self._of_type = len({each.event for each in wires}) == len(wires)
        """Whether each stream has a type of its own; else all have the same, which says the stream."""
        self._codes: dict[Any, int] = {
            each.event if self._of_type else each.schema.stream: code for code, each in enumerate(wires)
        }
        self._read = wire.readers
        self._segment_fields = wire.segment_fields
        self._identified = wire.identified
        self._numbers = label_numbers(schema.classes)
        self._coded = any(feature.kind == "category" for feature in schema.features)
        self._positive_first = schema.positive in schema.classes[:1]

    def extract(self, part: DecodedPart) -> Extract:
        """Everything that the stream's settings ask for."""
        events = part.events
        labels, targets = self._truth(events)
        return Extract(
            index=part.index,
            streams=self._streams(events),
            position=part.position,
            answers=self._posteriors(events) if self.schema.classes else self._predictions(events),
            times=_times(self._column("timestamp", events), part, self.reading),
            labels=labels,
            targets=targets,
            features=self._features(events) if self.schema.features else None,
            ids=self._ids(events) if self._identified else None,
            segments=self._segments(events) if self._segment_fields else None,
        )

    def _streams(self, events: Sequence[Any]) -> Labels | None:
        if len(self.names) == 1:
            return None
        said = map(type, events) if self._of_type else [event.stream for event in events]
        return np.fromiter(map(self._codes.__getitem__, said), np.int64, len(events))

    def _column(self, field: str, events: Sequence[Any]) -> Sequence[Any]:
        read = self._read.get(field)
        return (None,) * len(events) if read is None else read(events)

    def _posteriors(self, events: Sequence[Any]) -> Matrix:
        given, classes = self._column("posteriors", events), len(self.schema.classes)
        matrix = _matrix(given, classes)
        if matrix is not None:
            return matrix
        scores: Iterable[float | None] = repeat(None)
        if self.schema.positive is not None:
            scores = self._column("score", events)
        absent = (None,) * classes
        filled = [
            row if row is not None else absent if score is None else self._binary(score)
            for row, score in zip(given, scores, strict=False)
        ]
        return _flat(_tuples(filled), classes)

    def _predictions(self, events: Sequence[Any]) -> Matrix:
        predictions = self._column("prediction", events)
        return np.array(predictions, dtype=np.float64).reshape(-1, 1)  # None becomes NaN

    def _binary(self, score: float) -> tuple[float, float]:
        other = -score if self.schema.margins else 1.0 - score
        return (score, other) if self._positive_first else (other, score)

    def _truth(self, events: Sequence[Any]) -> tuple[Labels | None, Vector | None]:
        values = self._column("label", events)
        if values.count(None) == len(values):
            return None, None
        if not self.schema.classes:
            return None, np.array(values, dtype=np.float64)
        return np.fromiter(map(self._numbers.get, values, repeat(BAD_LABEL)), np.int64, len(values)), None

    def _features(self, events: Sequence[Any]) -> Matrix:
        features, given = self.schema.features, self._column("features", events)
        if not self._coded:
            matrix = _matrix(given, len(features))
            if matrix is not None:
                return matrix
        absent = (None,) * len(features)
        rows = _tuples(absent if row is None else row for row in given)
        if not self._coded:
            return _flat(rows, len(features))
        columns = zip(*rows, strict=True)
        return np.column_stack([coded(column, feature) for column, feature in zip(columns, features, strict=True)])

    def _segments(self, events: Sequence[Any]) -> list[str]:
        absent = (None,) * len(self._segment_fields)
        given = (absent if segment is None else segment for segment in self._column("segment", events))
        return [segment_name(self._segment_fields, segment) for segment in _tuples(given)]

    def _ids(self, events: Sequence[Any]) -> list[str | None]:
        return [None if name is None else str(name) for name in self._column("id", events)]


def label_numbers(classes: Sequence[str]) -> dict[str | float | None, int]:
    """Class numbers by name; classes that are named by whole numbers, or true and false, may be written as such too.

    In Python true is 1, so that either stands for the other where only one of them is a class; and so is 1.0, as a
    column of whole numbers is written when some are missing, as a number or as text.
    """
    numbers: dict[str | float | None, int] = {None: UNLABELLED}
    for number, name in enumerate(classes):
        numbers[name] = number
        if name.lstrip("-").isdecimal() and str(int(name)) == name:
            numbers[int(name)] = number
            numbers.setdefault(f"{name}.0", number)
        if name.lower() in ("true", "false"):
            numbers[name.lower() == "true"] = number
    for number, name in enumerate(classes):
        if (whole := whole_number(name)) is not None:
            numbers.setdefault(whole, number)
            numbers.setdefault(int(whole), number)
    return numbers


def whole_number(name: str) -> str | None:
    """1 for a class that is called 1.0, as models do that were trained on such a column; None for other names."""
    whole = name.removesuffix(".0")
    return whole if whole != name and whole.removeprefix("-").isdecimal() else None


def coded(column: Sequence[Any], feature: Feature) -> Vector:
    """One feature as numbers: categories by their place in the schema's list, anything else by its own value."""
    if feature.kind != "category":
        return np.array(column, dtype=np.float64)  # None becomes NaN
    codes: dict[Any, float] = {name: float(code) for code, name in enumerate(feature.categories)}
    unseen = float(len(feature.categories))
    known = codes | {None: np.nan, "": np.nan}
    # Almost all values are texts from the list; only a number, a boolean or a new value is looked at again.
    numbers = list(map(known.get, column))
    if None in numbers:
        numbers = [
            codes.get(category_text(value), unseen) if code is None else code
            for code, value in zip(numbers, column, strict=True)
        ]
    return np.array(numbers, dtype=np.float64)


def segment_name(fields: Sequence[str], values: Sequence[Any]) -> str:
    """`country=BE,plan=gold`; a missing value reads as an empty one."""
    return ",".join(f"{field}={_segment_text(value)}" for field, value in zip(fields, values, strict=True))


def segment_values(name: str) -> dict[str, str]:
    """The values by field of what `segment_name` has made."""
    parts = (part.partition("=") for part in re.findall(r"(?:\\.|[^\\,])+", name))
    return {field: re.sub(r"\\(.)", r"\1", text) for field, _, text in parts}


def _segment_text(value: str | bool | int | float | None) -> str:
    return "" if value is None else category_text(value).replace("\\", "\\\\").replace(",", "\\,")


def _times(stamps: Sequence[Any], part: DecodedPart, reading: TimeReading) -> str | Times:
    """The events' own times, else their records'."""
    with suppress(TypeError):  # not all of them are text
        lines = "\n".join(stamps)
        if lines.count("\n") == len(stamps) - 1:  # none of them has a line feed inside
            return lines
    if set(map(type, stamps)) == {float}:
        return from_epoch(np.array(stamps), reading)
    # Streams may write times in unlike ways, and some events none.
    return from_values(stamps, None if part.record_times is None else part.record_times[part.index], reading)


def _matrix(rows: Sequence[Any], columns: int) -> Matrix | None:
    """Rows that are all lists, or all objects, of numbers as a matrix, null as NaN; None for a mixture."""
    with suppress(TypeError):
        return _flat(rows, columns)
    if columns == 2:
        with suppress(AttributeError, struct.error):
            return _pairs(rows)
    with suppress(TypeError):
        return _flat(list(map(astuple, rows)), columns)
    return None


def _flat(rows: Sequence[tuple[Any, ...]], columns: int) -> Matrix:
    """Tuples of numbers as a matrix; None becomes NaN."""
    try:
        # Half the time of NumPy's own conversions from Python numbers.
        flat = np.frombuffer(b"".join(starmap(struct.Struct(f"{columns}d").pack, rows)), np.float64)
    except struct.error:  # a null
        flat = np.fromiter(chain.from_iterable(rows), np.float64, len(rows) * columns)
    return flat.reshape(len(rows), columns)


def _pairs(rows: Sequence[Any]) -> Matrix:
    """Objects of two numbers (a `wire.keyed_struct`), column by column: of so few it is faster than making tuples."""
    numbers = [row.x0 for row in rows] + [row.x1 for row in rows]
    columns = np.frombuffer(struct.pack(f"{len(numbers)}d", *numbers), np.float64).reshape(2, -1)
    # Row by row in memory like all others: NumPy's sums depend on the order, and results must not on the batching.
    return np.ascontiguousarray(columns.T)


def _tuples(rows: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Lists and objects alike, as tuples in the schema's order."""
    return [row if type(row) is tuple else astuple(row) for row in rows]
