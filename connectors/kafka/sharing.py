"""Which streams the members of a group get events of: ours by what came, those of others by what their commits note.

Each member notes with its commits from when to when a partition has brought events of which stream, and how far it was
read. A window is whole where no partition of another member has events of its stream from its time. A member that is
behind has not noted yet what it is about to read: where the last that it read was of a stream, more of that stream is
taken to come, until it has read to the end or its commits stand still.

A member that died is in the group until its session ends, and may be given partitions that it never reads. So windows
wait, once partitions were handed out, until whoever else has events of their stream has committed again, or would have
been put out of the group: its partitions may be ours then, and the windows whole.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from connectors.kafka.driver import CommittedOffset, Partition, Reader
from connectors.kafka.progress import ALWAYS, NOTED_STREAMS, Notes, Span, hashed, notes_of

REBALANCE = 5.0
"""Seconds in which a group hands out what a member had that is put out of it."""
JUST_NOW = 60
"""Seconds within which a stream has come if it is said to come."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the commit of a partition says, since when it has said that, and where the partition ends."""

    offset: int | None
    """None: nobody has ever committed there."""
    notes: Notes
    end: int
    since: float
    alive: bool
    """Whether it has changed since partitions were handed out."""

    def brings(self, stream: int, span: Span, moving: bool) -> bool:
        """Whether it has brought events of a stream from this time, or, while it is read on, may be about to."""
        noted = self.notes.streams.get(stream)
        if noted is None or noted.oldest > span.newest:
            return False
        newest = max(noted.newest for noted in self.notes.streams.values())
        behind = moving and self.notes.read < self.end
        return noted.newest >= span.oldest or (behind and noted.newest >= newest - JUST_NOW)


class Sharing:
    """What is known of our partitions, and of those that other members have."""

    def __init__(self, session: float) -> None:
        """`session`: the seconds after which a member that is not heard of is put out of the group."""
        self._stands_still = session + REBALANCE
        """Seconds without another commit after which nobody reads a partition, or there is nothing more to read:
        members that read commit sooner. It is where transactions end that a partition cannot be read to its end."""
        self._patience = 2 * self._stands_still
        """Seconds for which windows wait until somebody has noted, or passed, the records of a partition."""
        self._ours: dict[Partition, dict[str, Span]] = {}
        self._inherited: dict[Partition, Notes] = {}
        """What those who had our partitions before have noted."""
        self._came: dict[str, float] = {}
        """When each stream came last, by our clock."""
        self._seen: dict[Partition, _Seen] = {}
        self._awaited: dict[Partition, tuple[int, float]] = {}
        """Partitions of whose streams nothing is noted: where they ended, and since when it is waited for that."""
        self._assigned: float | None = None
        """Since when nobody has answered what others have noted; None once that is known."""
        self.looked = float("-inf")
        """When the commits of others were looked at last."""

    def begin(self, partition: Partition, metadata: str) -> None:
        """A partition is ours, and this is what its commit says."""
        self._inherited[partition] = notes_of(metadata)

    def forget(self, partition: Partition) -> None:
        """A partition is not ours any more."""
        self._ours.pop(partition, None)
        self._inherited.pop(partition, None)

    def assigned(self, now: float) -> None:
        """Other partitions are other members' now: what they bring is not known until the next look."""
        self._awaited, self._assigned, self.looked = {}, now, float("-inf")

    def saw(self, partition: Partition, streams: Mapping[str, Span], now: float) -> None:
        """A partition of ours has brought these."""
        spans = self._ours.setdefault(partition, {})
        for stream, span in streams.items():
            spans[stream] = span.around(spans.get(stream, span))
        self._came |= dict.fromkeys(streams, now)

    def notes(self, partition: Partition, read: int) -> Notes:
        """What is to be noted of a partition of ours, which was read up to here."""
        brought = self._ours.get(partition, {})
        earlier = self._inherited.get(partition, Notes()).streams
        # What an earlier release noted has no times: it goes when there is something to note.
        spans = {stream: span for stream, span in earlier.items() if span != ALWAYS or not brought}
        for stream, span in brought.items():
            spans[hashed(stream)] = span.around(spans.get(hashed(stream), span))
        return Notes(spans, read)

    def look(self, reader: Reader, foreign: Collection[Partition], now: float) -> None:
        """See what the commits of all partitions of others say now; ConnectorError if nobody answers."""
        self.looked = now
        committed, ends = reader.committed(foreign), reader.latest(foreign)
        seen = {}
        for partition in foreign:
            offset, metadata = committed.get(partition, CommittedOffset(-1, ""))
            before, notes = self._seen.get(partition), notes_of(metadata)
            if before is None or self._assigned is not None:
                since, alive = now, False
            elif (before.offset, before.notes) == (offset, notes):
                since, alive = before.since, before.alive
            else:
                since, alive = now, True
            seen[partition] = _Seen(offset if partition in committed else None, notes, ends[partition], since, alive)
        self._seen = seen
        unnoted = {partition: each for partition, each in seen.items() if not each.notes.streams}
        begins = reader.earliest([partition for partition, each in unnoted.items() if each.offset is None])
        awaited = {}
        for partition, each in unnoted.items():
            at = max(begins.get(partition, 0), each.offset or 0, each.notes.read)
            end, since = self._awaited.get(partition, (each.end, now))
            if at >= end or (each.end > end and now - since > self._patience):
                end, since = each.end, now
            if at < end:
                awaited[partition] = end, since
        self._awaited, self._assigned = awaited, None

    def known(self, now: float) -> bool:
        """Whether nothing has to be waited for: every partition that has records is noted, whoever shares a stream with
        us has been heard of, or was waited for enough."""
        if self._assigned is not None:
            return now - self._assigned > self._patience
        return all(now - since > self._patience for _, since in self._awaited.values()) and not any(
            self._moving(seen, now) and not seen.alive and self._shares(seen) for seen in self._seen.values()
        )

    def elsewhere(self, stream: str, span: Span, now: float) -> bool:
        """Whether others have, or are about to read, events of a stream from this time."""
        return any(
            seen.brings(standing, span, self._moving(seen, now))
            for seen in self._seen.values()
            for standing in self._standing_for(stream, seen.notes)
        )

    def spread(self, now: float) -> frozenset[str]:
        """The streams of which both we and others get events just now."""
        newest: dict[str, int] = {}
        for spans in self._ours.values():
            for stream, span in spans.items():
                if now - self._came[stream] < JUST_NOW:
                    newest[stream] = max(newest.get(stream, span.newest), span.newest)
        return frozenset(
            member for member, at in newest.items() if self.elsewhere(member, Span(at - JUST_NOW, at), now)
        )

    def _moving(self, seen: _Seen, now: float) -> bool:
        """Whether somebody may read on there."""
        return now - seen.since < self._stands_still

    def _shares(self, seen: _Seen) -> bool:
        """Whether events of a stream from a time from which we have some have come there, too, or may be about to."""
        return any(
            seen.brings(standing, span, moving=True)
            for spans in self._ours.values()
            for stream, span in spans.items()
            for standing in self._standing_for(stream, seen.notes)
        )

    def _standing_for(self, stream: str, notes: Notes) -> Collection[int]:
        """The stream itself; or, where a partition brings more than are noted, those of ours that are among them."""
        if len(notes.streams) < NOTED_STREAMS or hashed(stream) <= max(notes.streams):
            return (hashed(stream),)
        return [hashed(ours) for spans in self._ours.values() for ours in spans]
