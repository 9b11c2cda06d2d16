"""Everything that turns raw records into columns of events, or into rejections with a named reason.

A record is a JSON object, one event, or an array of them. Nothing is done per event in Python that can be done per
batch: records are decoded into generated types (`wire`), taken apart into plain arrays (`extraction`), and checked
as columns (`scored`). One bad record, or one bad event of an array, never costs a good one; whatever the bytes, the
answer is a value and never an exception.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any

import msgspec
import numpy as np

from monitor.arrays import Labels
from monitor.errors import InputError
from monitor.events.checks import LateLabels, Misfit, Scored, judge
from monitor.events.extraction import DecodedPart, Extract, Extractor, together
from monitor.events.faults import UNREADABLE, find_fault
from monitor.events.mapping import OWN_SHAPE, EventMapping
from monitor.events.reasons import Fault, Reason
from monitor.events.tabular import extracted
from monitor.events.timestamps import AS_THEY_SAY, TimeReading
from monitor.events.unfolding import Unfolder
from monitor.events.wire import stream_key, wire
from monitor.limits import AHEAD, RECORD_BYTES, RECORD_EVENTS
from monitor.ports import Joined, RawBatch, Tabular, Translated
from monitor.ports.schema import StreamSchema

__all__ = ["DecodedBatch", "Decoder", "LateLabels", "Limits", "Reason", "Rejected", "Scored"]

_DETAIL = 200  # characters: an explanation, not a copy of the record

# Records whose events exist at the same time: half a megabyte to two of Python objects, which stay in the processor's
# cache until they have been taken apart.
_AT_ONCE = 1_024

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


class Decoder:
    """Decodes batches of records for a fixed set of streams. It holds no state between batches."""

    def __init__(
        self,
        schemas: Sequence[StreamSchema],
        *,
        segments: Mapping[str, Sequence[str]] | None = None,
        identified: Collection[str] = (),
        times: Mapping[str, TimeReading] | None = None,
        mapping: EventMapping = OWN_SHAPE,
        limits: Limits = Limits(),
    ) -> None:
        """`segments` names, by stream, the fields that tell segments apart; `identified` streams keep event ids;
        `times` says how a stream writes times that do not say it themselves, `mapping` where all fields stand."""
        names = [schema.stream for schema in schemas]
        if not names or len(set(names)) != len(names):
            raise InputError(f"schemas: want one for each of one or more streams, got {names}")
        if len(names) > 1 and "stream" not in mapping.located:
            raise InputError(f"mapping: want a path to `stream`, as there are several: {names}")
        self.limits = limits
        self._mapping = mapping
        shape = mapping if mapping.direct else OWN_SHAPE
        self._wires = {}
        self._extractors = {}
        for schema in schemas:
            name, fields = schema.stream, tuple((segments or {}).get(schema.stream, ()))
            self._wires[name] = wire(schema, fields, name in identified, shape)
            reading = (times or {}).get(name, AS_THEY_SAY)
            self._extractors[self._wires[name].event] = Extractor(self._wires[name], reading)
        self._unfolder = None if mapping.direct else Unfolder(self._wires, mapping)
        event: Any = None
        for kind in self._extractors:
            event = kind if event is None else event | kind
        self._decode_event: Callable[[Any], Any] = msgspec.json.Decoder(event).decode
        # LineCount taken as one text are events. Arrays are long, and gain little by being taken together.
        self._decode_lines: Callable[[Any], list[Any]] = msgspec.json.Decoder(event).decode_lines
        self._decode_record: Callable[[Any], Any] = msgspec.json.Decoder(event | list[event]).decode
        self._only_kind = event if len(schemas) == 1 else None

    def decode(self, batch: RawBatch, now: int) -> DecodedBatch:
        """All events and rejections of a batch; `now` is in microseconds since the epoch."""
        if batch.translated is not None:
            return self._decode_translated(batch, batch.translated, now)
        rejected: list[Rejected] = []
        extracts: dict[Any, list[Extract]] = {}
        waiting: dict[Any, list[DecodedPart]] = {}
        joined = batch.records if isinstance(batch.records, Joined) and self._unfolder is None else None
        table = self._from_columns(batch)
        if table is not None:
            extracts[self._only_kind] = [table]
        for first in range(0, len(batch.records) if table is None else 0, _AT_ONCE):
            items = None if joined is None else self._parse_joined(joined, first)
            if items is None:
                joined = None  # where one record is bad the next often is: no more vain attempts
                items = self._parse(batch.records[first : first + _AT_ONCE], first, rejected)
            only = None if joined is None else self._only_kind
            for kind, part in self._parts(batch, first, items, only, rejected):
                waiting.setdefault(kind, []).append(part)
                # A stream that has few of the records waits for more of them: an extraction costs the same for any few.
                if sum(len(part.events) for part in waiting[kind]) >= _AT_ONCE:
                    extracts.setdefault(kind, []).append(self._extractors[kind].extract(together(waiting.pop(kind))))
        for kind, few in waiting.items():
            extracts.setdefault(kind, []).append(self._extractors[kind].extract(together(few)))
        scored: dict[str, Scored] = {}
        late_labels: dict[str, LateLabels] = {}
        for kind, parts in extracts.items():
            schema, zone = self._extractors[kind].schema, self._extractors[kind].reading.zone
            judged = judge(parts, schema, now + self.limits.ahead, zone)
            if judged.scored is not None:
                scored[schema.stream] = judged.scored
            if judged.late_labels is not None:
                late_labels[schema.stream] = judged.late_labels
            rejected.extend(self._rejection(batch.records, schema.stream, misfit) for misfit in judged.misfits)
        rejected.sort(key=lambda one: one.index)
        return DecodedBatch(scored, late_labels, tuple(rejected))

    def _decode_translated(self, batch: RawBatch, translated: Translated, now: int) -> DecodedBatch:
        """Of records in another format; what is rejected is rejected as it came."""
        index = translated.index
        times = None if batch.timestamps is None else batch.timestamps[index]
        part = RawBatch(batch.partition, translated.records, batch.offsets[index], batch.next_offset, times)
        decoded = self.decode(part, now)
        places = index.tolist()
        rejected = [
            replace(bad, index=places[bad.index], raw=batch.records[places[bad.index]]) for bad in decoded.rejected
        ]
        rejected += [
            _rejected(number, Fault(Reason.UNREADABLE, detail), batch.records[number])
            for number, detail in translated.faults.items()
        ]
        return DecodedBatch(
            {stream: replace(scored, index=index[scored.index]) for stream, scored in decoded.scored.items()},
            {stream: replace(late, index=index[late.index]) for stream, late in decoded.late_labels.items()},
            tuple(sorted(rejected, key=lambda one: one.index)),
        )

    def _from_columns(self, batch: RawBatch) -> Extract | None:
        """All events of a table of one stream's; None if its rows have to be looked at one by one."""
        if self._only_kind is None or self._unfolder is not None or not isinstance(batch.records, Tabular):
            return None
        (stream, wire), key = next(iter(self._wires.items())), stream_key(self._mapping)
        streams = None if key is None else batch.records.column([key])
        if streams is not None and not (isinstance(streams, list) and set(streams) == {stream}):
            return None
        return extracted(batch.records, wire, self._extractors[self._only_kind].reading)

    def _parts(
        self, batch: RawBatch, first: int, items: list[Any], only: Any, rejected: list[Rejected]
    ) -> Iterator[tuple[Any, DecodedPart]]:
        """The events of some records by their generated type; what has not the shape of one is rejected.

        `only` is the type that all of them are known to have, if any.
        """
        index = np.arange(first, first + len(items))
        kinds = set(map(type, items)) if only is None else {only}
        if len(kinds) == 1 and kinds.isdisjoint((list, NoneType)):
            yield kinds.pop(), DecodedPart(items, index, None, batch.timestamps)
            return
        for row, record in enumerate(items):
            fault = self._array_fault(record) if type(record) is list else None
            if fault is not None:
                items[row] = None
                rejected.append(_rejected(first + row, fault, batch.records[first + row]))
        for kind, events, places, position in _by_kind(items):
            yield kind, DecodedPart(events, index[places], position, batch.timestamps)

    def _parse_joined(self, records: Joined, first: int) -> list[Any] | None:
        """The event of each of the next records; None if they have to be looked at one by one."""
        stop = min(first + _AT_ONCE, len(records))
        text = records.joined(first, stop)
        if text is not None and len(text) <= self.limits.record_bytes:
            with suppress(*UNREADABLE):
                items = self._decode_lines(text)
                if len(items) == stop - first:  # else a line held two
                    return items
        return None

    def _parse(self, some: Sequence[bytes | None], first: int, rejected: list[Rejected]) -> list[Any]:
        """The event of each record, its list of events, or None for one that is rejected here."""
        if self._unfolder is not None:
            return self._unfold(self._unfolder, some, first, rejected)
        items: list[Any] = []
        remaining = iter(self._readable(some))
        while True:
            try:
                # `extend` keeps what it took before an exception, so the length says which record raised it.
                items.extend(map(self._decode_record, remaining))
            except (*UNREADABLE, TypeError):  # TypeError: the record is None
                index = len(items)
                salvaged, faults = self._salvage(some[index])
                items.append(salvaged)
                rejected.extend(_rejected(first + index, fault, raw) for fault, raw in faults)
            else:
                return items

    def _readable(self, records: Sequence[bytes | None]) -> Sequence[bytes | None]:
        """The records with None in place of those that are too large to look at."""
        most = self.limits.record_bytes
        with suppress(TypeError):  # one is None
            if max(map(len, records), default=0) <= most:  # type: ignore[arg-type]
                return records
        return [None if record is None or len(record) > most else record for record in records]

    def _unfold(
        self, unfolder: Unfolder, some: Sequence[bytes | None], first: int, rejected: list[Rejected]
    ) -> list[Any]:
        items: list[Any] = []
        for number, record in enumerate(some, first):
            fault = self._unseen(record)
            events, faults = (None, [fault]) if fault is not None else unfolder.events(record or b"")
            items.append(events)
            rejected.extend(_rejected(number, each, record) for each in faults)
        return items

    def _unseen(self, record: bytes | None) -> Fault | None:
        """Why a record is not even looked at."""
        if record is None or not record.strip():
            return Fault(Reason.EMPTY, "no value" if record is None else "blank")
        if len(record) > self.limits.record_bytes:
            return Fault(Reason.TOO_LARGE, f"more than {self.limits.record_bytes} bytes")
        return None

    def _salvage(self, record: bytes | None) -> tuple[list[Any] | None, list[tuple[Fault, bytes | None]]]:
        """The good events of a record that did not decode as a whole, None in place of bad ones, and its faults."""
        unseen = self._unseen(record)
        if record is None or unseen is not None:
            return None, [(unseen or Fault(Reason.EMPTY, "no value"), record)]
        try:
            elements = _as_array.decode(record)
        except UNREADABLE:
            return None, [(find_fault(record, self._wires, self._mapping), record)]
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
                faults.append((find_fault(element, self._wires, self._mapping), element))
        return events, faults

    def _rejection(self, records: Sequence[bytes | None], stream: str, misfit: Misfit) -> Rejected:
        """The rejection of an event that did decode."""
        raw = records[misfit.index]
        position = None if self._unfolder is not None else misfit.position
        if raw is not None and position is not None and raw.lstrip().startswith(b"["):
            raw = bytes(_as_array.decode(raw)[position])
        return _rejected(misfit.index, Fault(misfit.reason, misfit.detail, stream), raw)

    def _array_fault(self, elements: Sequence[Any]) -> Fault | None:
        if not elements:
            return Fault(Reason.EMPTY, "an array without events")
        if len(elements) > self.limits.record_events:
            return Fault(Reason.TOO_LARGE, f"more than {self.limits.record_events} events in one record")
        return None


def _by_kind(items: Sequence[Any]) -> Iterator[tuple[Any, list[Any], Labels, Labels]]:
    """The events of each generated type, which item each comes from, and its place in that item if it is a list."""
    rows: dict[Any, list[tuple[Any, int, int]]] = {}
    for row, record in enumerate(items):
        for position, event in enumerate(record if type(record) is list else (record,)):
            if event is not None:  # else it has been rejected
                rows.setdefault(type(event), []).append((event, row, position))
    for kind, some in rows.items():
        events, places, positions = zip(*some, strict=True)
        yield kind, list(events), np.array(places), np.array(positions)


def _rejected(index: int, fault: Fault, raw: bytes | None) -> Rejected:
    return Rejected(index, fault.reason, fault.detail[:_DETAIL], raw, fault.stream)
