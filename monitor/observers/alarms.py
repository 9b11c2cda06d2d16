"""What the windows of a stream say one after another: alarms that persist, and levels that changed.

An observer that remembers, and tells the other observers what it saw. A window's result does not depend on it and
stays a function of that window alone; so a restart loses nothing but this memory, which begins empty again.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from monitor.errors import InputError
from monitor.kinds import AnyReading
from monitor.limits import SAMPLED_OF_WINDOW, SAMPLED_TOGETHER, SEGMENT_TRACKS
from monitor.reference.classifier import Reference
from monitor.service.notices import Happening, Observer, SeriesSeen, WindowAssessed
from monitor.service.publishing import Watched

if TYPE_CHECKING:
    from monitor.shifts.changes import ChangePoints, PriorShiftDetector

KOLMOGOROV_MEAN = math.sqrt(math.pi / 2) * math.log(2)
KOLMOGOROV_DEVIATION = math.sqrt(math.pi**2 / 12 - math.pi / 2 * math.log(2) ** 2)

OF_EVENTS = "prior-shift"
"""The detector that looks at events; the others look at one value a window of each series."""


@dataclass(frozen=True, slots=True)
class SeriesPlan:
    """When a stream's alarm is raised, and what looks for changes of level."""

    windows: int = 2
    of: int = 3
    detector: str | None = None


@dataclass(slots=True)
class _Memory:
    """Of one stream, or of one of its segments."""

    flags: deque[bool]
    alarm: bool = False
    values: "ChangePoints | None" = None
    events: "PriorShiftDetector | None" = None


@dataclass(slots=True)
class Series:
    """Watches the windows of all streams as they are assessed."""

    plans: Mapping[str, SeriesPlan]
    watched: Mapping[str, Watched]
    tell: Sequence[Observer]
    _memories: dict[tuple[str, str], _Memory] = field(default_factory=dict)

    def __call__(self, happening: Happening) -> None:
        """Look at a window, and tell the others."""
        if isinstance(happening, WindowAssessed) and happening.window.key.stream in self.plans:
            seen = self._see(happening)
            for observer in self.tell:
                observer(seen)

    def _see(self, assessed: WindowAssessed) -> SeriesSeen:
        key, verdict = assessed.window.key, assessed.assessment.verdict
        plan, memory = self.plans[key.stream], self._memory(key.stream, key.segment)
        before = memory.alarm
        if not verdict.silent:
            memory.flags.append(verdict.moved)
            memory.alarm = persistent(list(memory.flags), plan.windows, plan.of)
        return SeriesSeen(
            key=key,
            flagged=sum(memory.flags),
            judged=len(memory.flags),
            alarm=memory.alarm,
            turned=memory.alarm != before,
            detector=plan.detector or "",
            changes=() if verdict.silent else self._changes(memory, assessed),
        )

    def _changes(self, memory: _Memory, assessed: WindowAssessed) -> tuple[str, ...]:
        key = assessed.window.key
        if memory.values is not None:
            found = memory.values.update(key.id, _values(assessed.reading))
            return tuple(change.series for change in found)
        if memory.events is None or assessed.window.sample is None:
            return ()
        detected = False
        for row in assessed.window.sample:
            memory.events.update(row)
            detected = detected or memory.events.drift_detected
        return ("class mix",) if detected else ()

    def _memory(self, stream: str, segment: str) -> _Memory:
        """That of this stream or segment, fresh if need be; segments that were not seen for longest are let go."""
        memory = self._memories.pop((stream, segment), None) or self._fresh(stream)
        self._memories[stream, segment] = memory
        segments = [name for name in self._memories if name[0] == stream and name[1]]
        if len(segments) > SEGMENT_TRACKS:
            del self._memories[segments[0]]
        return memory

    def _fresh(self, stream: str) -> _Memory:
        plan, reference = self.plans[stream], self.watched[stream].reference
        memory = _Memory(deque(maxlen=plan.of))
        if plan.detector is None:
            return memory
        from monitor.shifts.changes import ChangePoints, PriorShiftDetector  # noqa: PLC0415 - River takes half a second

        if plan.detector == OF_EVENTS and isinstance(reference, Reference):
            null = reference.statistics.get("em") or None
            memory.events = PriorShiftDetector(
                reference.source_priors, size=SAMPLED_TOGETHER, step=SAMPLED_OF_WINDOW, null=null
            )
        else:
            memory.values = ChangePoints(plan.detector)
        return memory


def persistent(flags: Sequence[bool], k: int, m: int) -> bool:
    """Whether at least k of the last m windows were flagged.

    With a false alarm in 1 of 100 windows, 2 of 3 come by chance once in 3,300 windows, 3 of 5 once in 100,000.
    """
    if not 1 <= k <= m:
        raise InputError(f"k of m: want 1 <= k <= m, got {k} of {m}")
    return sum(flags[-m:]) >= k


def _values(reading: AnyReading) -> dict[str, float]:
    """The series of a window, each in units of its own sampling error, so that one detector suits all sizes of windows.

    Beside those of its kind, the distance D of each feature: sqrt(n) D by the mean and the standard deviation of
    Kolmogorov's law.
    """
    distances = (np.sqrt(reading.events) * reading.effects - KOLMOGOROV_MEAN) / KOLMOGOROV_DEVIATION
    features = zip(reading.features, distances.tolist(), strict=True)
    return {**reading.answer.levels(), **{f"distance of {name}": score for name, score in features}}
