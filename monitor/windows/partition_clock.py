"""How far a partition has come, what it lacks, and which windows were published with it and without it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from monitor.arrays import Labels
from monitor.ports import NEVER
from monitor.windows.by_time import Spans
from monitor.windows.origin import OPEN, Gap, Stretch, widened
from monitor.windows.progress import PartitionProgress, PublishedSpan, grouped, ungrouped


@dataclass(slots=True)
class PartitionClock:
    """How far one partition has come."""

    running_max: int = NEVER
    read: int = 0
    closed: int = NEVER
    resumed: int = 0
    """Records before this were judged before the restart: what is left out of them was counted then."""
    lacks: tuple[Stretch, ...] = ()
    brought: set[str] = field(default_factory=set)
    """The streams of its events."""
    since: dict[str, int] = field(default_factory=dict)
    """By stream, where the earliest window begins that got any of them."""
    before: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By stream, which windows had been published without it when it came: where they begin, when they were due."""
    published: tuple[PublishedSpan, ...] = ()
    """Both, as they are kept."""

    @classmethod
    def fresh(cls, before: dict[str, list[tuple[int, int]]]) -> Self:
        """Of a partition that has not been read; `before` was published without it."""
        return cls(before=before, published=grouped({}, before))

    @classmethod
    def resumed_at(cls, progress: PartitionProgress) -> Self:
        """As it was committed."""
        since, before = ungrouped(progress.published)
        return cls(
            running_max=progress.running_max,
            read=progress.offset,
            closed=progress.closed,
            resumed=progress.read,
            lacks=progress.lacks,
            since=since,
            before=before,
            published=progress.published,
        )

    def spans(self, stream: str) -> Spans:
        """Which of a stream's windows are published, as far as this partition knows."""
        own = self.since.get(stream)
        return [*([] if own is None or own >= self.closed else [(own, self.closed)]), *self.before.get(stream, ())]

    def had(self, stream: str, start: int, deadline: int) -> bool:
        """Whether a window of a stream was closed with events of this partition, as far as it knows."""
        return self.since.get(stream, OPEN) <= start and deadline <= self.closed

    def note_first(self, first: Mapping[str, int]) -> None:
        """Say where the earliest window of each stream begins that got any of its events."""
        earlier = {name: start for name, start in first.items() if start < self.since.get(name, OPEN)}
        if earlier:
            self.since |= earlier
            self.published = grouped(self.since, self.before)

    def note_too_late(self, stream: str, marks: Labels, lateness: int) -> None:
        """Say where the clock stood when events came whose windows had been closed, or in the first window that is
        still open: that one has to say it."""
        last = max([self.closed, *(last for _, last in self.before.get(stream, ()))])
        still_open = last - lateness
        stretch = Stretch(Gap.IDLE, stream, max(int(marks[0]), still_open), max(int(marks[-1]), still_open))
        self.lacks = widened(self.lacks, stretch)

    def close(self, mark: int, remembered: int) -> None:
        """Everything that is due at a mark is published; what a window lacks may be asked for so long after it."""
        self.closed = max(self.closed, mark)
        self.lacks = tuple(gap for gap in self.lacks if gap.last + remembered > mark)
        if self.before:
            self.before = _after(self.before, self.closed)
            self.published = grouped(self.since, self.before)


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order, and those that overlap as one."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        begun, reached = joined.pop() if joined and first <= joined[-1][1] else (first, last)
        joined.append((begun, max(reached, last)))
    return joined


def _after(spans: Mapping[str, list[tuple[int, int]]], closed: int) -> dict[str, list[tuple[int, int]]]:
    """Those that reach beyond what is closed anyway."""
    left = {stream: [span for span in own if span[1] > closed] for stream, own in spans.items()}
    return {stream: own for stream, own in left.items() if own}
