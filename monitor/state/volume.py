"""Volume: how many events a window has, beside those of the same hour of earlier days.

It is shown, and nothing decides by it: holidays and releases move it as often as faults do.
"""

from dataclasses import replace
from statistics import median

import msgspec

from monitor.assessment import VolumePart
from monitor.limits import VOLUME_DAYS
from monitor.reference import FiledReference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan

HOUR, DAY = 3_600_000_000, 86_400_000_000


class HourState(msgspec.Struct, frozen=True, array_like=True):
    """One hour of the day: events of a window on average."""

    days: tuple[float, ...] = ()
    """On earlier days, the newest last, and"""
    today: int = 0
    """on this one: its number,"""
    windows: int = 0
    mean: float = 0.0


class VolumeState(msgspec.Struct, frozen=True):
    """A week of 24 hours: 3 kB."""

    hours: dict[str, HourState] = {}


def volume(_plan: StatePlan, _reference: FiledReference) -> Concern[VolumeState]:
    """The concern; it looks at whole windows by time."""

    def advance(state: VolumeState, seen: Seen) -> Advanced[VolumeState]:
        if not isinstance(seen, WindowSeen) or not seen.assessment.recalibration.complete:
            return Advanced(state)
        key = seen.window.key
        if key.segment or key.number:
            return Advanced(state)
        name = str(key.start % DAY // HOUR)
        hour = _on_day(state.hours.get(name, HourState()), key.start // DAY)
        events = seen.window.events + seen.window.counts.sampled_out
        mean = round((hour.mean * hour.windows + events) / (hour.windows + 1), 3)
        after = VolumeState({**state.hours, name: HourState(hour.days, hour.today, hour.windows + 1, mean)})
        if not hour.days:
            return Advanced(after)
        part = VolumePart(round(events / max(median(hour.days), 1.0), 4), len(hour.days))
        return Advanced(after, seen=replace(seen, volume=part))

    return Concern("volume", version=1, state=VolumeState, advance=advance, new_reference="goes on")


def _on_day(hour: HourState, day: int) -> HourState:
    """The hour as this day begins it: what came on another day is now of an earlier one."""
    if hour.windows and hour.today != day:
        return HourState((*hour.days, hour.mean)[-VOLUME_DAYS:], day)
    return msgspec.structs.replace(hour, today=day)
