"""Means and covariances of the feature map within each class, and what they would be without a part of the hold-out.

A block of the hold-out is held against the others as a window is against all of them. A window's events have no part
in the covariance that it is weighed by, so those of a block must have none either: where a block is a seventh of the
hold-out, and the map has a coordinate for every five rows, its own rows make it seem six times nearer than it is. The
stretches of the hold-out therefore fall into folds, and with mu_y, n_y of all rows and m_gy, n_gy the mean of a fold's
rows about mu_y and their number

    C_-g = (C - sum_y w_y [scatter of the fold's rows of class y about mu_y + n_gy^2 / (n_y - n_gy) m_gy m_gy'])
           / (1 - sum_y w_y n_gy),      w_y = pi_y / (n_y + prior rows)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector
from monitor.limits import KURTOSIS_ROWS
from monitor.shifts.blocks import BlockSums, usual_inputs
from monitor.shifts.phases import UsualInputs
from monitor.tolerances import (
    CONSTANT_SPREAD,
    COVARIANCE_PRIOR_ROWS,
    FIT_RIDGE,
    FOLDS,
    SMALLEST_VARIANCE,
    VARIANCE_PRIOR_ROWS,
)


@dataclass(frozen=True, slots=True, eq=False)
class CoordinateBlock:
    """The coordinates of the map that belong to one thing."""

    name: str
    kind: str
    """`feature`, `posterior` or `joint`."""
    index: int
    """The feature's or posterior's column."""
    at: slice


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """What the map's coordinates do within each class."""

    scale: Vector
    """Pooled within-class standard deviations; means and covariances are in these units."""
    means: Matrix
    within: NDArray[np.float64]
    """(classes, coordinates, coordinates)"""
    source_priors: Vector
    class_counts: Vector
    """Rows of each class that all this comes from."""
    kurtosis: float = 1.0
    """The mean square of the rows' squared distances from their class, relative to that of normal rows."""
    blocks: BlockSums | None = None
    """The hold-out cut in time order, where there are blocks enough, and then"""
    without: NDArray[np.float64] | None = None
    """C_-g, (folds, coordinates, coordinates): `covariance` without the rows of each fold of stretches."""

    @property
    def covariance(self) -> Matrix:
        """C = sum_y pi_y S_y."""
        return np.asarray(np.tensordot(self.source_priors, self.within, axes=1))

    def usual(self, when: Vector | None) -> UsualInputs | None:
        """What is usual of the map at the time of a window; None where inputs follow no season."""
        return usual_inputs(self.blocks, when)

    def at(self, coordinates: Labels) -> "Moments":
        """The same for some of the coordinates."""
        inner = (slice(None), coordinates[:, None], coordinates)
        return Moments(
            self.scale[coordinates],
            self.means[:, coordinates],
            self.within[inner],
            self.source_priors,
            self.class_counts,
            self.kurtosis,
            None if self.blocks is None else self.blocks.at(coordinates),
            None if self.without is None else self.without[inner],
        )


