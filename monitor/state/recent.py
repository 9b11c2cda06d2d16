"""The recent normal: each window's verdict against the windows before it, beside that against the reference.

For streams whose reference knows time: its hold-out was cut into blocks of a window's length.
"""

from dataclasses import replace

from monitor.assessment import Assessment, Baseline, Examined, RecentNormal, examined_by, judged
from monitor.reference import FiledReference, Reference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen, Written
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
        verdict, after = judged(state, examined, assessment.verdict)
        return Advanced(after) if verdict is None else Advanced(after, seen=_with(verdict, seen, assessment))

    examine = examined_by(reference)
    return Concern(
        "recent",
        version=1,
        state=RecentNormal,
        advance=advance,
        new_reference="begins anew",
        examine=lambda _, assessment: examine(assessment) if isinstance(assessment, Assessment) else None,
    )


def _with(found: Baseline, seen: WindowSeen, before: Assessment) -> WindowSeen:
    """The window with one baseline more; its result differs in that alone."""
    assessment, written = replace(before, recent=found), seen.written
    if written is not None and written.assessment is before:
        result = assessment.json_with_baselines(written.result)
        written = Written(assessment, result, written.recalibration)
    return replace(seen, assessment=assessment, written=written)
