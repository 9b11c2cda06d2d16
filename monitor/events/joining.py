"""[source.join]: a request and its response, which come as two records, joined by their id into one. Pure.

    [source.join]
    id = ["trace"]
    part = "kind"                       # where it says which of the two a record is
    request = "asked"
    response = "answered"
    time = "at"
    within = "60s"

The joined record is `{"request": ..., "response": ...}`, and stands where the later of the two stood. Whatever is
neither of them is handed on as it is.

A record reaches back over the records of its partition that are at most `within` older than the newest so far, and at
most `max_bytes` before it. Reaching none of its id, it waits. Reaching one of the other part that waits, it is joined
with it. Else it has come again. What becomes of a record thus depends on those that it reaches, and on those that they
reach: a restart that reads from there on knows all that is to be known, and nothing else has to be kept.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from monitor.errors import InputError
from monitor.events.decoding import Limits, Rejected
from monitor.events.faults import UNREADABLE
from monitor.events.paths import FieldPath, MisreadError
from monitor.events.reasons import Fault, Reason
from monitor.events.timestamps import from_values
from monitor.ports import NEVER, RawBatch, Translated
from monitor.ports.options import Duration, duration_text, read

PARTS = ("request", "response")
_OVERHEAD = 512
"""Bytes of memory that a waiting record takes beside its own."""
_LEAST_BYTES = 4 << 20
_WITHIN = Duration(60_000_000)
_NO_TIME = 2**63
"""No number as large as this is one of a time, in any unit; Python's have no bound."""
_PLACES = 64
"""Into so many pieces the reach is cut, at whose ends it is known where to read again."""

_decode = msgspec.json.Decoder().decode
_Id = tuple[str | int, ...]


