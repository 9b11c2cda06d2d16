"""Alarms with a budget: evidence of a change that small windows gather together, at a guaranteed rate of false alarms.

Series: the share of each class, in both directions, the distance of each feature, and the fit. Each is a score that is
standard normal without a change, or nearer to 0. (What late labels say of the scores is another one: `concept`.) An
alarm begins when the evidence of a series is as large as its part of the budget asks for, and ends when windows have
spoken against it: three messages with one id, `raised`, `updated` and `resolved`.
"""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import NamedTuple

import msgspec
import numpy as np
from scipy.special import ndtri

from monitor.assessment import Assessment, share_scores, spread
from monitor.pages import moment
from monitor.ports import Message
from monitor.reference import FiledReference
from monitor.shifts import SeriesEvidence
from monitor.state.alarm_message import Event, OpenAlarm, alarm_message
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan
from monitor.tolerances import CALM_EVIDENCE, LEAST_SCORE, NULL_ERROR, RESOLVED_ODDS, SCORE_LIMIT

FIT = "label-shift-fit"

Scores = Mapping[str, Mapping[str, float]]
"""By group, then by series."""


class SeriesState(msgspec.Struct, frozen=True, array_like=True):
    """One series: what has been gathered since it was calm."""

    logs: tuple[float, ...]
    precision: float
    weighted: float
    since: int
    """When the first window began that shows a change, of those since it was calm; microseconds."""
    windows: int
    """Since then, and the sum of their scores."""
    total: float


_NOTHING = SeriesState(tuple(SeriesEvidence.none(1).logs[0].tolist()), 1.0, 0.0, 0, 0, 0.0)


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
        if seen.window.key.start < state.until or not seen.assessment.recalibration.complete or not rate:
            return Advanced(state)
        held = seen.assessment.hold_out_events if isinstance(seen.assessment, Assessment) else reference.events
        return _advanced(state, seen, rate, seen.window.events / max(seen.window.events + held, 1))

    return Concern("evidence", version=1, state=EvidenceState, advance=advance, new_reference="begins anew")


def scores(seen: WindowSeen) -> dict[str, dict[str, float]]:
    """The series of a window."""
    shares = _shares(seen.assessment) if isinstance(seen.assessment, Assessment) else {}
    moves = [(f"distance of {name}", shift.move) for name, shift in seen.assessment.features.items()]
    fit = seen.assessment.tests.get(FIT)
    p_values = [min(2 * min(move.p_value, move.missing_p), 1.0) for _, move in moves]
    fits = [] if fit is None or fit.p_value is None else [fit.p_value]
    # Standard normal where p-values are uniform.
    normal = np.maximum(-ndtri([*p_values, *fits]), LEAST_SCORE).tolist()
    found = {
        "shares": {f"{name} rises": score for name, score in shares.items()}
        | {f"{name} falls": -score for name, score in shares.items()},
        "features": {name: score for (name, _), score in zip(moves, normal, strict=False)},
        "fit": {"fit": normal[-1]} if fits else {},
    }
    return {group: series for group, series in found.items() if series}


def _shares(assessment: Assessment) -> dict[str, float]:
    """Of each class, of two classes of one: the other says the same."""
    mix, first = assessment.label_shift or assessment.prevalence, 1 if len(assessment.classes) == 2 else 0
    errors = spread(mix) if assessment.calm_errors is None else assessment.calm_errors
    held = share_scores(mix.priors, assessment.source_priors, errors, assessment.events, assessment.hold_out_events)
    return {
        f"share of {name}": score for name, score in zip(assessment.classes[first:], held[first:].tolist(), strict=True)
    }


class _SeriesScore(NamedTuple):
    """One series of one window."""

    name: str
    score: float
    threshold: float
    """The logarithm of the evidence that raises an alarm."""
    shared: float
    """The part of the score's variance that windows have in common."""


def _rows(seen: WindowSeen, rate: float, shared: float) -> list[_SeriesScore]:
    """Each group has the same part of the budget, and in it each series."""
    groups = scores(seen)
    return [
        _SeriesScore(name, min(max(score, -SCORE_LIMIT), SCORE_LIMIT), threshold, common)
        for group, series in groups.items()
        for threshold in [log(len(groups) * len(series) / rate)]
        for common in [shared if group == "shares" else max(shared, NULL_ERROR)]
        for name, score in sorted(series.items())
    ]


