"""The recent normal: each window's verdict against the windows before it, beside that against the reference.

For streams whose reference knows time: its hold-out was cut into blocks of a window's length.
"""

from dataclasses import replace

from monitor.assessment import Assessment, Examined, RecentNormal, examined_by, judged
from monitor.reference import FiledReference, Reference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan
from monitor.tolerances import FEWEST_BLOCKS
from monitor.windows import faults


def recent(_: StatePlan, reference: FiledReference) -> Concern[RecentNormal] | None:
    """The concern, for a classifier whose hold-out was cut into blocks enough."""
    if not isinstance(reference, Reference) or reference.blocks is None or reference.blocks.number < FEWEST_BLOCKS:
        return None

    def advance(state: RecentNormal, seen: Seen) -> Advanced[RecentNormal]:
        if not isinstance(seen, WindowSeen) or not isinstance(seen.assessment, Assessment):
            return Advanced(state)
        examined, assessment = seen.examined.get("recent"), seen.assessment
        if not isinstance(examined, Examined) or faults(assessment.origin.gaps):
            return Advanced(state)
        found, after = judged(state, examined, assessment.verdict)
        return Advanced(after, seen=replace(seen, assessment=replace(assessment, recent=found)))

    examine = examined_by(reference)
    return Concern(
        "recent",
        version=1,
        state=RecentNormal,
        advance=advance,
        new_reference="begins anew",
        examine=lambda _, assessment: examine(assessment) if isinstance(assessment, Assessment) else None,
    )