@dataclass(frozen=True)
class JoinRule:
    """The settings as they are written."""

    id: tuple[str, ...]
    """Paths to what a request and its response have in common, and no others have."""
    part: str
    """Path to what tells the two apart."""
    request: str
    response: str
    """What stands there."""
    time: str = ""
    """Path to the time of a record; without one it is the record's own, of Kafka."""
    within: Duration = _WITHIN
    """How much later than its partner the second one may come."""
    max_bytes: int = 256 << 20
    """Of records in between, and so of memory for those that wait, of each partition."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if not self.id:
            yield "want `id` with a path at least"
        if self.request == self.response:
            yield f"want `request` and `response` that can be told apart, got {self.request!r} for both"
        if self.within < 1 or self.max_bytes < _LEAST_BYTES:
            yield f"want `within` above zero and `max_bytes` of at least {_LEAST_BYTES}"
        for written in (*self.id, self.part, *([self.time] if self.time else [])):
            try:
                if FieldPath.of(written).each:
                    yield f"{written!r}: a record is one request or one response, without *"
            except InputError as error:
                yield str(error)

    @cached_property
    def id_paths(self) -> Sequence[FieldPath]:
        """Compiled."""
        return [FieldPath.of(written) for written in self.id]

    @cached_property
    def part_path(self) -> FieldPath:
        """Compiled."""
        return FieldPath.of(self.part)

    @cached_property
    def time_path(self) -> FieldPath | None:
        """Compiled."""
        return FieldPath.of(self.time) if self.time else None

    def half(self, record: bytes) -> "Half | None":
        """What a record is a half of; None for anything else. Raises MisreadError for one that has no id."""
        try:
            given = _decode(record)
        except UNREADABLE:
            return None
        said = self.part_path.look(given)
        if said not in (self.request, self.response):
            return None
        values = [path.look(given) for path in self.id_paths]
        if not all(type(value) in (str, int) for value in values):
            raise MisreadError(f"want a text or a whole number at {' and '.join(self.id)}")
        stamp = None if self.time_path is None else self.time_path.look(given)
        stamp = float(stamp) if type(stamp) is int and abs(stamp) < _NO_TIME else stamp
        return Half(tuple(values), PARTS[said == self.response], record, stamp)


@dataclass(frozen=True, slots=True)
class Half:
    """A record of a request, or of a response."""

    id: _Id
    part: str
    record: bytes
    stamp: Any
    """Its time, as it is written."""

    def joined(self, other: "Half") -> bytes:
        """Both, as one record."""
        records = {self.part: self.record, other.part: other.record}
        return b'{"request":%b,"response":%b}' % (records["request"], records["response"])


@dataclass(frozen=True, slots=True)
class Place:
    """A place before a record of a partition."""

    offset: int
    time: int
    """The newest time before it."""


class Joiner:
    """Joins the records of each partition by itself."""

    def __init__(self, rule: JoinRule, limits: Limits = Limits()) -> None:
        self._rule = rule
        self._limits = limits
        self._partitions: dict[str, _WithinReach] = {}

    def begin(self, partition: str, offset: int, reread: Place) -> None:
        """Take up a partition at an offset. Records before it, from a place on, were joined before a restart, and are
        read again to know which of them wait."""
        self._partitions[partition] = _WithinReach(self._rule, offset, reread)

    def forget(self, partition: str) -> None:
        """Somebody else reads it now."""
        self._partitions.pop(partition, None)

    def reread(self, partition: str, offset: int) -> Place | None:
        """From where on a restart has to read to go on at an offset; None where nothing was read."""
        known = self._partitions.get(partition)
        return None if known is None else known.reread(offset)

    def committed(self, partition: str, offset: int) -> None:
        """No restart goes on before it."""
        known = self._partitions.get(partition)
        if known is not None:
            known.prune(offset)

    def join(self, batch: RawBatch, now: int) -> tuple[RawBatch, Sequence[Rejected]]:
        """The batch with joined records where the later ones of each two stood, and what is not joined.

        Times further ahead of `now` than an event's may be say nothing.
        """
        if not len(batch.offsets):
            return batch, ()
        first = int(batch.offsets[0])
        here = self._partitions.setdefault(batch.partition, _WithinReach(self._rule, first, Place(first, NEVER)))
        here.note(first)
        said, faults = _said(batch)
        halves = [self._half(record) for record in said]
        stamps = [half.stamp if isinstance(half, Half) else None for half in halves]
        times = from_values(stamps, batch.timestamps)
        times[times > now + self._limits.ahead] = NEVER
        records = list(batch.records)
        kept: list[int] = []
        rejected: list[Rejected] = []
        for number, (record, half, time) in enumerate(zip(said, halves, times.tolist(), strict=True)):
            lost = here.arrive(len(record or b""), time)
            rejected += [Rejected(number, Reason.UNMATCHED, self._why(each), each.record) for each in lost]
            if isinstance(half, Fault):
                rejected.append(Rejected(number, half.reason, half.detail, records[number]))
            elif half is None:
                kept += [] if number in faults else [number]
            elif isinstance(joined := here.take(half), Reason):
                rejected.append(Rejected(number, joined, f"a {half.part} whose id came before", records[number]))
            elif joined is not None:
                said[number] = records[number] = joined
                kept.append(number)
        kept = [number for number in kept if batch.offsets[number] >= here.since]
        translated = Translated(
            [said[number] for number in kept],
            np.array(kept, np.int64),
            {number: fault for number, fault in faults.items() if batch.offsets[number] >= here.since},
        )
        out = replace(batch, records=records, next_offset=max(batch.next_offset, here.since), translated=translated)
        return out, [bad for bad in rejected if batch.offsets[bad.index] >= here.since]

    def _half(self, record: bytes | None) -> "Half | Fault | None":
        """What a record is a half of; None for anything else, and for what the decoder will refuse."""
        if record is None or len(record) > self._limits.record_bytes:
            return None
        try:
            return self._rule.half(record)
        except MisreadError as error:
            return Fault(Reason.BAD_ID, str(error))

    def _why(self, lost: Half) -> str:
        other = PARTS[lost.part == PARTS[0]]
        return f"no {other} of its id within {duration_text(self._rule.within)} and {self._rule.max_bytes} bytes"


def pairs(records: Sequence[Any], settings: Mapping[str, Any]) -> Sequence[Any]:
    """Of some records those that settings of a `JoinRule` join, joined."""
    rule = read(JoinRule, settings, "", [])
    encoded = [msgspec.json.encode(record) for record in records]
    if rule is None or not encoded:
        return ()
    batch, _ = Joiner(rule).join(RawBatch("", encoded, np.arange(len(encoded)), len(encoded)), 0)
    joined = () if batch.translated is None else batch.translated.records
    return [record for each in joined if PARTS[0] in (record := _decode(each or b"{}"))]


@dataclass(frozen=True, slots=True)
class _Reached:
    """How far a partition has come."""

    bytes: int
    time: int


class _WithinReach:
    """What is within reach of the next record."""

    def __init__(self, rule: JoinRule, since: int, reread: Place) -> None:
        self._rule = rule
        self.since = since
        """Of records before it nothing comes any more."""
        self._here = _Reached(0, reread.time)
        self._places = deque([(reread.offset, self._here)])
        """Where reading can begin anew."""
        self._last: OrderedDict[_Id, _Reached] = OrderedDict()
        """When each id came the last time."""
        self._waiting: OrderedDict[_Id, tuple[_Reached, Half]] = OrderedDict()

    def note(self, offset: int) -> None:
        """A batch begins here."""
        at = self._places[-1][1]
        far = self._here.bytes - at.bytes >= self._rule.max_bytes // _PLACES
        if far or self._here.time - at.time >= self._rule.within // _PLACES:
            self._places.append((offset, self._here))

    def arrive(self, size: int, time: int) -> Sequence[Half]:
        """The next record is here: what waited and is out of its reach."""
        self._here = _Reached(self._here.bytes + size + _OVERHEAD, max(self._here.time, time))
        while self._last and not self._reaches(next(iter(self._last.values()))):
            self._last.popitem(last=False)
        lost = []
        while self._waiting and not self._reaches(next(iter(self._waiting.values()))[0]):
            lost.append(self._waiting.popitem(last=False)[1][1])
        return lost

    def take(self, half: Half) -> bytes | Reason | None:
        """The joined record, why there is none, or None where it waits."""
        known = half.id in self._last
        self._last[half.id] = self._here
        self._last.move_to_end(half.id)
        if not known:
            self._waiting[half.id] = self._here, half
            return None
        if half.id not in self._waiting or self._waiting[half.id][1].part == half.part:
            return Reason.REPEATED
        return self._waiting.pop(half.id)[1].joined(half)

    def reread(self, offset: int) -> Place:
        """From where on all is known that decides upon the records from an offset on: those that they reach, and those
        that these reach."""
        first, at = self._latest(lambda place: place[0] <= offset)
        for _ in range(2):
            first, at = self._latest(lambda place, at=at: not self._reaches(place[1], at))  # type: ignore[misc]
        return Place(first, at.time)

    def prune(self, offset: int) -> None:
        """Forget places before the one that an offset needs."""
        first = self.reread(offset).offset
        while self._places[0][0] < first:
            self._places.popleft()

    def _latest(self, wanted: Callable[[tuple[int, _Reached]], bool]) -> tuple[int, _Reached]:
        return next(filter(wanted, reversed(self._places)), self._places[0])

    def _reaches(self, record: _Reached, here: _Reached | None = None) -> bool:
        """Whether what comes next, or came at another time, reaches back to a record."""
        here = here or self._here
        return here.bytes - record.bytes < self._rule.max_bytes and here.time - record.time <= self._rule.within


def _said(batch: RawBatch) -> tuple[list[bytes | None], Mapping[int, str]]:
    """Each record as JSON; those that cannot be read, and why."""
    if batch.translated is None:
        return list(batch.records), {}
    said: list[bytes | None] = [None] * len(batch.records)
    for number, record in zip(batch.translated.index.tolist(), batch.translated.records, strict=True):
        said[number] = record
    return said, batch.translated.faults
