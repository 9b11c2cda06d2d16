"""Where the events of a window come from, and what it lacks: everything that makes a window incomplete stands here.

A window lacks events where records were deleted before they could be read, where a partition was set aside as idle and
brought events after all, where events were left out by sampling, or where other members of a group have some of them.
The first two happen to a stretch of a partition's event time (`Stretch`), which outlives a restart with the progress.
Only a sample lacks them without a fault: which events it keeps has nothing to do with what they are.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

from monitor.ports import NEVER

OPEN = -NEVER
"""The end of a stretch that no event has followed yet."""


class Gap(StrEnum):
    """Why a window is incomplete."""

    SPREAD = "spread-over-members"
    """Other members of the group have events of it."""
    SKIPPED = "records-skipped"
    """Records were deleted before they could be read."""
    IDLE = "idle-partitions"
    """Events came whose windows had been closed, because their partition had been idle, or not there. The first window
    that can know says so, for those before it."""
    SAMPLED = "sampled"
    """It holds a uniform sample of its events, which were more than `max_events`."""

    @property
    def words(self) -> str:
        """For people, with what to do."""
        return _WORDS[self]


_WORDS = {
    Gap.SPREAD: "other members of the group have events of this window: key the topic by stream",
    Gap.SKIPPED: "records were deleted before they could be read: give the topic a longer retention",
    Gap.IDLE: "events came after their windows had been closed without them, because their partition was idle or came "
    "later: raise `idle` under [pace]",
    Gap.SAMPLED: "there were more events than `max_events`, and the window is a uniform sample of them",
}


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made a window, out of what."""

    partitions: tuple[str, ...] = ()
    """Those that brought any of it."""
    member: str = ""
    """Of a group; only where other members make other parts of the same window."""
    gaps: tuple[Gap, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every event of the window is in it."""
        return not self.gaps

    def lacking(self, gaps: Iterable[Gap]) -> Self:
        """The same with these gaps, too."""
        return replace(self, gaps=tuple(sorted({*self.gaps, *gaps})))


WHOLE = Origin()
"""Of windows that were made without a service."""


def faults(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """Those that may have left out some kinds of events rather than others, as a uniform sample does not."""
    return tuple(gap for gap in gaps if gap is not Gap.SAMPLED)


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one partition lacks: a stretch of its event time; microseconds."""

    gap: Gap
    stream: str
    """Empty: nobody knows of which streams, so it may be any that the partition brings."""
    first: int
    last: int

    def touches(self, stream: str, start: int, end: int) -> bool:
        """Whether a window of a stream may lack events because of it."""
        return self.stream in ("", stream) and self.first < end and self.last >= start


def widened(stretches: tuple[Stretch, ...], more: Stretch) -> tuple[Stretch, ...]:
    """With one more stretch; those of one kind and stream become one, so that there are never many."""
    same = [stretch for stretch in stretches if (stretch.gap, stretch.stream) == (more.gap, more.stream)]
    others = tuple(stretch for stretch in stretches if stretch not in same)
    first, last = min([more.first, *(s.first for s in same)]), max([more.last, *(s.last for s in same)])
    return (*others, replace(more, first=first, last=last))


def followed(stretches: tuple[Stretch, ...], time: int) -> tuple[Stretch, ...]:
    """An event at this time has followed the stretches that were open."""
    return tuple(
        replace(stretch, last=max(stretch.first, time)) if stretch.last == OPEN else stretch for stretch in stretches
    )
