"""Windows of one stream, assessed once, that concerns are shown in tests."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from monitor.assessment import assess
from monitor.reference.classifier import Reference
from monitor.state import StatePlan, WindowSeen, concerns_of, examined
from monitor.windows import Window, WindowKey, WindowSummary
from tests.service import streams


@cache
def seen(number: int, positives: float = 0.3, events: int = 400, segment: str = "") -> WindowSeen:
    """The window of that number."""
    return seen_under(streams.reference(), number, positives, events, segment)


def seen_under(
    reference: Reference, number: int, positives: float = 0.3, events: int = 400, segment: str = ""
) -> WindowSeen:
    """Compared with this reference."""
    posteriors, _ = streams.scores(events, positives, seed=number)
    window = replace(Window.of(posteriors), key=WindowKey("s", segment, number, number + 1))
    return assessed(window, reference, StatePlan(changes="prior-shift"))


def assessed(window: Window, reference: Reference, plan: StatePlan) -> WindowSeen:
    """A window as the loop shows it to the concerns of a stream with this plan."""
    assessment = assess(window, reference)
    found = examined(concerns_of(plan, reference), window, assessment)
    return WindowSeen(assessment, WindowSummary.of(window, 2), 0.0, examined=found)


def story() -> Sequence[WindowSeen]:
    """A class mix that moves, moves on and comes back, windows with too few events, and a segment."""
    mixes = [0.3, 0.3, 0.3, 0.6, 0.6, 0.3, 0.3, 0.45, 0.45, 0.45, 0.45, 0.45, 0.3, 0.3]
    whole = [seen(number, positives) for number, positives in enumerate(mixes)]
    small = [seen(20 + number, 0.3, events=20) for number in range(2)]
    segments = [seen(number, 0.6, segment="country=BE") for number in range(3, 5)]
    return [*whole[:5], *segments, *small, *whole[5:]]
