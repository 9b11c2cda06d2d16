"""One window, looked at through a prepared reference: every pass over its events is made here, once.

What comes out is small (positions, means, counts) and holds all that the tests, matches and verdicts need.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Matrix, Vector
from monitor.shifts.prepared import Prepared, SortedColumn, category_cells, polynomial_sums
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.ranks import PlacedValues, place
from monitor.shifts.resolution import SINGLE, coarsened, coarsened_table
from monitor.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """Where a window's columns stand in the reference, and the mean of its feature map."""

    events: int
    posteriors: tuple[PlacedValues, ...]
    features: tuple[PlacedValues | Vector, ...]
    """Places of a numeric feature's values, or how often each value of a category occurs."""
    missing: Vector
    """Missing values per feature."""
    mean: Vector
    """b, in the reference's scale."""
    standardised: NDArray[np.float32] | None


def look(window: Window, reference: Prepared) -> Looked:
    """Look once at every column of a window with comparable posteriors; features as they come."""
    posteriors = tuple(
        place(column.places, coarsened(window.posteriors[:, y], SINGLE))
        for y, column in enumerate(reference.posteriors)
    )
    table = None
    if window.features is not None and reference.features:
        table = coarsened_table(window.features, reference.resolution.features)
    features: tuple[PlacedValues | Vector, ...] = ()
    missing = np.zeros(0)
    standardised = None
    if table is not None:
        features = tuple(seen_column(feature, table[:, j]) for j, feature in enumerate(reference.features))
        missing = np.isnan(table).sum(axis=0).astype(np.float64)
        if reference.projections is not None:
            standardised = reference.projections.standardised(table)
    looked = Looked(window.events, posteriors, features, missing, np.zeros(0), standardised)
    return replace(looked, mean=_mean(looked, window.posteriors, reference))


def with_features(looked: Looked, table: Matrix, moved: Mapping[int, Vector], reference: Prepared) -> Looked:
    """The same window with other values in some numeric features: what it would be without a shift of those."""
    features = list(looked.features)
    values = np.array(coarsened_table(table, reference.resolution.features))
    for j, column in moved.items():
        values[:, j] = coarsened(column, reference.resolution.features[j])
        features[j] = seen_column(reference.features[j], values[:, j])
    standardised = None if reference.projections is None else reference.projections.standardised(values)
    changed = replace(looked, features=tuple(features), standardised=standardised)
    return replace(changed, mean=_mean(changed, None, reference))


def seen_column(feature: SortedColumn | FeatureProfile, values: Vector) -> PlacedValues | Vector:
    """Where the values stand among a number's, or how often each value of a category occurs."""
    if isinstance(feature, SortedColumn):
        return place(feature.places, values)
    cells = feature.counts.shape[1]
    codes = np.clip(values[~np.isnan(values)], 0, cells - 1).astype(np.int64)
    return np.bincount(codes, minlength=cells).astype(np.float64)


def _mean(looked: Looked, posteriors: Matrix | None, reference: Prepared) -> Vector:
    """b: the mean of the map, block by block; NaN where the window lacks what a block needs."""
    mean = np.full(reference.moments.scale.size, np.nan)
    for block in reference.blocks:
        if block.kind == "posterior" and posteriors is not None:
            if block.index < 0:
                mean[block.at] = posteriors[:, : block.at.stop - block.at.start].mean(axis=0)
            else:
                mean[block.at] = _of_ranks(looked.posteriors[block.index], reference.posteriors[block.index], looked)
        elif block.kind == "feature" and looked.features:
            seen, feature = looked.features[block.index], reference.features[block.index]
            if isinstance(seen, PlacedValues) and isinstance(feature, SortedColumn):
                mean[block.at] = _of_ranks(seen, feature, looked)
            elif isinstance(seen, np.ndarray) and isinstance(feature, FeatureProfile):
                mean[block.at] = seen[category_cells(feature)] / looked.events
        elif block.kind == "joint" and looked.standardised is not None and reference.projections is not None:
            mean[block.at] = reference.projections(looked.standardised).mean(axis=0, dtype=np.float64)
    return mean / reference.moments.scale


def _of_ranks(placed: PlacedValues, column: SortedColumn, looked: Looked) -> Vector:
    """The mean over all events; a missing value counts as 0, as it does in the reference."""
    return polynomial_sums(placed, column.places) / looked.events
