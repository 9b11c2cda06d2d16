"""One window, looked at through a prepared reference: every pass over its events is made here, once.

What comes out is small (positions, means, counts) and holds all that the tests, matches and verdicts need.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Matrix, Vector
from monitor.shifts.columns import KnownColumns, SortedColumn
from monitor.shifts.feature_map import category_cells, ranked_posteriors
from monitor.shifts.prepared import Prepared
from monitor.shifts.ranks import PlacedValues, place
from monitor.shifts.resolution import SINGLE, coarsened, coarsened_table
from monitor.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class SeenColumns:
    """Where a window's columns stand in the reference."""

    events: int
    numbers: PlacedValues
    """A row for each column that is a number."""
    categories: Mapping[int, Vector]
    """Of the others, by column: how often each value occurs."""
    missing: Vector
    """Missing values of each column."""
    row_of: Mapping[int, int]
    """Of a number: its row among them."""

    def each(self) -> tuple[PlacedValues | Vector, ...]:
        """Of each column what was seen, in the order of the table."""
        columns = range(self.missing.size)
        return tuple(self.numbers.of(self.row_of[j]) if j in self.row_of else self.categories[j] for j in columns)


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """Where a window's columns stand in the reference, and the mean of its feature map."""

    events: int
    posteriors: SeenColumns
    features: SeenColumns | None
    mean: Vector
    """b, in the reference's scale."""
    standardised: NDArray[np.float32] | None


def look(window: Window, reference: Prepared) -> Looked:
    """Look once at every column of a window with comparable posteriors; features as they come."""
    posteriors = seen_columns(reference.posteriors, coarsened(window.posteriors, SINGLE))
    features, standardised = None, None
    if window.features is not None and len(reference.features):
        table = coarsened_table(window.features, reference.resolution.features)
        features = seen_columns(reference.features, table)
        if reference.projections is not None:
            standardised = reference.projections.standardised(table)
    looked = Looked(window.events, posteriors, features, np.zeros(0), standardised)
    return replace(looked, mean=_mean(looked, window.posteriors, reference))


def with_features(looked: Looked, table: Matrix, moved: Mapping[int, Vector], reference: Prepared) -> Looked:
    """The same window with other values in some numeric features: what it would be without a shift of those."""
    values = np.array(coarsened_table(table, reference.resolution.features))
    for j, column in moved.items():
        values[:, j] = coarsened(column, reference.resolution.features[j])
    standardised = None if reference.projections is None else reference.projections.standardised(values)
    changed = replace(looked, features=seen_columns(reference.features, values), standardised=standardised)
    return replace(changed, mean=_mean(changed, None, reference))


def seen_columns(columns: KnownColumns, table: Matrix) -> SeenColumns:
    """Where the numbers of a table stand in the reference, and how often each value of its categories occurs."""
    numbers = table.T if len(columns.numbers) == len(columns) else table.T[columns.numbers_at]
    placed = place(columns.places, numbers)
    missing = np.zeros(len(columns))
    missing[columns.numbers_at] = placed.missing
    counted = {}
    for j, feature in columns.categories.items():
        present = table[~np.isnan(table[:, j]), j]
        cells = feature.counts.shape[1]
        missing[j] = len(table) - present.size
        counted[j] = np.bincount(np.clip(present, 0, cells - 1).astype(np.int64), minlength=cells).astype(np.float64)
    return SeenColumns(len(table), placed, counted, missing, columns.row_of)


def _mean(looked: Looked, posteriors: Matrix | None, reference: Prepared) -> Vector:
    """b: the mean of the map, block by block; NaN where the window lacks what a block needs."""
    mean = np.full(reference.moments.scale.size, np.nan)
    if posteriors is not None and ranked_posteriors(len(reference.posteriors)):
        of_scores = polynomial_sums(looked.posteriors.numbers, reference.posteriors) / looked.events
    if looked.features is not None:
        of_inputs = polynomial_sums(looked.features.numbers, reference.features) / looked.events
    for block in reference.blocks:
        if block.kind == "posterior" and posteriors is not None:
            if block.index < 0:
                mean[block.at] = posteriors[:, : block.at.stop - block.at.start].mean(axis=0)
            else:
                mean[block.at] = of_scores[block.index]
        elif block.kind == "feature" and looked.features is not None:
            feature = reference.features[block.index]
            if isinstance(feature, SortedColumn):
                mean[block.at] = of_inputs[reference.features.row_of[block.index]]
            else:
                mean[block.at] = looked.features.categories[block.index][category_cells(feature)] / looked.events
        elif block.kind == "joint" and looked.standardised is not None and reference.projections is not None:
            mean[block.at] = reference.projections(looked.standardised).mean(axis=0, dtype=np.float64)
    return mean / reference.moments.scale


def polynomial_sums(placed: PlacedValues, columns: KnownColumns) -> Matrix:
    """Both polynomials, summed over a window's values, a row for each number; a missing value counts as 0.

    With r twice a value's mid-rank, of m: sum (r/m - 1)^2 = sum r^2 / m^2 - 2 sum r / m + n; whole numbers, exact.
    """
    kept = np.array([column.values.size for column in columns.numbers], dtype=np.int64)
    m, n = np.maximum(kept, 1), placed.present
    ranks = placed.below.astype(np.int64) + placed.upto
    first = ranks.sum(axis=1) - placed.missing * 2 * kept
    second = np.einsum("jn,jn->j", ranks, ranks) - placed.missing * (2 * kept) ** 2
    centred = first / m - n
    squared = 1.5 * (second / m**2 - 2 * first / m + n) - n / 2
    return np.stack([np.sqrt(3.0) * centred, np.sqrt(5.0) * squared], axis=1)
