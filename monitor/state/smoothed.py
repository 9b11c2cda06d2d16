"""The class mix now: that of all windows so far, of which each is small and noisy (`priors.smoothing`).

A segment's levels may follow those of its whole stream, whose state has seen the same window before.

- Windows whose own estimate may not be trusted move no level: those with too few events, those that lack events by a
  fault, those with events of no known class or with labels that no longer follow the scores, and those whose estimate
  did not converge or is not unique. The interval grows meanwhile.
- Windows of which label shift is not all that happened are shown as they are, and move no level: they have their errors
  in common, and nothing averages these out. On real streams whose mix differs from window to window the level came out
  up to a sixth worse (hourly and daily weather in windows of a week and of four months).
- Windows that overlap with the last that was counted, as sliding ones do, leave the level where it is.
"""

from dataclasses import dataclass, replace
from typing import Any, cast

import msgspec
import numpy as np

from monitor.arrays import Vector
from monitor.assessment import Assessment, BasedOn, Verdict
from monitor.kinds import SmoothedMix
from monitor.priors import Levels
from monitor.recalibration import retargeted
from monitor.reference import FiledReference, Reference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan
from monitor.tolerances import LEAST_ERROR, LEVEL_REACH, NORMAL_95
from monitor.windows import WindowKey, faults

NAME = "smoothed"

Rows = tuple[tuple[float, ...], ...]

_ELSEWHERE = {Verdict.UNKNOWN_CLASS, Verdict.CONCEPT_SHIFT}
"""Scores do not mean there what they meant on the hold-out, or events are of none of its classes."""


class SmoothedState(msgspec.Struct, frozen=True):
    """Four filters of each class, eight in segments, of two classes of one: 300 or 600 bytes a class."""

    until: int = 0
    """When the last window ended that was counted."""
    means: Rows = ()
    """Empty before the first window that may be trusted."""
    variances: Rows = ()
    logs: Rows = ()
    noise: tuple[float, ...] = ()
    events: float = 0.0
    common: tuple[float, ...] = ()
    """Variance that no number of windows averages out."""
    whole: tuple[float, ...] = ()
    """Of a segment: where the levels of its stream were then."""

    @property
    def levels(self) -> Levels | None:
        """As arrays."""
        if not self.means:
            return None
        means, variances, logs = (np.array(rows) for rows in (self.means, self.variances, self.logs))
        return Levels(means, variances, logs, np.array(self.noise), self.events)


def smoothed(plan: StatePlan, reference: FiledReference) -> Concern[SmoothedState] | None:
    """The concern, for streams of classifiers."""
    if not isinstance(reference, Reference):
        return None

    def advance(state: SmoothedState, seen: Seen) -> Advanced[SmoothedState]:
        if not isinstance(seen, WindowSeen):
            return Advanced(state)
        after = _after(state, seen)
        assessment = cast(Assessment, seen.assessment)
        mix = _mix(after, assessment)
        if mix is None:
            return Advanced(after)
        seen = replace(seen, smoothed=mix)
        if plan.target == "smoothed" and seen.recalibration.apply:
            half = (np.array(mix.upper) - np.array(mix.lower)) / 2
            feed = retargeted(seen.recalibration, np.array(mix.priors), half, assessment.hold_out_events)
            seen = replace(seen, feed=feed)
        return Advanced(after, seen=seen)

    return Concern(NAME, version=1, state=SmoothedState, advance=advance, new_reference="begins anew")


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    """What a window says, of all classes but the first of two."""

    shares: Vector
    own: Vector
    """Variance that no other window shares."""
    common: Vector
    """Variance that is the reference's."""
    events: int


def _after(state: SmoothedState, seen: WindowSeen) -> SmoothedState:
    """The state with one window more."""
    key, levels = seen.window.key, state.levels
    windows = _passed(key, state.until) if state.until else 1.0
    if not windows:
        return state
    said, whole = _said(cast(Assessment, seen.assessment)), _whole(seen)
    if levels is not None:
        stood = np.array(state.whole)
        levels = levels.ahead(windows, whole - stood if whole is not None and stood.size else None)
    if said is not None:
        noise = said.own * said.events
        if levels is None:
            levels = Levels.of(said.shares, noise, said.events, following=whole is not None)
        else:
            levels = levels.plus(said.shares, noise, said.events)
        state = msgspec.structs.replace(state, common=_row(said.common))
    if levels is None:
        return state
    return msgspec.structs.replace(
        state,
        until=key.end,
        means=_rows(levels.means),
        variances=_rows(levels.variances),
        logs=_rows(levels.logs),
        noise=_row(levels.noise),
        events=levels.events,
        whole=() if whole is None else _row(whole),
    )


def _passed(key: WindowKey, until: int) -> float:
    """How many windows later this one ends; 0 where it overlaps with the last. Windows by count follow one another."""
    if key.number:
        return 1.0
    return (key.end - until) / max(key.end - key.start, 1) if key.start >= until else 0.0


def _trusted(assessment: Assessment) -> bool:
    """Whether the window's own estimate may be."""
    mix, unsure = assessment.prevalence, assessment.verdict.silent or assessment.verdict in _ELSEWHERE
    return not (unsure or faults(assessment.origin.gaps)) and bool(mix.converged and mix.unique)


def _said(assessment: Assessment) -> _Said | None:
    """Nothing, where the window moves no level."""
    mix, held = assessment.label_shift, assessment.hold_out_events
    if not _trusted(assessment) or mix is None:
        return None
    first = 1 if mix.priors.size == 2 else 0
    variances = np.maximum((mix.upper - mix.lower)[first:] / (2 * NORMAL_95), LEAST_ERROR) ** 2
    own = variances * held / (mix.events + held)
    return _Said(mix.priors[first:], own, variances - own, mix.events)


def _whole(seen: WindowSeen) -> Vector | None:
    """Where the levels of the segment's stream are; None for a whole stream, and where they are not known."""
    state: Any = seen.whole.get(NAME)
    levels = state.levels if isinstance(state, SmoothedState) else None
    return None if levels is None else levels.estimate[0]


def _mix(state: SmoothedState, assessment: Assessment) -> SmoothedMix | None:
    """Shares that sum to one, each with its interval."""
    mix, levels = assessment.prevalence, state.levels
    if _trusted(assessment) and assessment.based_on is not BasedOn.LABEL_SHIFT:
        return SmoothedMix(_row(mix.priors), _row(mix.lower), _row(mix.upper))
    if levels is None:
        return None
    means, variances = levels.estimate
    reach = LEVEL_REACH * np.sqrt(variances + np.array(state.common))
    shares = np.clip(means, 0.0, 1.0)
    if mix.priors.size == 2:
        shares, reach = np.array([1.0 - shares[0], shares[0]]), np.repeat(reach, 2)
    shares = shares / shares.sum()
    return SmoothedMix(_row(shares), _row(np.clip(shares - reach, 0.0, 1.0)), _row(np.clip(shares + reach, 0.0, 1.0)))


def _row(values: Vector) -> tuple[float, ...]:
    return tuple(values.tolist())


def _rows(values: np.ndarray[Any, np.dtype[np.float64]]) -> Rows:
    return tuple(map(tuple, values.tolist()))
