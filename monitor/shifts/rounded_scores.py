"""Rounded scores, on both sides: every event is worth what the reference's events with its rounded score said.

A score of 0.000 was anything below 0.0005, not impossible. The mean of what the reference's events said whose scores
round to it is what it is worth: as the mean of calibrated posteriors is calibrated, so is that. Where a calibration
bends between scores that are written alike, `comparable` mends the rest.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.limits import REFERENCES_READY
from monitor.shifts.ranks import Places, places, side_by_side, together
from monitor.shifts.resolution import EXACT, SINGLE, among, coarsened, decimals, thinned
from monitor.tolerances import (
    COARSEST_SCORES,
    FINEST_SCORES,
    RESOLUTION_ROWS,
    RESOLUTION_VALUES,
    SAME_NUMBER,
    SCORES_MERGED,
    UNSEEN_ZERO,
)


@dataclass(frozen=True, slots=True, eq=False)
class RoundedScores:
    """A reference's scores as the model says them, and how they are written."""

    raw: Matrix
    own: int
    atoms: Vector

    def common(self, posteriors: Matrix) -> int:
        """The resolution that a window's scores have in common with the reference's."""
        thin = posteriors[:: max(len(posteriors) // RESOLUTION_ROWS, 1)]
        if scores_finer(thin[:RESOLUTION_VALUES], self.own):
            return self.own
        shown = decimals_of(thin)
        return self.own if shown >= self.own or among(thinned(thin.ravel()), self.atoms) else shown

    def at(self, posteriors: Matrix, resolution: int) -> Matrix:
        """Scores at a resolution."""
        if resolution >= SINGLE:
            rows = coarsened(posteriors, resolution)
            return rows if self.own < EXACT or resolution == EXACT else _with_largest_from_others(rows)
        cells = cells_at(posteriors, resolution).T
        means = _said(self, resolution).at(cells, np.maximum(cells, UNSEEN_ZERO) * 10.0**-resolution)
        rows = np.ascontiguousarray(means.T)
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _with_largest_from_others(rows: Matrix) -> Matrix:
    """Single precision makes 1 of 1 - 1e-10, and keeps the 1e-10 beside it: from the others the largest is known."""
    others = rows / rows.sum(axis=1, keepdims=True)
    largest = np.argmax(others, axis=1)[:, None]
    np.put_along_axis(others, largest, 0.0, axis=1)
    np.put_along_axis(others, largest, 1.0 - others.sum(axis=1, keepdims=True), axis=1)
    return np.asarray(others)


@dataclass(frozen=True, slots=True, eq=False)
class ByCell:
    """A number for each way in which a score of a class is written, a row for each class wherever there are rows."""

    cells: Places
    values: Vector
    """Of all classes, one behind the other; after those of each comes one that is none's."""

    @classmethod
    def ratios(cls, cells: Matrix, above: Matrix, below: Matrix, least: int = 1) -> "ByCell":
        """Sum of `above` / sum of `below` over a cell's events; cells of fewer than `least` events are left out."""
        each = [_ratios(*of_class, least) for of_class in zip(cells, above, below, strict=True)]
        values = [np.append(ratios, np.nan) for _, ratios in each]
        return cls(side_by_side([places(kept) for kept, _ in each]), np.concatenate(values))

    def at(self, cells: Matrix, otherwise: Matrix | float) -> Matrix:
        """Of each cell; `otherwise` where the reference has none."""
        found, other = np.empty(cells.shape), np.broadcast_to(otherwise, cells.shape)
        for part in together(*cells.shape):
            some = self.cells.some(part)
            place = some.find(cells[part])
            found[part] = np.where(some.equal(place, cells[part]), self.values.take(place - 1), other[part])
        return found


def _ratios(column: Vector, above: Vector, below: Vector, least: int) -> tuple[Vector, Vector]:
    cells, of_row, rows = np.unique(column, return_inverse=True, return_counts=True)
    sums = np.bincount(of_row, weights=below)
    kept = (rows >= least) & (sums > 0)
    return cells[kept], np.bincount(of_row, weights=above)[kept] / sums[kept]


def cells_at(posteriors: Matrix, resolution: int) -> Matrix:
    """What scores are written as at a resolution: events that share it are not told apart."""
    if resolution >= SINGLE:
        return coarsened(posteriors, resolution)
    return whole_numbers(posteriors, resolution)[0].astype(np.float64)


def rounded_scores(raw: Matrix) -> RoundedScores:
    """The rounded scores of a reference."""
    thin = raw[:: max(len(raw) // RESOLUTION_ROWS, 1)]
    own = decimals_of(thin)
    return RoundedScores(raw, SINGLE if own == EXACT and not single_merges(thin) else own, np.unique(raw))


def single_merges(posteriors: Matrix) -> bool:
    """Whether single precision takes away what tells scores apart, as with a naive Bayes model that is all but certain.

    A calibration may tell 1 - 1e-10 from 1 - 1e-15, of which single precision makes 1.
    """
    values = np.sort(posteriors, axis=None)
    _, first, sizes = np.unique(coarsened(values, SINGLE), return_index=True, return_counts=True)
    reach = values[first + sizes - 1] - values[first]
    return bool(sizes[reach > SAME_NUMBER * values[first]].sum() > SCORES_MERGED * values.size)


def scores_finer(rows: Matrix, resolution: int) -> bool:
    """Whether some of these rows have more decimals than any coarser resolution allows, made to sum to one or not."""
    if resolution > SINGLE:
        return False
    units = 10.0 ** np.arange(COARSEST_SCORES, min(resolution, FINEST_SCORES + 1))
    more = rows.shape[1] // 2
    totals = (units[:, None] + np.arange(-more, more + 1))[:, :, None, None]
    near = _near(rows * totals, np.rint(rows * totals), units[:, None, None, None])
    return not (near.any(axis=(0, 1)) | ~np.isfinite(rows).all(axis=1)).all()


def decimals_of(posteriors: Matrix) -> int:
    """The fewest decimals with which scores can be written, before each row was made to sum to one; else `SINGLE` or
    `EXACT`."""
    plain = decimals(thinned(posteriors.ravel()), 1.0, least=1.0)
    if plain <= FINEST_SCORES or posteriors.shape[1] == 2:
        return max(plain, COARSEST_SCORES) if plain <= FINEST_SCORES else max(plain, SINGLE)
    for d in range(COARSEST_SCORES, FINEST_SCORES + 1):
        if whole_numbers(posteriors, d)[1].all():
            return d
    return max(plain, SINGLE)


def whole_numbers(posteriors: Matrix, resolution: int) -> tuple[Labels, Flags]:
    """Scores in units of their last decimal, and which rows were written with so many.

    Rounded shares of several classes sum to 1 + j / 10^d, and may have been divided by it since: each j is tried. Those
    of two classes sum to 1: of a model with a dozen distinct scores, most rows may seem to be divided by chance. Where
    most rows were written more finely, those that seem to be so were not either: all are rounded as they are.
    """
    units = 10**resolution
    scaled = posteriors * units
    as_they_are = np.rint(scaled)
    whole, exact = as_they_are.copy(), _near(scaled, as_they_are, units)
    for j in range(1, posteriors.shape[1] // 2 + 1 if posteriors.shape[1] > 2 else 1):
        for total in (units - j, units + j):
            left = np.flatnonzero(~exact)
            if not left.size:
                break
            undone = posteriors[left] * total
            rounded = np.rint(undone)
            fits = _near(undone, rounded, units) & (rounded.sum(axis=1) == total)
            whole[left[fits]] = rounded[fits]
            exact[left[fits]] = True
    return (whole if 2 * exact.sum() > exact.size else as_they_are).astype(np.int64), exact


def _near(scaled: Matrix, whole: Matrix, units: ArrayLike) -> Flags:
    # Single precision of a share of one, in units of the last decimal.
    return np.asarray((np.abs(scaled - whole) <= np.multiply(units, 2.0**-24)).all(axis=-1))


@lru_cache(maxsize=REFERENCES_READY)
def _said(scores: RoundedScores, resolution: int) -> ByCell:
    """Of each class: the mean of what the reference's events said that are written alike.

    Where no reference event was, a score is worth what it says, and zero a part of the last decimal.
    """
    return ByCell.ratios(cells_at(scores.raw, resolution).T, scores.raw.T, np.ones(scores.raw.T.shape))
