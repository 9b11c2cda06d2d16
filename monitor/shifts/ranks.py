"""Where a window's values stand among a reference's sorted ones, found by arithmetic: about one look a value.

Merging a window with the reference costs 45 ns a value, nearly all of it in branches that no processor can foresee.
Here a table over the reference's range says where a value stands, or to within a neighbour or two; every place is then
confirmed against the values themselves and searched where it was wrong. So places are exact; in ascending order they
are all that the Kolmogorov-Smirnov distance needs.

All columns of a table are placed together, those of small windows in one array operation.

Notation. u_0 < ... < u_(k-1) the reference's distinct values; the place of x is the number of u_j <= x.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector
from monitor.limits import VALUES_PLACED
from monitor.tolerances import CELLS_PER_VALUE, TABLE_TAIL

SMALLEST = float(np.finfo(np.float64).tiny)

Ranks = NDArray[np.int32] | Labels
"""How many of a column's values are below something. Those of a window are the smaller type, and quickest to search for
in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The distinct values of sorted columns, and the tables that find places among them. What belongs to a column is a
    number in each row of (columns, 1); what belongs to its values lies behind that of the column before.

    The cell of x is made of the leading bits of x - origin, which grow with it: equally wide cells where the origin is
    far away, cells that widen with the distance where it is the smallest value (amounts, durations, counts).
    """

    fence: Vector
    """u_0 to u_(k-1), then NaN, which is <= nothing and equals nothing: the end, and where the next column begins."""
    upto: Labels
    """How many of the column's values are among the first i distinct ones, for i in 0..k."""
    starts: Labels
    """Where a column begins in both."""
    sizes: Labels
    """k, the number of distinct values."""
    table: NDArray[np.int32]
    """For each cell, how many distinct values lie in the cells before it."""
    tables: Labels
    """Where a column's cells begin, and"""
    cells: Labels
    """how many they are."""
    origins: Matrix
    shifts: Labels
    firsts: Labels

    @property
    def size(self) -> int:
        """k, of a single column."""
        return int(self.sizes[0, 0])

    def find(self, values: Matrix) -> NDArray[np.intp]:
        """The place of each value among those of all columns, a row for each column; that of NaN is any."""
        cells = _bits(values, self.origins)
        cells >>= self.shifts
        cells -= self.firsts
        np.clip(cells, 0, self.cells - 1, out=cells)
        cells += self.tables
        at: NDArray[np.intp] = self.table.take(cells) + self.starts
        at += self.fence.take(at) <= values
        short = self.fence.take(at) <= values
        for row in np.flatnonzero(short.any(axis=1)):
            start, size = int(self.starts[row, 0]), int(self.sizes[row, 0])
            distinct = self.fence[start : start + size]
            at[row, short[row]] = start + np.searchsorted(distinct, values[row, short[row]], side="right")
        return at

    def equal(self, place: NDArray[np.intp], values: Matrix) -> NDArray[np.bool_]:
        """Which values equal the distinct value just before their place."""
        return np.asarray(self.fence.take(place - 1) == values)

    def twice_mid_ranks(self, values: Vector) -> Labels:
        """Of one column: how many of its values are below each value, plus how many are not above it."""
        rows = values[None]
        ranks = self.find(rows)
        both: Labels = self.upto.take(ranks) + self.upto.take(ranks - self.equal(ranks, rows))
        return both.ravel()

    def counted(self, columns: Matrix) -> Labels:
        """How many of the values, a row for each column, stand at each place: of each column a number before its first
        distinct value, upon it, behind it and so on, up to behind the last, and one more which is 0."""
        at = self.find(columns)
        order = 2 * at - self.equal(at, columns)
        return np.bincount(order[~np.isnan(columns)], minlength=2 * self.fence.size)

    def some(self, columns: slice | Labels) -> "Places":
        """Those of some of the columns."""
        mine = {name: getattr(self, name)[columns] for name in PER_COLUMN}
        return replace(self, **mine)

    def column(self, number: int) -> "Places":
        """Those of one column alone, in the same memory."""
        first, size, cell, cells = (int(of[number, 0]) for of in (self.starts, self.sizes, self.tables, self.cells))
        mine = self.some(slice(number, number + 1))
        values, nowhere = slice(first, first + size + 1), np.zeros((1, 1), dtype=np.int64)
        return replace(
            mine,
            fence=self.fence[values],
            upto=self.upto[values],
            table=self.table[cell : cell + cells],
            starts=nowhere,
            tables=nowhere,
        )


PER_COLUMN = ("starts", "sizes", "tables", "cells", "origins", "shifts", "firsts")


