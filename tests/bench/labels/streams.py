"""The streams of the study: real ones, and made-up ones whose drift is known, each as five models score it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from monitor.arrays import Labels, Matrix
from monitor.assessment.classifier import assess
from monitor.ports.schema import Feature
from monitor.recalibration import CalibrationMap
from monitor.reference.classifier import Reference
from monitor.state import SmoothedState, StatePlan, WindowSeen
from monitor.state.smoothed import smoothed
from monitor.windows import Window, WindowKey, WindowSummary
from tests.bench.streams.cells import KNOWN
from tests.bench.streams.models import MODELS as STREAM_MODELS
from tests.bench.streams.models import trained
from tests.bench.streams.table import Table, from_file
from tests.bench.streams.watched import Watched

MODELS: Mapping[str, Callable[[], Any]] = {
    **STREAM_MODELS,
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "neighbours": KNeighborsClassifier,
}
"""Those of the streams bench, and two that are sure of too much, as scikit-learn has them."""

BLOCKS = {"weather": 120, "PM2.5": 168, "Luxembourg": 25}
"""Events of a window."""

MADE_UP = ("still", "walking mix", "sudden", "recurring", "covariate")
CLASSES = 3
WINDOWS = 120
EVENTS = 300


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """A stream as one model scores it, with what the monitor says without labels."""

    stream: str
    model: str
    reference: Reference
    windows: Sequence[tuple[Matrix, Labels, WindowSeen]]
    """Posteriors, the truth, and what the monitor says, with the class mix now."""

    @property
    def calibration(self) -> CalibrationMap | None:
        """The reference's."""
        return self.reference.calibration.to_map()


def scored(table: Table, block: int, model: str) -> Scored:
    """Train on the first fifth, hold out the second, and assess what follows."""
    over = Watched.of(table, trained(MODELS[model], table), block)
    reference = over.plain_reference(over.held, "auto")
    seen = _seen(map(over.window, over.windows), reference)
    return Scored(
        table.name,
        model,
        reference,
        [(over.scores[at], table.labels[at], one) for at, one in zip(over.windows, seen, strict=True)],
    )


def _seen(windows: Iterable[Window], reference: Reference) -> Iterator[WindowSeen]:
    concern, state = smoothed(StatePlan(), reference), SmoothedState()
    assert concern is not None
    for number, unnamed in enumerate(windows):
        window = replace(unnamed, key=WindowKey("bench", "", number * 60, number * 60 + 60))
        seen = WindowSeen(assess(window, reference), WindowSummary.of(window, len(reference.classes)), 0.0)
        advanced = concern.advance(state, seen)
        state = advanced.state
        yield seen if advanced.seen is None else cast(WindowSeen, advanced.seen)


def real(data: Path | None) -> tuple[list[tuple[Table, int]], list[str]]:
    """Those of the data folder, and what is missing of them."""
    found, missing = [], []
    for one in KNOWN:
        path = None if data is None else data / one.path
        if path is None or not path.is_file():
            missing.append(f"{one.name}: {'no data folder was given (--data FOLDER)' if path is None else 'not in it'}")
            continue
        table = from_file(path, one.target, cuts=one.cuts, ignore=one.ignore, name=one.name)
        found.append((table, BLOCKS[one.name]))
    return found, missing


def made_up(world: str) -> Table:
    """Three Gaussian classes in four features. All drift comes after the hold-out.

    A walking mix; labels of which seven in ten move to the next class, for good after a third (`sudden`) or every other
    twenty windows (`recurring`); an input that moves by most of a standard deviation after a third.
    """
    rng = np.random.default_rng([21, MADE_UP.index(world)])
    centres = 0.9 * np.random.default_rng(0).normal(size=(CLASSES, 4))
    before = 2 * EVENTS * WINDOWS // 3
    walk, logits = np.zeros(CLASSES), [np.zeros(CLASSES)] * before
    for _ in range(WINDOWS):
        walk = 0.97 * walk + 0.45 * rng.normal(size=CLASSES)
        logits += [walk if world == "walking mix" else np.zeros(CLASSES)] * EVENTS
    mixes = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (rng.random(len(mixes))[:, None] > np.cumsum(mixes, axis=1)[:, :-1]).sum(axis=1)
    rows = centres[labels] + rng.normal(size=(labels.size, 4))
    window = (np.arange(labels.size) - before) // EVENTS
    turned = {"sudden": window >= WINDOWS // 3, "recurring": (window >= 0) & (window // 20 % 2 == 1)}
    moved = turned.get(world, np.zeros(labels.size, dtype=np.bool_)) & (rng.random(labels.size) < 0.7)
    rows[:, 0] += 0.8 * (window >= WINDOWS // 3) * (world == "covariate")
    return Table(
        world,
        tuple(Feature(f"x{j}") for j in range(4)),
        rows,
        np.where(moved, (labels + 1) % CLASSES, labels),
        tuple(f"class {y}" for y in range(CLASSES)),
        block=EVENTS,
    )
