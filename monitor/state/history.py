"""The past windows that the page, the API and the metrics show, and the whole answer of the last one."""

from typing import Any

import msgspec

from monitor.assessment import SketchesPart
from monitor.kinds import Reading, kind_of
from monitor.labels import Outcome
from monitor.limits import SEGMENT_WINDOWS, SKETCHES_REMEMBERED
from monitor.reference import FiledReference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan

WINDOWS, SKETCHES, OUTCOMES = "windows", "sketches", "outcomes"

NONE = msgspec.Raw(b"null")


class HistoryState(msgspec.Struct, frozen=True):
    """The messages of the last window."""

    result: msgspec.Raw = NONE
    recalibration: msgspec.Raw = NONE
    """As the feed has it."""


def windows(plan: StatePlan, reference: FiledReference) -> Concern[HistoryState] | None:
    """A reading of each window: 3 kB, and 20 bytes for each feature."""
    if not plan.remembered:
        return None

    def advance(state: HistoryState, seen: Seen) -> Advanced[HistoryState]:
        if not isinstance(seen, WindowSeen):
            return Advanced(state)
        last = HistoryState(msgspec.Raw(seen.result_message), msgspec.Raw(seen.recalibration_message))
        return Advanced(last, entry=seen.reading)

    answer: Any = kind_of(reference).answer
    return Concern(
        WINDOWS,
        version=1,
        state=HistoryState,
        advance=advance,
        new_reference="begins anew",
        entries=plan.remembered,
        segment_entries=min(plan.remembered, SEGMENT_WINDOWS),
        entry=Reading[answer],
    )


class SketchesState(msgspec.Struct, frozen=True):
    """Sketches are remembered window by window, and nothing beside them."""


class _Result(msgspec.Struct, frozen=True):
    """What is taken from a result as it stands in it."""

    sketches: msgspec.Raw


class WindowSketches(msgspec.Struct, frozen=True):
    """How the columns of one window were distributed."""

    window: str
    message: msgspec.Raw
    """The sketches as the result has them."""

    @property
    def sketches(self) -> SketchesPart:
        """The same, read."""
        return msgspec.json.decode(self.message, type=SketchesPart)


def sketches(plan: StatePlan, _: FiledReference) -> Concern[SketchesState] | None:
    """The sketches of the last windows, for whoever looks at one of them: some kilobytes each."""
    if not plan.remembered:
        return None

    def advance(state: SketchesState, seen: Seen) -> Advanced[SketchesState]:
        if not isinstance(seen, WindowSeen) or seen.assessment.sketches is None:
            return Advanced(state)
        message = msgspec.json.decode(seen.result_message, type=_Result).sketches.copy()
        return Advanced(state, entry=WindowSketches(seen.window.key.id, message))

    return Concern(
        SKETCHES,
        version=1,
        state=SketchesState,
        advance=advance,
        new_reference="begins anew",
        entries=min(plan.remembered, SKETCHES_REMEMBERED),
        segment_entries=1,
        entry=WindowSketches,
    )


class OutcomesState(msgspec.Struct, frozen=True):
    """Outcomes are remembered one by one, and nothing beside them."""


def outcomes(plan: StatePlan, reference: FiledReference) -> Concern[OutcomesState] | None:
    """The concern, for streams that await labels: how their windows, and those of their segments, fared."""
    if not (plan.awaiting and plan.remembered):
        return None

    result = kind_of(reference).outcomes.result

    def advance(state: OutcomesState, seen: Seen) -> Advanced[OutcomesState]:
        # A window that waited while the stream was of another kind is not shown beside those of this one.
        return Advanced(state, entry=seen.result if isinstance(seen, Outcome) and type(seen.result) is result else None)

    return Concern(
        OUTCOMES,
        version=1,
        state=OutcomesState,
        advance=advance,
        new_reference="goes on",
        entries=plan.remembered,
        segment_entries=min(plan.remembered, SEGMENT_WINDOWS),
        entry=result,
    )