@dataclass(frozen=True, slots=True, eq=False)
class PlacedValues:
    """A window's values by their rank in the reference, a row for each column, ascending; missing ones come last, as if
    they were beyond all."""

    below: NDArray[np.int32]
    """How many of the reference's values are smaller than each of the window's, and"""
    upto: NDArray[np.int32]
    """how many are not larger."""
    present: Labels
    """How many values are not missing."""

    @property
    def missing(self) -> Labels:
        """How many are."""
        return np.asarray(self.below.shape[1] - self.present)

    def distances(self, upto: Matrix, below: Matrix) -> Vector:
        """D = sup |F_w - F_r| of each column, with F_r at every one of a window's values, and just below it.

        F_w rises at a window's values alone: it is furthest above F_r at one of them, and furthest below just before
        one. Where there is nothing to compare with F_r is NaN, and D is 0.
        """
        columns, values = self.below.shape
        greatest = np.zeros(columns)
        if not values:
            return greatest
        number, n = np.arange(values), np.maximum(self.present, 1)[:, None]
        for some in together(columns, values):
            sizes = n[some] if (n[some] != n[some][0]).any() else n[some][:1]  # all alike: F_w is worked out once
            farthest = np.maximum((number + 1) / sizes - upto[some], below[some] - number / sizes)
            if (self.present[some] < values).any():
                farthest[number >= self.present[some, None]] = 0.0
            farthest.max(axis=1, out=greatest[some])
        return np.where(greatest > 0, greatest, 0.0)

    def rank_sums(self, sizes: Labels) -> tuple[Labels, Labels]:
        """The sum of twice the mid-ranks of each column, and that of their squares; `sizes` are those of the
        reference's columns."""
        ranks, missing = self.below.astype(np.int64) + self.upto, self.missing
        first = ranks.sum(axis=1) - missing * 2 * sizes
        return first, np.einsum("jn,jn->j", ranks, ranks) - missing * (2 * sizes) ** 2

    def before(self, ranks: Ranks) -> Labels:
        """How many values of a single column have fewer of the reference's below them than each of these ranks, and"""
        return self.below[0, : self.present[0]].searchsorted(ranks)

    def within(self, ranks: Ranks) -> Labels:
        """how many have no more than so many up to them."""
        return self.upto[0, : self.present[0]].searchsorted(ranks, side="right")

    def of(self, column: int) -> "PlacedValues":
        """Those of one column alone."""
        row = slice(column, column + 1)
        return PlacedValues(self.below[row], self.upto[row], self.present[row])


@dataclass(frozen=True, slots=True, eq=False)
class PlacedCounts:
    """The same of values that are only counted, place by place: a row for each column, filled up with places where
    nothing stands. However many values there are, it is as large as the reference."""

    below: Labels
    upto: Labels
    rising: Labels
    """How many of the window's values stand there or before."""

    @classmethod
    def of_counts(cls, reference: Places, counts: Labels) -> "PlacedCounts":
        """From what `Places.counted` gives, or a sum of it."""
        begins, sizes = 2 * reference.starts[:, 0], reference.sizes[:, 0]
        number = np.minimum(np.arange(2 * sizes.max(initial=0) + 1), 2 * sizes[:, None])
        own = counts.take(number + begins[:, None])
        own[:, 1:][number[:, 1:] == number[:, :-1]] = 0
        below, upto = (reference.upto.take((number + up >> 1) + reference.starts) for up in (0, 1))
        return cls(below, upto, np.cumsum(own, axis=1))

    @property
    def present(self) -> Labels:
        """How many values are not missing."""
        return np.asarray(self.rising[:, -1])

    def distances(self, upto: Matrix, below: Matrix) -> Vector:
        """The same D, to the last bit: F_w rises at places where values stand, and other places change no maximum."""
        if not len(self.rising):
            return np.zeros(0)
        n = np.maximum(self.present, 1)[:, None]
        farthest = np.maximum(self.rising / n - upto, below - self._earlier / n)
        greatest = np.where(self._here > 0, farthest, 0.0).max(axis=1)
        return np.where(greatest > 0, greatest, 0.0)

    def rank_sums(self, _: Labels) -> tuple[Labels, Vector]:
        """As of values; squares are added up in floating point, which whole numbers of a billion events overflow."""
        ranks, here = self.below + self.upto, self._here
        squares = ranks.astype(np.float64) ** 2
        return np.einsum("jn,jn->j", here, ranks), np.einsum("jn,jn->j", here.astype(np.float64), squares)

    def before(self, ranks: Ranks) -> Labels:
        """As of values."""
        return self._first(np.searchsorted(self.below[0], ranks))

    def within(self, ranks: Ranks) -> Labels:
        """As of values."""
        return self._first(np.searchsorted(self.upto[0], ranks, side="right"))

    def of(self, column: int) -> "PlacedCounts":
        """Those of one column alone."""
        row = slice(column, column + 1)
        return PlacedCounts(self.below[row], self.upto[row], self.rising[row])

    @property
    def _earlier(self) -> Labels:
        return np.concatenate([np.zeros_like(self.rising[:, :1]), self.rising[:, :-1]], axis=1)

    @property
    def _here(self) -> Labels:
        return self.rising - self._earlier

    def _first(self, places: Labels) -> Labels:
        """How many values of a single column stand at the first so many places."""
        return np.append(0, self.rising[0]).take(places)


