"""Records that hold several events, or events inside texts: taken apart value by value, into events of our own shape.

Slower than decoding straight into columns, and as careful: whatever a record holds, the answer is events or named
faults.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from monitor.events.faults import UNREADABLE, misfit, unreadable
from monitor.events.mapping import EventMapping
from monitor.events.paths import FieldPath, MisreadError, Special
from monitor.events.reasons import Fault, Reason
from monitor.events.wire import Field, Wire, asked

_decode = msgspec.json.Decoder().decode

Unfolded = tuple[list[Any] | None, list[Fault]]
"""The events of a record, None in place of bad ones (or of all), and the faults of these."""


class Unfolder:
    """Makes events of these types of records in the shape that a mapping describes."""

    def __init__(self, wires: Mapping[str, Wire], mapping: EventMapping) -> None:
        self._streams = {name: _MappedStream(wire, mapping) for name, wire in wires.items()}
        stream = mapping.located.get("stream")
        self._stream = stream if isinstance(stream, FieldPath) else None

    def events(self, record: bytes) -> Unfolded:
        """What one record holds: an object, or a list of them."""
        try:
            given = _decode(record)
        except UNREADABLE as error:
            return None, [unreadable(record, error)]
        if type(given) is not list:
            return self._of_object(given)
        events: list[Any] = []
        faults: list[Fault] = []
        for each in given:
            some, wrong = self._of_object(each)
            events += [None] if some is None else some
            faults += wrong
        return events, faults

    def _of_object(self, given: Any) -> Unfolded:
        if type(given) is not dict:
            return None, [Fault(Reason.NOT_AN_EVENT, f"want an object, got {type(given).__name__}")]
        name = next(iter(self._streams)) if len(self._streams) == 1 else None
        try:
            said = None if self._stream is None else self._stream.look(given)
        except MisreadError as error:
            return None, [Fault(Reason.UNKNOWN_STREAM, str(error))]
        name = name if said is None else said
        if name is None:
            return None, [Fault(Reason.UNKNOWN_STREAM, "no stream, and several are configured")]
        if type(name) is not str or name not in self._streams:
            return None, [Fault(Reason.UNKNOWN_STREAM, f"no stream is named {name!r}")]
        return self._streams[name].events(given)


class _MappedStream:
    def __init__(self, wire: Wire, mapping: EventMapping) -> None:
        self._wire = wire
        self._asked = tuple(asked(wire.schema, wire.segment_fields, wire.identified, mapping))
        names = mapping.located.get("feature_names")
        self._names = names if isinstance(names, FieldPath) else None
        self._widths = {"posteriors": len(wire.schema.classes), "features": len(wire.schema.features)}

    def events(self, given: Any) -> Unfolded:
        stream = self._wire.schema.stream
        columns: list[tuple[Field, Any]] = []
        for field in self._asked:
            try:
                columns.append((field, field.path.look(given, self._widths.get(field.name, 1))))
            except MisreadError as error:
                return None, [Fault(field.reason, str(error), stream)]
        try:
            names = None if self._names is None else self._names.look(given)
        except MisreadError as error:
            return None, [Fault(Reason.BAD_FEATURES, str(error), stream)]
        lists = [(field, column) for field, column in columns if field.path.each and column is not None]
        count = len(lists[0][1]) if lists else 1
        for field, column in lists:
            if len(column) != count:
                first = lists[0][0].path.written
                detail = f"{field.path.written}: {len(column)} values beside {count} of {first}"
                return None, [Fault(field.reason, detail, stream)]
        events: list[Any] = []
        faults: list[Fault] = []
        for turn in range(count):
            event, fault = self._event(columns, names, turn, count)
            events.append(event)
            faults += [] if fault is None else [fault]
        return events, faults

    def _event(
        self, columns: Sequence[tuple[Field, Any]], names: Any, turn: int, count: int
    ) -> tuple[Any, Fault | None]:
        said: dict[str, tuple[Field, Any]] = {}
        for field, column in columns:
            value = column[turn] if field.path.each and column is not None else column
            if field.part is not None:
                parts = said[field.name][1] if field.name in said else {}
                value = parts | ({} if value is None else {field.part: value})
            said[field.name] = (field, value)
        values = []
        for own in self._wire.fields:
            field, value = said.get(own.name, (own, None))
            value = _own(field, value, names, turn if count > 1 else None)
            try:
                values.append(msgspec.convert(value, own.accepts, strict=Special.CSV not in field.path.steps))
            except msgspec.ValidationError as error:
                return None, misfit(field, value, str(error), self._wire.schema)
        return self._wire.event(*values), None


def _own(field: Field, value: Any, names: Any, turn: int | None) -> Any:
    """A value as it is written in our own shape."""
    if field.part is not None:
        return value or None
    if Special.CSV in field.path.steps and type(value) is list:
        value = [None if text == "" else text for text in value]  # what a file of text says of a missing value
    if field.name == "features" and type(names) is list and type(value) is list:
        return dict(zip(map(str, names), value, strict=False))
    if field.name == "id" and turn is not None and not field.path.each and value is not None:
        return f"{value}/{turn}"
    return value
