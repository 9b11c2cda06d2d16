"""Where a window's values stand among a reference's sorted ones, found by arithmetic: about one look a value.

Sorting a window and merging it with the reference costs 45 ns a value, nearly all of it in branches that no processor
can foresee. Here a table over the reference's range says where a value stands, or to within a neighbour or two; every
place is then confirmed against the values themselves and searched where it was wrong. So places are exact, and what a
window leaves behind is one count for each gap of the reference: all that the Kolmogorov-Smirnov distance needs.

Notation. u_0 < ... < u_(k-1) the reference's distinct values; the place of x is the number of u_j <= x.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Vector
from monitor.tolerances import CELLS_PER_VALUE, TABLE_TAIL

SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The distinct values of a sorted column, and the table that finds places among them.

    The cell of x is made of the leading bits of x - origin, which grow with it: equally wide cells where the origin is
    far away, cells that widen with the distance where it is the smallest value (amounts, durations, counts).
    """

    fence: Vector
    """u_0 to u_(k-1), then NaN, which is <= nothing and equals nothing: the end, and by index -1 the beginning."""
    upto: Labels
    """How many of the column's values are among the first i distinct ones, for i in 0..k."""
    table: NDArray[np.intp]
    """For each cell, how many distinct values lie in the cells before it."""
    origin: float
    shift: int
    first: int

    @property
    def size(self) -> int:
        """k, the number of distinct values."""
        return self.fence.size - 1

    def find(self, values: Vector) -> NDArray[np.intp]:
        """The place of each value; none may be NaN."""
        ranks = self.table.take(_cells(values, self.origin, self.shift, self.first, self.table.size))
        ranks += self.fence.take(ranks) <= values
        short = np.flatnonzero(self.fence.take(ranks) <= values)
        if short.size:
            ranks[short] = np.searchsorted(self.fence[:-1], values[short], side="right")
        return ranks

    def equal(self, place: NDArray[np.intp], values: Vector) -> NDArray[np.bool_]:
        """Which values equal the distinct value just before their place."""
        return np.asarray(self.fence.take(place - 1) == values)

    def twice_mid_ranks(self, values: Vector) -> Labels:
        """How many of the column's values are below each value, plus how many are not above it."""
        ranks = self.find(values)
        return np.asarray(self.upto.take(ranks) + self.upto.take(ranks - self.equal(ranks, values)))


@dataclass(frozen=True, slots=True, eq=False)
class PlacedValues:
    """A window's values by their place in the reference."""

    counts: Labels
    """Values at each place, 0 to k."""
    tied: Labels | None
    """Values that equal u_j, for each j; None where no value equals any."""
    before: Vector
    """F_w just before each u_j, and"""
    upon: Vector
    """at it."""
    n: int
    """Values that were placed."""
    missing: int


def places(values: Vector) -> Places:
    """The places of an ascending column without NaN."""
    fresh = np.append(True, values[1:] != values[:-1])[: values.size]
    distinct, upto = values[fresh], np.append(np.flatnonzero(fresh), values.size)
    fence = np.append(distinct, np.nan)
    if not distinct.size:
        return Places(fence, upto, np.zeros(1, dtype=np.intp), 0.0, 0, 0)
    low, high = (float(distinct[round(share * (distinct.size - 1))]) for share in (TABLE_TAIL, 1 - TABLE_TAIL))
    origins = [origin for origin in (low - (high - low), float(distinct[0])) if np.isfinite(origin)] or [0.0]
    tables = [_tabled(fence, upto, origin, low, high) for origin in origins]
    # The more cells are taken, the fewer values share one.
    return max(tables, key=lambda one: np.count_nonzero(np.diff(one.table)))


def place(reference: Places, values: Vector) -> PlacedValues:
    """Count a window's values by their place; NaN is missing."""
    gaps = np.isnan(values)
    missing = int(np.count_nonzero(gaps))
    present = values[~gaps] if missing else np.ascontiguousarray(values)
    ranks = reference.find(present)
    equal = reference.equal(ranks, present)
    tied = np.bincount(ranks[equal] - 1, minlength=reference.size) if equal.any() else None
    counts = np.bincount(ranks, minlength=reference.size + 1)
    below = np.cumsum(counts[:-1])
    before = np.asarray(below / max(present.size, 1))
    upon = before if tied is None else np.asarray((below + tied) / present.size)
    return PlacedValues(counts, tied, before, upon, present.size, missing)


def distance(placed: PlacedValues, cumulative: Vector) -> float:
    """D = sup |F_w - F_r|, with F_r before the first and at every distinct value.

    Between two neighbours F_r stands still and F_w rises: F_w is furthest above just before a u_j, F_r at one.
    """
    if not placed.n or cumulative.size == 1:
        return 0.0
    return float(max((placed.before - cumulative[:-1]).max(), (cumulative[1:] - placed.upon).max(), 0.0))


def _tabled(fence: Vector, upto: Labels, origin: float, low: float, high: float) -> Places:
    """The table with cells between the low and the high value, seen from this origin."""
    lowest, highest = (int(bits) for bits in _bits(np.array([low, high]), origin))
    distinct = fence[:-1]
    shift = max(0, (highest - lowest).bit_length() - (CELLS_PER_VALUE * distinct.size).bit_length())
    first, cells = lowest >> shift, (highest >> shift) - (lowest >> shift) + 1
    of_values = _cells(distinct, origin, shift, first, cells)
    before = np.searchsorted(of_values, np.arange(cells), side="left").astype(np.intp)
    return Places(fence, upto, before, origin, shift, first)


def _cells(values: Vector, origin: float, shift: int, first: int, cells: int) -> Labels:
    cells_of_values = _bits(values, origin)
    cells_of_values >>= shift
    cells_of_values -= first
    return np.clip(cells_of_values, 0, cells - 1, out=cells_of_values)


def _bits(values: Vector, origin: float) -> Labels:
    """x - origin, in a whole number that grows with it: the bits of positive floats are in their order."""
    with np.errstate(over="ignore"):
        ahead = values - origin
    return np.maximum(ahead, SMALLEST, out=ahead).view(np.int64)
