"""Registry entries that count predictions: cc, pcc, acc, cde."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from monitor.arrays import Matrix, Vector, column_sums
from monitor.limits import REFERENCES_READY
from monitor.priors import counting
from monitor.priors.estimate import (
    Estimator,
    HoldOut,
    PriorEstimate,
    ReferenceView,
    Statistics,
    beside_rows,
    frozen,
    labelled_rows,
    no_events,
    nothing,
    sum_of,
    usable_in,
)
from monitor.priors.maps import ONE_HOT, POSTERIORS
from monitor.windows import Window


def _classify(window: Window, reference: ReferenceView) -> PriorEstimate:
    g, dropped = usable_in(window)
    if g.shape[0] == 0:
        return no_events("cc", reference.source_priors, dropped)
    return replace(counting.classify_and_count(_predicted(window)), dropped=dropped)


def _predicted(window: Window) -> Vector:
    """How many of a window's events are predicted as each class, those included whose rows were left out."""
    return np.asarray(sum_of(window, ONE_HOT) + beside_rows(window, ONE_HOT.name)[0])


def _average(window: Window, reference: ReferenceView) -> PriorEstimate:
    g, dropped = usable_in(window)
    if g.shape[0] == 0:
        return no_events("pcc", reference.source_priors, dropped)
    more, events = beside_rows(window, POSTERIORS.name)
    return counting.averaged(column_sums(g) + more, g.shape[0] + events, dropped)


def _confusion(hold_out: HoldOut) -> Statistics:
    g, labels, _ = labelled_rows(hold_out)
    return {"confusion": confusion(g, labels)}


def confusion(posteriors: Matrix, labels: np.ndarray) -> Matrix:
    """Counts[true, predicted]; a tie between predictions counts in parts."""
    member = labels == np.arange(posteriors.shape[1])[:, None]
    return np.asarray(member.astype(np.float64) @ counting.predictions(posteriors))


def _solve(window: Window, reference: ReferenceView) -> PriorEstimate:
    g, dropped = usable_in(window)
    if g.shape[0] == 0:
        return no_events("acc", reference.source_priors, dropped)
    return replace(counting.solved(_rates(reference), _predicted(window)), dropped=dropped)


@lru_cache(maxsize=REFERENCES_READY)
def _rates(reference: ReferenceView) -> counting.Rates:
    return counting.Rates.of(reference.statistics["acc"]["confusion"])


def _iterate(window: Window, reference: ReferenceView) -> PriorEstimate:
    """Both classes in turn are the positive one and the answers are averaged: the order of classes decides nothing.

    They differ only by events that lie exactly on the threshold.
    """
    g, dropped = usable_in(window)
    if g.shape[0] == 0:
        return no_events("cde", reference.source_priors, dropped)
    second, first = (counting.cde_iterate(g[:, k], float(reference.source_priors[k])) for k in (1, 0))
    priors = (second.priors + first.priors[::-1]) / 2.0
    return replace(second, priors=frozen(priors), dropped=dropped)


CC = Estimator("cc", nothing, _classify, always=True, summed=ONE_HOT)
PCC = Estimator("pcc", nothing, _average, always=True, summed=POSTERIORS)
ACC = Estimator("acc", _confusion, _solve, always=True, summed=ONE_HOT)
CDE = Estimator("cde", nothing, _iterate, binary_only=True)
