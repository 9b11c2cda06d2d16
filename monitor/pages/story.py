"""What happened to a stream over a period: its windows in time order, cut into episodes that lasted.

One window in a hundred differs by chance, so an episode is what would raise an alarm: of three windows in a row two had
moved. Windows that differ alone are counted, and told apart from episodes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby

from monitor.pages.messages import AlarmRead, DeadLetterRead, Message, OutcomeRead, WindowRead

SILENT, CALM = "insufficient-data", "stable"
ENOUGH, OF = 2, 3
"""So many of so many windows in a row make an episode."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Windows in a row that moved, and moved alike."""

    verdict: str
    windows: tuple[WindowRead, ...]

    @property
    def begin(self) -> int:
        """When its first window began,"""
        return self.windows[0].begin

    @property
    def until(self) -> int:
        """and its last ended; microseconds."""
        return self.windows[-1].until

    @property
    def shown(self) -> WindowRead:
        """The window that stands for it: the last with its verdict."""
        return next(window for window in reversed(self.windows) if window.told == self.verdict)


@dataclass(frozen=True)
class StreamStory:
    """One stream, or one of its segments."""

    stream: str
    segment: str
    windows: tuple[WindowRead, ...]
    """In the order of time."""
    outcomes: Mapping[str, OutcomeRead]
    """By window."""
    alarms: tuple[AlarmRead, ...]
    """The last message of each."""
    segments: tuple["StreamStory", ...] = ()

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        """What lasted, in the order of time; a window that is looked at alone stands for itself."""
        if len(self.windows) == 1 and _moved(self.windows[0]):
            return (Episode(self.windows[0].told, self.windows),)
        return tuple(_episodes([window for window in self.windows if window.told != SILENT]))

    @cached_property
    def alone(self) -> int:
        """Windows that differed and belong to no episode."""
        lasting = {window.window for episode in self.episodes for window in episode.windows}
        return sum(_moved(window) and window.window not in lasting for window in self.windows)

    @property
    def latest(self) -> WindowRead:
        """The newest window."""
        return self.windows[-1]

    @property
    def every_alarm(self) -> list[AlarmRead]:
        """Those of the stream and of its segments; the one that began first comes first."""
        alarms = [*self.alarms, *(alarm for part in self.segments for alarm in part.alarms)]
        return sorted(alarms, key=lambda alarm: alarm.begin)

    @property
    def open_alarms(self) -> list[AlarmRead]:
        """Those that had not ended when the period did."""
        return [alarm for alarm in self.every_alarm if alarm.state != "resolved"]

    @property
    def lasts(self) -> bool:
        """Whether the last episode had not ended when the period did."""
        judged = [window for window in self.windows if window.told != SILENT]
        return bool(self.episodes) and judged[-1].window == self.episodes[-1].windows[-1].window

    @cached_property
    def worst(self) -> Episode | None:
        """The episode with the most windows; None where nothing lasted."""
        return max(self.episodes, key=lambda episode: len(episode.windows), default=None)

    @property
    def watched(self) -> bool:
        """Whether any window had events enough."""
        return any(window.told != SILENT for window in self.windows)


@dataclass
class Gathering:
    """Messages as they are read, one by one: what is kept of each is small."""

    _windows: dict[tuple[str, str], dict[str, WindowRead]] = field(default_factory=dict)
    _outcomes: dict[tuple[str, str], dict[str, OutcomeRead]] = field(default_factory=dict)
    _alarms: dict[tuple[str, str], dict[str, AlarmRead]] = field(default_factory=dict)
    _newest: dict[tuple[str, str], WindowRead] = field(default_factory=dict)
    rejects: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Dead letters by stream and reason."""

    def add(self, message: Message) -> None:
        """One message more; the last one of a window, an outcome or an alarm holds."""
        if isinstance(message, DeadLetterRead):
            self.rejects[message.stream, message.reason] += 1
            return
        whose = (message.stream, message.segment)
        if isinstance(message, OutcomeRead):
            self._outcomes.setdefault(whose, {})[message.window] = message
        elif isinstance(message, AlarmRead):
            self._alarms.setdefault(whose, {})[message.id] = message
        else:
            self._windows.setdefault(whose, {})[message.window] = message.slim(sketches=_moved(message))
            newest = self._newest.get(whose)
            if newest is None or message.begin >= newest.begin:
                self._newest[whose] = message

    def stories(self) -> list[StreamStory]:
        """The streams by name, each with its segments."""
        whole = sorted({stream for stream, _ in self._windows})
        return [self._story(stream, "") for stream in whole if (stream, "") in self._windows]

    def _story(self, stream: str, segment: str) -> StreamStory:
        whose = (stream, segment)
        windows = {**self._windows[whose], self._newest[whose].window: self._newest[whose].slim(sketches=True)}
        segments = [] if segment else sorted(part for of, part in self._windows if of == stream and part)
        return StreamStory(
            stream=stream,
            segment=segment,
            windows=tuple(sorted(windows.values(), key=lambda window: (window.begin, window.window))),
            outcomes=self._outcomes.get(whose, {}),
            alarms=tuple(self._alarms.get(whose, {}).values()),
            segments=tuple(self._story(stream, part) for part in segments),
        )


def worst_first(stories: Iterable[StreamStory], rank: Mapping[str, int]) -> list[StreamStory]:
    """Streams that have not come to rest first, then those in alarm, those that have come to rest, and the calm ones;
    within these the graver."""

    def order(story: StreamStory) -> tuple[tuple[bool, ...], int, int, str]:
        grave = max((rank.get(episode.verdict, 0) for episode in story.episodes), default=0)
        lasting = sum(len(episode.windows) for episode in story.episodes)
        rest = (not story.lasts, not story.open_alarms, not story.episodes, story.watched)
        return rest, -grave, -lasting, story.stream

    return sorted(stories, key=order)


def _moved(window: WindowRead) -> bool:
    return window.told not in (SILENT, CALM)


def _episodes(windows: Sequence[WindowRead]) -> Iterator[Episode]:
    """Windows in an alarm by `ENOUGH` of `OF`, from the first that moved to the last, cut where the verdict changes."""
    flags = [_moved(window) for window in windows]
    lasting = [False] * len(flags)
    for at in range(len(flags)):
        first = max(at - OF + 1, 0)
        moved = [k for k in range(first, at + 1) if flags[k]]
        if len(moved) >= ENOUGH:
            lasting[moved[0] : moved[-1] + 1] = [True] * (moved[-1] + 1 - moved[0])
    for inside, run in groupby(zip(windows, lasting, strict=True), key=lambda pair: pair[1]):
        if inside:
            yield from _alike([window for window, _ in run])


def _alike(windows: Sequence[WindowRead]) -> Iterator[Episode]:
    """One episode for each verdict that lasted; windows with another verdict in between belong to what they are in."""
    runs = [list(run) for _, run in groupby(windows, key=lambda window: window.told)]
    parts: list[list[WindowRead]] = []
    for run in runs:
        if parts and (len(run) < ENOUGH or not _moved(run[0]) or _verdict(parts[-1]) == run[0].told):
            parts[-1].extend(run)
        else:
            parts.append(run)
    if len(parts) > 1 and len(parts[0]) < ENOUGH:
        parts[:2] = [parts[0] + parts[1]]
    yield from (Episode(_verdict(part), tuple(part)) for part in parts)


def _verdict(windows: Sequence[WindowRead]) -> str:
    """The most common one of those that moved, the last where several are."""
    counts = Counter(window.told for window in reversed(windows) if _moved(window))
    return counts.most_common(1)[0][0]
