"""Alarms on data quality, by the same budget: more records rejected, values missing or unknown than there used to be.

The shares of a window are held against those of all windows before it that began in the same hour of the day
(`monitor/shifts/conformal.py`): what comes by night does not look like a fault every night. While an alarm is open its
windows are kept apart. If windows speak against it they join the others when it ends; what has lasted for a week is
normal from then on, and the past that it differed from is forgotten.

Volume is no series of this: it goes by weeks and holidays, so that windows of the same hour are not alike, and with one
value a day half of the events would be missed for a week and more (`python -m tests.bench.volume`). Rules of Prometheus
tell of it.
"""

from collections.abc import Mapping, Sequence
from math import log
from typing import Final, NamedTuple

import msgspec
from scipy.special import ndtri

from monitor.ports import Message
from monitor.reference import FiledReference
from monitor.shifts import conformal
from monitor.state.alarm_message import Event, OpenAlarm, alarm_message
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan
from monitor.tolerances import CALM_EVIDENCE, LEAST_QUALITY, LEAST_SCORE, QUALITY_SETTLES, RESOLVED_ODDS

HOUR, HOURS = 3_600_000_000, 24

REJECTED, OTHERS = "rejected records", ("missing values", "values out of range", "new categories")
SERIES: Final = (REJECTED, *OTHERS)

Days = Mapping[int, conformal.Past]
"""Windows by the hour of the day in which they began."""


class QualitySeries(msgspec.Struct, frozen=True, array_like=True):
    """One series: 24 tables of some steps each, 100 bytes to 6 kB."""

    past: Days = {}
    sums: tuple[float, ...] = conformal.NOTHING_BET
    since: int = 0
    """When the first window began that is not taken to be calm, microseconds."""
    windows: int = 0
    """Since then, and the sum of their normal scores."""
    total: float = 0.0
    alarm: OpenAlarm | None = None
    apart: Days = {}
    """The windows since the alarm began."""


class QualityState(msgspec.Struct, frozen=True):
    """By series."""

    until: int = 0
    """When the last window ended that was counted: those that overlap it are not."""
    series: dict[str, QualitySeries] = {}

    @property
    def alarms(self) -> Mapping[str, OpenAlarm]:
        """Those that are open."""
        return {name: series.alarm for name, series in self.series.items() if series.alarm is not None}


def data_quality(plan: StatePlan, _: FiledReference) -> Concern[QualityState] | None:
    """Only where there is a budget; it looks at whole streams."""
    if plan.budget is None:
        return None
    threshold = len(SERIES) / plan.budget.of_quality

    def advance(state: QualityState, seen: Seen) -> Advanced[QualityState]:
        if not isinstance(seen, WindowSeen) or seen.window.key.segment or not seen.assessment.recalibration.complete:
            return Advanced(state)
        key = seen.window.key
        if key.start < state.until:
            return Advanced(state)
        found, messages = dict(state.series), list[Message]()
        for name, share in _shares(seen).items():
            before = state.series.get(name, QualitySeries())
            window = _WindowShare.of(share, key.start, key.end, before.past)
            step = _calm(before, window, threshold) if before.alarm is None else _alarmed(before, before.alarm, window)
            found[name] = step.series
            messages += _messages(seen, name, window, step)
        return Advanced(QualityState(key.end, found), messages)

    return Concern("data-quality", version=1, state=QualityState, advance=advance, new_reference="begins anew")


def _shares(seen: WindowSeen) -> dict[str, float]:
    """By series; of windows with too few events only rejects are known."""
    quality, looked_at = seen.assessment.quality, not seen.assessment.verdict.silent
    shares = (quality.rejected, quality.missing, quality.outside_range, quality.new_categories)
    return dict(zip(SERIES if looked_at else (REJECTED,), shares, strict=False))


