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
from monitor.events.wire import Wire, stream_key, wire
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

    together: Sequence[Scored] = ()
    """The events, those of streams that are read alike together."""
    late_labels: Mapping[str, LateLabels] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()

    @property
    def scored(self) -> dict[str, Scored]:
        """The events by stream. To tell them apart has its cost for every stream."""
        return {name: scored for group in self.together for name, scored in group.of_each()}


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
        streams = [schema.stream for schema in schemas]
        if not streams or len(set(streams)) != len(streams):
            raise InputError(f"schemas: want one for each of one or more streams, got {streams}")
        if len(streams) > 1 and "stream" not in mapping.located:
            raise InputError(f"mapping: want a path to `stream`, as there are several: {streams}")
        self.limits = limits
        self._mapping = mapping
        shape = mapping if mapping.direct else OWN_SHAPE
        alike: dict[Any, list[StreamSchema]] = {}
        for schema in sorted(schemas, key=lambda schema: schema.stream):
            fields = tuple((segments or {}).get(schema.stream, ()))
            reading = (times or {}).get(schema.stream, AS_THEY_SAY)
            alike.setdefault((fields, schema.stream in identified, reading, replace(schema, stream="")), []).append(
                schema
            )
        self._wires: dict[str, Wire] = {}
        self._extractors: dict[Any, Extractor] = {}
        for (fields, ids, reading, _), same in alike.items():
            names = tuple(schema.stream for schema in same)
            if len(alike) == 1 and mapping.direct:  # one type for all: a thousand would crowd out the processor's cache
                one = wire(same[0], fields, ids, shape, names)
                wires = [replace(one, schema=schema) for schema in same]
            else:
                wires = [wire(schema, fields, ids, shape) for schema in same]
            self._wires |= dict(zip(names, wires, strict=True))
            self._extractors |= dict.fromkeys([each.event for each in wires], Extractor(wires, reading))
        self._unfolder = None if mapping.direct else Unfolder(self._wires, mapping)
        event: Any = None
        for kind in self._extractors:
            event = kind if event is None else event | kind
        self._decode_event: Callable[[Any], Any] = msgspec.json.Decoder(event).decode
        # LineCount taken as one text are events. Arrays are long, and gain little by being taken together.
        self._decode_lines: Callable[[Any], list[Any]] = msgspec.json.Decoder(event).decode_lines
        self._decode_record: Callable[[Any], Any] = msgspec.json.Decoder(event | list[event]).decode
        self._only = next(iter(self._extractors.values())) if len(alike) == 1 else None
        """Where all streams are read alike."""

    def decode(self, batch: RawBatch, now: int) -> DecodedBatch:
        """All events and rejections of a batch; `now` is in microseconds since the epoch."""
        if batch.translated is not None:
            return self._decode_translated(batch, batch.translated, now)
        rejected: list[Rejected] = []
        extracts: dict[Extractor, list[Extract]] = {}
        waiting: dict[Extractor, list[DecodedPart]] = {}
        joined = batch.records if isinstance(batch.records, Joined) and self._unfolder is None else None
        table = self._from_columns(batch)
        if table is not None and self._only is not None:
            extracts[self._only] = [table]
        for first in range(0, len(batch.records) if table is None else 0, _AT_ONCE):
            items = None if joined is None else self._parse_joined(joined, first)
            if items is None:
                joined = None  # where one record is bad the next often is: no more vain attempts
                items = self._parse(batch.records[first : first + _AT_ONCE], first, rejected)
            only = None if joined is None else self._only
            for extractor, part in self._parts(batch, first, items, only, rejected):
                waiting.setdefault(extractor, []).append(part)
                # What has few of the records waits for more of them: an extraction costs the same for any few.
                if sum(len(part.events) for part in waiting[extractor]) >= _AT_ONCE:
                    extracts.setdefault(extractor, []).append(extractor.extract(together(waiting.pop(extractor))))
        for extractor, few in waiting.items():
            extracts.setdefault(extractor, []).append(extractor.extract(together(few)))
        scored: list[Scored] = []
        late_labels: dict[str, LateLabels] = {}
        for extractor, parts in extracts.items():
            horizon = now + self.limits.ahead
            judged = judge(parts, extractor.schema, extractor.names, horizon, extractor.reading.zone)
            if judged.scored is not None:
                scored.append(judged.scored)
            if judged.late_labels is not None:
                late_labels |= judged.late_labels.of_each()
            rejected.extend(self._rejection(batch.records, misfit) for misfit in judged.misfits)
        rejected.sort(key=lambda one: one.index)
        return DecodedBatch(tuple(scored), late_labels, tuple(rejected))

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
            tuple(replace(scored, index=index[scored.index]) for scored in decoded.together),
            {stream: replace(late, index=index[late.index]) for stream, late in decoded.late_labels.items()},
            tuple(sorted(rejected, key=lambda one: one.index)),
        )

    def _from_columns(self, batch: RawBatch) -> Extract | None:
        """All events of a table of one stream's; None if its rows have to be looked at one by one."""
        alone = len(self._wires) == 1 and self._unfolder is None
        if self._only is None or not alone or not isinstance(batch.records, Tabular):
            return None
        (stream, wire), key = next(iter(self._wires.items())), stream_key(self._mapping)
        streams = None if key is None else batch.records.column([key])
        if streams is not None and not (isinstance(streams, list) and set(streams) == {stream}):
            return None
        return extracted(batch.records, wire, self._only.reading)

    def _parts(
        self, batch: RawBatch, first: int, items: list[Any], only: Extractor | None, rejected: list[Rejected]
    ) -> Iterator[tuple[Extractor, DecodedPart]]:
        """The events of some records by what takes them apart; what has not the shape of one is rejected.

        `only` is what takes all of them apart, if that is known.
        """
        index = np.arange(first, first + len(items))
        if only is None and set(map(type, items)).isdisjoint((list, NoneType)):
            only = self._only
            if only is None:
                rows: dict[Extractor, list[int]] = {}
                for row, extractor in enumerate(map(self._extractors.__getitem__, map(type, items))):
                    rows.setdefault(extractor, []).append(row)
                for extractor, some in rows.items():
                    yield extractor, DecodedPart([items[row] for row in some], index[some], None, batch.timestamps)
                return
        if only is not None:
            yield only, DecodedPart(items, index, None, batch.timestamps)
            return
        for row, record in enumerate(items):
            fault = self._array_fault(record) if type(record) is list else None
            if fault is not None:
                items[row] = None
                rejected.append(_rejected(first + row, fault, batch.records[first + row]))
        for extractor, events, places, position in self._by_extractor(items):
            yield extractor, DecodedPart(events, index[places], position, batch.timestamps)

    def _by_extractor(self, items: Sequence[Any]) -> Iterator[tuple[Extractor, list[Any], Labels, Labels]]:
        """The events that are read alike, which item each comes from, and its place in that item if it is a list."""
        rows: dict[Extractor, list[tuple[Any, int, int]]] = {}
        for row, record in enumerate(items):
            for position, event in enumerate(record if type(record) is list else (record,)):
                if event is not None:  # else it has been rejected
                    rows.setdefault(self._extractors[type(event)], []).append((event, row, position))
        for extractor, some in rows.items():
            events, places, positions = zip(*some, strict=True)
            yield extractor, list(events), np.array(places), np.array(positions)

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

    def _rejection(self, records: Sequence[bytes | None], misfit: Misfit) -> Rejected:
        """The rejection of an event that did decode."""
        raw = records[misfit.index]
        position = None if self._unfolder is not None else misfit.position
        if raw is not None and position is not None and raw.lstrip().startswith(b"["):
            raw = bytes(_as_array.decode(raw)[position])
        return _rejected(misfit.index, Fault(misfit.reason, misfit.detail, misfit.stream), raw)

    def _array_fault(self, elements: Sequence[Any]) -> Fault | None:
        if not elements:
            return Fault(Reason.EMPTY, "an array without events")
        if len(elements) > self.limits.record_events:
            return Fault(Reason.TOO_LARGE, f"more than {self.limits.record_events} events in one record")
        return None


def _rejected(index: int, fault: Fault, raw: bytes | None) -> Rejected:
    return Rejected(index, fault.reason, fault.detail[:_DETAIL], raw, fault.stream)
