"""A stream of card payments that has really been assessed, as screenshots show it: calm, then fraud doubles, then an
input changes its unit; with segments, and with labels that come three windows late."""

from dataclasses import replace

import numpy as np

from connectors.worlds import BLOCK, Block, Period, Timetable, World
from monitor.assessment import assess
from monitor.labels.outcomes import outcome
from monitor.labels.published_window import told
from monitor.labels.values import Stateless, Waiting
from monitor.observers import History, facts
from monitor.reference import Reference
from monitor.service import Clock
from monitor.service.loop import Watched
from monitor.state import Budget, StatePlan, WindowSeen, concerns_of
from monitor.windows import TimePlan, Window, WindowKey, WindowSummary
from tests.state.windows import Shown
from tests.web.fleet import NOW
from tests.web.made_up import MINUTE, NO_LABELS

STREAM = "card-fraud-be"
WORLD = World(
    stream=STREAM,
    classes=("legit", "fraud"),
    priors=(0.96, 0.04),
    features=("amount", "age_days", "velocity", "distance_km"),
    seed=5,
)
PERIODS = (
    Period("calm", 40 * BLOCK),
    Period("fraud doubles", 14 * BLOCK, priors=(0.91, 0.09)),
    Period("age in another unit", 6 * BLOCK, priors=(0.91, 0.09), linear={"age_days": (2.4, 0.0)}),
)
LENGTH = 10 * MINUTE
LATE = 3
COUNTRIES = ("country=BE", "country=NL", "country=LU")


def lived() -> History:
    """What is remembered of it; the clock stands at `NOW`."""
    holdout = WORLD.holdout(10_000)
    reference = Reference.fit(
        holdout.posteriors,
        holdout.labels,
        holdout.features,
        classes=WORLD.classes,
        feature_names=WORLD.features,
        stream=STREAM,
        positive="fraud",
    )
    watched = Watched(reference, TimePlan(LENGTH, LENGTH, MINUTE, 100_000))
    clock = Clock(now=lambda: NOW, elapsed=lambda: NOW / 1e6)
    history = History({STREAM: facts(STREAM, watched)}, clock=clock)
    plan = StatePlan(awaiting=True, budget=Budget.of(1e-3))
    shown = Shown(STREAM, concerns_of(plan, reference), history)
    table = Timetable(WORLD, PERIODS)
    blocks = [table.block(number) for number in range(table.events // BLOCK)]
    ends = range(NOW - (len(blocks) - 1) * LENGTH, NOW + 1, LENGTH)
    waiting = list[tuple[Waiting, Block]]()
    for block, end in zip(blocks, ends, strict=True):
        waiting.append((_show(shown, reference, block, end), block))
        if len(waiting) > LATE:
            _labelled(shown, *waiting.pop(0))
    return history


def _show(shown: Shown, reference: Reference, block: Block, end: int) -> Waiting:
    """A window, and a part of it for each country."""
    population = block.population
    whole = Window.of(population.posteriors, features=population.features)
    parts = {"": slice(None)} | {name: slice(at, None, len(COUNTRIES)) for at, name in enumerate(COUNTRIES)}
    seen = None
    for segment, rows in parts.items():
        part = Window.of(population.posteriors[rows], features=population.features[rows])
        window = replace(part, key=WindowKey(STREAM, segment, end - LENGTH, end))
        assessment = assess(window, reference)
        one = WindowSeen(assessment, WindowSummary.of(window, len(WORLD.classes)), 0.02)
        shown.show(one)
        seen = seen or one
    assert seen is not None
    key = seen.window.key
    return Waiting(STREAM, key.id, key.start, key.end, key.end, key.end, whole.events, told(seen.assessment, {}), None)


def _labelled(shown: Shown, waiting: Waiting, block: Block) -> None:
    """Its labels have come."""
    population = block.population
    labels = population.labels.astype(np.float64)
    shown.show(outcome(waiting, NO_LABELS, Stateless([None] * labels.size, labels, population.posteriors), 0))
