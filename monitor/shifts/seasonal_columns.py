"""Columns against what is usual of them at one time of the season: their distributions, and missing values.

What is usual of a column in a phase is a difference of distribution functions: the mean over the blocks of the phase of
G_k(x) = F_k(x) - sum_y p_ky F_-ky(x), in the cells in which blocks are compared (`monitor.reference.blocks`). The
distance of a window is max_x |F(x) - sum_y p_y F_y(x) - G(x)| at the ends of these cells, and so is that of a block,
held against the others of its phase. (Half the sum over values in place of the maximum for categories.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Matrix, Vector
from monitor.shifts.columns import Column, KnownColumns, SortedColumn
from monitor.shifts.phases import UsualInputs
from monitor.tolerances import BLOCK_CELLS


@dataclass(frozen=True, slots=True, eq=False)
class SeasonalColumns:
    """What is kept of the blocks of a hold-out whose inputs follow a season."""

    distances: Matrix
    """Of each block from what is usual at its time, by the others, (blocks, features), and"""
    score_distances: Matrix
    """of each posterior, (blocks, classes)."""
    missing: Matrix
    """Share of missing values beyond what is usual at its time, (blocks, features)."""
    gaps: Matrix
    """What is usual of the features in each phase, one column's cells behind the other, (phases, cells), and"""
    score_gaps: Matrix
    """of the posteriors."""
    missing_gaps: Matrix
    """Of shares of missing values, (phases, features)."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds of it; `from_arrays` is the way back."""
        return {f"{PREFIX}{name}": getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `to_arrays` wrote; KeyError if something is missing."""
        return cls(**{name: arrays[f"{PREFIX}{name}"] for name in cls.__slots__})


PREFIX = "seasonal_"


@dataclass(frozen=True, slots=True, eq=False)
class UsualColumns:
    """What is usual of a table's columns at the time of a window, and how well that is known."""

    gaps: tuple[Vector, ...]
    """G of each column, by cell."""
    missing: Vector
    """Of its share of missing values."""
    known: UsualInputs

    def weights(self, number: int, column: SortedColumn, weights: Vector) -> Vector:
        """What each sorted value of a number weighs then."""
        sizes = np.diff(column.cell_ends(), prepend=0)
        total = float(weights.sum())
        then = np.maximum(weights + total * np.repeat(self.gaps[number] / np.maximum(sizes, 1), sizes), 0.0)
        return np.asarray(then * (total / max(float(then.sum()), np.finfo(np.float64).tiny)))


def usual_columns(columns: KnownColumns, gaps: Vector, missing: Vector, known: UsualInputs) -> UsualColumns:
    """From what lies behind each other."""
    ends = np.cumsum([cells(column) for column in columns])[:-1]
    return UsualColumns(tuple(np.split(gaps, ends)), missing, known)


def cells(column: Column) -> int:
    """In how many cells a column is compared."""
    return BLOCK_CELLS if isinstance(column, SortedColumn) else column.counts.shape[1]
