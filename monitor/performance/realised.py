"""How good a model was in a window, by labels that came later. Pure.

The m labelled events are a sample of the window's n. With s_i = sum_c W_ic G_ic what event i adds to a measure
(`measures`), the measure of the sample differs from the window's by chance with variance sum_i (1 - 1 / w_i) s_i^2,
where w_i = n / m says for how many events each stands. The interval of a share v is that of as many independent events
as have this variance, m' = v (1 - v) / variance (Korn and Graubard 1998, after Clopper and Pearson 1934); where all
labelled events agree there is no variance, and m' = m. What too few labels cannot tell, or none of a class, is
left out.

Where labels come more often for events that look like one class, events are weighted by the inverse of how often they
come at such a score: the window's rows are cut, by their calibrated posterior of that class, into strata of as many
rows each, and a labelled event stands for all rows of its stratum (Horvitz and Thompson 1952).
"""

from collections.abc import Mapping

import numpy as np
from scipy.special import betaincinv

from monitor.arrays import Flags, Labels, Vector
from monitor.performance.measure_value import MeasureValue, with_interval
from monitor.performance.measures import Measure, Scores
from monitor.tolerances import FEWEST_LABELS, INTERVAL_LEVEL, LEAST_ERROR, SELECTION_STRATA

TAIL = (1 - INTERVAL_LEVEL) / 2


def realised(
    scores: Scores,
    labels: Labels,
    events: int,
    measures: Mapping[str, Measure],
    weights: Vector | None = None,
) -> dict[str, MeasureValue]:
    """What labels tell of a window of so many events; each labelled one stands for as many as its weight says."""
    if labels.size < min(events, FEWEST_LABELS) or not labels.size:
        return {}
    classes = scores.posteriors.shape[1]
    each = np.full(labels.size, max(events / labels.size, 1.0)) if weights is None else weights
    truth = np.eye(classes)[labels] * each[:, None]
    left = 1 - 1 / each
    fewest = int(np.bincount(labels, minlength=classes).min())
    values = {}
    for name, measure in measures.items():
        if measure.of_classes and not fewest:
            continue
        value, gradient = measure.of(scores, truth)
        variance = float(left @ (truth * gradient).sum(axis=1) ** 2)
        alike = variance <= LEAST_ERROR**2
        if not left.any():
            values[name] = MeasureValue(value, value, value)
        elif measure.range == "share":
            independent = fewest if measure.of_classes else labels.size
            value = min(max(value, 0.0), 1.0)
            values[name] = _share(value, independent if alike else value * (1 - value) / variance)
        elif not alike:
            values[name] = with_interval(measure, value, variance)
    return values


def _share(value: float, events: float) -> MeasureValue:
    """Of so many independent events."""
    of_them = value * events
    lower = float(betaincinv(of_them, events - of_them + 1, TAIL)) if value > 0 else 0.0
    upper = float(betaincinv(of_them + 1, events - of_them, 1 - TAIL)) if value < 1 else 1.0
    return MeasureValue(value, lower, upper)


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
