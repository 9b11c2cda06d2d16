"""One window, looked at through a prepared reference: every pass over its events is made here, once.

What comes out is small (positions, means, counts) and holds all that the tests, matches and verdicts need. Of a window
of which only a sample of the rows is kept, whatever can be counted is counted of all its events (`tallied`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector, column_sums
from monitor.shifts.columns import KnownColumns, SortedColumn
from monitor.shifts.feature_map import category_cells, ranked_posteriors
from monitor.shifts.novelty import Landscape
from monitor.shifts.prepared import Prepared
from monitor.shifts.ranks import Placed, PlacedCounts, place
from monitor.shifts.resolution import SINGLE, coarsened, coarsened_table
from monitor.shifts.tallied import category_counts, tallied
from monitor.windows import Tally, Window


@dataclass(frozen=True, eq=False)
class SeenColumns:
    """Where a window's columns stand in the reference."""

    known: KnownColumns
    """Those of the reference."""
    events: int
    numbers: Placed
    """A row for each column that is a number."""
    categories: Mapping[int, Vector]
    """Of the others, by column: how often each value occurs."""
    missing: Vector
    """Missing values of each column."""

    @cached_property
    def each(self) -> tuple[Placed | Vector, ...]:
        """Of each column what was seen, in the order of the table."""
        columns, row_of = range(self.missing.size), self.known.row_of
        return tuple(self.numbers.of(row_of[j]) if j in row_of else self.categories[j] for j in columns)

    @cached_property
    def plain_distances(self) -> Vector:
        """D of each number from the reference as it is: the same at whatever mix they are looked at beside."""
        starts, rising = self.known.rising.starts, self.known.rising_as_it_is
        upto, below = (rising.take(ranks + starts) for ranks in (self.numbers.upto, self.numbers.below))
        return self.numbers.distances(upto, below)


@dataclass(frozen=True, eq=False)
class Looked:
    """Where a window's columns stand in the reference, and the mean of its feature map."""

    events: int
    posteriors: SeenColumns
    features: SeenColumns | None
    joint: Vector | None
    """The mean of the cosines; None where there are none."""
    mean: Vector
    """b, in the reference's scale."""
    standardised: NDArray[np.float32] | None
    """Of the rows."""
    landscape: Landscape | None
    """Where the reference's classes lie."""
    when: Vector | None = None
    """How much of the window lies in each phase of a season that inputs follow; None where they follow none."""

    @cached_property
    def distances(self) -> Vector | None:
        """How far each row lies from the classes; None where there is nothing to say so by."""
        if self.landscape is None or self.standardised is None:
            return None
        return self.landscape.distances(self.standardised)


def look(window: Window, reference: Prepared) -> Looked:
    """Look once at every column of a window's rows, with comparable posteriors; features as they come."""
    posteriors = seen_columns(reference.posteriors, coarsened(window.posteriors, SINGLE))
    features, standardised = None, None
    if window.features is not None and len(reference.features):
        table = coarsened_table(window.features, reference.resolution.features)
        features = seen_columns(reference.features, table)
        if reference.projections is not None:
            standardised = reference.projections.standardised(table)
    when = None if reference.hold_out is None else reference.hold_out.when(window.key.start, window.key.end)
    joint = _joint_mean(standardised, reference)
    looked = Looked(window.events, posteriors, features, joint, np.zeros(0), standardised, reference.landscape, when)
    scores = column_sums(window.posteriors)[:-1] / window.events
    return replace(looked, mean=_mean(looked, scores, reference))


def mean_with(looked: Looked, table: Matrix, moved: Mapping[int, Vector], reference: Prepared) -> Vector:
    """The mean of the map of a window with other values in some numeric features: what it would be without a shift of
    those. The scores, which would be others too, are as they came."""
    values = np.array(coarsened_table(table, reference.resolution.features))
    for j, column in moved.items():
        values[:, j] = coarsened(column, reference.resolution.features[j])
    features, columns = reference.features, list(moved)
    rows = np.array([features.row_of[j] for j in columns])
    placed = place(features.places.some(rows), values.T[columns])
    of_moved = dict(zip(columns, polynomial_sums(placed, features.kept[rows]) / looked.events, strict=True))
    mean, scale = np.array(looked.mean), reference.moments.scale
    for block in reference.blocks:
        if block.kind == "feature" and block.index in of_moved:
            mean[block.at] = of_moved[block.index] / scale[block.at]
        elif block.kind == "joint" and reference.projections is not None:
            mean[block.at] = reference.projections.mean(reference.projections.standardised(values)) / scale[block.at]
    return mean


