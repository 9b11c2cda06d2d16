"""Which streams the other members of a group get events of: by what is noted beside the commits of their partitions.

Each member notes with its commits from when to when a partition has brought events of which stream. A window is whole
where no partition of another member has events of its stream from its time. A member that is behind has not noted yet
what it is about to read: where the last that it read was of a stream, more of that stream is taken to come, until its
commits stand still.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from connectors.kafka.driver import CommittedOffset, Partition
from connectors.kafka.progress import NOTED_STREAMS, Notes, Span, hashed, notes_of

STANDS_STILL = 15.0
"""Seconds without another commit after which a partition has nothing more to read: members that read commit sooner."""
PATIENCE = 30.0
"""Seconds after an assignment for which windows wait for the first commit of a partition that has records."""
AGO = 60
"""Seconds that count as just now."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the commit of a partition says, and since when it has said that."""

    offset: int | None
    """None: nobody has ever committed there."""
    notes: Notes
    since: float


class Sharing:
    """What is known of the partitions that other members have."""

    def __init__(self) -> None:
        self._seen: dict[Partition, _Seen] = {}
        self._unknown = True
        self._assigned = 0.0

    def assigned(self, now: float) -> None:
        """Other partitions are other members' now: what they bring is not known until the next look."""
        self._unknown, self._assigned = True, now

    def known(self, now: float) -> bool:
        """Whether no partition is left of which nothing is known, or they have been waited for long enough."""
        return not self._unknown or now - self._assigned > PATIENCE

    def look(self, committed: Mapping[Partition, CommittedOffset | None], now: float) -> None:
        """This is what the commits of all partitions of others say now."""
        seen = {}
        for partition, each in committed.items():
            offset, notes = (None, {}) if each is None else (each.offset, notes_of(each.metadata))
            before = self._seen.get(partition)
            still = before is not None and (before.offset, before.notes) == (offset, notes)
            seen[partition] = before if before is not None and still else _Seen(offset, notes, now)
        self._seen = seen

    @property
    def unnoted(self) -> list[Partition]:
        """The partitions of whose streams nobody has noted anything."""
        return [partition for partition, seen in self._seen.items() if not seen.notes]

    def judge(self, begins: Mapping[Partition, int], ends: Mapping[Partition, int]) -> None:
        """Which unnoted partitions have records that nobody has committed yet, by where they begin and end."""
        committed = {partition: self._seen[partition].offset for partition in ends}
        at = {partition: begins[partition] if offset is None else offset for partition, offset in committed.items()}
        self._unknown = any(at[partition] < end for partition, end in ends.items())

    def elsewhere(self, stream: str, span: Span, now: float, ours: Collection[str]) -> bool:
        """Whether others have, or are about to read, events of a stream from this time; `ours` are all of ours."""
        return any(
            _brings(seen, partition, span, now)
            for seen in self._seen.values()
            for partition in _standing_for(hashed(stream), seen.notes, ours)
        )


def _standing_for(stream: int, notes: Notes, ours: Collection[str]) -> Collection[int]:
    """The stream itself; or, where a partition brings more than are noted, those of ours that are among them."""
    if len(notes) < NOTED_STREAMS or stream <= max(notes):
        return (stream,)
    return [hashed(name) for name in ours]


def _brings(seen: _Seen, stream: int, span: Span, now: float) -> bool:
    noted = seen.notes.get(stream)
    if noted is None or noted.oldest > span.newest:
        return False
    newest = max(note.newest for note in seen.notes.values())
    to_come = now - seen.since < STANDS_STILL and noted.newest >= newest - AGO
    return noted.newest >= span.oldest or to_come
