"""From a TOML table to a frozen dataclass, with every problem found and the nearest valid key named.

The dataclass says what is allowed: field names, types, defaults. A class may add `problems()` for what types cannot
say. Nothing here knows what a configuration is about.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NewType, Self, TypeVar, Union, get_args, get_origin, get_type_hints

from monitor.errors import InputError

Duration = NewType("Duration", int)
"""Microseconds; written as "250ms", "30s", "5m", "1h" or "1d"."""

_Table = TypeVar("_Table")
_LONGEST = 36_500 * 86_400_000_000
"""A hundred years, so that no time that is reckoned with overflows."""
_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_REFERENCE = re.compile(r"\$\{(file:)?([^}]*)\}")


class _Outside(str):
    """A text with something from outside in it; complaints show it as it was written, not the secret."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, text: str, written: str) -> Self:
        outside = super().__new__(cls, text)
        outside.written = written
        return outside

    def __repr__(self) -> str:
        return repr(self.written)


class _Bad(Exception):  # noqa: N818 - never leaves this module
    """One value that does not fit; says what was wanted."""


def read(kind: type[_Table], table: Mapping[str, Any], where: str, problems: list[str]) -> _Table | None:
    """The dataclass that a table describes, or None with the reasons added to `problems`."""
    hints = get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    before = len(problems)
    unknown = [key for key in table if key not in known]
    problems.extend(f"{_at(where, key)}: there is no such setting{_nearest(key, known)}" for key in unknown)
    values = {}
    for name, field in known.items():
        if name in table:
            values[name] = _converted(hints[name], table[name], _at(where, name), problems)
        elif _required(field):
            problems.append(f"{_at(where, name)}: is missing")
    if len(problems) > before:
        return None
    read_table = kind(**values)
    problems.extend(f"{where or 'configuration'}: {problem}" for problem in getattr(read_table, "problems", tuple)())
    return read_table if len(problems) == before else None


def substituted(value: Any, where: str, problems: list[str], environment: Mapping[str, str] = os.environ) -> Any:
    """The same value with `${NAME}` in strings taken from the environment and `${file:PATH}` from a file."""
    if isinstance(value, Mapping):
        return {key: substituted(inner, _at(where, key), problems, environment) for key, inner in value.items()}
    if isinstance(value, list):
        return [substituted(inner, where, problems, environment) for inner in value]
    if not isinstance(value, str):
        return value

    def looked_up(match: re.Match[str]) -> str:
        from_file, name = match.groups()
        if from_file:
            try:
                return Path(name).read_text(encoding="utf-8").rstrip("\n")
            except (OSError, ValueError) as error:  # no UTF-8, or no path
                problems.append(f"{where}: cannot read ${{file:{name}}}: {error}")
        elif name in environment:
            return environment[name]
        else:
            problems.append(f"{where}: the environment has no variable {name!r}")
        return ""

    filled = _Outside(_REFERENCE.sub(looked_up, value), value) if _REFERENCE.search(value) else value
    if "\0" in filled:
        problems.append(f"{where}: no text here may hold a null character")
    return filled


def duration(value: Any, where: str) -> int:
    """Microseconds of a duration as it is written in the configuration."""
    try:
        return _duration(value)
    except _Bad as bad:
        raise InputError(f"{where}: want {bad}, got {value!r}") from None


def duration_text(microseconds: int) -> str:
    """The shortest way to write a duration in the configuration."""
    for unit, size in sorted(_UNITS.items(), key=lambda item: -item[1]):
        if microseconds % size == 0 and (microseconds or unit == "s"):
            return f"{microseconds // size}{unit}"
    return f"{microseconds / 1000}ms"


def _converted(hint: Any, value: Any, where: str, problems: list[str]) -> Any:
    try:
        return _convert(hint, value, where, problems)
    except _Bad as bad:
        problems.append(f"{where}: want {bad}, got {value!r}")
        return None


def _convert(hint: Any, value: Any, where: str, problems: list[str]) -> Any:  # noqa: PLR0911 - one line a type
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, UnionType):
        return _convert(_member(arguments, value), value, where, problems)
    if origin is Literal:
        return _choice(arguments, value)
    if origin is tuple:
        return tuple(_convert(arguments[0], element, where, problems) for element in _typed(value, list, "a list"))
    if origin is not None and issubclass(origin, Mapping):
        table = _typed(value, Mapping, "a table")
        return {key: _converted(arguments[1], entry, _at(where, key), problems) for key, entry in table.items()}
    if is_dataclass(hint):
        if isinstance(value, hint):  # type: ignore[arg-type]
            return value
        return read(hint, _typed(value, Mapping, "a table"), where, problems)  # type: ignore[arg-type]
    if hint is Duration:
        return _duration(value)
    if hint is Path:
        return Path(_typed(value, str, "a path"))
    if hint is float:
        return float(_typed(value, int | float, "a number"))
    return _typed(value, hint, {str: "a string", int: "a whole number", bool: "true or false"}[hint])


def _member(union: tuple[Any, ...], value: Any) -> Any:
    """Which of these types is meant: a table where there is one, and else the first."""
    members = [member for member in union if member is not NoneType]
    tables = [member for member in members if isinstance(get_origin(member), type)]
    return tables[0] if tables and isinstance(value, Mapping) else members[0]


def _typed(value: Any, kind: Any, wanted: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise _Bad(wanted)
    return value


def _choice(allowed: tuple[Any, ...], value: Any) -> Any:
    if value not in allowed:
        raise _Bad("one of " + ", ".join(repr(each) for each in allowed) + _nearest(str(value), allowed))
    return value


def _duration(value: Any) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", value) if isinstance(value, str) else None
    if match is None:
        raise _Bad('a duration like "30s", "5m" or "1h"')
    microseconds = float(match[1]) * _UNITS[match[2]]
    if microseconds > _LONGEST:
        raise _Bad(f"at most {duration_text(_LONGEST)}")
    return round(microseconds)


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _nearest(key: str, known: Any) -> str:
    close = get_close_matches(key, [str(word) for word in known], n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _at(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key
