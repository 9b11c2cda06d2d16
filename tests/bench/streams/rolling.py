"""The verdicts against what was normal lately, which a stream's state knows, on windows as they are and with shifts."""

from collections import defaultdict
from collections.abc import Sequence

from monitor.assessment import Assessment
from monitor.reference.classifier import Reference
from monitor.state import StatePlan, WindowSeen
from monitor.state.recent import recent
from monitor.windows import Window, WindowSummary
from tests.bench.streams.watched import Judgement, Seen, ShiftedWindow, Tally, Watched


def judged(
    watched: Watched, reference: Reference, windows: Sequence[Seen], shifted: Sequence[ShiftedWindow]
) -> tuple[Tally, dict[str, Tally]] | None:
    """All windows, and by shift those that were shifted; None where the reference has too few blocks for it.

    A window with a shift on top is judged by what was known before it, and not remembered.
    """
    concern = recent(StatePlan(), reference)
    if concern is None or concern.examine is None:
        return None
    examine, state = concern.examine, concern.state()
    found, of_shift = list[Judgement](), defaultdict[str, list[Judgement]](list)

    def show(window: Window, assessment: Assessment) -> WindowSeen:
        summary = WindowSummary.of(window, len(watched.table.classes))
        return WindowSeen(assessment, summary, 0.0, examined={"recent": examine(window, assessment)})

    for number, (at, one) in enumerate(zip(watched.windows, windows, strict=True)):
        for each in (each for each in shifted if each.number == number):
            advanced = concern.advance(state, show(each.window, each.assessment))
            of_shift[each.shift] += _judgement(advanced.seen, each.touched)
        advanced = concern.advance(state, show(watched.window(at), one.assessment))
        found += _judgement(advanced.seen, "")
        state = advanced.state
    return Tally.of(found), {name: Tally.of(each) for name, each in of_shift.items()}


def _judgement(seen: object, touched: str) -> list[Judgement]:
    """Nothing for the first windows, before anything is known."""
    if (
        not isinstance(seen, WindowSeen)
        or not isinstance(seen.assessment, Assessment)
        or seen.assessment.recent is None
    ):
        return []
    return [Judgement(seen.assessment.recent.verdict, seen.assessment.recent.moved, touched)]