def seen_columns(columns: KnownColumns, table: Matrix) -> SeenColumns:
    """Where the numbers of a table stand in the reference, and how often each value of its categories occurs."""
    numbers = table.T if len(columns.numbers) == len(columns) else table.T[columns.numbers_at]
    placed = place(columns.places, numbers)
    missing = np.zeros(len(columns))
    missing[columns.numbers_at] = placed.missing
    counted = {j: counts.astype(np.float64) for j, counts in category_counts(columns, table).items()}
    for j, counts in counted.items():
        missing[j] = len(table) - counts.sum()
    return SeenColumns(columns, len(table), placed, counted, missing)


def look_at_all(window: Window, rows: Looked, left_out: Tally, reference: Prepared) -> Looked:
    """The same of a window and the events that were left out of it, by counts of both; `rows` is what was seen of the
    window."""
    counted = tallied(window, reference, window.events)
    together = left_out + Tally(window.events, window.events, left_out.basis, counted)
    events, numbers = together.events, together.numbers
    scores = PlacedCounts.of_counts(reference.posteriors.places, numbers["scores"])
    posteriors = SeenColumns(reference.posteriors, events, scores, {}, np.zeros(len(reference.posteriors)))
    features, columns = None, reference.features
    if rows.features is not None:
        placed = PlacedCounts.of_counts(columns.places, numbers["numbers"])
        ends = np.cumsum([feature.counts.shape[1] for feature in columns.categories.values()])[:-1]
        of_each = np.split(numbers["categories"].astype(np.float64), ends)
        categories = dict(zip(columns.categories, of_each, strict=False))
        features = SeenColumns(columns, events, placed, categories, numbers["missing"].astype(np.float64))
    joint = None if rows.standardised is None else together.sum("joint sums") / events
    looked = Looked(events, posteriors, features, joint, np.zeros(0), rows.standardised, reference.landscape, rows.when)
    return replace(looked, mean=_mean(looked, together.sum("score sums") / events, reference))


def _joint_mean(standardised: NDArray[np.float32] | None, reference: Prepared) -> Vector | None:
    """Of the cosines."""
    if standardised is None or reference.projections is None:
        return None
    return reference.projections.mean(standardised)


def _mean(looked: Looked, scores: Vector | None, reference: Prepared) -> Vector:
    """b: the mean of the map, block by block, with those of the posteriors (all but the last); NaN where the window
    lacks what a block needs."""
    mean = np.full(reference.moments.scale.size, np.nan)
    if scores is not None and ranked_posteriors(len(reference.posteriors)):
        of_scores = polynomial_sums(looked.posteriors.numbers, reference.posteriors.kept) / looked.events
    if looked.features is not None:
        of_inputs = polynomial_sums(looked.features.numbers, reference.features.kept) / looked.events
    for block in reference.blocks:
        if block.kind == "posterior" and scores is not None:
            mean[block.at] = scores[: block.at.stop - block.at.start] if block.index < 0 else of_scores[block.index]
        elif block.kind == "feature" and looked.features is not None:
            feature = reference.features[block.index]
            if isinstance(feature, SortedColumn):
                mean[block.at] = of_inputs[reference.features.row_of[block.index]]
            else:
                mean[block.at] = looked.features.categories[block.index][category_cells(feature)] / looked.events
        elif block.kind == "joint" and looked.joint is not None:
            mean[block.at] = looked.joint
    return mean / reference.moments.scale


def polynomial_sums(placed: Placed, kept: Labels) -> Matrix:
    """Both polynomials, summed over a window's values, a row for each number; a missing value counts as 0.

    With r twice a value's mid-rank, of m: sum (r/m - 1)^2 = sum r^2 / m^2 - 2 sum r / m + n; whole numbers, exact.
    `kept` are how many values the reference keeps of each number.
    """
    m, n = np.maximum(kept, 1), placed.present
    first, second = placed.rank_sums(kept)
    centred = first / m - n
    squared = 1.5 * (second / m**2 - 2 * first / m + n) - n / 2
    return np.stack([np.sqrt(3.0) * centred, np.sqrt(5.0) * squared], axis=1)
