"""What the address of a page asks for, and the address that asks for it.

All that a person chooses stands in it, so that it can be sent to somebody else. Times are in UTC where they do not say
otherwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException

from monitor.web.paths import in_path

LASTING = {"6h": 6, "1d": 24, "7d": 168, "30d": 720, "1y": 8_760}
"""Hours of the ranges that can be chosen by name, until the newest window."""
ALL = "all"
HOUR = 3_600_000_000
SHOWN = ("all", "moved", "not watched", "calm")
SORTED = ("worst first", "name", "newest")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Choice:
    """What of all that is known is to be seen; as it stands here, all of it."""

    stream: str = ""
    window: int | None = None
    """The end of one; microseconds, as all times."""
    segment: str = ""
    since: int | None = None
    until: int | None = None
    last: str = ""
    """One of `LASTING`, or `ALL`; empty for the usual."""
    named: str = ""
    """A class."""
    show: str = "all"
    sort: str = "worst first"
    search: str = ""

    def link(self, **changes: Any) -> str:
        """The address of what is chosen, but for some changes."""
        chosen = replace(self, **changes)
        path = f"/streams/{in_path(chosen.stream)}" if chosen.stream else "/"
        if chosen.window is not None:
            path += f"/windows/{written(chosen.window)}"
        values = {name: getattr(chosen, field) for name, (field, _) in _PARAMETERS.items()}
        said = {
            name: written(value) if isinstance(value, int) else value
            for name, value in values.items()
            if value != _USUAL[_PARAMETERS[name][0]]
        }
        return f"{path}?{urlencode(said)}" if said else path


def chosen(stream: str, window: str, parameters: Mapping[str, str]) -> Choice:
    """The choice that an address makes; HTTPException where it makes none."""
    said = {field: read(parameters[name]) for name, (field, read) in _PARAMETERS.items() if name in parameters}
    return Choice(stream=stream, window=_moment(window) if window else None, **said)


def written(moment: int) -> str:
    """A time as addresses have it."""
    return (_EPOCH + moment * _MICROSECOND).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise HTTPException(400, f"want a time such as 2026-11-18T09:00:00Z, got {text[:50]!r}") from None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _one_of(known: tuple[str, ...]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in known:
            raise HTTPException(400, f"want one of {', '.join(known)}, got {text[:50]!r}")
        return text

    return read


_PARAMETERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "segment": ("segment", str),
    "from": ("since", _moment),
    "to": ("until", _moment),
    "last": ("last", _one_of((*LASTING, ALL))),
    "class": ("named", str),
    "show": ("show", _one_of(SHOWN)),
    "sort": ("sort", _one_of(SORTED)),
    "search": ("search", str),
}
"""By their names in addresses: the field, and how it is read."""
_USUAL = {field.name: field.default for field in fields(Choice)}
EVERYTHING = Choice()
