r"""Where something stands in a record, compiled once. Pure.

    a.b          the member b of the object a            a\.b   a member whose name has a dot
    a.0          the first element of the list a
    a.*          each element of the list a: an event each
    a|json       the text a, read as JSON
    a|csv        the text a, read as lines of comma-separated values: a list of lists of texts
    a|base64     the text a, decoded to the text that it stands for
    a|rows       the list a, which has the values of all events in one row, cut into as many as an event has

What is not there is None. Only a text that is not what the path says raises: a `MisreadError`.
"""

import base64
import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from monitor.errors import InputError


class Special(Enum):
    """Steps of a path that are no name and no place."""

    EACH = "*"
    JSON = "|json"
    CSV = "|csv"
    BASE64 = "|base64"
    ROWS = "|rows"


Step = str | int | Special
"""A member's name, a place in a list, or something else."""

_PART = re.compile(r"([.|]?)((?:\\.|[^\\.|])+)")


class MisreadError(Exception):
    """A text is not what the path says it is."""


@dataclass(frozen=True, slots=True)
class FieldPath:
    """A path, taken apart."""

    written: str
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, written: str) -> "FieldPath":
        """Raises InputError where it is no path."""
        parts = _PART.findall(written)
        if "".join(mark + part for mark, part in parts) != written or not parts or parts[0][0]:
            raise InputError(f"want a path such as data.scores.0, got {written!r}")
        if any(mark == "" for mark, _ in parts[1:]):
            raise InputError(f"want a path such as data.scores.0, got {written!r}")
        steps = tuple(_step(mark, part, written) for mark, part in parts)
        if steps.count(Special.EACH) > 1:
            raise InputError(f"{written!r}: want one * at most, as each element is an event")
        return cls(written, steps)

    @property
    def direct(self) -> bool:
        """Whether it consists of names and places alone, and begins with a name."""
        return isinstance(self.steps[0], str) and not any(isinstance(step, Special) for step in self.steps)

    @property
    def each(self) -> bool:
        """Whether it stands for a value an event, where a record may hold several."""
        return Special.EACH in self.steps

    def look(self, record: Any, width: int = 1) -> Any:
        """What stands there: one value, or with a * the list of them (None where there is no list).

        `width` is how many values an event has.
        """
        if not self.each:
            return self._followed(self.steps, record, width)
        turn = self.steps.index(Special.EACH)
        elements = self._followed(self.steps[:turn], record, width)
        if type(elements) is not list:
            return None
        return [self._followed(self.steps[turn + 1 :], element, width) for element in elements]

    def _followed(self, steps: Sequence[Step], value: Any, width: int) -> Any:
        for step in steps:
            if isinstance(step, str):
                value = value.get(step) if type(value) is dict else None
            elif isinstance(step, int):
                value = value[step] if type(value) is list and step < len(value) else None
            elif value is not None:
                try:
                    value = _READ[step](value, width)
                except (ValueError, TypeError, RecursionError, csv.Error) as error:
                    raise MisreadError(f"{self.written}: not {step.value[1:]}: {error}") from None
        return value


def _step(mark: str, part: str, written: str) -> Step:
    if mark == "|":
        try:
            return Special(mark + part)
        except ValueError:
            known = ", ".join(special.value for special in _READ)
            raise InputError(f"{written!r}: there is no |{part}; there are {known}") from None
    if part == Special.EACH.value:
        return Special.EACH
    return int(part) if part.isdecimal() else re.sub(r"\\(.)", r"\1", part)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"want a text, got {type(value).__name__}")
    return value


def _lines(value: Any) -> list[list[str]]:
    return [row for row in csv.reader(_text(value).splitlines(), skipinitialspace=True) if row]


def _rows(value: Any, width: int) -> list[Any]:
    if type(value) is not list:
        raise TypeError(f"want a list, got {type(value).__name__}")
    if value and type(value[0]) is list:
        return value
    if len(value) % width:
        raise ValueError(f"{len(value)} values, which cannot be cut into rows of {width}")
    return [value[first : first + width] for first in range(0, len(value), width)]


_READ = {
    Special.JSON: lambda value, _: msgspec.json.decode(_text(value)),
    Special.CSV: lambda value, _: _lines(value),
    Special.BASE64: lambda value, _: base64.b64decode(_text(value), validate=True).decode(),
    Special.ROWS: _rows,
}
