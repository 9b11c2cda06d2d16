"""Tables as people have them (data frames of any library, mappings, rows) as plain columns with their names.

No library of data frames is imported: a frame is whatever has named columns, a column whatever becomes an array. Each
column comes out as numbers with NaN for missing values, or as objects: None where a value is missing, and either true
and false or text. What a frame declares to be categories is text, whatever it looks like; times are seconds since the
epoch, durations seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags
from monitor.errors import InputError
from monitor.ports.schema import category_text

Column = NDArray[Any]

_NUMBERS = (int, float, Decimal)
_CATEGORICAL = ("category", "Categorical", "Enum", "dictionary")
"""What pandas, polars and Arrow call a column that is declared to be one of a list of values."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a table, all of one length."""

    names: tuple[str, ...] | None
    """None where the table has none: its columns are known by their position."""
    values: tuple[Column, ...]

    @classmethod
    def of(cls, table: Any, what: str) -> Self:
        """The columns of a data frame, a mapping of names to columns, a matrix, or a list of rows."""
        names, columns = _named(table) if is_frame(table) else (None, _unnamed(table, what))
        if names is not None and len(set(names)) != len(names):
            raise InputError(f"{what}: want every column name once, got {names}")
        values = tuple(plain_column(column, what) for column in columns)
        if len({column.size for column in values}) > 1:
            raise InputError(f"{what}: want columns of one length, got {[column.size for column in values]}")
        return cls(names, values)

    @property
    def rows(self) -> int:
        """How long the columns are."""
        return int(self.values[0].size) if self.values else 0

    def take(self, rows: Any) -> Self:
        """The same columns with only these rows."""
        return type(self)(self.names, tuple(column[rows] for column in self.values))


def is_frame(table: Any) -> bool:
    """Whether it has named columns."""
    return isinstance(table, Mapping) or (not isinstance(table, np.ndarray) and hasattr(table, "columns"))


def plain_column(given: Any, what: str = "column") -> Column:
    """One column of any kind as numbers or objects; see the top of this file."""
    missing, array = _missing(given), _array(given)
    if array.ndim != 1:
        raise InputError(f"{what}: want one value per event in each column, got shape {array.shape}")
    if str(getattr(given, "dtype", getattr(given, "type", ""))).startswith(_CATEGORICAL):
        return _texts(array.astype(object), missing)
    if array.dtype.kind in "fiu":
        return np.asarray(array, dtype=np.float64)
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "Mm":
        return _seconds(array)
    return _objects(array.astype(object), missing if missing is not None else _none_or_nan(array))


def _named(table: Any) -> tuple[tuple[str, ...] | None, list[Any]]:
    """Names and columns of a frame. Columns that are only numbered, as pandas does by default, have no names."""
    if isinstance(table, Mapping):
        return tuple(map(str, table)), list(table.values())
    if hasattr(table, "column_names"):  # Arrow
        return tuple(table.column_names), list(table.columns)
    names = list(table.columns)
    columns = [table.iloc[:, j] if hasattr(table, "iloc") else table[name] for j, name in enumerate(names)]
    return (None if names and names == list(range(len(names))) else tuple(map(str, names))), columns


def _unnamed(table: Any, what: str) -> list[Any]:
    matrix = table if isinstance(table, np.ndarray) else np.asarray(table, dtype=object)
    if matrix.ndim != 2:
        sparse = "; a sparse matrix has to be made dense (`toarray`)" if hasattr(table, "toarray") else ""
        raise InputError(f"{what}: want a data frame or shape (events, columns), got {matrix.shape}{sparse}")
    return [matrix[:, j] for j in range(matrix.shape[1])]


def _array(given: Any) -> Column:
    """Of a list the objects themselves: numpy would make text of a number beside text."""
    if hasattr(given, "to_numpy"):
        return np.asarray(given.to_numpy())
    return given if isinstance(given, np.ndarray) else np.asarray(given, dtype=object)


def _missing(given: Any) -> Flags | None:
    """Which values a series says are missing; None for what cannot say."""
    for ask in ("isna", "is_null"):
        if hasattr(given, ask):
            return np.asarray(getattr(given, ask)(), dtype=np.bool_)
    return None


def _none_or_nan(array: Column) -> Flags:
    return np.array([is_missing(value) for value in array], dtype=np.bool_)


def is_missing(value: Any) -> bool:
    """None and NaN, which alone differs from itself."""
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - NaN alone


def _objects(array: Column, missing: Flags) -> Column:
    """Objects as what all of them are: numbers, times, true and false, or else text."""
    present = _plain(array[~missing])
    if present and all(isinstance(value, bool) for value in present):
        return _filled(None, missing, present)
    if all(isinstance(value, _NUMBERS) and not isinstance(value, bool) for value in present):
        return _filled(np.nan, missing, present).astype(np.float64)
    if all(isinstance(value, date | timedelta) for value in present):
        return _filled(np.nan, missing, [_seconds_of(value) for value in present]).astype(np.float64)
    return _filled(None, missing, [category_text(value) for value in present])


def _texts(array: Column, missing: Flags | None) -> Column:
    absent = _none_or_nan(array) if missing is None else missing
    return _filled(None, absent, [category_text(value) for value in _plain(array[~absent])])


def _plain(values: Column) -> list[Any]:
    """Python's own objects in place of numpy's."""
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _filled(absent: Any, missing: Flags, present: Any) -> Column:
    column = np.full(missing.size, absent, dtype=object)
    column[~missing] = present
    return column


def _seconds_of(value: date | timedelta) -> float:
    """A time without a zone is taken as UTC, as `datetime64` is."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _seconds(array: Column) -> Column:
    """Times and durations as seconds with a fraction; NaN where there is none."""
    unit = "datetime64[us]" if array.dtype.kind == "M" else "timedelta64[us]"
    micros = array.astype(unit)
    return np.where(np.isnat(micros), np.nan, micros.astype(np.int64) / 1e6)
