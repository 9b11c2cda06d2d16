"""How good a model was in a window, by labels that came later. Pure.

The m labelled events are a sample of the window's n. With s_i = sum_c W_ic G_ic what event i adds to a measure
(`measures`), the measure of the sample differs from the window's by chance with variance sum_i (1 - 1 / w_i) s_i^2,
where w_i = n / m says for how many events each stands.

Where labels come more often for events that look like one class, events are weighted by the inverse of how often they
come at such a score: the window's rows are cut, by their calibrated posterior of that class, into strata of as many
rows each, and a labelled event stands for all rows of its stratum (Horvitz and Thompson 1952).
"""

from collections.abc import Mapping

import numpy as np

from monitor.arrays import Flags, Labels, Vector
from monitor.performance.measure_value import MeasureValue, with_interval
from monitor.performance.measures import Measure, Scores
from monitor.tolerances import SELECTION_STRATA


def realised(
    scores: Scores,
    labels: Labels,
    events: int,
    measures: Mapping[str, Measure],
    weights: Vector | None = None,
) -> dict[str, MeasureValue]:
    """Every measure of the labelled events of a window of so many; each stands for as many as its weight says."""
    if not labels.size:
        return {}
    each = np.full(labels.size, max(events / labels.size, 1.0)) if weights is None else weights
    truth = np.eye(scores.posteriors.shape[1])[labels] * each[:, None]
    left = 1 - 1 / each
    values = {}
    for name, measure in measures.items():
        value, gradient = measure.of(scores, truth)
        adds = (truth * gradient).sum(axis=1)
        values[name] = with_interval(measure, value, float(left @ adds**2))
    return values


def stratum_weights(suspected: Vector, labelled: Flags) -> Vector:
    """For each labelled row how many rows it stands for; strata by how much each row looks like the class.

    Strata are joined until each has a labelled row.
    """
    order = np.argsort(suspected, kind="stable")
    come = labelled[order]
    strata = np.minimum(np.arange(order.size) * SELECTION_STRATA // max(order.size, 1), SELECTION_STRATA - 1)
    for stratum in range(SELECTION_STRATA - 1):
        inside = strata == stratum
        if inside.any() and not come[inside].any():
            strata[inside] = stratum + 1
    last = strata == strata[-1]
    if not come[last].any() and come.any():
        strata[last] = strata[np.flatnonzero(come)[-1]]
    rows = np.bincount(strata, minlength=SELECTION_STRATA)
    known = np.bincount(strata[come], minlength=SELECTION_STRATA)
    weight = np.empty(order.size)
    weight[order] = (rows / np.maximum(known, 1))[strata]
    return np.asarray(weight[labelled])
