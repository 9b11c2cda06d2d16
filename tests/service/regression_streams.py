"""A regression stream with known truth: a mixture of two lines, the best predictor of it, and its reference."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from monitor.assessment.regressor import assess_regression
from monitor.labels import REGRESSION_OUTCOMES, Waiting
from monitor.labels.values import NO_COPIES, Awaited, Found
from monitor.observers.history import History
from monitor.observers.snapshot import facts
from monitor.reference.regressor import RegressionReference
from monitor.regression import Mixture
from monitor.service.loop import Clock
from monitor.service.publishing import Watched
from monitor.state import WindowSeen
from monitor.windows.by_count import CountPlan
from monitor.windows.summary import WindowSummary
from monitor.windows.window import Window, WindowKey
from tests.regression import worlds
from tests.state.windows import Shown
from tests.web.made_up import MINUTE, START

TRUTH = Mixture.of([0.6, 0.4], [[10.0, 4.0, -2.0], [7.0, 4.5, -1.5]], [1.0, 1.5])
FEATURES = ("area", "age")
DOUBLED = np.array([1.0, 2.0, 2.0])


def columns(events, seed, *, factors=1.0, labelled=1.0, shift=0.0, noise=None):
    """Predictions, labels (NaN where not labelled) and features; coefficients times `factors`, area plus `shift`.

    Without `noise` the noise grows with the largest factor, as the links of the literature have it.
    """
    rng = np.random.default_rng((seed, 7))
    x = rng.normal(size=(events, 2)) + np.array([shift, 0.0])
    y = worlds.draw(worlds.moved(TRUTH, factors, noise or float(np.max(factors))), x, seed)
    return TRUTH.predict(x), np.where(rng.random(events) < labelled, y, np.nan), x


def window(events=2_000, seed=1, **changes):
    said, y, x = columns(events, seed, **changes)
    return Window.of_predictions(said, x, y)


@cache
def reference(events=2_000):
    """From labelled hold-out events."""
    said, y, x = columns(events, 0)
    return RegressionReference.fit(said, y, x, feature_names=FEATURES, stream="prices")


def story(*windows, segment="", labels=()):
    """A history in which each of these windows, a minute long, has been assessed as it ended; then labels came."""
    now = START
    watched = Watched(reference(), CountPlan(2_000), awaited=Awaited(1, 1, Path("nowhere")) if labels else None)
    history = History({"prices": facts("prices", watched)}, clock=Clock(now=lambda: now, elapsed=lambda: now / 1e6))
    shown, waiting = Shown("prices", watched.concerns, history), []
    for one in windows:
        now += 0 if segment else MINUTE
        for name in ("", segment) if segment else ("",):
            timed = replace(one, key=WindowKey("prices", name, now - MINUTE, now))
            seen = WindowSeen(assess_regression(timed, reference()), WindowSummary.of(timed), 0.01)
            shown.show(seen)
        waiting.append(waits(timed, [seen]))
    for one, values in zip(waiting, labels, strict=False):
        for found in REGRESSION_OUTCOMES.outcomes(one, labels_of(values), NO_COPIES, 0, ()):
            shown.show(found)
    return history


def waits(window, parts):
    """A window that waits for its labels; without those that came with its events."""
    plain = replace(window, targets=None, timestamps=np.arange(window.events))
    told, rows = REGRESSION_OUTCOMES.waits(plain, parts, reference())
    key = window.key
    return Waiting("prices", key.id, key.start, key.end, key.end, key.end, window.events, told, rows)


def labels_of(values):
    """A label for each row that has a number."""
    rows = np.flatnonzero(~np.isnan(values))
    return Found(rows, values[rows], np.full(rows.size, 5), np.full(rows.size, 69_000_000))
