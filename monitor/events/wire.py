"""What the JSON of one stream's events looks like, as types that msgspec decodes into; and what is wrong with a
record that does not fit.

The types are generated from the stream's schema, so that decoding checks names, lengths and types in C. A record
that does not fit is looked at again field by field: only then does its reason need to be known.
"""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import GenericAlias
from typing import Any, Literal

import msgspec

from monitor.ports.schema import Feature, StreamSchema

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Everything that msgspec raises on bytes that it cannot take."""


class Reason(StrEnum):
    """Why a record, or one event of a record, was rejected: one each."""

    EMPTY = "empty"  # a null value, a blank record, or an array without events
    TOO_LARGE = "too-large"  # more bytes, or more events in one array, than allowed
    NOT_JSON = "not-json"
    NOT_FINITE = "not-finite"  # NaN, infinite, or a number beyond any float
    TOO_DEEP = "too-deep"
    NOT_AN_EVENT = "not-an-event"  # JSON, but neither an object nor an array of objects
    UNKNOWN_STREAM = "unknown-stream"
    MISSING_POSTERIORS = "missing-posteriors"
    BAD_POSTERIORS = "bad-posteriors"  # not numbers
    WRONG_CLASSES = "wrong-classes"  # other names, or another number of them
    NEGATIVE = "negative"
    POSTERIOR_SUM = "posterior-sum"
    MISSING_PREDICTION = "missing-prediction"
    BAD_PREDICTION = "bad-prediction"
    MISSING_TIMESTAMP = "missing-timestamp"  # neither in the event nor with the record
    BAD_TIMESTAMP = "bad-timestamp"
    FUTURE_TIMESTAMP = "future-timestamp"
    BAD_LABEL = "bad-label"
    BAD_FEATURES = "bad-features"
    BAD_ID = "bad-id"
    BAD_SEGMENT = "bad-segment"
    AMBIGUOUS = "ambiguous"  # a field given twice, of which one does not fit
    LATE = "late"  # a good event, older than its partition's newest by more than the allowed lateness
    LATE_AFTER_IDLE = "late-after-idle"  # a good event whose window closed while its partition was idle


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an event: how it is named, what it may hold, and the reason when it holds anything else."""

    name: str
    accepts: Any
    reason: Reason


@dataclass(frozen=True, slots=True)
class Wire:
    """The generated types of one stream."""

    schema: StreamSchema
    event: type[msgspec.Struct]
    fields: tuple[Field, ...]
    """Those of `event`, each decodable alone."""


def wire(schema: StreamSchema, segment_fields: Sequence[str] = (), identified: bool = False) -> Wire:
    """The types for one stream. What nobody asked for (ids, other segment fields) is skipped unread."""
    fields = [Field("timestamp", str | float | None, Reason.BAD_TIMESTAMP)]
    if identified:
        fields.insert(0, Field("id", str | int | None, Reason.BAD_ID))
    if schema.classes:
        name = "scores" if schema.margins else "posteriors"
        fields.append(Field(name, _posteriors(schema.classes), Reason.BAD_POSTERIORS))
        if schema.positive is not None:
            fields.append(Field("score", float | None, Reason.BAD_POSTERIORS))
    else:
        fields.append(Field("prediction", float | None, Reason.BAD_PREDICTION))
    if schema.features:
        fields.append(Field("features", _features(schema.features), Reason.BAD_FEATURES))
    fields.append(Field("label", (str | int | bool if schema.classes else float) | None, Reason.BAD_LABEL))
    if segment_fields:
        fields.append(Field("segment", _segment(segment_fields), Reason.BAD_SEGMENT))
    event = msgspec.defstruct(
        "Event",
        [("posteriors" if field.name == "scores" else field.name, field.accepts, None) for field in fields],
        tag_field="stream",
        tag=schema.stream,
        rename={"posteriors": "scores"} if schema.margins else None,
        gc=False,
    )
    return Wire(schema, event, tuple(fields))


def _posteriors(classes: Sequence[str]) -> Any:
    """A list in class order, or an object with exactly the classes' names."""
    keyed = keyed_struct("Posteriors", classes, [float] * len(classes), forbid_unknown_fields=True)
    return GenericAlias(tuple, (float,) * len(classes)) | keyed | None


def _features(features: Sequence[Feature]) -> Any:
    """A list in feature order, or an object in which features may be missing and strangers are ignored."""
    kinds: dict[str, Any] = {
        "number": float | None,
        "boolean": bool | Literal[0, 1] | None,
        "category": str | bool | int | float | None,
    }
    types = [kinds[feature.kind] for feature in features]
    keyed = keyed_struct("Features", [feature.name for feature in features], types, default=None)
    return GenericAlias(tuple, tuple(types)) | keyed | None