def moments_of(mapped: Matrix, labels: Labels, source_priors: Vector, fold: Labels | None = None) -> Moments:
    """Class means and covariances, the small classes' drawn towards the pooled covariance.

    To the scatter of each class one row is added that falls anywhere in every coordinate: what n rows have never shown
    may still be the next one, with probability about 1/n (Laplace). Without it a class whose coordinates are constant
    in the hold-out sample, such as one that the model always tells apart, would take the first exception for a shift.
    `fold` is that of each row, -1 for none; a row whose label is -1 takes no part.
    """
    classes, coordinates = source_priors.size, mapped.shape[1]
    some = np.flatnonzero(labels >= 0)
    counts = np.bincount(labels[some], minlength=classes).astype(np.float64)
    folds = 0 if fold is None else FOLDS
    means = np.zeros((classes, coordinates))
    scatter = np.zeros((classes, coordinates, coordinates))
    parts, sizes = np.zeros((folds, classes, coordinates, coordinates)), np.zeros((folds, classes))
    for y in range(classes):
        rows = mapped[labels == y]
        if not rows.shape[0]:
            continue
        means[y] = rows.mean(axis=0)
        rows -= means[y]
        if fold is None:
            scatter[y] += rows.T @ rows
            continue
        for g in range(-1, folds):
            own = rows[fold[labels == y] == g]
            of_fold = own.T @ own
            scatter[y] += of_fold
            if g >= 0 and len(own):
                total = own.sum(axis=0)
                parts[g, y] = of_fold + np.outer(total, total) / max(counts[y] - len(own), 1.0)
                sizes[g, y] = len(own)
    scatter += np.diag(_variances(scatter, means, counts))
    scale = np.sqrt(np.diag(scatter.sum(axis=0) / counts.sum()))
    scale = np.where(scale > CONSTANT_SPREAD, scale, 1.0)
    means, within = means / scale, _within(scatter, counts) / np.outer(scale, scale)
    covariance = np.tensordot(source_priors, within, axes=1)
    thin = some[:: max(some.size // KURTOSIS_ROWS, 1)]
    kurtosis = _kurtosis(mapped[thin] / scale - means[labels[thin]], covariance)
    without = None
    if folds:
        left = [_within(scatter - part, counts - size) for part, size in zip(parts, sizes, strict=True)]
        without = np.tensordot(np.stack(left), source_priors, axes=(1, 0)) / np.outer(scale, scale)
    return Moments(scale, means, within, source_priors, counts, kurtosis, without=without)


def _variances(scatter: NDArray[np.float64], means: Matrix, counts: Vector) -> Vector:
    """Of all rows together: within the classes, and of their means."""
    rows = max(float(counts.sum()), 1.0)
    between = counts @ (means - counts @ means / rows) ** 2
    return np.asarray((np.einsum("yjj->j", scatter) + between) / rows)


def _kurtosis(centred: Matrix, covariance: Matrix) -> float:
    """E[q^2] / (d (d + 2)) with q = z' W z, d = E[q]: Mardia's (1970), 1 for normal rows; at least that.

    Directions that hardly vary count as far as they do in the fit.
    """
    q = np.einsum("ij,ij->i", centred @ ridged_inverse(covariance), centred)
    mean = float(q.mean()) if q.size else 0.0
    return max(float((q**2).mean()) / (mean * (mean + 2)), 1.0) if mean > 0 else 1.0


def ridge(covariance: Matrix) -> float:
    """What is added to every variance, so that directions that hardly vary count no more than they can be known."""
    return FIT_RIDGE * max(float(np.trace(covariance)) / len(covariance), SMALLEST_VARIANCE)


def ridged(covariance: Matrix) -> Matrix:
    """C + ridge."""
    return covariance + ridge(covariance) * np.eye(len(covariance))


def ridged_inverse(covariance: Matrix) -> Matrix:
    """W = (C + ridge)^-1."""
    return np.asarray(np.linalg.inv(ridged(covariance)), dtype=np.float64)


def _within(scatter: NDArray[np.float64], counts: Vector) -> NDArray[np.float64]:
    """The covariances of all classes from their scatter."""
    pooled = scatter.sum(axis=0) / max(float(counts.sum()), 1.0)
    return np.stack([_of_class(each, pooled, rows) for each, rows in zip(scatter, counts.tolist(), strict=True)])


def _of_class(scatter: Matrix, pooled: Matrix, rows: float) -> Matrix:
    """The covariance of a class of few rows: its own variances, nearly, with the correlations of all.

    A class may well spread three times as far as the others: drawn towards their variances, its own rows in a window
    would be a shift.
    """
    variances = (np.diag(scatter) + VARIANCE_PRIOR_ROWS * np.diag(pooled)) / (max(rows, 1.0) + VARIANCE_PRIOR_ROWS)
    ratio = np.sqrt(np.divide(variances, np.diag(pooled), out=np.ones_like(variances), where=np.diag(pooled) > 0))
    target = pooled * np.outer(ratio, ratio)
    return np.asarray((scatter + COVARIANCE_PRIOR_ROWS * target) / (max(rows, 1.0) + COVARIANCE_PRIOR_ROWS))
