"""States as records of a compacted channel and back: versioned, checked, and one key for each part that changes alone.

A record is a checksum, a space, and JSON in one line. The states of a stream's concerns stand in one record; each
entry of a concern that remembers windows one by one stands in a record of its own, in a ring of as many keys as there
are entries. An empty record stands for an entry that is no more.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import msgspec
import numpy as np

from monitor.errors import ConnectorError
from monitor.ports import Message
from monitor.state.concern import AnyConcern, Whose
from monitor.state.known import Known, Ring


class _States(msgspec.Struct, frozen=True, tag="states"):
    """What is known of a stream or a segment, but for entries."""

    stream: str
    segment: str
    reference: str
    until: int
    states: dict[str, tuple[int, msgspec.Raw]]
    """By concern: the version of what is written, and the state."""
    counts: dict[str, tuple[int, int]]
    """By concern: how many entries there have ever been, and how many of them are remembered."""


class _Gone(msgspec.Struct, frozen=True, tag="gone"):
    """Nothing is to be known of it any more."""

    stream: str
    segment: str


class _Entry(msgspec.Struct, frozen=True, tag="entry"):
    """One window that a concern remembers."""

    stream: str
    segment: str
    concern: str
    version: int
    number: int
    slot: int
    """Of the ring."""
    entry: msgspec.Raw


def _plain(value: Any) -> Any:
    """Arrays and numpy's numbers as JSON has them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise NotImplementedError(f"cannot be kept: {type(value)}")


def _array(_: Any, value: Any) -> Any:
    return np.array(value, dtype=np.float32)


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)
"""Tables stay in their own order, so that after a restart whatever shows them shows them as before."""
_Table = _States | _Entry | _Gone
_DECODER: msgspec.json.Decoder[_Table] = msgspec.json.Decoder(_Table)


def states_record(whose: Whose, known: Known, concerns: Sequence[AnyConcern]) -> Message:
    """All states of a stream or a segment."""
    states = {
        concern.name: (concern.version, msgspec.Raw(_ENCODER.encode(known.states[concern.name])))
        for concern in concerns
        if concern.name in known.states
    }
    counts = {
        concern.name: (known.rings[concern.name].count, len(known.rings[concern.name].entries))
        for concern in concerns
        if concern.name in known.rings
    }
    return _record(_key(whose), _States(*whose, known.reference, known.until, states, counts))


def entry_record(whose: Whose, known: Known, concern: AnyConcern) -> Message:
    """The newest entry of a concern, in the place of the oldest."""
    ring = known.rings[concern.name]
    entry = msgspec.Raw(_ENCODER.encode(ring.entries[-1]))
    slot = ring.count % concern.most(whose[1])
    return _record(
        _key(whose, concern.name, slot), _Entry(*whose, concern.name, concern.version, ring.count, slot, entry)
    )


def gone_record(whose: Whose) -> Message:
    """Nothing is to be known of it any more."""
    return _record(_key(whose), _Gone(*whose))


def gone_entries(whose: Whose, known: Known, concerns: Sequence[AnyConcern]) -> Iterator[Message]:
    """Nor of the windows that concerns remembered one by one."""
    for concern in concerns:
        for slot in range(min(known.rings.get(concern.name, Ring()).count, concern.most(whose[1]))):
            yield Message("states", _key(whose, concern.name, slot), b"")


def forgotten(records: Iterable[bytes], stream: str) -> Iterator[tuple[str, Message]]:
    """What to write so that nothing is known any more of a stream, by segment: also what cannot be read any more."""
    for record in records:
        table = _decoded(record)
        if isinstance(table, _States) and table.stream == stream:
            yield table.segment, gone_record((stream, table.segment))
        elif isinstance(table, _Entry) and table.stream == stream:
            yield table.segment, Message("states", _key((stream, table.segment), table.concern, table.slot), b"")


def read(records: Iterable[bytes], concerns: Mapping[str, Sequence[AnyConcern]]) -> dict[Whose, Known]:
    """What the records of a channel say of these streams, the oldest first; ConnectorError where none can be made of
    them."""
    taken = StateRecords(concerns)
    taken.take(records)
    return taken.known(taken.owners)


