"""What is known of a stream, or of a segment of it, as far as its page is about it: the windows that are chosen."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

from monitor.kinds import AnswerT_co, AnyReading, Reading
from monitor.labels import OutcomeResult
from monitor.observers import StreamFacts, Track
from monitor.web.page.charts import Bins
from monitor.web.page.choice import HOUR, LASTING, Choice, written


@dataclass(frozen=True)
class Card(Generic[AnswerT_co]):
    """All that is known of a stream, or of a segment, that has had a window in the range that is chosen."""

    facts: StreamFacts
    tracks: Mapping[str, Track]
    now: float
    choice: Choice

    @property
    def track(self) -> Track:
        """The track of the whole stream, or of the segment that is chosen."""
        return self.tracks[self.choice.segment]

    @cached_property
    def readings(self) -> Sequence[Reading[AnswerT_co]]:
        """The windows in the range that is chosen; up to the window that is."""
        return within(self.track.readings, self.choice)

    @property
    def latest(self) -> Reading[AnswerT_co]:
        """The newest of them: what a page says in words is about this one."""
        return self.readings[-1]

    @property
    def current(self) -> bool:
        """Whether no newer window is known."""
        return self.latest is self.track.latest

    @cached_property
    def outcomes(self) -> Sequence[OutcomeResult]:
        """Of the windows in the range, or of the one that is chosen."""
        ends = {reading.key.end for reading in (self.readings if self.choice.window is None else [self.latest])}
        return [outcome for outcome in self.track.outcomes if outcome.ends in ends]

    @cached_property
    def bins(self) -> Bins:
        """The windows as all charts show them."""
        return Bins(self.readings)

    @property
    def addresses(self) -> Mapping[str, Sequence[str]]:
        """What the script goes to from a chart: by bin, its gravest window, and from when until when it is."""
        return {
            "window": [self.choice.link(window=reading.key.end) for reading in self.bins.worst],
            "from": [written(group[0].key.start) for group in self.bins.groups],
            "to": [written(group[-1].key.end) for group in self.bins.groups],
        }


def within(readings: Sequence[AnyReading], choice: Choice) -> Sequence[AnyReading]:
    """The windows that ended in the range that is chosen, or up to the window that is."""
    if not readings:
        return readings
    until = choice.window or choice.until or readings[-1].key.end
    since = choice.since or 0
    if choice.last in LASTING:
        since = readings[-1].key.end - LASTING[choice.last] * HOUR
    ends = [reading.key.end for reading in readings]
    return readings[bisect_left(ends, since + 1) : bisect_right(ends, until)]
