"""Two streams that have really been assessed, for pages and reports: a regressor whose prices change, with labels of a
fifth of its events, and a classifier of two hours a night, whose producer begins to break."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from connectors.worlds import World
from monitor.assessment import DataQuality, assess, assess_regression
from monitor.observers import History, facts
from monitor.reference import FiledReference, Reference
from monitor.service import Clock
from monitor.service.loop import Watched
from monitor.state import Budget, StatePlan, WindowSeen, concerns_of
from monitor.windows import TimePlan, Window, WindowKey, WindowSummary
from tests.service import regression_streams
from tests.state.windows import Shown
from tests.web.fleet import NOW
from tests.web.made_up import MINUTE

PRICES, FAULTY = "price-tier-nl", "lead-score-fr"
LENGTH = 10 * MINUTE
DAY = 144
"""Windows."""
NIGHTS = 16


def shown(stream: str, reference: FiledReference, plan: StatePlan) -> Shown:
    """A stream that nothing has been shown of; the clock stands at `NOW`."""
    watched = Watched(reference, TimePlan(LENGTH, LENGTH, MINUTE, 100_000))
    clock = Clock(now=lambda: NOW, elapsed=lambda: NOW / 1e6)
    return Shown(stream, concerns_of(plan, reference), History({stream: facts(stream, watched)}, clock=clock))


def in_trouble() -> dict[str, History]:
    """What is remembered of both."""
    return {PRICES: prices().history, FAULTY: faulty().history}


@cache
def prices() -> Shown:
    """A regressor's: calm, then larger houses come, then each square metre costs twice as much; with a segment."""
    reference = regression_streams.reference()
    stream = shown(PRICES, reference, StatePlan(budget=Budget.of(1e-2)))
    for number, (shift, factors) in enumerate(
        [*[(0.0, 1.0)] * 24, *[(0.5, 1.0)] * 8, *[(0.5, regression_streams.DOUBLED)] * 4]
    ):
        for segment in ("", "country=BE"):
            events = 500 if segment else 2_000
            drawn = regression_streams.window(events, number, shift=shift, factors=factors, labelled=0.2, noise=1.0)
            timed = replace(drawn, key=key(PRICES, segment, number - 35))
            stream.show(WindowSeen(assess_regression(timed, reference), WindowSummary.of(timed), 0.02))
    return stream


@cache
def faulty() -> Shown:
    """A classifier's: nights with next to no fault, then records are rejected and an input stands still."""
    world = World(
        stream=FAULTY, classes=("cold", "warm"), priors=(0.8, 0.2), features=("visits", "pages", "minutes"), seed=10
    )
    held = world.holdout(10_000)
    reference = Reference.fit(
        held.posteriors,
        held.labels,
        held.features,
        classes=world.classes,
        feature_names=world.features,
        stream=FAULTY,
        positive="warm",
    )
    stream, calm = shown(FAULTY, reference, StatePlan(budget=Budget.of(1e-2))), list(assessed(world, reference))
    nights = [night - at for night in range(-NIGHTS * DAY, 1, DAY) for at in reversed(range(12))]
    for number, at in enumerate(nights):
        one, broken = calm[number % len(calm)], at > -10
        quality = DataQuality(rejected=0.06 if broken else 0.002, missing=0.004 + 0.001 * (number % 3))
        if broken:
            quality = replace(quality, constant=("minutes",))
        events = 480 if broken else 1_000 + 10 * (number % 7)
        whose = key(FAULTY, "", at)
        assessment = replace(one.assessment, key=whose, events=events, quality=quality)
        stream.show(WindowSeen(assessment, replace(one.window, key=whose, events=events), 0.02))
    return stream


def assessed(world: World, reference: Reference) -> Iterator[WindowSeen]:
    """Some windows to which nothing happens."""
    for number in range(12):
        drawn = replace(world, seed=100 + number).holdout(1_000)
        window = Window.of(drawn.posteriors, drawn.features)
        yield WindowSeen(assess(window, reference), WindowSummary.of(window, 2), 0.02)


def key(stream: str, segment: str, number: int) -> WindowKey:
    """Of the window of that number, 0 being the last."""
    return WindowKey(stream, segment, NOW + (number - 1) * LENGTH, NOW + number * LENGTH)
