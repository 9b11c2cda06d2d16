"""Alarms with a budget: evidence of a change that small windows gather together, at a guaranteed rate of false alarms.

Series: the share of each class, in both directions, the distance of each feature, and the fit. Each is a score that is
standard normal without a change. (What late labels say of the scores is another one: `concept`.) An alarm begins when
the evidence of a series is as large as its part of the budget asks for, and ends when windows have spoken against it:
three messages with one id, `raised`, `updated` and `resolved`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log

import msgspec
import numpy as np
from scipy.special import ndtri

from monitor.assessment import encode, rfc3339
from monitor.ports import Message
from monitor.reference import FiledReference
from monitor.shifts import SeriesEvidence
from monitor.state.alarm_message import SCHEMA_ID, AlarmEvent
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan
from monitor.tolerances import CALM_EVIDENCE, RESOLVED_ODDS, SCORE_LIMIT

FIT = "label-shift-fit"

Scores = Mapping[str, Mapping[str, float]]
"""By group, then by series."""


class SeriesState(msgspec.Struct, frozen=True, array_like=True):
    """One series: what has been gathered since it was calm."""

    logs: tuple[float, ...]
    precision: float
    weighted: float
    since: int
    """When the first window began that is not taken to be calm, microseconds."""
    windows: int
    """Since then, and the sum of their scores."""
    total: float


_NOTHING = SeriesState(tuple(SeriesEvidence.none(1).logs[0].tolist()), 1.0, 0.0, 0, 0, 0.0)


class OpenAlarm(msgspec.Struct, frozen=True):
    """An alarm that has begun and has not ended."""

    since: int
    windows: int
    total: float
    threshold: float
    """The evidence that raised it: by chance that comes about once in so many windows."""
    against: float = 0.0
    """The logarithm of the odds at which windows speak against it."""

    @property
    def size(self) -> float:
        """The shift, in standard errors of a window."""
        return self.total / self.windows


class EvidenceState(msgspec.Struct, frozen=True):
    """150 bytes a series."""

    until: int = 0
    """When the last window ended that was counted: those that overlap it are not."""
    series: dict[str, SeriesState] = {}
    alarms: dict[str, OpenAlarm] = {}
    """Those that are open, by series."""


def evidence(plan: StatePlan, reference: FiledReference) -> Concern[EvidenceState] | None:
    """Only where there is a budget."""
    budget = plan.budget
    if budget is None:
        return None

    def advance(state: EvidenceState, seen: Seen) -> Advanced[EvidenceState]:
        if not isinstance(seen, WindowSeen) or seen.assessment.verdict.silent:
            return Advanced(state)
        rate = budget.of_events(seen.window.key.segment, awaiting=plan.awaiting)
        if seen.window.key.start < state.until or not rate:
            return Advanced(state)
        return _advanced(state, seen, rate, seen.window.events / (seen.window.events + reference.events))

    return Concern("evidence", version=1, state=EvidenceState, advance=advance, new_reference="begins anew")


def scores(seen: WindowSeen) -> dict[str, dict[str, float]]:
    """The series of a window."""
    shares = seen.reading.answer.levels()
    features = {
        f"distance of {name}": _score(min(2 * min(shift.move.p_value, shift.move.missing_p), 1.0))
        for name, shift in seen.assessment.features.items()
    }
    fit = seen.assessment.tests.get(FIT)
    found = {
        "shares": {f"{name} rises": score for name, score in shares.items()}
        | {f"{name} falls": -score for name, score in shares.items()},
        "features": features,
        "fit": {} if fit is None or fit.p_value is None else {"fit": _score(fit.p_value)},
    }
    return {group: series for group, series in found.items() if series}


def _score(p_value: float) -> float:
    """Standard normal where the p-value is uniform."""
    return float(-ndtri(p_value))


@dataclass(frozen=True, slots=True)
class _Row:
    """One series of one window."""

    name: str
    score: float
    threshold: float
    """The logarithm of the evidence that raises an alarm."""


def _rows(seen: WindowSeen, rate: float) -> list[_Row]:
    """Each group has the same part of the budget, and in it each series."""
    groups = scores(seen)
    return [
        _Row(name, min(max(score, -SCORE_LIMIT), SCORE_LIMIT), log(len(groups) * len(series) / rate))
        for series in groups.values()
        for name, score in sorted(series.items())
    ]


def _advanced(state: EvidenceState, seen: WindowSeen, rate: float, shared: float) -> Advanced[EvidenceState]:
    rows = _rows(seen, rate)
    before = [state.series.get(row.name, _NOTHING) for row in rows]
    evidence = SeriesEvidence(
        np.array([series.logs for series in before]),
        np.array([series.precision for series in before]),
        np.array([series.weighted for series in before]),
    )
    scores = np.array([row.score for row in rows])
    calm = evidence.log_total < log(CALM_EVIDENCE)
    steps = evidence.increments(scores, shared).tolist()
    after = evidence.plus(scores, shared, calm & [row.name not in state.alarms for row in rows])
    totals = after.log_total.tolist()
    known, alarms, messages = dict(state.series), dict(state.alarms), list[Message]()
    for number, row in enumerate(rows):
        series = _gathered(_NOTHING if calm[number] else before[number], after, number, seen, steps[number])
        alarm = alarms.pop(row.name, None)
        if alarm is not None:
            alarm, event = _went_on(alarm, steps[number])
        else:
            alarm, event = _raised(series, totals[number], row.threshold)
        if alarm is not None:
            # While an alarm is open its series gathers nothing, and afterwards it begins anew.
            series = msgspec.structs.replace(_NOTHING, precision=series.precision, weighted=series.weighted)
            if event:
                messages.append(_message(seen, row.name, alarm, event))
            if event != "resolved":
                alarms[row.name] = alarm
        known[row.name] = series
    return Advanced(EvidenceState(seen.window.key.end, known, alarms), messages)


def _gathered(before: SeriesState, after: SeriesEvidence, number: int, seen: WindowSeen, step: float) -> SeriesState:
    """A series with one window more; where it was calm, it begins with this one."""
    return SeriesState(
        logs=tuple(after.logs[number].tolist()),
        precision=float(after.precision[number]),
        weighted=float(after.weighted[number]),
        since=before.since or seen.window.key.start,
        windows=before.windows + 1,
        total=round(before.total + step, 6),
    )


def _raised(series: SeriesState, evidence: float, threshold: float) -> tuple[OpenAlarm | None, str]:
    """An alarm, if there is evidence enough."""
    if evidence < threshold:
        return None, ""
    return OpenAlarm(series.since, series.windows, series.total, round(exp(threshold), 1)), "raised"


def _went_on(alarm: OpenAlarm, step: float) -> tuple[OpenAlarm, str]:
    """With one window more: the odds for no shift against one of the alarm's size decide whether it is over."""
    against = max(0.0, round(alarm.against + alarm.size**2 / 2 - alarm.size * step, 6))
    windows = alarm.windows + 1
    alarm = OpenAlarm(alarm.since, windows, round(alarm.total + step, 6), alarm.threshold, against)
    if against > log(RESOLVED_ODDS) or alarm.size <= 0:
        return alarm, "resolved"
    return alarm, "updated" if windows & (windows - 1) == 0 else ""


def _message(seen: WindowSeen, name: str, alarm: OpenAlarm, state: str) -> Message:
    key = seen.window.key
    of = f"{key.stream}/{key.segment}".rstrip("/")
    since = rfc3339(alarm.since)
    words = {
        "raised": f"{name}: {alarm.size:.2g} standard errors a window on average since {since}; by chance so much "
        f"evidence comes about once in {alarm.threshold:,.0f} windows",
        "updated": f"{name}: still {alarm.size:.2g} standard errors a window on average since {since}",
        "resolved": f"{name}: the last windows speak {RESOLVED_ODDS:.0f} to 1 against it",
    }
    event = AlarmEvent(
        schema=SCHEMA_ID,
        id=f"{of}/{name}/{since}",
        state=state,
        stream=key.stream,
        segment=key.segment,
        series=name,
        since=since,
        window=key.id,
        end=rfc3339(key.end),
        windows=alarm.windows,
        size=alarm.size,
        once_in=alarm.threshold,
        reason=words[state],
    )
    return Message("alarms", event.id.encode(), encode(event))