Placed = PlacedValues | PlacedCounts


def places(values: Vector) -> Places:
    """The places of an ascending column without NaN."""
    fresh = np.append(True, values[1:] != values[:-1])[: values.size]
    distinct, upto = values[fresh], np.append(np.flatnonzero(fresh), values.size)
    fence = np.append(distinct, np.nan)
    if not distinct.size:
        return _of_column(fence, upto, np.zeros(1, dtype=np.int32))
    low, high = (float(distinct[round(share * (distinct.size - 1))]) for share in (TABLE_TAIL, 1 - TABLE_TAIL))
    origins = [origin for origin in (low - (high - low), float(distinct[0])) if np.isfinite(origin)] or [0.0]
    tables = [_tabled(fence, upto, origin, low, high) for origin in origins]
    # The more cells are taken, the fewer values share one.
    return max(tables, key=lambda one: np.count_nonzero(np.diff(one.table)))


def side_by_side(columns: Sequence[Places]) -> Places:
    """The places of all these columns."""
    fences, tables = (
        np.array([getattr(column, of).size for column in columns], dtype=int) for of in ("fence", "table")
    )
    return Places(
        fence=np.concatenate([np.zeros(0), *(column.fence for column in columns)]),
        upto=np.concatenate([np.zeros(0, dtype=int), *(column.upto for column in columns)]),
        starts=(np.cumsum(fences) - fences)[:, None],
        sizes=fences[:, None] - 1,
        table=np.concatenate([np.zeros(0, dtype=np.int32), *(column.table for column in columns)]),
        tables=(np.cumsum(tables) - tables)[:, None],
        cells=tables[:, None],
        origins=np.concatenate([np.zeros((0, 1)), *(column.origins for column in columns)]),
        shifts=np.concatenate([np.zeros((0, 1), dtype=int), *(column.shifts for column in columns)]),
        firsts=np.concatenate([np.zeros((0, 1), dtype=int), *(column.firsts for column in columns)]),
    )


def place(reference: Places, columns: Matrix) -> PlacedValues:
    """The values of columns, a row for each, by their rank in the reference; NaN is missing."""
    number, values = columns.shape
    below, upto = np.empty(columns.shape, dtype=np.int32), np.empty(columns.shape, dtype=np.int32)
    present = np.full(number, values)
    for part in together(number, values):
        some = reference if part == slice(0, number) else reference.some(part)
        rows = np.array(columns[part], order="C")
        # In ascending order looks follow each other through the table.
        rows.sort(axis=1)
        at = some.find(rows)
        gaps = np.isnan(rows)
        if gaps.any():
            present[part] -= np.count_nonzero(gaps, axis=1)
            at = np.where(gaps, some.starts + some.sizes, at)
        upto[part] = some.upto.take(at)
        below[part] = some.upto.take(at - some.equal(at, rows))
    return PlacedValues(below, upto, present)


def together(columns: int, values: int) -> Iterator[slice]:
    """Columns of so many values that are worked on at once: what is made of them stays in cache."""
    size = max(VALUES_PLACED // max(values, 1), 1)
    return (slice(begin, min(begin + size, columns)) for begin in range(0, columns, size))


def _tabled(fence: Vector, upto: Labels, origin: float, low: float, high: float) -> Places:
    """The table with cells between the low and the high value, seen from this origin."""
    lowest, highest = (int(bits) for bits in _bits(np.array([low, high]), origin))
    distinct = fence[:-1]
    shift = max(0, (highest - lowest).bit_length() - (CELLS_PER_VALUE * distinct.size).bit_length())
    first, cells = lowest >> shift, (highest >> shift) - (lowest >> shift) + 1
    of_values = np.clip((_bits(distinct, origin) >> shift) - first, 0, cells - 1)
    before = np.searchsorted(of_values, np.arange(cells), side="left").astype(np.int32)
    return _of_column(fence, upto, before, origin=origin, shift=shift, first=first)


def _of_column(
    fence: Vector, upto: Labels, table: NDArray[np.int32], *, origin: float = 0.0, shift: int = 0, first: int = 0
) -> Places:
    zero = np.zeros((1, 1), dtype=np.int64)
    return Places(
        fence=fence,
        upto=upto,
        starts=zero,
        sizes=zero + (fence.size - 1),
        table=table,
        tables=zero,
        cells=zero + table.size,
        origins=np.array([[origin]]),
        shifts=zero + shift,
        firsts=zero + first,
    )


def _bits(values: Matrix | Vector, origin: Matrix | float) -> Labels:
    """x - origin, in a whole number that grows with it: the bits of positive floats are in their order."""
    with np.errstate(over="ignore", invalid="ignore"):
        ahead = values - origin
    return np.maximum(ahead, SMALLEST, out=ahead).view(np.int64)
