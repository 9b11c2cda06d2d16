"""Columns of the hold-out's blocks, each held against the other blocks: distances, and what is usual at each time."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from monitor.arrays import Labels, Matrix, Vector, present
from monitor.shifts import FeatureProfile, Mates, SeasonalColumns, SortedColumn, cells, elsewhere
from monitor.tolerances import BLOCK_CELLS, EXPECTED_IN_CELL


class RowsOfBlocks(Protocol):
    """Which block each hold-out row belongs to."""

    @property
    def of_row(self) -> Labels: ...
    @property
    def stretch(self) -> Labels: ...
    @property
    def number(self) -> int: ...


class ComparedBlocks(NamedTuple):
    """One column of each block against the others."""

    apart: Vector
    """D_jk."""
    absent: Vector
    """The share of values that each block lacks beyond what the others lead to expect."""
    seasonal: tuple[Vector, Vector, Matrix, Vector] | None
    """Both from what is usual at its time, and what that is, by phase."""


def seasonal_columns(
    features: Sequence[ComparedBlocks], scores: Sequence[ComparedBlocks], mates: Mates
) -> SeasonalColumns:
    of_features, of_scores = ([present(one.seasonal, "phases") for one in each] for each in (features, scores))
    none = np.zeros((mates.phases, 0))
    return SeasonalColumns(
        distances=np.array([apart for apart, *_ in of_features]).reshape(-1, mates.phase.size).T,
        score_distances=np.array([apart for apart, *_ in of_scores]).T,
        missing=np.array([absent for _, absent, *_ in of_features]).reshape(-1, mates.phase.size).T,
        gaps=np.concatenate([none, *(gaps for *_, gaps, _ in of_features)], axis=1).astype(np.float32),
        score_gaps=np.concatenate([gaps for *_, gaps, _ in of_scores], axis=1).astype(np.float32),
        missing_gaps=np.array([usual for *_, usual in of_features]).reshape(-1, mates.phases).T,
    )


def compared_blocks(
    values: Vector,
    column: SortedColumn | FeatureProfile,
    labels: Labels,
    cut: RowsOfBlocks,
    counts: Matrix,
    *,
    mates: Mates | None,
) -> ComparedBlocks:
    classes = counts.shape[1]
    there = (cut.of_row >= 0) & ~np.isnan(values)
    block, label = cut.of_row[there], labels[there]
    cell, number = _cells(values[there], column), cells(column)
    there_are = np.bincount(block * classes + label, minlength=counts.size).reshape(counts.shape).astype(np.float64)
    left = elsewhere(there_are, cut.stretch)
    # A class that no other block has says nothing of how this one differs.
    shares = np.where(left > 0, there_are / np.maximum(there_are.sum(axis=1, keepdims=True), 1.0), 0.0)
    each = (shares / np.maximum(there_are, 1.0))[block, label]
    of_cell = np.bincount(block * number + cell, weights=each, minlength=cut.number * number)
    gaps = of_cell.reshape(cut.number, number).astype(np.float64)
    of_class = np.bincount(label * number + cell, minlength=classes * number).reshape(classes, number)
    stretch, factors = cut.stretch[block], shares / np.maximum(left, 1.0)
    for one in np.unique(cut.stretch):
        inside, members = stretch == one, cut.stretch == one
        own = np.bincount(label[inside] * number + cell[inside], minlength=of_class.size).reshape(of_class.shape)
        gaps[members] -= factors[members] @ (of_class - own)

    def farthest(gaps: Matrix) -> Vector:
        if isinstance(column, FeatureProfile):
            return _shares_apart(gaps, block * number + cell, there_are.sum(axis=1), _others(shares, left))
        return np.asarray(np.abs(np.cumsum(gaps, axis=1)).max(axis=1))

    absent, seasonal = _missing(counts - there_are, counts, cut.stretch), None
    if mates is not None:
        beyond, unusual = gaps - mates.together @ gaps, absent - mates.together @ absent
        seasonal = farthest(beyond), unusual, mates.by_phase(gaps), mates.by_phase(absent[:, None])[:, 0]
    return ComparedBlocks(farthest(gaps), absent, seasonal)


def _others(shares: Matrix, left: Matrix) -> Vector:
    """What the others' rows of each class are worth at a block's class shares."""
    weights = np.divide(shares**2, left, out=np.zeros_like(shares), where=left > 0).sum(axis=1)
    return np.asarray(1.0 / np.maximum(weights, np.finfo(np.float64).eps))


def _shares_apart(gaps: Matrix, cell_of_row: Labels, present: Vector, others: Vector) -> Vector:
    """Half the sum of the gaps; values rare in a block and the others together share a cell, as in `chi_square`."""
    observed = np.bincount(cell_of_row, minlength=gaps.size).reshape(gaps.shape).astype(np.float64)
    expected = observed / np.maximum(present, 1.0)[:, None] - gaps
    pooled = (observed + others[:, None] * expected) / (present + others)[:, None]
    frequent = pooled * (present * others / np.maximum(present + others, 1.0))[:, None] >= EXPECTED_IN_CELL
    rest = np.abs(np.where(frequent, 0.0, gaps).sum(axis=1))
    return np.asarray((np.where(frequent, np.abs(gaps), 0.0).sum(axis=1) + rest) / 2)


def _missing(missing: Matrix, counts: Matrix, stretch: Labels) -> Vector:
    left = elsewhere(counts, stretch)
    others = np.divide(elsewhere(missing, stretch), left, out=np.zeros_like(left), where=left > 0)
    return np.asarray(np.where(left > 0, missing - others * counts, 0.0).sum(axis=1) / counts.sum(axis=1))


def _cells(values: Vector, column: SortedColumn | FeatureProfile) -> Labels:
    """Which cell each value lies in: equally filled ones of a number, or its category."""
    if isinstance(column, FeatureProfile):
        return np.clip(values, 0, cells(column) - 1).astype(np.int64)
    upto = column.places.upto
    # A value lies in the cell of the reference's largest value up to it.
    of_place = np.maximum(upto - 1, 0) * BLOCK_CELLS // max(int(upto[-1]), 1)
    return np.asarray(of_place[column.places.find(values[None])[0]])
