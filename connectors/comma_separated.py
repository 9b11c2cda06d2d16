"""Rows of files of comma-separated values: a header, then a row an event.

What a cell says is judged by itself: a number, `true` or `false`, nothing, or a text. Names with a dot are members of
objects, as `posteriors.fraud` is of a hold-out. A row that has more or fewer fields than the header says nothing, and
is kept as a line.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from math import isinf
from pathlib import Path
from typing import Any, overload

import numpy as np

from connectors.formats.rows import DecodedRows
from monitor.errors import ConnectorError
from monitor.ports import Translated

_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_DIGITS = 18
"""Of a whole number: with more it is an identifier, and stays a text."""
_BOOLEANS = {"true": True, "false": False}
_MISSING = frozenset({"", "NaN", "nan"})
"""`NA` is none of them: among names it is one (Namibia)."""


class CsvLines(Sequence[bytes]):
    """Rows as lines, for whoever wants to see one."""

    def __init__(self, rows: Sequence[Sequence[str]]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, which: int) -> bytes: ...
    @overload
    def __getitem__(self, which: slice) -> list[bytes]: ...
    def __getitem__(self, which: int | slice) -> bytes | list[bytes]:
        if isinstance(which, slice):
            return [_line(row) for row in self._rows[which]]
        return _line(self._rows[which])


def row_count(path: Path) -> int:
    """How many rows a file has below its header."""
    with _rows(path) as (_, rows):
        return sum(1 for _ in rows)


def chunks(path: Path, first: int, size: int) -> Iterator[tuple[Sequence[bytes], Translated]]:
    """From a row on, so many rows at a time: as lines, and what they say."""
    with _rows(path) as (names, rows):
        later = islice(rows, first, None)
        while some := list(islice(later, size)):
            faults = {number: fault for number, row in enumerate(some) if (fault := _fault(row, len(names)))}
            good = [number for number in range(len(some)) if number not in faults]
            said = [_object(names, some[number]) for number in good]
            yield CsvLines(some), Translated(DecodedRows(said), np.array(good, np.int64), faults)


@contextmanager
def _rows(path: Path) -> Iterator[tuple[Sequence[Sequence[str]], Iterator[list[str]]]]:
    """The names, taken apart at their first dot, and the rows that are not blank."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as text:
        lines = csv.reader(text)
        header = next(lines, [])
        if len(header) == 1 and (other := next((mark for mark in ";\t|" if mark in header[0]), "")):
            raise ConnectorError(f"{path}: want commas between columns, and dots in numbers; the header has {other!r}")
        if len(set(header)) < len(header) or "" in header:
            raise ConnectorError(f"{path}: want every column named, and once")
        try:
            yield [name.split(".", 1) for name in header], (row for row in lines if row)
        except csv.Error as error:
            raise ConnectorError(f"{path}: line {lines.line_num}: {error}") from error


def _fault(row: Sequence[str], width: int) -> str:
    if len(row) != width:
        return f"want {width} fields as in the header, got {len(row)}"
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        return "not UTF-8"
    return ""


def _object(names: Sequence[Sequence[str]], row: Sequence[str]) -> Mapping[str, Any]:
    said: dict[str, Any] = {}
    for parts, text in zip(names, row, strict=True):
        if len(parts) == 1:
            said[parts[0]] = _cell(text)
        else:
            said.setdefault(parts[0], {})[parts[1]] = _cell(text)
    return said


def _cell(text: str) -> Any:
    if text in _MISSING:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        return _BOOLEANS.get(text.lower(), text)
    if match[2] is None and match[3] is None:
        return int(text) if len(text) <= _DIGITS else text
    number = float(text)
    return text if isinf(number) else number


def _line(row: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(row)
    return text.getvalue().encode(errors="surrogateescape")
