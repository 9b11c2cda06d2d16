"""Windows of one stream, assessed once, that concerns are shown in tests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from connectors.memory import MemorySink
from monitor.arrays import UNLABELLED
from monitor.assessment import DataQuality, assess, encode, rfc3339
from monitor.assessment.message import Versions
from monitor.labels import LabelCounts, Outcome, OutcomeResult, Settlement
from monitor.labels.learning import Settled
from monitor.labels.outcome_message import Realised
from monitor.observers import History
from monitor.performance import Limit
from monitor.reference.classifier import Reference
from monitor.service.notices import OutcomeKnown, StateAdvanced
from monitor.service.stream_states import StreamStates
from monitor.state import AnyConcern, Budget, Seen, StatePlan, WindowSeen, Written, concerns_of, examined, owner
from monitor.state.recent_labels import PCC
from monitor.windows import Window, WindowKey, WindowSummary
from tests.assessment import worlds
from tests.assessment.test_recent_normal import blocks, wandering
from tests.assessment.test_recent_normal import reference as that_knows_time
from tests.service import streams

HOUR = 3_600_000_000


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
    assessment = assess(window, reference, only_mix=True)
    found = examined(concerns_of(plan, reference), window, assessment)
    written = Written(assessment, assessment.to_json(), encode(assessment.recalibration))
    return WindowSeen(assessment, WindowSummary.of(window, 2), 0.0, examined=found, written=written)


class Shown:
    """Shows windows and outcomes to concerns, tells a history what comes of it and publishes it, as the loop does."""

    def __init__(self, stream: str, concerns: Sequence[AnyConcern], history: History) -> None:
        self.states = StreamStates({stream: concerns}, MemorySink())
        self.history = history
        self.published = list[bytes]()
        """Results and alarms."""

    def show(self, what: Seen) -> None:
        seen, messages = self.states.advance(what, {})
        if isinstance(seen, Settlement):
            return
        self.published.append(seen.result_message if isinstance(seen, WindowSeen) else encode(seen.result))
        self.published += [message.value for message in messages if message.channel in ("results", "alarms")]
        self.history(seen if isinstance(seen, WindowSeen) else OutcomeKnown(seen.result))
        self.history(StateAdvanced(seen, self.states.of(*owner(seen))))


def outcome(number: int, covered: bool = True) -> Outcome:
    """That the labels of the window of that number have shown."""
    realised = Realised(0.3, 0.25, 0.35, 0.3 if covered else 0.6, 0.0 if covered else -0.3, covered)
    classes = {"no": Realised(0.7, 0.65, 0.75, 0.7, 0.0, True), "yes": realised}
    result = OutcomeResult(
        "shiftwatch.outcome.v1", "s", "", f"s//{number}/{number + 1}", rfc3339(number), rfc3339(number + 1), "stable",
        400, True,
        LabelCounts(400, 0, 0, 0, 0, 0, 0), False, classes, float(covered), False, None, None,
        True, "", Versions("0", streams.reference().version),
    )  # fmt: skip
    posteriors, labels = streams.scores(400, 0.3, seed=number)
    experts = {"the reference's shares": (0.7, 0.3), PCC: (0.6, 0.4)}
    return Outcome(result, posteriors, labels, experts)


def settlement(number: int) -> Settlement:
    """What the labels of the window of that number can teach: half of them came."""
    posteriors, labels = streams.scores(400, 0.5, seed=number)
    labels[::2] = UNLABELLED
    settled = Settled(f"s//{number}/{number + 1}", posteriors, labels, ())
    return Settlement("s", number, number + 1, streams.reference().version, settled)


def story() -> Sequence[Seen]:
    """A class mix that moves, moves on and comes back, windows with too few events, a segment, and what labels show."""
    mixes = [0.3, 0.3, 0.3, 0.6, 0.6, 0.3, 0.3, 0.45, 0.45, 0.45, 0.45, 0.45, 0.3, 0.3]
    whole = [seen(number, positives) for number, positives in enumerate(mixes)]
    small = [seen(20 + number, 0.3, events=20) for number in range(2)]
    segments = [seen(number, 0.6, segment="country=BE") for number in range(3, 5)]
    outcomes = [outcome(number, covered=number > 5) for number in range(8)]
    settlements = [settlement(number) for number in range(5)]
    return [*whole[:5], *segments, *outcomes, *settlements, *small, *whole[5:]]


def with_quality(one: WindowSeen, quality: DataQuality) -> WindowSeen:
    """The same window, with this wrong with its data."""
    return replace(one, assessment=replace(one.assessment, quality=quality), written=None)


def story_of_faults() -> Sequence[Seen]:
    """Records are rejected and values are missing; the first ends, the second does not."""
    rejects = [0.0] * 24 + [0.1] * 7 + [0.0] * 12
    missing = [0.02] * 24 + [0.2] * 19
    whole = [
        with_quality(seen(number), DataQuality(rejected=one, missing=other))
        for number, (one, other) in enumerate(zip(rejects, missing, strict=True))
    ]
    return [*whole[:24], seen(23, segment="country=BE"), *whole[24:]]


def hours(number: int, change_at: int, seed: int = 2, segment: str = "") -> Iterator[WindowSeen]:
    """Windows of an hour, of a stream whose reference knows time; its regime changes."""

    def offset(k: int, rng: np.random.Generator) -> np.ndarray:
        return wandering(k, rng) + 1.5 * (k >= change_at) * np.eye(4)[1]

    for k, (x, _) in enumerate(blocks(number, seed, offset)):
        window = Window.of(worlds.posteriors(x), x)
        key = WindowKey("s", segment, (k + 1) * HOUR, (k + 2) * HOUR)
        yield assessed(replace(window, key=key), that_knows_time(), StatePlan())


@cache
def story_in_time() -> Sequence[Seen]:
    """A change of regime that becomes normal, and a segment."""
    return [*hours(12, change_at=6), *hours(3, change_at=9, segment="country=BE")]


@dataclass(frozen=True)
class Told:
    """A stream with its settings, and what its concerns are shown."""

    plan: StatePlan
    reference: Callable[[], Reference]
    story: Callable[[], Sequence[Seen]]

    @property
    def concerns(self) -> Sequence[AnyConcern]:
        return concerns_of(self.plan, self.reference())


STREAMS = [
    Told(StatePlan(), streams.reference, story),
    Told(StatePlan(budget=Budget.of(2.0)), streams.reference, story_of_faults),
    Told(StatePlan(awaiting=True, live=True, budget=Budget.of(1 / 500, segments=1)), streams.reference, story),
    Told(StatePlan(limits={"accuracy": Limit(below=0.9)}), streams.reference, story),
    *(
        Told(StatePlan(changes=name), streams.reference, story)
        for name in ("adwin", "page-hinkley", "kswin", "prior-shift")
    ),
    Told(StatePlan(), that_knows_time, story_in_time),
]
"""Together they have every concern."""
