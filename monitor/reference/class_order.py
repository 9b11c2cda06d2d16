"""Do the columns of the posteriors stand for the classes that they are named after? Judged before any calibration,
which would make the best of columns in the wrong order.

Notation: z = log of the posteriors, or the margins; g the column of class c, d another class.

For posteriors that are right up to a temperature and a weight for each class, sum_c mean(z_i,p(c) | y_i = c) is largest
for the identity p (Gibbs' inequality; weights and temperature cancel). So the best p, an assignment problem, is the
candidate. What it exchanges is believed where z_c - z_d orders the events of two classes the wrong way round, which no
temperature and no weight can do: by Mann and Whitney's statistic, whose law needs no model of the scores.
"""

import numpy as np
import scipy
from scipy.special import ndtri

from monitor.arrays import Labels, Matrix, Vector
from monitor.tolerances import EXCHANGE_FLOOR, EXCHANGE_LEVEL, POSTERIOR_FLOOR


def fitting_columns(scores: Matrix, labels: Labels, *, margins: bool = False) -> tuple[int, ...]:
    """The column that fits each class; its own unless the labels clearly say otherwise."""
    classes = scores.shape[1]
    z = scores if margins else np.log(np.maximum(scores, POSTERIOR_FLOOR))
    of_class = [np.flatnonzero(labels == c) for c in range(classes)]
    support = np.array([z[rows].mean(axis=0) if rows.size else np.zeros(classes) for rows in of_class])
    best = scipy.optimize.linear_sum_assignment(support, maximize=True)[1].tolist()
    exchanged = [c for c in range(classes) if best[c] != c]
    level = EXCHANGE_LEVEL / max(len(exchanged), 1)
    believed = {
        c
        for c in exchanged
        for against in [z[:, c] - z[:, best[c]]]
        if _reversed(against[of_class[c]], against[of_class[best[c]]], level)
    }
    order = list(range(classes))
    for cycle in _cycles(best):
        if believed & set(cycle):
            for c in cycle:
                order[c] = best[c]
    return tuple(order)


def _reversed(own: Vector, others: Vector, level: float) -> bool:
    """Whether events of a class score lower on it than those of another class do, beyond chance and by enough."""
    if not own.size or not others.size:
        return False
    lower = np.sort(others)
    # Of all pairs, those in which the event of the class scores higher; a tie is half of one.
    pairs = sum(int(np.searchsorted(lower, own, side).sum()) for side in ("left", "right"))
    higher = pairs / (2 * own.size * others.size)
    error = np.sqrt((own.size + others.size + 1) / (12 * own.size * others.size))
    return bool(higher - 0.5 < ndtri(level) * error and higher < 0.5 - EXCHANGE_FLOOR)


def _cycles(order: list[int]) -> list[list[int]]:
    """The classes that change places among themselves."""
    left, cycles = set(range(len(order))), []
    while left:
        cycle = [min(left)]
        while order[cycle[-1]] != cycle[0]:
            cycle.append(order[cycle[-1]])
        left -= set(cycle)
        cycles.append(cycle)
    return [cycle for cycle in cycles if len(cycle) > 1]
