"""From the columns of a table to an extract, without an event in between.

Only what our own shape would take as it is: numbers where numbers are wanted, texts where texts are. Of anything else
the answer is None, and the rows are decoded one by one, which tells good events from bad ones, and why.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector
from monitor.events.extraction import BAD_LABEL, Extract, coded, label_numbers, segment_name
from monitor.events.timestamps import NO_TIME, TimeReading, Times, from_epoch
from monitor.events.wire import Wire
from monitor.ports import Column, Tabular
from monitor.ports.schema import Feature


class _OtherwiseError(Exception):
    """A column is not what our own shape would hold there."""


def extracted(table: Tabular, wire: Wire, reading: TimeReading) -> Extract | None:
    """The events of a table's rows; None if they have to be looked at one by one."""
    try:
        return _Table(table, wire, reading).extract()
    except _OtherwiseError:
        return None


class _Table:
    def __init__(self, table: Tabular, wire: Wire, reading: TimeReading) -> None:
        self._rows = len(table)
        self._wire = wire
        self._reading = reading
        self._whole: dict[str, Column] = {}
        self._parts: dict[str, dict[str, Column | None]] = {}
        for field in wire.fields:
            column = table.column([step for step in field.path.steps if isinstance(step, str | int)])
            if field.part is not None:
                self._parts.setdefault(field.name, {})[field.part] = column
            elif column is not None:
                self._whole[field.name] = column

    def extract(self) -> Extract:
        schema = self._wire.schema
        labels = self._whole.get("label")
        return Extract(
            index=np.arange(self._rows),
            streams=None,
            position=None,
            answers=self._posteriors()
            if schema.classes
            else _numbers(self._whole.get("prediction"), self._rows)[:, None],
            times=self._times(),
            labels=None if labels is None or not schema.classes else _class_numbers(labels, schema.classes),
            targets=None if labels is None or schema.classes else _numbers(labels, self._rows),
            features=self._features() if schema.features else None,
            ids=_texts(self._whole.get("id"), self._rows) if self._wire.identified else None,
            segments=self._segments() if self._wire.segment_fields else None,
        )

    def _posteriors(self) -> Matrix:
        classes = self._wire.schema.classes
        given = self._parts.get("posteriors", self._whole.get("posteriors"))
        if given is None and "score" in self._whole:
            score = _numbers(self._whole["score"], self._rows)
            other = -score if self._wire.schema.margins else 1.0 - score
            first = self._wire.schema.positive in classes[:1]
            return np.column_stack([score, other] if first else [other, score])
        if "score" in self._whole:  # some events may have the one, and some the other
            raise _OtherwiseError
        if isinstance(given, Mapping):
            if given.keys() != set(classes):
                raise _OtherwiseError
            scores = np.column_stack([_numbers(given[name], self._rows) for name in classes])
        else:
            scores = _matrix(given, len(classes))
        if "posteriors" in self._whole and np.isnan(scores).any():  # a null in place of a number
            raise _OtherwiseError
        return scores

    def _predictions(self) -> Matrix:
        return _numbers(self._whole.get("prediction"), self._rows)[:, None]

    def _features(self) -> Matrix:
        features = self._wire.schema.features
        given = self._parts.get("features", self._whole.get("features"))
        if given is None:
            return np.full((self._rows, len(features)), np.nan)
        if not isinstance(given, Mapping):
            if any(feature.kind != "number" for feature in features):
                raise _OtherwiseError
            return _matrix(given, len(features))
        return np.column_stack([_values(given.get(feature.name), feature, self._rows) for feature in features])

    def _times(self) -> str | Times:
        stamps = self._whole.get("timestamp")
        if stamps is None:
            return np.full(self._rows, NO_TIME)
        if isinstance(stamps, np.ndarray) and stamps.dtype.kind == "M":
            micros = stamps.astype("datetime64[us]").astype(np.int64)
            return np.where(np.isnat(stamps), NO_TIME, micros)
        if isinstance(stamps, np.ndarray):
            numbers = _numbers(stamps, self._rows)
            return np.where(np.isnan(numbers), NO_TIME, from_epoch(numbers, self._reading))
        texts = _only(stamps, str)
        if any("\n" in text for text in texts):
            raise _OtherwiseError
        return "\n".join(texts)

    def _segments(self) -> Sequence[str]:
        fields = self._wire.segment_fields
        given = self._parts.get("segment", self._whole.get("segment", {}))
        if not isinstance(given, Mapping):
            raise _OtherwiseError
        absent = [None] * self._rows
        columns = [_scalars(column) if (column := given.get(field)) is not None else absent for field in fields]
        return [segment_name(fields, values) for values in zip(*columns, strict=True)]


def _numbers(column: Column | None, rows: int) -> Vector:
    return np.full(rows, np.nan) if column is None else _floats(column, (rows,))


def _matrix(column: Column | None, width: int) -> Matrix:
    if not isinstance(column, np.ndarray):
        raise _OtherwiseError
    return _floats(column, (column.shape[0], width))


def _floats(column: Column, shape: tuple[int, ...]) -> NDArray[np.float64]:
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "if" or column.shape != shape:
        raise _OtherwiseError
    numbers = column.astype(np.float64)
    if np.isinf(numbers).any():  # JSON has no such number
        raise _OtherwiseError
    return numbers


def _values(column: Column | None, feature: Feature, rows: int) -> Vector:
    if column is None or feature.kind == "number":
        return _numbers(column, rows)
    values = _scalars(column)
    if feature.kind == "boolean" and not {False, True, None}.issuperset(values):
        raise _OtherwiseError
    return coded(values, feature)


def _scalars(column: Column) -> Sequence[Any]:
    """Texts, truth values and numbers as Python's own, null as None."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "if" and column.ndim == 1:
        return [None if value != value else value for value in column.tolist()]  # noqa: PLR0124 - true of NaN alone
    if isinstance(column, np.ndarray | Mapping):
        raise _OtherwiseError
    if not all(value is None or isinstance(value, str | bool) for value in column):
        raise _OtherwiseError
    return column


def _only(column: Column, kind: type) -> Sequence[Any]:
    if isinstance(column, np.ndarray | Mapping) or set(map(type, column)) != {kind}:
        raise _OtherwiseError
    return column


def _texts(column: Column | None, rows: int) -> Sequence[str | None]:
    if column is None:
        return [None] * rows
    if isinstance(column, np.ndarray) and column.dtype.kind == "i":
        return list(map(str, column.tolist()))
    return _only(column, str)


def _class_numbers(column: Column, classes: Sequence[str]) -> Labels:
    if isinstance(column, np.ndarray) and column.dtype.kind == "f" and np.isinf(column).any():
        raise _OtherwiseError  # JSON has no such number
    numbers = label_numbers(classes)
    return np.array([numbers.get(value, BAD_LABEL) for value in _scalars(column)], dtype=np.int64)
