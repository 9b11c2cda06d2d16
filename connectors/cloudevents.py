"""CloudEvents 1.0: an event whose attributes stand in headers, as the one JSON object that the JSON format has for it.

What was posted in either mode is the same record then, and one mapping reads both.
"""

import base64
from collections.abc import Mapping
from typing import Any

import msgspec

SPECIFICATION = "specversion"
"""The attribute that every CloudEvent has, and nothing else."""


class _EventName(msgspec.Struct):
    """By which an event is known: of these three a sender makes no second one, but by sending it again."""

    id: str
    source: str
    type: str


_named = msgspec.json.Decoder(_EventName).decode


def structured(attributes: Mapping[str, str], kind: str, data: bytes) -> bytes:
    """An event in one line; `kind` is the media type of its data. Raises ValueError if these are not what it says."""
    event: dict[str, Any] = {**attributes}
    if kind:
        event["datacontenttype"] = kind
    if data and (not kind or is_json(kind)):
        event["data"] = msgspec.Raw(in_one_line(data))
    elif data and media_type(kind).startswith("text/"):
        event["data"] = data.decode()
    elif data:
        event["data_base64"] = base64.b64encode(data).decode()
    return msgspec.json.encode(event)


def name(event: bytes) -> bytes:
    """By which a structured event is known; raises ValueError if it has not the attributes that it has to have."""
    try:
        named = _named(event)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not a CloudEvent: {error}") from None
    return "\0".join((named.source, named.id, named.type)).encode()


def in_one_line(value: bytes) -> bytes:
    """One JSON value without line breaks between its parts; raises ValueError if it is none."""
    try:
        # A line break inside a text would be no JSON: those that are there stand between values.
        return msgspec.json.format(value, indent=-1)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


def is_json(kind: str) -> bool:
    """Whether a media type is JSON."""
    plain = media_type(kind)
    return plain in ("application/json", "text/json") or plain.endswith("+json")


def media_type(kind: str) -> str:
    """Without its parameters."""
    return kind.partition(";")[0].strip().lower()
