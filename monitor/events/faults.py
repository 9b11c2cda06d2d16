"""What is wrong with a record that does not fit: it is looked at again field by field, as only then its reason needs to
be known."""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from itertools import islice
from typing import Any

import msgspec

from monitor.events.mapping import OWN_SHAPE, EventMapping
from monitor.events.paths import FieldPath
from monitor.events.reasons import Fault, Reason
from monitor.events.wire import Field, Wire, stream_key
from monitor.ports.schema import StreamSchema

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Everything that msgspec raises on bytes that it cannot take."""

_as_anything = msgspec.json.Decoder(msgspec.Raw)
_as_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_as_list = msgspec.json.Decoder(list[msgspec.Raw])
_as_text = msgspec.json.Decoder(str)
_NOT_NUMBERS = re.compile(rb"-?\b(?:NaN|Infinity)\b")


def find_fault(record: bytes, wires: Mapping[str, Wire], mapping: EventMapping = OWN_SHAPE) -> Fault:
    """The one named reason why this record, a single event, does not decode as any of the streams."""
    try:
        _as_anything.decode(record)
        given = _as_fields.decode(record)
    except UNREADABLE as error:
        return unreadable(record, error)
    stream, fault = _stream_of(given, wires, stream_key(mapping))
    if fault is not None:
        return fault
    for field in wires[stream].fields:
        try:
            value = _standing(given, field.path)
            if value is not None:
                msgspec.json.decode(value, type=field.accepts)
        except UNREADABLE as error:
            return misfit(field, None if value is None else _anything(value), str(error), wires[stream].schema)
    return Fault(Reason.AMBIGUOUS, "a field is given twice", stream)


def unreadable(record: bytes, error: Exception) -> Fault:
    """What is wrong with a record that is no JSON object."""
    if isinstance(error, msgspec.ValidationError):
        return Fault(Reason.NOT_AN_EVENT, str(error))
    if isinstance(error, RecursionError):
        return Fault(Reason.TOO_DEEP, "nested too deeply")
    reason, hint = _likely_form(record)
    return Fault(reason, f"{error}{hint}")


def misfit(field: Field, value: Any, error: str, schema: StreamSchema) -> Fault:
    """What is wrong with a value that is not what its field may hold."""
    hint = _kind_hint(schema, field, value) if field.reason is Reason.BAD_FEATURES else ""
    own = field.path.written in (field.name, "scores")
    return Fault(
        _closer_reason(field, value, error), hint or (error if own else f"{field.path.written}: {error}"), schema.stream
    )


def _standing(given: Mapping[str, msgspec.Raw], path: FieldPath) -> msgspec.Raw | None:
    """The value at a path without turns, if there is one."""
    value = given.get(str(path.steps[0]))
    for step in path.steps[1:]:
        if value is None or bytes(value).strip() == b"null":
            return None
        if isinstance(step, str):
            value = _as_fields.decode(value).get(step)
        elif isinstance(step, int):
            value = next(islice(_as_list.decode(value), step, None), None)
    return value


def _anything(value: msgspec.Raw) -> Any:
    """What a value is, where it is something."""
    try:
        return msgspec.json.decode(value)
    except UNREADABLE:
        return None


def _likely_form(record: bytes) -> tuple[Reason, str]:
    """What was written in place of JSON, one event a line."""
    if _only_not_finite(record):
        return Reason.NOT_FINITE, "; JSON has no NaN: write null for a missing value"
    if record.startswith(BOM_UTF8):
        return Reason.NOT_JSON, "; it begins with a byte order mark: write UTF-8 without one"
    return Reason.NOT_JSON, "; want a whole event in each line" if record.rstrip()[-1:] in (b"{", b"[", b",") else ""


def _stream_of(
    given: Mapping[str, msgspec.Raw], wires: Mapping[str, Wire], key: str | None
) -> tuple[str, Fault | None]:
    if key is None or key not in given:
        if len(wires) == 1:
            return next(iter(wires)), None
        return "", Fault(Reason.UNKNOWN_STREAM, "no stream, and several are configured")
    try:
        stream = _as_text.decode(given[key])
    except UNREADABLE as error:
        return "", Fault(Reason.UNKNOWN_STREAM, str(error))
    if stream not in wires:
        return "", Fault(Reason.UNKNOWN_STREAM, f"no stream is named {stream!r}")
    return stream, None


def _kind_hint(schema: StreamSchema, field: Field, sent: Any) -> str:
    """Which feature is text where the reference has numbers, if that is what is wrong."""
    names = [feature.name for feature in schema.features]
    if field.part is not None:
        values = {field.part: sent}
    else:
        values = (
            sent if isinstance(sent, dict) else dict(zip(names, sent if isinstance(sent, list) else [], strict=False))
        )
    for feature in schema.features:
        value = values.get(feature.name)
        if feature.kind == "number" and isinstance(value, bool):
            return f"{feature.name}: true or false where the reference has numbers; send 1 or 0"
        if feature.kind != "category" and isinstance(value, str):
            return (
                f"{feature.name}: text where the reference has {feature.kind}s; "
                "is it a category? (reference build --category)"
            )
    return ""


def _closer_reason(field: Field, value: Any, error: str) -> Reason:
    """Posteriors fail in three ways that a scoring service would mend differently."""
    if "out of range" in error:
        return Reason.NOT_FINITE
    if field.name != "posteriors" or field.part is not None:
        return field.reason
    try:
        msgspec.convert(value, list[float] | dict[str, float])
    except msgspec.ValidationError:
        return field.reason
    return Reason.WRONG_CLASSES


def _only_not_finite(record: bytes) -> bool:
    """Whether the record would be JSON if it were not for NaN and Infinity, which Python and R like to write."""
    mended, replaced = _NOT_NUMBERS.subn(b"0", record)
    if not replaced:
        return False
    try:
        _as_fields.decode(mended)
    except UNREADABLE:
        return False
    return True
