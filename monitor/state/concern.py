"""What a concern is: one thing that is known over the windows of a stream, and how a window or an outcome changes it.

Pure: a state is a frozen value, and what follows it depends on it and on what was seen alone. No clock, no I/O.

A concern may also change what is published. Whoever comes after it in `CONCERNS`, the result, the feed and all
observers see the window or outcome as it has left it (`Advanced.seen`): that is the one place where what is known over
windows enters what is said of one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import msgspec

from monitor.arrays import Vector
from monitor.assessment import Level, VolumePart, encode, with_smoothed, with_volume
from monitor.kinds import AnyReading, Assessed, SmoothedMix, kind_of, reading_of
from monitor.labels import Outcome, Settlement
from monitor.ports import Message
from monitor.recalibration import Recalibration
from monitor.windows import Window, WindowSummary

StateT = TypeVar("StateT", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Written:
    """An assessment and its messages, written where the window was assessed."""

    assessment: Assessed
    result: bytes
    recalibration: bytes


@dataclass(frozen=True)
class WindowSeen:
    """A window was assessed."""

    assessment: Assessed
    """What its result says."""
    window: WindowSummary
    seconds: float
    """How long that took. No state may depend on it."""
    feed: Recalibration | None = None
    """What the feed says where that is something else than the result does."""
    smoothed: SmoothedMix | None = None
    """The class mix now, as the windows so far tell it together."""
    volume: VolumePart | None = None
    """How many events there were, beside the same hour of earlier days."""
    whole: Mapping[str, Any] = field(default_factory=dict)
    """Of a segment's window: the states of its whole stream, which have seen the same window, by concern."""
    doubt: str = ""
    """Why labels say that the estimates are off; empty if they do not."""
    experts: Mapping[str, Vector] = field(default_factory=dict)
    """Estimates of the class mix that labels are to choose among; they are kept until the labels come."""
    examined: Mapping[str, Any] = field(default_factory=dict)
    """By concern: what its `examine` found."""
    written: Written | None = None
    """What need not be written again as long as no concern has changed it."""

    @property
    def recalibration(self) -> Recalibration:
        """The recalibration as the feed has it."""
        return self.assessment.recalibration if self.feed is None else self.feed

    @cached_property
    def result_message(self) -> bytes:
        """The result, as it is published."""
        unchanged = self.written is not None and self.written.assessment is self.assessment
        result = self.written.result if self.written is not None and unchanged else self.assessment.to_json()
        result = result if self.volume is None else with_volume(result, self.volume)
        return result if self.smoothed is None else with_smoothed(result, self._levels(self.smoothed))

    def _levels(self, smoothed: SmoothedMix) -> dict[str, Level]:
        columns = zip(smoothed.priors, smoothed.lower, smoothed.upper, strict=True)
        return {name: Level(*column) for name, column in zip(self.recalibration.classes, columns, strict=True)}

    @cached_property
    def recalibration_message(self) -> bytes:
        """What the feed says, as it is published."""
        if self.written is not None and self.written.assessment.recalibration is self.recalibration:
            return self.written.recalibration
        return encode(self.recalibration)

    @cached_property
    def reading(self) -> AnyReading:
        """What is remembered of it: made once, for whoever asks first."""
        kind = kind_of(self.assessment)
        answer = kind.read(self.assessment, self.window, self.recalibration, self.smoothed)
        volume = None if self.volume is None else self.volume.ratio
        return reading_of(self.assessment, answer, self.window, self.recalibration, doubt=self.doubt, volume=volume)


Seen = WindowSeen | Outcome | Settlement
"""What states are advanced by, in the order of event time. Nothing is published of a settlement."""
SeenT = TypeVar("SeenT", bound=Seen)


Whose = tuple[str, str]
"""A stream and a segment; the segment of a whole stream is empty."""


def owner(seen: Seen) -> Whose:
    """The stream and the segment that a window or an outcome belongs to."""
    if isinstance(seen, Settlement):
        return seen.stream, ""
    key = seen.window.key if isinstance(seen, WindowSeen) else seen.result
    return key.stream, key.segment


@dataclass(frozen=True, slots=True)
class Advanced(Generic[StateT]):
    """What follows from what was seen."""

    state: StateT
    messages: Sequence[Message] = ()
    """What is published because of it, with the results and in the same commit."""
    seen: Seen | None = None
    """What is to be published in the place of what was seen, where that is something else."""
    entry: Any = None
    """What is remembered of this window beside the state, of a concern that keeps `entries`."""


@dataclass(frozen=True, slots=True)
class Concern(Generic[StateT]):
    """One thing that is known over the windows of a stream, and of each of its segments."""

    name: str
    version: int
    """Of what is written; grows with every change that older bytes cannot be read with. Entries of another version are
    forgotten."""
    state: type[StateT]
    """A frozen msgspec Struct with a default for every field: that is how a stream begins. Its size is bounded."""
    advance: Callable[[StateT, Seen], Advanced[StateT]]
    new_reference: Literal["goes on", "begins anew"]
    """What becomes of the state when the stream's windows are compared with another reference."""
    earlier: Mapping[int, Callable[[bytes], StateT]] = field(default_factory=dict)
    """By version: how the JSON that an earlier release has written becomes the state of this one."""
    examine: Callable[[Window, Assessed], Any] | None = None
    """What the concern needs of the events themselves: called where the window is assessed, in another process as a
    rule. What it finds is small, can be pickled, and depends on the window and the assessment alone."""
    entries: int = 0
    """How many entries of a whole stream are remembered, each as a record of its own."""
    segment_entries: int = 0
    """The same of each of its segments."""
    entry: Any = None
    """The type of an entry."""

    def most(self, segment: str) -> int:
        """How many entries are remembered of a segment, or of a whole stream."""
        return self.segment_entries if segment else self.entries


AnyConcern = Concern[Any]
