"""Cosines of random projections of all numeric features together: they see what no single column shows.

Random Fourier features (dussap, eq 10) of the features on a common scale, which is robust against outliers, long tails
and orders of magnitude. They follow from the reference alone, with a fixed seed: they are part of its feature map.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.limits import PROJECTED_ROWS
from monitor.shifts.profile import FeatureProfile
from monitor.tolerances import (
    BEHIND_ORIGIN,
    FARTHEST,
    LINEAR_UP_TO,
    NARROWEST,
    PROJECTIONS,
    ROWS_PER_COORDINATE,
    SKEWED,
)


@dataclass(frozen=True, slots=True, eq=False)
class Projections:
    """Random Fourier features of the robustly standardised numeric features."""

    columns: Labels
    skewed: Labels
    """Positions in `columns` of features with one long tail; they are taken as log|x - origin|."""
    origin: Vector
    tail: Vector
    """+1 where the long tail is above, -1 where it is below."""
    centre: Vector
    scale: Vector
    medians: Vector
    """Of the features as they come."""
    frequencies: NDArray[np.float32]
    phases: NDArray[np.float32]

    def without(self, columns: frozenset[int]) -> "Projections":
        """The same cosines, blind to some columns."""
        blind = np.isin(self.columns, list(columns))
        return replace(self, frequencies=np.where(blind[:, None], np.float32(0), self.frequencies))

    def standardised(self, features: Matrix) -> NDArray[np.float32]:
        """The numeric features on a common scale, s asinh(x / s) with s = `LINEAR_UP_TO`: as they are near the centre,
        by orders of magnitude far from it. A missing value stands in the centre, an infinite one at the far end."""
        values = features[:, self.columns]
        if self.skewed.size:
            values[:, self.skewed] = unskewed(values[:, self.skewed], self.origin, self.tail)
        with np.errstate(over="ignore"):
            values = (values - self.centre) / (self.scale * LINEAR_UP_TO)
        scaled = np.clip(values, -FARTHEST, FARTHEST).astype(np.float32)
        np.copyto(scaled, np.float32(0), where=np.isnan(scaled))
        np.arcsinh(scaled, out=scaled)
        scaled *= np.float32(LINEAR_UP_TO)
        return scaled

    def __call__(self, standardised: NDArray[np.float32]) -> NDArray[np.float32]:
        """cos(w'x + b), in single precision: twelve times as fast, and its rounding is far below sampling error."""
        projected = standardised @ self.frequencies
        projected += self.phases
        np.cos(projected, out=projected)
        return projected

    def mean(self, standardised: NDArray[np.float32]) -> Vector:
        """The mean of the cosines over all rows, which are mapped a part at a time so that they stay in cache.

        Row is added to row, across the parts too: the bits are those of the whole.
        """
        sums = np.zeros(self.phases.size)
        for begin in range(0, len(standardised), PROJECTED_ROWS):
            cosines = self(standardised[begin : begin + PROJECTED_ROWS]).astype(np.float64)
            cosines[0] += sums
            sums = cosines.sum(axis=0)
        return sums / len(standardised)


def unskewed(values: Matrix, origin: Vector, tail: Vector) -> Matrix:
    """tail log(tail (x - origin)): symmetric where x was log-normal; what lies behind the origin stands at a floor."""
    return np.asarray(tail * np.log(np.maximum(tail * (values - origin), BEHIND_ORIGIN)))


def fitted(features: Matrix, profiles: tuple[FeatureProfile, ...], frequent: Flags) -> Projections | None:
    """Half of the frequencies at the scale of the whole cloud, half at half of it; fixed seed: part of the map."""
    numbers = [j for j, profile in enumerate(profiles) if profile.feature.kind != "category" and frequent[j]]
    scaled = [(j, s) for j in numbers if (s := _scale(features[:, j]))]
    if not scaled:
        return None
    columns = [j for j, _ in scaled]
    count = int(np.clip(features.shape[0] // ROWS_PER_COORDINATE, 4, PROJECTIONS))
    rng = np.random.default_rng(0)
    width = np.sqrt(len(columns)) * np.where(np.arange(count) % 2 == 0, 1.0, 0.5)
    return Projections(
        columns=np.array(columns, dtype=np.int64),
        skewed=np.array([k for k, (_, s) in enumerate(scaled) if s.tail], dtype=np.int64),
        origin=np.array([s.origin for _, s in scaled if s.tail]),
        tail=np.array([s.tail for _, s in scaled if s.tail]),
        centre=np.array([s.centre for _, s in scaled]),
        scale=np.array([s.scale for _, s in scaled]),
        medians=np.array([s.median for _, s in scaled]),
        frequencies=(rng.normal(size=(len(columns), count)) / width).astype(np.float32),
        phases=rng.uniform(0, 2 * np.pi, size=count).astype(np.float32),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    centre: float
    scale: float
    median: float
    origin: float = 0.0
    tail: float = 0.0


def _scale(values: Vector) -> _Scale | None:
    """How a column is put on the common scale; None for one that is constant, or so wide or narrow that it has none
    among floating-point numbers. (It is still tested by itself.)"""
    with np.errstate(over="ignore", invalid="ignore"):
        standard = _by_quantiles(values)
    usable = (
        standard is not None and np.isfinite([standard.centre, standard.scale]).all() and standard.scale > NARROWEST
    )
    return standard if usable else None


def _by_quantiles(values: Vector) -> _Scale | None:
    """A scale by median and quartiles, of logarithms where the column has one long tail.

    The three-parameter log-normal through the 5 %, 50 % and 95 % quantiles has its origin where
    (q50 - a)^2 = (q5 - a)(q95 - a).
    """
    values = values[np.isfinite(values)]
    if not values.size or values.min() == values.max():
        return None
    low, median, high = (float(q) for q in np.quantile(values, [0.05, 0.5, 0.95]))
    lean = high + low - 2 * median
    if high == low or abs(lean) <= SKEWED * (high - low) or min(high - median, median - low) <= 0:
        return _Scale(*_robust(values), median)
    origin, tail = (low * high - median**2) / lean, float(np.sign(lean))
    straight = unskewed(values[:, None], np.array([origin]), np.array([tail]))[:, 0]
    return _Scale(*_robust(straight), median, origin, tail)


def _robust(values: Vector) -> tuple[float, float]:
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    # 1.349 interquartile ranges make a standard deviation; a column that is mostly one value has none.
    return float(median), float((high - low) / 1.349) if high > low else float(values.std())
