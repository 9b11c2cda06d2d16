"""What is read of one stream's events: which fields, where they stand, what may stand there, and how they are taken
from the generated type that msgspec decodes a record into.

The types are generated from the stream's schema, so that decoding checks names, lengths and types in C.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import msgspec

from monitor.events.generated import (
    FEATURE_TYPES,
    SEGMENT_VALUE,
    features_type,
    generated,
    posteriors_type,
    segment_type,
)
from monitor.events.mapping import OWN_SHAPE, EventMapping, Located
from monitor.events.paths import FieldPath
from monitor.events.reasons import Reason
from monitor.ports.schema import StreamSchema


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an event, or one part of it: where it stands, what may stand there, and the reason if anything
    else does."""

    name: str
    path: FieldPath
    accepts: Any
    reason: Reason
    part: str | None = None
    """The class, feature or segment field, where each has a path of its own."""


Reader = Callable[[Sequence[Any]], Sequence[Any]]
"""One field of each of some events; None where an event has none."""


@dataclass(frozen=True, slots=True)
class Wire:
    """The generated type of a stream's events, and how their fields are read from it."""

    schema: StreamSchema
    segment_fields: tuple[str, ...]
    identified: bool
    """Whether ids are kept."""
    event: type[msgspec.Struct]
    fields: tuple[Field, ...]
    readers: Mapping[str, Reader]
    """By name, of the fields that are asked for. Parts come as tuples in the schema's order."""


def wire(
    schema: StreamSchema,
    segment_fields: Sequence[str] = (),
    identified: bool = False,
    mapping: EventMapping = OWN_SHAPE,
    streams: tuple[str, ...] = (),
) -> Wire:
    """The types for one stream, or for several of this schema. What nobody asked for (ids, other segment fields) is
    skipped unread."""
    fields = tuple(asked(schema, segment_fields, identified, mapping))
    leaves = {_attribute(field, number): (field.path, field.accepts) for number, field in enumerate(fields)}
    event, reached = generated(leaves, streams or (schema.stream,), stream_key(mapping))
    ends = dict(zip(fields, reached.values(), strict=True))
    readers: dict[str, Reader] = {}
    for name, parts in groupby(fields, key=lambda field: field.name):
        at = {field.part: ends[field] for field in parts}
        wanted = _parts(name, schema, segment_fields)
        readers[name] = _reader(at[None]) if None in at else _side_by_side([at.get(part) for part in wanted])
    return Wire(schema, tuple(segment_fields), identified, event, fields, readers)


def asked(
    schema: StreamSchema, segment_fields: Sequence[str], identified: bool, mapping: EventMapping
) -> Iterator[Field]:
    """Every field, or part of one, that a stream's events are read for; the parts of a field together."""
    located = mapping.located_of(margins=schema.margins).get
    number = float | None
    if identified:
        yield from _field("id", located("id"), str | int | None, Reason.BAD_ID)
    yield from _field("timestamp", located("timestamp"), str | float | None, Reason.BAD_TIMESTAMP)
    if schema.classes:
        whole, each = posteriors_type(schema.classes), dict.fromkeys(schema.classes, number)
        yield from _field("posteriors", located("posteriors"), whole, Reason.BAD_POSTERIORS, each)
        if schema.positive is not None:
            yield from _field("score", located("score"), number, Reason.BAD_POSTERIORS)
    else:
        yield from _field("prediction", located("prediction"), number, Reason.BAD_PREDICTION)
    if schema.features:
        kinds = {feature.name: FEATURE_TYPES[feature.kind] for feature in schema.features}
        yield from _field("features", located("features"), features_type(schema.features), Reason.BAD_FEATURES, kinds)
    labels = str | int | float | bool if schema.classes else float
    yield from _field("label", located("label"), labels | None, Reason.BAD_LABEL)
    if segment_fields:
        values = dict.fromkeys(segment_fields, SEGMENT_VALUE)
        yield from _field("segment", located("segment"), segment_type(segment_fields), Reason.BAD_SEGMENT, values)


def _field(
    name: str, located: Located | None, whole: Any, reason: Reason, parts: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[Field]:
    if isinstance(located, FieldPath):
        yield Field(name, located, whole, reason)
    elif located is not None:
        for part, accepts in parts.items():
            if part in located:
                yield Field(name, located[part], accepts, reason, part)


def _parts(name: str, schema: StreamSchema, segment_fields: Sequence[str]) -> Sequence[str]:
    features = [feature.name for feature in schema.features]
    return {"posteriors": schema.classes, "features": features, "segment": segment_fields}.get(name, ())


def stream_key(mapping: EventMapping) -> str | None:
    """The member that names a record's stream, if any."""
    stream = mapping.located.get("stream")
    return stream.steps[0] if isinstance(stream, FieldPath) and isinstance(stream.steps[0], str) else None


def _attribute(field: Field, number: int) -> str:
    return field.name if field.part is None else f"part{number}"


# Several times faster than any function that is told the attribute's name.
_WHOLE: Mapping[str, Reader] = {
    "id": lambda events: [event.id for event in events],
    "timestamp": lambda events: [event.timestamp for event in events],
    "posteriors": lambda events: [event.posteriors for event in events],
    "score": lambda events: [event.score for event in events],
    "prediction": lambda events: [event.prediction for event in events],
    "features": lambda events: [event.features for event in events],
    "label": lambda events: [event.label for event in events],
    "segment": lambda events: [event.segment for event in events],
}


def _reader(reached: str) -> Reader:
    """Of objects inside objects, any of which may be missing."""
    if reached in _WHOLE:
        return _WHOLE[reached]
    get, names = attrgetter(reached), reached.split(".")

    def read(events: Sequence[Any]) -> Sequence[Any]:
        try:
            return list(map(get, events))
        except AttributeError:
            return [_through(event, names) for event in events]

    return read


def _through(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        if value is None:
            return None
        value = getattr(value, name)
    return value


def _side_by_side(reached: Sequence[str | None]) -> Reader:
    """Each part has its own place; None where it has not."""
    readers = [None if each is None else _reader(each) for each in reached]

    def read(events: Sequence[Any]) -> Sequence[Any]:
        absent = (None,) * len(events)
        return list(zip(*(absent if reader is None else reader(events) for reader in readers), strict=True))

    return read
