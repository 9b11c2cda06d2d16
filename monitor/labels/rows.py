"""The columns of a window as bytes and back: what a window is kept as until its labels have come.

Any columns of numbers, and ids: a classifier's posteriors, a regressor's predictions and features. The same columns
give the same bytes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]


class _PackedColumn(msgspec.Struct, array_like=True):
    dtype: str
    shape: tuple[int, ...]
    data: bytes


class _Rows(msgspec.Struct, array_like=True):
    columns: dict[str, _PackedColumn]
    ids: list[str | None] | None


_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_Rows)


def packed(columns: Columns, ids: Sequence[str | None] | None = None) -> bytes:
    """Columns of numbers (any shape), and the events' ids."""
    table = {
        name: _PackedColumn(column.dtype.str, column.shape, np.ascontiguousarray(column).tobytes())
        for name, column in columns.items()
    }
    return _ENCODER.encode(_Rows(table, None if ids is None else list(ids)))


def unpacked(rows: bytes) -> tuple[dict[str, NDArray[Any]], list[str | None] | None]:
    """The inverse of `packed`; the arrays are read-only."""
    decoded = _DECODER.decode(rows)
    columns = {
        name: np.frombuffer(column.data, dtype=np.dtype(column.dtype)).reshape(column.shape)
        for name, column in decoded.columns.items()
    }
    return columns, decoded.ids


def ids(rows: bytes | None) -> Sequence[str | None]:
    """The ids of a window's kept rows."""
    return () if rows is None else unpacked(rows)[1] or ()
