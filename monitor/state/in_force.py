"""The correction in force: what corrects a stream's events as they come.

As in the client a correction stays in force until a window contradicts it (`settled`), and as in the feed nothing is
applied while labels show that the estimates are off.
"""

import msgspec

from monitor.recalibration import Recalibration, RegressionRecalibration, settled
from monitor.reference import FiledReference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan


class InForce(msgspec.Struct, frozen=True):
    """One recalibration, as large as a message of the feed."""

    latest: Recalibration | None = None
    """Of the last window, after hysteresis."""
    window: str | None = None
    """Whose recalibration is applied; None where none is."""


class RelationInForce(InForce, frozen=True):
    """The same of a regressor."""

    latest: RegressionRecalibration | None = None


def in_force(plan: StatePlan, reference: FiledReference) -> Concern[InForce] | None:
    """The concern, for whole streams whose events are corrected live."""
    if not plan.live:
        return None

    def advance(state: InForce, seen: Seen) -> Advanced[InForce]:
        if not isinstance(seen, WindowSeen) or seen.window.key.segment:
            return Advanced(state)
        return Advanced(after(state, seen.recalibration))

    kind = RelationInForce if reference.task == "regression" else InForce
    return Concern("in-force", version=1, state=kind, advance=advance, new_reference="begins anew")


def after(state: InForce, message: Recalibration) -> InForce:
    """What is in force when the next window of the stream has been published."""
    latest = settled(state.latest, message)
    if message.corrects:
        return type(state)(latest, message.validity.window)
    return type(state)(latest, state.window if latest.apply else None)
