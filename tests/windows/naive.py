"""The slow, obvious twin of the windowing rules: one event at a time, plain Python, all input at once."""

from collections import defaultdict
from dataclasses import dataclass

from monitor.ports import NEVER


@dataclass(frozen=True)
class Event:
    """One record: a rejected one has no time."""

    time: int | None
    value: float


@dataclass
class Content:
    values: list[float]
    late: int = 0
    rejected: int = 0


def windows(partitions: dict[str, list[Event]], size: int, slide: int, lateness: int) -> dict[int, Content]:
    """What each window [start, start + size) must hold once all input has been seen, by start."""
    contents: dict[int, Content] = defaultdict(lambda: Content([]))

    def starts(time: int) -> range:
        pane = time // slide * slide
        return range(pane - size + slide, pane + slide, slide)

    for events in partitions.values():
        newest = NEVER
        for event in events:
            if event.time is None:
                if newest != NEVER:
                    for start in starts(newest):
                        contents[start].rejected += 1
                continue
            newest = max(newest, event.time)
            late = event.time < newest - lateness
            for start in starts(newest if late else event.time):
                if late:
                    contents[start].late += 1
                else:
                    contents[start].values.append(event.value)
    return {start: content for start, content in sorted(contents.items()) if content.values}
