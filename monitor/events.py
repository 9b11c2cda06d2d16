"""Everything that turns raw records into columns of events, or into rejections with a named reason.

A record is a JSON object, one event, or an array of them. Nothing is done per event in Python that can be done per
batch: records are decoded into generated types (`wire`), then checked as columns (`scored`). One bad record, or one
bad event of an array, never costs a good one; whatever the bytes, the answer is a value and never an exception.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from types import NoneType
from typing import Any

import msgspec
import numpy as np

from connectors.protocols import RawBatch
from monitor.arrays import Labels
from monitor.errors import InputError
from monitor.schema import StreamSchema
from monitor.scored import Columns, LateLabels, Part, Scored
from monitor.tolerances import AHEAD, RECORD_BYTES, RECORD_EVENTS
from monitor.wire import UNREADABLE, Fault, Reason, find_fault, wire

__all__ = ["DecodedBatch", "Decoder", "LateLabels", "Limits", "Reason", "Rejected", "Scored"]

_DETAIL = 200  # characters: an explanation, not a copy of the record

_as_array = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Limits:
    """What is refused whatever it holds."""

    record_bytes: int = RECORD_BYTES
    record_events: int = RECORD_EVENTS
    ahead: int = AHEAD
    """Microseconds that an event's time may lie ahead of now."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """One record, or one event of an array, that is not an event."""

    index: int
    """Which record of the batch."""
    reason: Reason
    detail: str
    """For the dead letter. It may quote the record, so it goes into no log."""
    raw: bytes | None
    """The original bytes: the record's, or only the bad event's when the record is an array."""
    stream: str = ""
    """Empty where it is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class DecodedBatch:
    """What one raw batch held, in the order of its records. Streams without events in it are absent."""

    scored: Mapping[str, Scored] = field(default_factory=dict)
    late_labels: Mapping[str, LateLabels] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Parsed:
    """Events of any stream, and where each stands."""

    events: Sequence[Any]
    kinds: Collection[Any]
    """The generated types among them."""
    index: Labels
    position: Labels | None = None
    """The place inside its record's array; None when no record is an array."""