def _advanced(state: EvidenceState, seen: WindowSeen, rate: float, reference: float) -> Advanced[EvidenceState]:
    rows = _rows(seen, rate, reference)
    shared = np.array([row.shared for row in rows])
    before = [state.series.get(row.name, _NOTHING) for row in rows]
    evidence = SeriesEvidence(
        np.array([series.logs for series in before]),
        np.array([series.precision for series in before]),
        np.array([series.weighted for series in before]),
    )
    scores = np.array([row.score for row in rows])
    calm = evidence.log_total < log(CALM_EVIDENCE)
    steps = evidence.increments(scores, shared).tolist()
    after = evidence.plus(scores, shared, np.array([row.name not in state.alarms for row in rows]))
    totals, gathered = after.log_total.tolist(), _gathered(before, calm.tolist(), after, seen.window.key.start, steps)
    known, alarms, messages = dict(state.series), dict(state.alarms), list[Message]()
    for row, series, total, step in zip(rows, gathered, totals, steps, strict=True):
        known[row.name] = series
        alarm = alarms.pop(row.name, None)
        if alarm is not None:
            alarm, event = _went_on(alarm, step)
        elif total >= row.threshold:
            alarm, event = _raised(series, row.threshold), "raised"
        else:
            continue
        # While an alarm is open its series gathers nothing, and afterwards it begins anew.
        known[row.name] = msgspec.structs.replace(_NOTHING, precision=series.precision, weighted=series.weighted)
        if event:
            messages.append(_message(seen, row.name, alarm, event))
        if event != "resolved":
            alarms[row.name] = alarm
    return Advanced(EvidenceState(seen.window.key.end, known, alarms), messages)


def _gathered(
    before: Sequence[SeriesState], calm: Sequence[bool], after: SeriesEvidence, start: int, steps: Sequence[float]
) -> list[SeriesState]:
    """The series with one window more; those that were calm begin with it, and those of which it says more alone."""
    begun = (
        _NOTHING if one_calm or _louder(step, one) else one
        for one, one_calm, step in zip(before, calm, steps, strict=True)
    )
    columns = (after.logs.tolist(), after.precision.tolist(), after.weighted.tolist(), steps)
    return [
        SeriesState(tuple(logs), precision, weighted, one.since or start, one.windows + 1, round(one.total + step, 6))
        for one, logs, precision, weighted, step in zip(begun, *columns, strict=True)
    ]


def _louder(step: float, series: SeriesState) -> bool:
    """Whether a change that began with this window is likelier than one that began where the series does.

    The likelihood ratio of a shift of the mean against none, at its best size, is exp(total^2 / 2 windows). By chance a
    series is not calm for a hundred windows and more, and a change that comes then would seem as old.
    """
    return step > 0 and step**2 > max(series.total + step, 0.0) ** 2 / (series.windows + 1)


def _raised(series: SeriesState, threshold: float) -> OpenAlarm:
    return OpenAlarm(series.since, series.windows, series.total, round(exp(threshold), 1))


def _went_on(alarm: OpenAlarm, step: float) -> tuple[OpenAlarm, Event | None]:
    """With one window more: the odds for no shift against one of the alarm's size decide whether it is over."""
    against = max(0.0, round(alarm.against + alarm.size**2 / 2 - alarm.size * step, 6))
    windows = alarm.windows + 1
    alarm = OpenAlarm(alarm.since, windows, round(alarm.total + step, 6), alarm.threshold, against)
    if against > log(RESOLVED_ODDS) or alarm.size <= 0:
        return alarm, "resolved"
    return alarm, "updated" if windows & (windows - 1) == 0 else None


def _message(seen: WindowSeen, name: str, alarm: OpenAlarm, state: Event) -> Message:
    since = f"{moment(alarm.since)} UTC"
    words = {
        "raised": f"{name}: {alarm.size:.2g} standard errors a window on average since {since}; by chance so much "
        f"evidence comes about once in {alarm.threshold:,.0f} windows",
        "updated": f"{name}: still {alarm.size:.2g} standard errors a window on average since {since}",
        "resolved": f"{name}: the last windows speak {RESOLVED_ODDS:.0f} to 1 against it",
    }
    return alarm_message(
        seen.window.key,
        state,
        name,
        since=alarm.since,
        windows=alarm.windows,
        size=alarm.size,
        once_in=alarm.threshold,
        reason=words[state],
        alert="ShiftwatchEvidence",
    )
