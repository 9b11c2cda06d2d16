"""The columns of a reference, ready to be compared with a window's: numbers sorted and placed, categories as counts.

Everything here follows from the reference and the resolution that a window is compared at. Columns that are numbers lie
side by side, so that a window's are placed and tested together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.shifts import ks
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.ranks import Places, places, side_by_side
from monitor.shifts.resolution import EXACT, coarsened
from monitor.shifts.rising import RisingColumns
from monitor.tolerances import BLOCK_CELLS

QUANTILES = 32
"""At which distribution functions are looked at where nothing depends on the last digit: they change by 3 % between."""


@dataclass(frozen=True, slots=True, eq=False)
class SortedColumn:
    """One sorted numeric column of the reference, a feature or a posterior, with the class of each value."""

    name: str
    values: Vector
    """At the resolution that a window is compared at,"""
    exact: Vector
    """and as they came."""
    labels: Labels
    places: Places
    class_counts: Vector
    """Events of each class that have a value."""
    missing: Vector
    """Share of each class's events without one."""
    per_kept: Vector
    """What one kept value of each class weighs at a prior of 1: 1 / (kept values of the class)."""

    @classmethod
    def of(
        cls, name: str, exact: Vector, labels: Labels, class_counts: Vector, missing: Vector, *, resolution: int = EXACT
    ) -> "SortedColumn":
        """The column of these ascending values."""
        values = coarsened(exact, resolution)
        per_kept = 1.0 / np.maximum(np.bincount(labels, minlength=class_counts.size), 1)
        return cls(name, values, exact, labels, places(values), class_counts, missing, per_kept)

    def weights(self, priors: Vector) -> Vector:
        """The weight of each sorted value when the classes have these priors."""
        return np.asarray(np.maximum(priors, 0.0) * (1 - self.missing) * self.per_kept).take(self.labels)

    def rising(self, priors: Vector) -> Vector:
        """F_r before the first and at every value when the classes have these priors."""
        return ks.steps(self.weights(priors))

    def rising_as_it_is(self) -> Vector:
        """The same by the reference's own class mix."""
        values = self.values.size
        if values < self.class_counts.sum():
            # Where a reference keeps only quantiles, kept values stand for different numbers of events.
            events = self.class_counts / np.maximum(1 - self.missing, 1e-12)
            return self.rising(events / events.sum())
        return np.arange(values + 1) / max(values, 1)

    def cell_ends(self) -> Labels:
        """How many of the values lie in each of the cells in which blocks are compared, or before it."""
        upto = self.places.upto
        cell = np.maximum(upto[1:] - 1, 0) * BLOCK_CELLS // max(int(upto[-1]), 1)
        return np.asarray(upto[np.searchsorted(cell, np.arange(BLOCK_CELLS), side="right")])

    def by_class(self) -> Matrix:
        """F_y of each class at `QUANTILES` of all values, (classes, quantiles)."""
        classes = self.class_counts.size
        cell = np.arange(self.values.size) * QUANTILES // max(self.values.size, 1)
        counts = np.bincount(self.labels * QUANTILES + cell, minlength=classes * QUANTILES)
        rising = np.cumsum(counts.reshape(classes, QUANTILES), axis=1)
        return np.asarray(rising / np.maximum(rising[:, -1:], 1))


Column = SortedColumn | FeatureProfile


@dataclass(frozen=True, eq=False)
class KnownColumns:
    """All columns of a table, in its order; what follows from them is worked out when it is first asked for."""

    each: tuple[Column, ...]
    places: Places
    """Of the numbers; each has its part of the same memory."""

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "KnownColumns":
        """These columns, side by side."""
        numbers = [column for column in columns if isinstance(column, SortedColumn)]
        together = side_by_side([column.places for column in numbers])
        placed = (replace(column, places=together.column(row)) for row, column in enumerate(numbers))
        return cls(tuple(next(placed) if isinstance(one, SortedColumn) else one for one in columns), together)

    def __len__(self) -> int:
        return len(self.each)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.each)

    def __getitem__(self, number: int) -> Column:
        return self.each[number]

    @cached_property
    def numbers(self) -> tuple[SortedColumn, ...]:
        """Those that are numbers."""
        return tuple(column for column in self.each if isinstance(column, SortedColumn))

    @cached_property
    def numbers_at(self) -> Labels:
        """Where these are among all, and"""
        return np.array([j for j, column in enumerate(self.each) if isinstance(column, SortedColumn)], dtype=np.int64)

    @cached_property
    def row_of(self) -> Mapping[int, int]:
        """the other way round: the row of a number among them."""
        return {int(j): row for row, j in enumerate(self.numbers_at)}

    @cached_property
    def categories(self) -> Mapping[int, FeatureProfile]:
        """The others, by where they are."""
        return {j: column for j, column in enumerate(self.each) if isinstance(column, FeatureProfile)}

    @cached_property
    def kept(self) -> Labels:
        """How many values are kept of each number."""
        return np.array([column.values.size for column in self.numbers], dtype=np.int64)

    @cached_property
    def rising(self) -> RisingColumns:
        """F_r of the numbers, at any class mix."""
        return RisingColumns([column.labels for column in self.numbers], self.missing.shape[1])

    @cached_property
    def rising_as_it_is(self) -> Vector:
        """The same by the reference's own class mix, one column behind the other; NaN where it has no value."""
        each = (column.rising_as_it_is() if column.values.size else np.array([np.nan]) for column in self.numbers)
        return np.concatenate(list(each))

    @cached_property
    def cell_ends(self) -> Labels:
        """How many values of each number lie in each cell or before it, (numbers, cells)."""
        return np.array([column.cell_ends() for column in self.numbers])

    def weights(self, priors: Vector) -> Matrix:
        """What a value of each class weighs when the classes have these priors, a row for each number."""
        return np.asarray(np.maximum(priors, 0.0) * self._present * self._per_kept)

    @cached_property
    def _present(self) -> Matrix:
        """Share of each class's events with a value, and"""
        return np.asarray(1 - self.missing[self.numbers_at])

    @cached_property
    def _per_kept(self) -> Matrix:
        """what one kept value of it weighs, a row for each number."""
        return np.array([column.per_kept for column in self.numbers])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of all columns."""
        return tuple(one.name if isinstance(one, SortedColumn) else one.feature.name for one in self.each)

    @cached_property
    def by_class(self) -> Matrix:
        """F_y of the numbers at `QUANTILES`, (numbers, classes, quantiles)."""
        return np.array([column.by_class() for column in self.numbers])

    @cached_property
    def class_counts(self) -> Matrix:
        """Events of each class that have a value, a row for each column."""
        return np.array([column.class_counts for column in self.each])

    @cached_property
    def missing(self) -> Matrix:
        """Share of each class's events without one."""
        return np.array([column.missing for column in self.each])

    @cached_property
    def all_counts(self) -> Matrix:
        """Events of each class, with or without a value."""
        return np.asarray(self.class_counts / np.maximum(1 - self.missing, 1e-12))


def column_of(profile: FeatureProfile, resolution: int) -> Column:
    """A number's profile ready for comparisons at a resolution; other features are compared as they are."""
    if profile.feature.kind != "number":
        return profile
    name, missing = profile.feature.name, profile.missing
    return SortedColumn.of(name, profile.values, profile.labels, profile.class_counts, missing, resolution=resolution)
