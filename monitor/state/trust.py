"""Trust: whether labels bear the estimates out. While they do not, the feed withholds every correction."""

from dataclasses import replace

import msgspec

from monitor.assessment import Assessment
from monitor.labels import Outcome, trusted
from monitor.labels.trust import Shown, judged, shown
from monitor.recalibration import Cause
from monitor.reference import FiledReference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan
from monitor.tolerances import TRUST_OUTCOMES


class TrustState(msgspec.Struct, frozen=True):
    """What the last outcomes have shown, at most twenty."""

    outcomes: tuple[Shown, ...] = ()
    doubt: str = ""
    """Why the estimates are not to be trusted; empty if they are."""


def trust(plan: StatePlan, reference: FiledReference) -> Concern[TrustState] | None:
    """The concern, for streams that await labels."""
    if not plan.awaiting:
        return None

    def advance(state: TrustState, seen: Seen) -> Advanced[TrustState]:
        if isinstance(seen, Outcome):
            return _outcome(state, seen, reference.version)
        return _window(state, seen) if isinstance(seen, WindowSeen) else Advanced(state)

    return Concern("trust", version=1, state=TrustState, advance=advance, new_reference="begins anew")


def _window(state: TrustState, seen: WindowSeen) -> Advanced[TrustState]:
    """Its result says what the window itself shows; the feed corrects nothing by estimates that are off."""
    if not state.doubt:
        return Advanced(state)
    refused, assessment = seen.recalibration.withheld(Cause.LABELS_DISAGREE, state.doubt), seen.assessment
    if isinstance(assessment, Assessment):
        assessment = assessment.without_performance(state.doubt)
    return Advanced(state, seen=replace(seen, assessment=assessment, feed=refused, doubt=state.doubt))


def _outcome(state: TrustState, seen: Outcome, reference: str) -> Advanced[TrustState]:
    """Windows that were compared with another reference say nothing about the estimates by this one."""
    if seen.result.versions.reference == reference:
        outcomes = (*state.outcomes, shown(seen.result))[-TRUST_OUTCOMES:]
        state = TrustState(outcomes, judged(outcomes))
    return Advanced(state, seen=replace(seen, result=trusted(seen.result, state.doubt)))
