"""Changes of level over many windows: creeping ones, that no window shows by itself.

Most detectors look at one value a window of each series: the share of each class and the distance of each feature, in
units of its own sampling error. `prior-shift` looks at events: at a sample of each window.
"""

from monitor.arrays import Matrix
from monitor.kinds import Assessed, kind_of
from monitor.reference import FiledReference
from monitor.state.change_state import OF_EVENTS, ChangeState
from monitor.state.concern import Advanced, Concern, Seen
from monitor.state.plan import StatePlan
from monitor.windows import Window


def changes(plan: StatePlan, reference: FiledReference) -> Concern[ChangeState] | None:
    """The concern, where the plan names a detector."""
    name = plan.changes
    if name is None:
        return None
    from monitor.state.change_detection import advanced  # noqa: PLC0415 - River takes half a second

    def advance(state: ChangeState, seen: Seen) -> Advanced[ChangeState]:
        return Advanced(advanced(state, seen, name, reference))

    def sample(window: Window, _: Assessed) -> Matrix | None:
        """Calibrated posteriors of some of the events."""
        return kind_of(reference).sample(window, reference)

    return Concern(
        "changes",
        version=1,
        state=ChangeState,
        advance=advance,
        new_reference="begins anew",
        examine=sample if name == OF_EVENTS else None,
    )
