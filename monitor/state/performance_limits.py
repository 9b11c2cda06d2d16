"""Alarms on how good the model is: where enough of the last windows lie beyond the limit that was set for a measure.

A window counts where its whole interval lies beyond, so that a small window, which knows little, raises nothing. What
is estimated without labels and what labels have said later are series of their own. Windows of which a measure is
withheld are passed over. An alarm ends when fewer windows are beyond than it took to raise it.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from scipy.special import bdtrc

from monitor.assessment import Assessment
from monitor.labels import Outcome
from monitor.performance import MeasureValue
from monitor.ports import Message
from monitor.reference import FiledReference
from monitor.state.alarm_message import OpenAlarm, alarm_message
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan

BY_CHANCE = 0.025
"""A 95 % interval lies wholly on one side of the truth so often."""
ESTIMATED, REALISED = "estimated {}", "{} by labels"


class LimitState(msgspec.Struct, frozen=True):
    """One series: how far beyond its limit the last windows were, and when they began."""

    beyond: tuple[float, ...] = ()
    """In standard errors; 0 within the limit."""
    starts: tuple[int, ...] = ()
    last: float = 0.0
    """The value of the last of them."""
    alarm: OpenAlarm | None = None
    published: int | None = None
    """Since when the alarm is that has been published; None: none is."""


class PerformanceState(msgspec.Struct, frozen=True):
    """By series."""

    series: dict[str, LimitState] = {}

    @property
    def alarms(self) -> Mapping[str, OpenAlarm]:
        """Those that are open."""
        return {name: limit.alarm for name, limit in self.series.items() if limit.alarm is not None}


def performance_limits(plan: StatePlan, _: FiledReference) -> Concern[PerformanceState] | None:
    """The concern, where a limit is set."""
    if not plan.limits:
        return None

    def advance(state: PerformanceState, seen: Seen) -> Advanced[PerformanceState]:
        if isinstance(seen, WindowSeen):
            figures = seen.assessment.performance.figures if isinstance(seen.assessment, Assessment) else {}
            state = _looked_at(state, plan, ESTIMATED, figures, seen.window.key.start)
            return _published(state, plan, seen)
        if isinstance(seen, Outcome):
            known = {
                name: MeasureValue(measure.realised, measure.lower, measure.upper)
                for name, measure in seen.result.performance.items()
            }
            start = round(datetime.fromisoformat(seen.result.start).timestamp() * 1e6)
            return Advanced(_looked_at(state, plan, REALISED, known, start))
        return Advanced(state)

    return Concern("performance", version=1, state=PerformanceState, advance=advance, new_reference="begins anew")


def _looked_at(
    state: PerformanceState, plan: StatePlan, series: str, figures: Mapping[str, MeasureValue], start: int
) -> PerformanceState:
    """With one window more."""
    fresh = {
        series.format(name): _with(
            state.series.get(series.format(name), LimitState()), plan, name, figures[name], start
        )
        for name in plan.limits
        if name in figures
    }
    return PerformanceState({**state.series, **fresh}) if fresh else state


def _with(before: LimitState, plan: StatePlan, name: str, value: MeasureValue, start: int) -> LimitState:
    beyond = (*before.beyond, round(plan.limits[name].beyond(value), 3))[-plan.of :]
    starts = (*before.starts, start)[-plan.of :]
    alarm, count = before.alarm, sum(size > 0 for size in beyond)
    if count < plan.windows:
        alarm = None
    elif alarm is None:
        first = next(at for at, size in enumerate(beyond) if size)
        once_in = 1 / float(bdtrc(plan.windows - 1, plan.of, BY_CHANCE))
        alarm = OpenAlarm(starts[first], len(beyond) - first, sum(beyond[first:]), round(once_in, 1))
    else:
        total = round(alarm.total + beyond[-1], 3)
        alarm = OpenAlarm(alarm.since, alarm.windows + 1, total, alarm.threshold)
    return LimitState(beyond, starts, value.value, alarm, before.published)


def _published(state: PerformanceState, plan: StatePlan, seen: WindowSeen) -> Advanced[PerformanceState]:
    """What has begun or ended since the last window."""
    messages, series = list[Message](), dict(state.series)
    for name, limit in state.series.items():
        since = None if limit.alarm is None else limit.alarm.since
        if since == limit.published:
            continue
        measure = next(known for known in plan.limits if name in (ESTIMATED.format(known), REALISED.format(known)))
        over = limit.alarm is None
        windows = f"{plan.limits[measure].words} in {plan.windows} of {plan.of} windows"
        reason = f"{name} is {'no longer ' if over else ''}{windows} by its interval: {limit.last:.3g} in the last"
        alarm = limit.alarm or OpenAlarm(limit.published or 0, 1, 0.0, 1.0)
        messages.append(_message(seen, name, alarm, reason, over=over))
        series[name] = msgspec.structs.replace(limit, published=since)
    return Advanced(PerformanceState(series), messages) if messages else Advanced(state)


def _message(seen: WindowSeen, name: str, alarm: OpenAlarm, reason: str, *, over: bool = False) -> Message:
    return alarm_message(
        seen.window.key,
        "resolved" if over else "raised",
        name,
        since=alarm.since,
        windows=alarm.windows,
        size=alarm.size,
        once_in=alarm.threshold,
        reason=reason,
        alert="ShiftwatchPerformance",
    )