def _segment(names: Sequence[str]) -> Any:
    types = [str | bool | int | float | None] * len(names)
    return keyed_struct("Segment", names, types, default=None) | None


def keyed_struct(
    kind: str,
    names: Sequence[str],
    types: Sequence[Any],
    *,
    default: Any = msgspec.NODEFAULT,
    forbid_unknown_fields: bool = False,
) -> type[msgspec.Struct]:
    """A struct for an object with these keys, whatever characters they are made of."""
    attributes = [f"x{number}" for number in range(len(names))]
    return msgspec.defstruct(
        kind,
        [(attribute, accepted, default) for attribute, accepted in zip(attributes, types, strict=True)],
        rename=dict(zip(attributes, names, strict=True)),
        forbid_unknown_fields=forbid_unknown_fields,
        gc=False,
    )


_as_anything = msgspec.json.Decoder(msgspec.Raw)
_as_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_as_text = msgspec.json.Decoder(str)
_as_posteriors = msgspec.json.Decoder(list[float] | dict[str, float])
_NOT_NUMBERS = re.compile(rb"-?\b(?:NaN|Infinity)\b")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong. The detail may quote the record: it goes where the record goes, never into a log."""

    reason: Reason
    detail: str
    stream: str = ""
    """Empty where it is not known."""


def find_fault(record: bytes, wires: Mapping[str, Wire]) -> Fault:
    """The one named reason why this record, a single event, does not decode as any of the streams."""
    try:
        _as_anything.decode(record)
        given = _as_fields.decode(record)
    except msgspec.ValidationError as error:
        return Fault(Reason.NOT_AN_EVENT, str(error))
    except RecursionError:
        return Fault(Reason.TOO_DEEP, "nested too deeply")
    except UNREADABLE as error:
        reason, hint = _likely_form(record)
        return Fault(reason, f"{error}{hint}")
    stream, fault = _stream_of(given, wires)
    if fault is not None:
        return fault
    for field in wires[stream].fields:
        if field.name in given:
            try:
                msgspec.json.decode(given[field.name], type=field.accepts)
            except UNREADABLE as error:
                detail = _kind_hint(wires[stream].schema, given) if field.reason is Reason.BAD_FEATURES else ""
                return Fault(_closer_reason(field, given[field.name], str(error)), detail or str(error), stream)
    return Fault(Reason.AMBIGUOUS, "a field is given twice", stream)


def _likely_form(record: bytes) -> tuple[Reason, str]:
    """What was written in place of JSON, one event a line."""
    if _only_not_finite(record):
        return Reason.NOT_FINITE, "; JSON has no NaN: write null for a missing value"
    if record.startswith(BOM_UTF8):
        return Reason.NOT_JSON, "; it begins with a byte order mark: write UTF-8 without one"
    return Reason.NOT_JSON, "; want a whole event in each line" if record.rstrip()[-1:] in (b"{", b"[", b",") else ""


def _stream_of(given: Mapping[str, msgspec.Raw], wires: Mapping[str, Wire]) -> tuple[str, Fault | None]:
    if "stream" not in given:
        if len(wires) == 1:
            return next(iter(wires)), None
        return "", Fault(Reason.UNKNOWN_STREAM, "no stream, and several are configured")
    try:
        stream = _as_text.decode(given["stream"])
    except UNREADABLE as error:
        return "", Fault(Reason.UNKNOWN_STREAM, str(error))
    if stream not in wires:
        return "", Fault(Reason.UNKNOWN_STREAM, f"no stream is named {stream!r}")
    return stream, None


def _kind_hint(schema: StreamSchema, given: Mapping[str, msgspec.Raw]) -> str:
    """Which feature is text where the reference has numbers, if that is what is wrong."""
    try:
        sent = msgspec.json.decode(given["features"])
    except UNREADABLE:
        return ""
    in_order = sent if isinstance(sent, list) else []
    values = sent if isinstance(sent, dict) else dict(zip([f.name for f in schema.features], in_order, strict=False))
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


def _closer_reason(field: Field, value: msgspec.Raw, error: str) -> Reason:
    """Posteriors fail in three ways that a scoring service would mend differently."""
    if "out of range" in error:
        return Reason.NOT_FINITE
    if field.name not in ("posteriors", "scores"):
        return field.reason
    try:
        _as_posteriors.decode(value)
    except UNREADABLE as again:
        return Reason.NOT_FINITE if "out of range" in str(again) else field.reason
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