class Decoder:
    """Decodes batches of records for a fixed set of streams. It holds no state between batches."""

    def __init__(
        self,
        schemas: Sequence[StreamSchema],
        *,
        segments: Mapping[str, Sequence[str]] | None = None,
        identified: Collection[str] = (),
        limits: Limits = Limits(),
    ) -> None:
        """`segments` names, by stream, the fields that tell segments apart; `identified` streams keep event ids."""
        names = [schema.stream for schema in schemas]
        if not names or len(set(names)) != len(names):
            raise InputError(f"schemas: want one for each of one or more streams, got {names}")
        self.limits = limits
        self._wires = {}
        self._columns = {}
        for schema in schemas:
            name, fields = schema.stream, tuple((segments or {}).get(schema.stream, ()))
            self._wires[name] = wire(schema, fields, name in identified)
            self._columns[self._wires[name].event] = Columns(schema, fields, name in identified)
        event: Any = None
        for kind in self._columns:
            event = kind if event is None else event | kind
        self._decode_event: Callable[[Any], Any] = msgspec.json.Decoder(event).decode
        self._decode_record: Callable[[Any], Any] = msgspec.json.Decoder(event | list[event]).decode

    def decode(self, batch: RawBatch, now: int) -> DecodedBatch:
        """All events and rejections of a batch; `now` is in microseconds since the epoch."""
        parsed, rejected = self._parse(batch.records)
        scored: dict[str, Scored] = {}
        late_labels: dict[str, LateLabels] = {}
        for kind, rows in _by_kind(parsed):
            columns, part = self._columns[kind], Part(parsed.events, parsed.index, batch.timestamps)
            some, labels, misfits = columns.of(
                part if rows is None else part.take(rows.tolist()), now + self.limits.ahead
            )
            stream = columns.schema.stream
            if some is not None:
                scored[stream] = some
            if labels is not None:
                late_labels[stream] = labels
            for row, reason, detail in misfits:
                at = row if rows is None else int(rows[row])
                rejected.append(_rejection(batch.records, parsed, at, Fault(reason, detail, stream)))
        rejected.sort(key=lambda one: one.index)
        return DecodedBatch(scored, late_labels, tuple(rejected))

    def _parse(self, records: Sequence[bytes | None]) -> tuple[_Parsed, list[Rejected]]:
        """Every event that has the shape of one, and the rejection of everything that has not."""
        items: list[Any] = []  # for each record its event, its list of events, or None
        rejected: list[Rejected] = []
        remaining = iter(self._readable(records))
        while True:
            try:
                # `extend` keeps what it took before an exception, so the length says which record raised it.
                items.extend(map(self._decode_record, remaining))
            except (*UNREADABLE, TypeError):  # TypeError: the record is None
                index = len(items)
                item, faults = self._salvage(records[index])
                items.append(item)
                rejected.extend(_rejected(index, fault, raw) for fault, raw in faults)
            else:
                break
        kinds = set(map(type, items))
        if list in kinds:
            for index, item in enumerate(items):
                fault = self._array_fault(item) if type(item) is list else None
                if fault is not None:
                    items[index] = None
                    rejected.append(_rejected(index, fault, records[index]))
        elif NoneType not in kinds:
            return _Parsed(items, kinds, np.arange(len(items))), rejected
        return _flattened(items), rejected

    def _readable(self, records: Sequence[bytes | None]) -> Sequence[bytes | None]:
        """The records with None in place of those that are too large to look at."""
        most = self.limits.record_bytes
        with suppress(TypeError):  # one is None
            if max(map(len, records), default=0) <= most:  # type: ignore[arg-type]
                return records
        return [None if record is None or len(record) > most else record for record in records]

    def _salvage(self, record: bytes | None) -> tuple[list[Any] | None, list[tuple[Fault, bytes | None]]]:
        """The good events of a record that did not decode as a whole, None in place of bad ones, and its faults."""
        if record is None or not record.strip():
            return None, [(Fault(Reason.EMPTY, "no value" if record is None else "blank"), record)]
        if len(record) > self.limits.record_bytes:
            return None, [(Fault(Reason.TOO_LARGE, f"more than {self.limits.record_bytes} bytes"), record)]
        try:
            elements = _as_array.decode(record)
        except UNREADABLE:
            return None, [(find_fault(record, self._wires), record)]
        fault = self._array_fault(elements)
        if fault is not None:
            return None, [(fault, record)]
        events: list[Any] = []
        faults: list[tuple[Fault, bytes | None]] = []
        for element in map(bytes, elements):
            try:
                events.append(self._decode_event(element))
            except UNREADABLE:
                events.append(None)
                faults.append((find_fault(element, self._wires), element))
        return events, faults

    def _array_fault(self, elements: Sequence[Any]) -> Fault | None:
        if not elements:
            return Fault(Reason.EMPTY, "an array without events")
        if len(elements) > self.limits.record_events:
            return Fault(Reason.TOO_LARGE, f"more than {self.limits.record_events} events in one record")
        return None


def _flattened(items: Sequence[Any]) -> _Parsed:
    """One row for each event, without the places of those that were rejected."""
    nested = [item if type(item) is list else (item,) for item in items]
    sizes = np.fromiter(map(len, nested), np.int64, len(nested))
    events = list(chain.from_iterable(nested))
    index = np.repeat(np.arange(sizes.size), sizes)
    position = np.arange(len(events)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.array([event is not None for event in events], dtype=np.bool_)
    found = [event for event in events if event is not None]
    return _Parsed(found, set(map(type, found)), index[kept], position[kept])


def _by_kind(parsed: _Parsed) -> Iterator[tuple[Any, Labels | None]]:
    """Which rows are whose, by generated type; None instead of all rows."""
    if len(parsed.kinds) == 1:
        yield next(iter(parsed.kinds)), None
        return
    rows: dict[Any, list[int]] = {}
    for row, event in enumerate(parsed.events):
        rows.setdefault(type(event), []).append(row)
    for kind, some in rows.items():
        yield kind, np.array(some, dtype=np.int64)


def _rejection(records: Sequence[bytes | None], parsed: _Parsed, row: int, fault: Fault) -> Rejected:
    """The rejection of an event that did decode."""
    index = int(parsed.index[row])
    raw = records[index]
    if raw is not None and raw.lstrip().startswith(b"[") and parsed.position is not None:
        raw = bytes(_as_array.decode(raw)[parsed.position[row]])
    return _rejected(index, fault, raw)


def _rejected(index: int, fault: Fault, raw: bytes | None) -> Rejected:
    return Rejected(index, fault.reason, fault.detail[:_DETAIL], raw, fault.stream)
