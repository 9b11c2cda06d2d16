"""A proposal for [source.event] from some records: what looks like scores, a time, an id, inputs and a label. Pure.

It looks at names and at values, and both have to fit. A person reads the proposal; nothing runs by it unread.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from monitor.events.joining import pairs
from monitor.events.likely_scores import sum_tolerance
from monitor.events.mapping import EventMapping, Written
from monitor.events.paths import FieldPath, MisreadError
from monitor.events.presets import JOINS, PRESETS
from monitor.tolerances import POSTERIOR_SUM

Seen = Mapping[str, Sequence[Any]]
"""By path: the value of every record that has one; those of a batch one by one."""

_DEEPEST = 6
_TIME = re.compile(r"time|date|(^|[._])(ts|at|when)$", re.IGNORECASE)
_ID = re.compile(r"(^|[._])(uu)?id$|[a-z_]Id$|(^|[._])key$", re.IGNORECASE)
_SCORE = re.compile(r"score|prob|likelihood|confidence|(^|[._])p$", re.IGNORECASE)
_ANSWER = re.compile(r"predict|y_?hat|estimate", re.IGNORECASE)
_LABEL = re.compile(r"label|truth|target|actual|outcome|(^|[._])y$", re.IGNORECASE)
_INPUTS = re.compile(r"feature|input|instance|request|data|(^|[._])(in|x)$", re.IGNORECASE)
_STREAM = re.compile(r"model|stream|service|endpoint", re.IGNORECASE)
_WRITTEN_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")
_NUMBERS = re.compile(r"[-+.\deE\s]+(,[-+.\deE\s]+)+")


def guess(records: Sequence[Any]) -> EventMapping:
    """Where the fields of events probably stand in these records; a mapping without scores where none were found."""
    preset = next((name for name in PRESETS if _all_there(name, records)), "")
    if preset:
        return EventMapping(preset=preset)
    seen = _seen(records)
    said: dict[str, Written] = dict(_answer(seen))
    used = {path for written in said.values() for path in ([written] if isinstance(written, str) else written.values())}

    def first(field: str, name: re.Pattern[str], fits: Callable[[Sequence[Any]], bool]) -> None:
        fitting = [path for path, values in seen.items() if path not in used and name.search(path) and fits(values)]
        if fitting:
            said[field] = best = min(fitting, key=lambda path: (path.count("."), len(path)))
            used.add(best)

    first("timestamp", _TIME, _are_times)
    first("id", _ID, _are_ids)
    first("label", _LABEL, lambda values: all(isinstance(value, str | int | float) for value in values))
    first("stream", _STREAM, lambda values: len(set(map(str, values))) <= 3 and all(type(v) is str for v in values))
    inputs = _inputs(seen, used)
    return EventMapping(**said, **({"features": inputs} if inputs else {}))  # type: ignore[arg-type]


def _all_there(preset: str, records: Sequence[Any]) -> bool:
    """Whether every path of a preset leads somewhere in every record, and that of the posteriors to such."""
    paths = {field: FieldPath.of(path) for field, path in PRESETS[preset].items()}
    shaped = pairs(records, JOINS[preset]) if preset in JOINS else records
    if not shaped or "posteriors" not in paths:
        return False
    try:
        there = {field: [path.look(record) for record in shaped] for field, path in paths.items()}
    except MisreadError:
        return False
    some = all(value not in (None, []) for values in there.values() for value in values)
    return some and all(map(_are_shares, there["posteriors"]))


def _seen(records: Sequence[Any]) -> Seen:
    seen: dict[str, list[Any]] = {}
    for record in records:
        for path, value in _inside(record, "", 0):
            seen.setdefault(path, []).append(value)
    return seen


def _inside(value: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Everything in a record, and where it stands."""
    if path:
        yield path, value
    if depth == _DEEPEST:
        return
    if type(value) is dict:
        for name, inner in value.items():
            escaped = re.sub(r"([.|\\])", r"\\\1", name)
            yield from _inside(inner, f"{path}.{escaped}" if path else escaped, depth + 1)
    elif type(value) is list and value and path and "*" not in path:
        for element in value:
            yield from _inside(element, f"{path}.*", depth + 1)
        if type(value[0]) is not list:
            for index, element in enumerate(value[:2]):
                yield from _inside(element, f"{path}.{index}", depth + 1)
    elif type(value) is str and value[:1] in ("{", "["):
        try:
            yield from _inside(msgspec.json.decode(value), f"{path}|json", depth + 1)
        except msgspec.DecodeError:
            return
    elif type(value) is str and all(_NUMBERS.fullmatch(line) for line in value.splitlines() or [""]):
        for row in value.splitlines():
            yield f"{path}|csv.*", [float(number) for number in row.split(",")]


