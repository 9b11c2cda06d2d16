"""What is plainly wrong with a window's values: outside what the reference has, unknown to it, or all the same.

No test decides here: these are shares that anybody can check by hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags, Matrix, Vector
from monitor.shifts.columns import SortedColumn
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.ranks import Placed
from monitor.tolerances import CONSTANT_BY_CHANCE

GLANCED = 100
"""Rows."""


@dataclass(frozen=True, slots=True)
class ColumnQuality:
    """One feature of a window."""

    values: int
    """Not missing; of these"""
    outside: int
    """are below or above all of the reference's, of a number, and"""
    new: int
    """are none that it knows, of any other feature."""
    number: bool
    constant: bool
    """All the same, where the reference's are so varied that this is no chance."""


def qualities(
    columns: Sequence[SortedColumn | FeatureProfile], seen: Sequence[Placed | Vector], table: Matrix
) -> list[ColumnQuality]:
    """Each column of a window, of which these values were counted."""
    alike = _alike(table[:GLANCED])
    alike[alike] = _alike(table[:, alike])
    return [_quality(*each) for each in zip(columns, seen, alike.tolist(), strict=False)]


def _alike(table: Matrix) -> Flags:
    """Of each column whether it has one value and no other; most show at a glance that they have not."""
    return np.asarray(np.fmin.reduce(table, axis=0) == np.fmax.reduce(table, axis=0))


def _quality(column: SortedColumn | FeatureProfile, seen: Placed | Vector, alike: bool) -> ColumnQuality:
    if isinstance(column, SortedColumn) and not isinstance(seen, np.ndarray):
        n, size = int(seen.present[0]), column.values.size
        below = int(seen.within(np.array([0], dtype=np.int32))[0])
        above = n - int(seen.before(np.array([size], dtype=np.int32))[0])
        common = _commonest(column) if alike else 1.0
        return ColumnQuality(n, below + above if size else 0, 0, number=True, constant=_varied(common, n))
    counts, known = np.asarray(seen), column.counts.sum(axis=0) if isinstance(column, FeatureProfile) else np.zeros(1)
    n, common = int(counts.sum()), float(known.max(initial=0)) / max(float(known.sum()), 1.0)
    return ColumnQuality(n, 0, int(counts[-1]), number=False, constant=alike and _varied(common, n))


def _commonest(column: SortedColumn) -> float:
    """The share of a number's most common value in the reference."""
    _, counts = np.unique(column.values, return_counts=True)
    return float(counts.max(initial=0)) / max(column.values.size, 1)


def _varied(common: float, values: int) -> bool:
    """Whether so many values of a reference whose most common one has this share would hardly be all the same."""
    return values > 0 and common**values < CONSTANT_BY_CHANCE
