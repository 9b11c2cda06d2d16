"""How a window advances the detectors of changes."""

import math
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np

from monitor.kinds import AnyReading
from monitor.limits import CHANGES_SHOWN, SAMPLED_OF_WINDOW, SAMPLED_TOGETHER
from monitor.reference import FiledReference, Reference
from monitor.shifts import DetectorValue
from monitor.shifts.changes import MADE_BY, Detector, PriorShiftDetector, detector
from monitor.state.change_state import OF_EVENTS, Change, ChangeState
from monitor.state.concern import Seen, WindowSeen

KOLMOGOROV_MEAN = math.sqrt(math.pi / 2) * math.log(2)
KOLMOGOROV_DEVIATION = math.sqrt(math.pi**2 / 12 - math.pi / 2 * math.log(2) ** 2)

EVENTS = "class mix"
"""The one series of a detector that looks at events."""


def advanced(state: ChangeState, seen: Seen, name: str, reference: FiledReference) -> ChangeState:
    """The state with one window more."""
    if not isinstance(seen, WindowSeen):
        return state
    if seen.assessment.verdict.silent:
        return msgspec.structs.replace(state, last=())
    before = state.detectors if (state.detector, state.made_by) == (name, MADE_BY) else {}
    updated = _of_events(before, seen, reference) if name == OF_EVENTS else _of_values(name, before, seen.reading)
    detectors, last = dict(before), list[str]()
    for series, value, detected in updated:
        detectors[series] = value
        last += [series] if detected else []
    key = seen.window.key
    changes = (*state.found, Change(key.id, key.start, key.end, tuple(last))) if last else state.found
    return ChangeState(name, MADE_BY, detectors, tuple(last), changes[-CHANGES_SHOWN:], state.count + len(last))


Updated = Iterator[tuple[str, DetectorValue | None, bool]]


def _of_values(name: str, before: Mapping[str, DetectorValue | None], reading: AnyReading) -> Updated:
    """A series that is new starts here, a value that is not finite is skipped."""
    for series, value in sorted(levels(reading).items()):
        if math.isfinite(value):
            known = _going_on(detector(name), before.get(series))
            known.update(value)
            yield series, _value(known), known.drift_detected


def _of_events(before: Mapping[str, DetectorValue | None], seen: WindowSeen, reference: FiledReference) -> Updated:
    sample = seen.examined.get("changes")
    if sample is None or not isinstance(reference, Reference):
        return
    usual = reference.usual_in(seen.window.key.segment)
    null = usual.statistics.get("em") or None
    fresh = PriorShiftDetector(usual.source_priors, size=SAMPLED_TOGETHER, step=SAMPLED_OF_WINDOW, null=null)
    known, detected = _going_on(fresh, before.get(EVENTS)), False
    for row in sample.astype(np.float32).astype(np.float64):
        known.update(row)
        detected = detected or known.drift_detected
    yield EVENTS, _value(known), detected


def _going_on(fresh: Detector, value: DetectorValue | None) -> Detector:
    if value:
        fresh.go_on(value)
    return fresh


def _value(known: Detector) -> DetectorValue | None:
    return None if known.drift_detected else known.value()


def levels(reading: AnyReading) -> dict[str, float]:
    """The series of a window, each in units of its own sampling error, so that one detector suits all sizes of windows.

    Those of the answer, and the distance D of each feature: sqrt(n) D by the mean and the standard deviation of
    Kolmogorov's law.
    """
    distances = (np.sqrt(reading.events) * reading.effects - KOLMOGOROV_MEAN) / KOLMOGOROV_DEVIATION
    names = (f"distance of {name}" for name in reading.features)
    return {**reading.answer.levels(), **dict(zip(names, distances.tolist(), strict=True))}