class _WindowShare(NamedTuple):
    """One series of one window."""

    share: float
    start: int
    end: int
    hour: int
    usual: float
    """In the middle of the past of that hour."""
    p_value: float
    alone: Days
    """The past that consists of this window."""

    @classmethod
    def of(cls, share: float, start: int, end: int, past: Days) -> "_WindowShare":
        hour, step = start // HOUR % HOURS, conformal.step_of(share)
        same = past.get(hour, {})
        return cls(share, start, end, hour, conformal.usual(same), conformal.rank(same, step), {hour: {step: 1}})

    @property
    def score(self) -> float:
        """Standard normal where ranks are uniform."""
        return max(float(-ndtri(self.p_value)), LEAST_SCORE)


class _Consequence(NamedTuple):
    """What one window makes of a series."""

    series: QualitySeries
    event: Event | None = None
    alarm: OpenAlarm | None = None
    """The one that the event is of."""
    settled: bool = False
    """Whether it has ended because what lasts is normal."""


def _calm(before: QualitySeries, window: _WindowShare, threshold: float) -> _Consequence:
    """Without an alarm so far."""
    begun = before if _evidence(before.sums) >= CALM_EVIDENCE else QualitySeries(before.past, before.sums)
    since, windows, total = begun.since or window.start, begun.windows + 1, round(begun.total + window.score, 6)
    sums = conformal.plus(before.sums, window.p_value)
    if _evidence(sums) < threshold:
        return _Consequence(QualitySeries(_joined(before.past, window.alone), sums, since, windows, total))
    alarm = OpenAlarm(since, windows, total, round(threshold, 1))
    return _Consequence(QualitySeries(before.past, alarm=alarm, apart=window.alone), "raised", alarm)


def _alarmed(before: QualitySeries, opened: OpenAlarm, window: _WindowShare) -> _Consequence:
    """With an open alarm: the odds for ranks as before against those that windows were bet to have decide its end."""
    against = max(0.0, round(opened.against - log(_evidence(conformal.bets(window.p_value))), 6))
    windows, total = opened.windows + 1, round(opened.total + window.score, 6)
    alarm = OpenAlarm(opened.since, windows, total, opened.threshold, against)
    apart = _joined(before.apart, window.alone)
    if against > log(RESOLVED_ODDS):
        return _Consequence(QualitySeries(_joined(before.past, apart)), "resolved", alarm)
    if window.end - opened.since >= QUALITY_SETTLES:
        return _Consequence(QualitySeries(apart), "resolved", alarm, settled=True)
    event: Event | None = "updated" if windows & (windows - 1) == 0 else None
    return _Consequence(QualitySeries(before.past, alarm=alarm, apart=apart), event, alarm)


def _evidence(sums: Sequence[float]) -> float:
    return sum(sums) / len(sums)


def _joined(one: Days, other: Days) -> Days:
    """Both pasts together."""
    hours = {**one}
    for hour, steps in other.items():
        known = hours.get(hour, {})
        hours[hour] = {**known, **{step: known.get(step, 0) + count for step, count in steps.items()}}
    return hours


def _messages(seen: WindowSeen, name: str, window: _WindowShare, step: _Consequence) -> list[Message]:
    """What is said of it, if anything."""
    alarm, event = step.alarm, step.event
    if alarm is None or event is None:
        return []
    usual = f"{window.usual:.2g}" if window.usual else f"less than {LEAST_QUALITY:g}"
    now = f"{window.share:.3g} in the last window, where {usual} was usual at {window.hour:02}:00 UTC before"
    words = {
        "raised": f"{name}: a share of {now}; by chance so much evidence comes about once in "
        f"{alarm.threshold:,.0f} windows",
        "updated": f"{name}: still a share of {now}",
        "resolved": f"{name}: what has lasted for a week is normal from now on: a share of {now}"
        if step.settled
        else f"{name}: the last windows speak {RESOLVED_ODDS:.0f} to 1 against it",
    }
    message = alarm_message(
        seen.window.key,
        event,
        name,
        since=alarm.since,
        windows=alarm.windows,
        size=alarm.size,
        once_in=alarm.threshold,
        reason=words[event],
        alert="ShiftwatchDataQuality",
    )
    return [message]
