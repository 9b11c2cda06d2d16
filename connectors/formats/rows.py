"""Records that were decoded into Python's values: as columns for whoever takes them so, and one by one as JSON."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from types import NoneType
from typing import Any, overload

import msgspec
import numpy as np

from monitor.ports import Column

encoded = msgspec.json.Encoder(decimal_format="number", enc_hook=str).encode
_NUMBERS = frozenset({float, int})


class ColumnarRows(Sequence[bytes], ABC):
    """Rows as columns for whoever takes them so, and one by one as JSON for whoever wants to see one."""

    @overload
    def __getitem__(self, which: int) -> bytes: ...
    @overload
    def __getitem__(self, which: slice) -> list[bytes]: ...
    def __getitem__(self, which: int | slice) -> bytes | list[bytes]:
        return self._json[which]

    @abstractmethod
    def column(self, steps: Sequence[str | int]) -> Column | None:
        """What stands at a path; None if nothing does."""

    @abstractmethod
    def objects(self) -> Iterable[object]:
        """Each row as a value that has a spelling in JSON."""

    @cached_property
    def _json(self) -> list[bytes]:
        return [encoded(row) for row in self.objects()]


class DecodedRows(ColumnarRows):
    """Rows as objects of Python's own values."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def column(self, steps: Sequence[str | int]) -> Column | None:
        values = at(self._rows, steps)
        return None if set(map(type, values)) == {NoneType} else as_column(values)

    def objects(self) -> Iterable[object]:
        return self._rows


def at(values: Sequence[Any], steps: Sequence[str | int]) -> Sequence[Any]:
    """What stands at a path in each of some values; None where nothing does."""
    for step in steps:
        values = _members(values, step) if isinstance(step, str) else _elements(values, step)
    return values


def as_column(values: Sequence[Any]) -> Column:
    """Values of one path: numbers and times as arrays, lists of equal length as a matrix, objects by their members."""
    kinds = set(map(type, values))
    if kinds == {float} or (kinds & _NUMBERS and kinds <= {*_NUMBERS, NoneType}):
        return _numbers(values, kinds)
    if len(kinds) == 1 and (of := _OF_KIND.get(kinds.pop())) is not None:
        return of(values)
    return values


def _members(values: Sequence[Any], name: str) -> list[Any]:
    try:
        return [value[name] for value in values]
    except (KeyError, TypeError):
        return [value.get(name) if isinstance(value, Mapping) else None for value in values]


def _elements(values: Sequence[Any], place: int) -> list[Any]:
    return [value[place] if isinstance(value, list) and place < len(value) else None for value in values]


def _numbers(values: Sequence[Any], kinds: set[type]) -> Column:
    if kinds == {int}:
        try:
            return np.array(values, np.int64)
        except OverflowError:
            return values
    try:
        return np.array(values, np.float64)  # None becomes NaN
    except OverflowError:
        return values


def _times(values: Sequence[datetime]) -> Column:
    zones = {value.tzinfo for value in values}
    if None in zones:
        return [value.isoformat() for value in values]
    if zones != {UTC}:
        values = [value.astimezone(UTC) for value in values]
    return np.array([value.replace(tzinfo=None) for value in values], "datetime64[us]")


def _matrix(values: Sequence[list[Any]]) -> Column:
    lengths = set(map(len, values))
    flat = list(chain.from_iterable(values))
    if len(lengths) > 1 or not flat or not set(map(type, flat)) <= _NUMBERS:
        return values
    try:
        return np.array(flat, np.float64).reshape(len(values), -1)
    except OverflowError:
        return values


def _objects(values: Sequence[Mapping[str, Any]]) -> Column:
    names = values[0].keys()
    if any(value.keys() != names for value in values):
        return values
    return {name: as_column([value[name] for value in values]) for name in names}


_OF_KIND: Mapping[type, Callable[[Any], Column]] = {datetime: _times, list: _matrix, dict: _objects}
