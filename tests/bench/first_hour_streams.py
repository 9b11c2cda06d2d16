"""Calm windows of streams that people have in their first hour, and what is seen where they move.

Every stream has a model, a hold-out and windows of its own. The kinds: few scores and atoms, rounded; a hold-out of a
few hundred events; heavy tails; a class of 2 %; columns that are mostly zero; segments that differ in mix and amounts.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference, Window, assess
from monitor.arrays import Labels, Matrix
from monitor.priors import ESTIMATORS
from monitor.windows import WindowKey
from tests.estimators import QUICK

STREAMS, CALM, MOVED = 10, 20, 5
"""Streams of each kind; windows of each stream without a shift, and with each shift."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of stream: where its events come from, and how many there are."""

    events: Callable[[np.random.Generator, int, float], tuple[Matrix, Labels]]
    """So many of them with this rate of the second class. The first column may change its unit."""
    model: ClassifierMixin
    rate: float
    held_out: int
    window: int
    written: Callable[[Matrix], Matrix] = lambda x: x
    segment: int | None = None
    """The column that tells segments apart."""
    factor: float = 3.0
    """By which the column's unit changes."""


def _plain(rng: np.random.Generator, rows: int, rate: float) -> tuple[Matrix, Labels]:
    y = (rng.random(rows) < rate).astype(np.int64)
    return rng.normal(size=(rows, 8)) + 0.6 * y[:, None], y


def _atoms(rng: np.random.Generator, rows: int, rate: float) -> tuple[Matrix, Labels]:
    x, y = _plain(rng, rows, rate)
    x[:, 1] = np.array([0.1, 0.2, 0.35])[np.minimum(rng.integers(0, 2, rows) + y, 2)]
    return x, y


def _heavy(rng: np.random.Generator, rows: int, rate: float) -> tuple[Matrix, Labels]:
    x, y = _plain(rng, rows, rate)
    return x * np.sqrt(3 / rng.chisquare(3, size=(rows, 1))), y


def _zeros(rng: np.random.Generator, rows: int, rate: float) -> tuple[Matrix, Labels]:
    x, y = _plain(rng, rows, rate)
    x[:, 0] = np.where(rng.random(rows) < 0.1 + 0.1 * y, np.round(rng.lognormal(7, 1, rows)), 0.0)
    x[:, 1] = np.where(rng.random(rows) < 0.06 + 0.1 * y, 1.0 + rng.poisson(2, rows), 0.0)
    return x, y


def _countries(rng: np.random.Generator, rows: int, rate: float) -> tuple[Matrix, Labels]:
    country = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    y = (rng.random(rows) < rate * np.array([0.5, 1.0, 2.0])[country]).astype(np.int64)
    x = rng.normal(size=(rows, 5)) + 0.8 * y[:, None]
    x[:, 0] += np.array([0.0, 1.5, -1.0])[country]
    x[:, 4] = country
    return x, y


_LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())
_BOOSTED = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=5, random_state=0)

KINDS = {
    "rounded to 3 decimals": Kind(_atoms, _BOOSTED, 0.3, 5_000, 1_000, lambda x: np.round(x, 3)),
    "single precision": Kind(_atoms, _BOOSTED, 0.3, 5_000, 1_000, lambda x: x.astype(np.float32).astype(np.float64)),
    "hold-out of 500": Kind(_plain, RandomForestClassifier(30, min_samples_leaf=5, random_state=0), 0.4, 500, 200),
    "heavy tails": Kind(_heavy, _LOGISTIC, 0.4, 2_000, 500),
    "a class of 2 %": Kind(_plain, _LOGISTIC, 0.02, 8_000, 2_000),
    "mostly zero": Kind(_zeros, _BOOSTED, 0.3, 6_000, 1_500, factor=1_000.0),
    "segments": Kind(_countries, _LOGISTIC, 0.2, 8_000, 3_000, segment=4),
}


def windows(
    kind: Kind, model: ClassifierMixin, rng: np.random.Generator, *, mix: float, unit: float
) -> Iterator[Window]:
    """One window, or one of each segment."""
    x, _ = kind.events(rng, kind.window, mix * kind.rate)
    said = model.predict_proba(x)
    x[:, 0] *= unit
    if kind.segment is None:
        yield Window.of(kind.written(said), kind.written(x))
        return
    for value in np.unique(x[:, kind.segment]):
        rows = x[:, kind.segment] == value
        key = WindowKey("bench", f"x{kind.segment}={int(value)}")
        yield replace(Window.of(kind.written(said[rows]), kind.written(x[rows])), key=key)


def stream(kind: Kind, seed: int) -> dict[str, Counter[str]]:
    """Verdicts on a stream's windows: calm, with twice as much of the second class, with a column in another unit."""
    rng = np.random.default_rng(seed)
    model = clone(kind.model).fit(*kind.events(rng, 4_000, max(kind.rate, 0.1)))
    x, y = kind.events(rng, kind.held_out, kind.rate)
    with patch.dict(ESTIMATORS, QUICK, clear=True):
        reference = Reference.fit(model.predict_proba(x), y, x)
    shifts = {"calm": (1.0, 1.0, CALM), "mix": (2.0, 1.0, MOVED), "unit": (1.0, kind.factor, MOVED)}
    return {
        name: Counter(
            str(assess(window, reference).verdict)
            for _ in range(count)
            for window in windows(kind, model, rng, mix=mix, unit=unit)
        )
        for name, (mix, unit, count) in shifts.items()
    }


def counted(kind: str, streams: int) -> dict[str, Counter[str]]:
    """The verdicts of so many streams of a kind, added up."""
    total: dict[str, Counter[str]] = {name: Counter() for name in ("calm", "mix", "unit")}
    for number in range(streams):
        for name, verdicts in stream(KINDS[kind], 7_000 + 100 * list(KINDS).index(kind) + number).items():
            total[name] += verdicts
    return total
