"""Which streams the members of a group get events of: ours by what came, those of others by what their commits note.

Each member notes with its commits from when to when a partition has brought events of which stream, and how far it was
read. A window is whole where no partition of another member has events of its stream from its time. A member that is
behind has not noted yet what it is about to read: where the last that it read was of a stream, more of that stream is
taken to come, until it has read to the end or its commits stand still.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from connectors.kafka.driver import CommittedOffset, Partition, Reader
from connectors.kafka.progress import ALWAYS, NOTED_STREAMS, Notes, Span, hashed, notes_of

STANDS_STILL = 15.0
"""Seconds without another commit after which a partition has nothing more to read: members that read commit sooner. It
is where transactions end that a partition cannot be read to its end."""
PATIENCE = 30.0
"""Seconds for which windows wait until somebody has noted, or passed, the records of a partition."""
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

    def brings(self, stream: int, span: Span, now: float) -> bool:
        """Whether it has brought events of a stream from this time, or may be about to."""
        noted = self.notes.streams.get(stream)
        if noted is None or noted.oldest > span.newest:
            return False
        newest = max(noted.newest for noted in self.notes.streams.values())
        behind = self.notes.read < self.end and now - self.since < STANDS_STILL
        return noted.newest >= span.oldest or (behind and noted.newest >= newest - JUST_NOW)


class Sharing:
    """What is known of our partitions, and of those that other members have."""

    def __init__(self) -> None:
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
            still = before is not None and (before.offset, before.notes) == (offset, notes)
            since = before.since if before is not None and still else now
            seen[partition] = _Seen(offset if partition in committed else None, notes, ends[partition], since)
        self._seen = seen
        unnoted = {partition: each for partition, each in seen.items() if not each.notes.streams}
        begins = reader.earliest([partition for partition, each in unnoted.items() if each.offset is None])
        awaited = {}
        for partition, each in unnoted.items():
            at = max(begins.get(partition, 0), each.offset or 0, each.notes.read)
            end, since = self._awaited.get(partition, (each.end, now))
            if at >= end or (each.end > end and now - since > PATIENCE):
                end, since = each.end, now
            if at < end:
                awaited[partition] = end, since
        self._awaited, self._assigned = awaited, None

    def known(self, now: float) -> bool:
        """Whether nothing has to be waited for: every partition that has records is noted, or was waited for enough."""
        waits = [since for _, since in self._awaited.values()]
        return all(now - since > PATIENCE for since in (waits if self._assigned is None else [self._assigned]))

    def elsewhere(self, stream: str, span: Span, now: float) -> bool:
        """Whether others have, or are about to read, events of a stream from this time."""
        return any(
            seen.brings(standing, span, now)
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

    def _standing_for(self, stream: str, notes: Notes) -> Collection[int]:
        """The stream itself; or, where a partition brings more than are noted, those of ours that are among them."""
        if len(notes.streams) < NOTED_STREAMS or hashed(stream) <= max(notes.streams):
            return (hashed(stream),)
        return [hashed(ours) for spans in self._ours.values() for ours in spans]