def _answer(seen: Seen) -> Iterator[tuple[str, Written]]:
    """Posteriors if there are any, else a score, else a prediction."""
    for path, values in seen.items():
        shape = seen.get(re.sub(r"\w+$", "shape", path))
        if shape and all(type(each) is list and len(each) == 2 for each in shape) and _are_rows(values, shape):
            yield "posteriors", f"{path}|rows.*"
            return
    for path, values in seen.items():
        if all(map(_is_mix, values)):
            yield "posteriors", path
            return
    spread = _spread(seen)
    if spread:
        yield "posteriors", spread
        return
    for field, name, fits in (("score", _SCORE, _is_share), ("prediction", _ANSWER, _is_number)):
        for path, values in seen.items():
            if name.search(path.rpartition(".")[2].replace("*", path)) and all(map(fits, values)):
                yield field, path
                return


def _spread(seen: Seen) -> dict[str, str]:
    """Fields side by side, a class each: p_legit and p_fraud."""
    families: dict[str, dict[str, str]] = {}
    for path, values in seen.items():
        parent, dot, name = path.rpartition(".")
        match = re.fullmatch(r"(p|prob|proba|probability|score)_(\w+)|(\w+)_(p|prob|proba|probability|score)", name)
        if match and all(map(_is_share, values)):
            family = f"{parent}{dot}{match[1] or match[4]}"
            families.setdefault(family, {})[match[2] or match[3]] = path
    for paths in families.values():
        columns = [seen[path] for path in paths.values()]
        if (
            len(paths) > 1
            and len(set(map(len, columns))) == 1
            and all(map(_is_mix, map(list, zip(*columns, strict=True))))
        ):
            return paths
    return {}


def _inputs(seen: Seen, used: set[str]) -> Written:
    """An object or a list of values that nothing else was taken from, or the fields that are left."""
    scalars = (str, int, float, bool, type(None))

    def flat(value: Any) -> bool:
        inside = value.values() if type(value) is dict else value if type(value) is list else ()
        return bool(inside) and all(isinstance(each, scalars) for each in inside)

    def apart(path: str) -> bool:
        return not any(other == path or other.startswith(f"{path}.") for other in used)

    inputs = [path for path, values in seen.items() if apart(path) and _INPUTS.search(path) and all(map(flat, values))]
    if inputs:
        return min(inputs, key=lambda path: (path.count("."), len(path)))
    if any("*" in path for path in used):
        return ""
    left = [path for path, values in seen.items() if "." not in path and apart(path) and "|" not in path]
    return {path: path for path in left if all(isinstance(value, scalars) for value in seen[path])}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_mix(value: Any) -> bool:
    """Whether these are the posteriors of one event."""
    numbers = list(value.values()) if type(value) is dict else value if type(value) is list else []
    return len(numbers) > 1 and all(map(_is_share, numbers)) and abs(sum(numbers) - 1) <= sum_tolerance(len(numbers))


def _are_shares(value: Any) -> bool:
    """Whether these are the posteriors of some events, however they are put into rows, and no numbers of classes."""
    try:
        shares = list(_numbers(value))
    except (TypeError, ValueError, OverflowError):
        return False
    events = round(sum(shares))
    fractions = all(map(_is_share, shares)) and not all(share in (0, 1) for share in shares)
    return fractions and abs(sum(shares) - events) <= POSTERIOR_SUM * events


def _numbers(value: Any) -> Iterator[float]:
    """All that are inside; raises ValueError or TypeError where something else is."""
    if isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _numbers(each)
    else:
        yield float(value)


def _are_rows(values: Sequence[Any], shapes: Sequence[Any]) -> bool:
    for value, (rows, width) in zip(values, shapes, strict=False):
        if type(value) is not list or len(value) != rows * width or width < 2:
            return False
        if not all(_is_mix(value[first : first + width]) for first in range(0, len(value), width)):
            return False
    return True


def _are_times(values: Sequence[Any]) -> bool:
    return all((type(v) is str and _WRITTEN_TIME.match(v)) or (_is_number(v) and v > 946_684_800) for v in values)


def _are_ids(values: Sequence[Any]) -> bool:
    return all(isinstance(v, str | int) and not isinstance(v, bool) for v in values) and len(set(values)) == len(values)
