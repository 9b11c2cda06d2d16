"""Alarms: at least k of the last m windows had another verdict than `stable`."""

from collections.abc import Sequence

import msgspec

from monitor.errors import InputError
from monitor.reference import FiledReference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan


class AlarmState(msgspec.Struct, frozen=True):
    """Which of the last windows moved: at most m flags."""

    flags: tuple[bool, ...] = ()
    """Whether the last windows had moved; those without enough events are passed over."""
    alarm: bool = False
    turned: bool = False
    """Whether the last window has raised or ended it."""

    @property
    def moved(self) -> int:
        """How many of the last windows."""
        return sum(self.flags)


def alarms(plan: StatePlan, _: FiledReference) -> Concern[AlarmState]:
    """With a false alarm in 1 of 100 windows, 2 of 3 come by chance once in 3,300 windows, 3 of 5 once in 100,000."""

    def advance(state: AlarmState, seen: Seen) -> Advanced[AlarmState]:
        if not isinstance(seen, WindowSeen):
            return Advanced(state)
        verdict = seen.assessment.verdict
        if verdict.silent:
            return Advanced(msgspec.structs.replace(state, turned=False))
        flags = (*state.flags, verdict.moved)[-plan.of :]
        alarm = persistent(flags, plan.windows, plan.of)
        return Advanced(AlarmState(flags, alarm, alarm != state.alarm))

    return Concern("alarms", version=1, state=AlarmState, advance=advance, new_reference="begins anew")


def persistent(flags: Sequence[bool], k: int, m: int) -> bool:
    """Whether at least k of the last m windows were flagged."""
    if not 1 <= k <= m:
        raise InputError(f"k of m: want 1 <= k <= m, got {k} of {m}")
    return sum(flags[-m:]) >= k
