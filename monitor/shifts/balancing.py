"""Weights under which events look like those of the reference in columns that have moved. Pure.

Entropy balancing (Hainmueller, "Entropy balancing for causal effects", 2012): of all weights with sum_i w_i c_i = 0
those that are nearest to equal ones. They are w_i = exp(l . c_i) / sum_j exp(l . c_j), where l minimises the convex
log sum_i exp(l . c_i). Where normal columns have moved in mean and variance this is the ratio of the densities, however
the columns are correlated; and the reference need only know the moments of each.
"""

from collections.abc import Sequence

import numpy as np
import scipy
from scipy.special import logsumexp, softmax

from monitor.arrays import Matrix, Vector
from monitor.shifts.profile import FeatureProfile
from monitor.tolerances import BALANCE_PENALTY, BALANCE_REACH


def balancing_weights(columns: Sequence[FeatureProfile], values: Matrix) -> Vector:
    """A weight for each row, all together 1; equal ones without columns."""
    if not columns or not len(values):
        return np.full(len(values), 1.0 / max(len(values), 1))
    constraints = np.column_stack([_apart(*pair) for pair in zip(columns, values.T, strict=True)])

    def dual(at: Vector) -> tuple[float, Vector]:
        tilted = constraints @ at
        gradient = softmax(tilted) @ constraints + 2 * BALANCE_PENALTY * at
        return float(logsumexp(tilted) + BALANCE_PENALTY * at @ at), gradient

    found = scipy.optimize.minimize(dual, np.zeros(constraints.shape[1]), jac=True, method="BFGS")
    return np.asarray(softmax(constraints @ found.x))


def worth(weights: Vector) -> float:
    """How many equally weighted rows say as much: Kish's effective size."""
    return float(1.0 / np.sum(weights**2)) if weights.size else 0.0


def _apart(column: FeatureProfile, values: Vector) -> Matrix:
    """What has mean 0 among the reference's events: a number and its square, or which category it is.

    Extremes count as if they were nearer: they would take all of the weight. A missing value is neither here nor there.
    """
    if column.feature.kind == "number":
        spread = float(column.values.std()) if column.values.size else 0.0
        if not spread > 0:
            return np.zeros((values.size, 1))
        usual, z = (
            np.clip((each - column.values.mean()) / spread, -BALANCE_REACH, BALANCE_REACH)
            for each in (column.values, values)
        )
        return np.asarray(np.nan_to_num(np.column_stack([z - usual.mean(), z**2 - np.mean(usual**2)])))
    shares = column.counts.sum(axis=0) / max(float(column.counts.sum()), 1.0)
    known = ~np.isnan(values)
    codes = np.minimum(np.where(known, values, 0), shares.size - 1).astype(np.int64)
    return np.where(known[:, None], np.eye(shares.size)[codes] - shares, 0.0)[:, 1:]
