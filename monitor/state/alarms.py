"""Alarms: at least k of the last m windows had another verdict than `stable`.

Where it is known what has been normal lately the verdicts against that count: what stays becomes normal, and no alarm
lasts for ever. Since when windows are not as in the reference, and by which features, is remembered beside it.
"""

from collections.abc import Sequence

import msgspec

from monitor.errors import InputError
from monitor.kinds import Assessed
from monitor.limits import FEATURES_SHOWN
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
    apart: tuple[bool, ...] = ()
    """Whether the last windows were other than the reference."""
    first: int = 0
    """When the first of them began, of those since the last that were all as in the reference; microseconds."""
    since: int = 0
    """Since when so many windows are other than the reference that it would be an alarm; 0 where they are not."""
    by: tuple[str, ...] = ()
    """The features by which the last of them was."""

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
        recent = seen.assessment.baselines.get("recent")
        flags = (*state.flags, (verdict if recent is None else recent.verdict).moved)[-plan.of :]
        alarm = persistent(flags, plan.windows, plan.of)
        after = msgspec.structs.replace(state, flags=flags, alarm=alarm, turned=alarm != state.alarm)
        return Advanced(after if recent is None else _apart(after, seen.assessment, plan))

    return Concern("alarms", version=1, state=AlarmState, advance=advance, new_reference="begins anew")


def _apart(state: AlarmState, assessment: Assessed, plan: StatePlan) -> AlarmState:
    """Since when windows are not as in the reference."""
    moved = assessment.verdict.moved
    apart = (*state.apart, moved)[-plan.of :]
    first = (state.first or assessment.key.start) if moved else state.first if any(apart) else 0
    by = assessment.baselines["reference"].moved[:FEATURES_SHOWN] if moved else state.by
    since = first if persistent(apart, plan.windows, plan.of) else 0
    return msgspec.structs.replace(state, apart=apart, first=first, since=since, by=by if first else ())


def persistent(flags: Sequence[bool], k: int, m: int) -> bool:
    """Whether at least k of the last m windows were flagged."""
    if not 1 <= k <= m:
        raise InputError(f"k of m: want 1 <= k <= m, got {k} of {m}")
    return sum(flags[-m:]) >= k
