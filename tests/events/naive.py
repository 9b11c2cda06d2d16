"""A slow, obviously right twin of the decoder for one stream of numbers: one event at a time, in plain Python."""

import json
import math
from typing import Any

from tests.events.test_timestamps import slowly

BAD = object()


def decode(record: bytes, classes: tuple[str, ...], features: tuple[str, ...], horizon: int) -> Any:
    """(posteriors, features, time, label) of a scored event; `BAD` for everything that is none."""
    try:
        event = json.loads(record.decode(), parse_constant=_refused)
    except (ValueError, RecursionError):
        return BAD
    if not isinstance(event, dict) or event.get("stream", "shop") != "shop":
        return BAD
    posteriors = _vector(event.get("posteriors"), classes, required=True)
    values = _vector(event.get("features"), features, required=False)
    time = _time(event.get("timestamp"))
    label = event.get("label")
    if posteriors is BAD or values is BAD or time is BAD or time > horizon:
        return BAD
    if label is not None and (not isinstance(label, str) or label not in classes):
        return BAD
    total = math.fsum(posteriors)
    if min(posteriors) < 0 or not abs(total - 1) <= 1e-3 + 1e-9:
        return BAD
    return [value / total for value in posteriors], values, time, -1 if label is None else classes.index(label)


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _vector(given: Any, names: tuple[str, ...], required: bool) -> Any:
    if given is None and not required:
        given = {}
    if isinstance(given, dict):
        if required and set(given) != set(names):
            return BAD
        given = [given.get(name) for name in names]
    if not isinstance(given, list) or len(given) != len(names):
        return BAD
    values = [math.nan if value is None and not required else value for value in given]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        return BAD
    try:
        numbers = [float(value) for value in values]
    except OverflowError:
        return BAD
    return BAD if any(map(math.isinf, numbers)) else numbers


def _time(given: Any) -> Any:
    if isinstance(given, str):
        time = slowly(given)
        return BAD if time < -(2**61) else time
    if isinstance(given, bool) or not isinstance(given, int | float):
        return BAD
    if not 946_684_800_000 <= given <= 253_402_300_799_999:  # since 2000
        return BAD
    whole = math.floor(given)
    return whole * 1000 + round((given - whole) * 1000)