class StateRecords:
    """The records of a channel, as they come.

    A concern that has no state there yet begins anew; what is there of a concern that the stream has no more is left.
    """

    def __init__(self, concerns: Mapping[str, Sequence[AnyConcern]]) -> None:
        self._concerns = concerns
        self._heads: dict[Whose, _States] = {}
        self._entries: dict[Whose, dict[str, dict[int, _Entry]]] = {}
        """By concern and number."""

    @property
    def owners(self) -> Sequence[Whose]:
        """Of whom anything is known, in the order in which they first came."""
        return list(self._heads)

    def take(self, records: Iterable[bytes]) -> frozenset[Whose]:
        """Take more records: of whom something else is known now."""
        changed = set()
        for record in records:
            table = _decoded(record)
            if table is None or table.stream not in self._concerns:
                continue
            whose = (table.stream, table.segment)
            if isinstance(table, _States):
                self._heads[whose] = table
                self._forget_old(table, self._entries.get(whose, {}))
            elif isinstance(table, _Gone):
                self._heads.pop(whose, None)
                self._entries.pop(whose, None)
            else:
                self._entries.setdefault(whose, {}).setdefault(table.concern, {})[table.number] = table
            changed.add(whose)
        return frozenset(changed)

    def known(self, owners: Iterable[Whose]) -> dict[Whose, Known]:
        """What is known of these; of some it may be nothing any more."""
        return {
            whose: _known(self._heads[whose], self._concerns[whose[0]], self._entries.get(whose, {}))
            for whose in owners
            if whose in self._heads
        }

    def _forget_old(self, head: _States, entries: Mapping[str, dict[int, _Entry]]) -> None:
        """Entries that are remembered no longer."""
        for concern, (count, remembered) in head.counts.items():
            of_concern = entries.get(concern, {})
            for number in [number for number in of_concern if number <= count - remembered]:
                del of_concern[number]


def _known(head: _States, concerns: Sequence[AnyConcern], entries: Mapping[str, Mapping[int, _Entry]]) -> Known:
    whose = (head.stream, head.segment)
    states = {
        concern.name: _state(concern, whose, *head.states[concern.name])
        for concern in concerns
        if concern.name in head.states
    }
    rings = {
        concern.name: _ring(concern, *head.counts[concern.name], entries.get(concern.name, {}))
        for concern in concerns
        if concern.name in head.counts
    }
    return Known(head.reference, head.until, states, rings)


def _ring(concern: AnyConcern, count: int, remembered: int, entries: Mapping[int, _Entry]) -> Ring:
    """A memory may be shorter, but never wrong: entries of another version are left out."""
    newest = sorted(number for number in entries if count - remembered < number <= count)
    kept = [entries[number] for number in newest if entries[number].version == concern.version]
    return Ring(
        tuple(
            _of(concern, concern.entry, record.version, record.entry, (record.stream, record.segment))
            for record in kept
        ),
        count,
    )


def _state(concern: AnyConcern, whose: Whose, version: int, raw: msgspec.Raw) -> Any:
    if version != concern.version and version in concern.earlier:
        return concern.earlier[version](bytes(raw))
    return _of(concern, concern.state, version, raw, whose)


def _of(concern: AnyConcern, kind: Any, version: int, raw: msgspec.Raw, whose: Whose) -> Any:
    if version != concern.version:
        raise ConnectorError(
            f"the state of stream {whose[0]}: {concern.name} was written in version {version}, this release reads "
            f"{', '.join(map(str, sorted({*concern.earlier, concern.version})))}: run the release that wrote it, or "
            "let the stream begin anew with `shiftwatch state reset`"
        )
    try:
        return msgspec.json.decode(raw, type=kind, dec_hook=_array)
    except msgspec.DecodeError as error:
        raise ConnectorError(f"the state of stream {whose[0]}: {concern.name} cannot be read: {error}") from error


def _key(whose: Whose, *place: str | int) -> bytes:
    return msgspec.json.encode([*whose, *place])


def _record(key: bytes, table: _Table) -> Message:
    line = _ENCODER.encode(table)
    return Message("states", key, b"%08x %b" % (crc32(line), line))


def _decoded(record: bytes) -> _Table | None:
    line = record.strip()
    if not line:
        return None
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % crc32(text):
        raise ConnectorError(
            f"a record among the states does not have the checksum that was written with it: {text[:80]!r}...; "
            "restore it from a backup"
        )
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise ConnectorError(f"a record among the states is none of ours: {error}: {text[:80]!r}") from error
