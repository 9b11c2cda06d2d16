"""What is known over the windows of a stream, and how every window and outcome changes it."""

from collections.abc import Callable

from monitor.reference.base import FiledReference
from monitor.state.alarms import AlarmState, alarms
from monitor.state.changes import Change, ChangeState, changes
from monitor.state.concern import Advanced, AnyConcern, Concern, Seen, WindowSeen
from monitor.state.known import NOTHING, Changed, Known, Ring, Step, Whose, advance
from monitor.state.plan import StatePlan

__all__ = [
    "CONCERNS",
    "NOTHING",
    "Advanced",
    "AlarmState",
    "AnyConcern",
    "Change",
    "ChangeState",
    "Changed",
    "Concern",
    "Known",
    "Ring",
    "Seen",
    "StatePlan",
    "Step",
    "Whose",
    "WindowSeen",
    "advance",
    "concerns_of",
]

CONCERNS: tuple[Callable[[StatePlan, FiledReference], AnyConcern | None], ...] = (alarms, changes)
"""Every concern, in the order in which they are shown a window; None where a stream has no use for it."""


def concerns_of(plan: StatePlan, reference: FiledReference) -> tuple[AnyConcern, ...]:
    """The concerns of a stream with these settings and this reference."""
    return tuple(concern for make in CONCERNS if (concern := make(plan, reference)) is not None)
