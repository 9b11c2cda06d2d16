"""Small sketches of distributions: how many of a window's values lie where, and which shares of the reference's.

A sketch is for drawing. A number's cells are cut at quantiles of the reference; what lies below and above all of its
values has a cell of its own at either end. A category's cells are its most common values, then all others that the
reference knows, then those that it does not. Everything is taken from what the tests have counted already.

Notation. u_0 < ... < u_(k-1) the distinct values of a column of the reference; cells begin at some of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector
from monitor.limits import REFERENCES_READY, SKETCH_CELLS, SKETCH_FEWEST, SKETCH_MOST
from monitor.shifts.categories import mixed_shares
from monitor.shifts.columns import Column, SortedColumn
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.ranks import SMALLEST, Placed


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """One column of a window beside the reference's, cell by cell; missing values are in none."""

    edges: Vector
    """Of a number: the cells lie below the first, from each to the next, and above the last."""
    categories: tuple[str, ...]
    """Of any other feature: the values with a cell of their own; after them come the other known ones, then all that
    the reference does not know."""
    counts: Labels
    """The window's values in each cell."""
    reference: Vector
    """The shares of the reference's values in each cell,"""
    expected: Vector
    """and what they are at the class mix of the window."""


@dataclass(frozen=True, slots=True, eq=False)
class Sketches:
    """The sketches of a window."""

    features: Mapping[str, Sketch]
    """By name; where there are too many, those that moved most."""
    scores: Mapping[str, Sketch]
    """The calibrated posterior of each class by its name, of two classes of the one that is looked for; the
    predictions of a regressor."""


Seen = Placed | Vector


@dataclass(frozen=True, slots=True, eq=False)
class SketchedColumns:
    """What is to be sketched: columns with what was counted of them, each with its name and how far it moved."""

    names: Sequence[str]
    columns: tuple[Column, ...]
    seen: Sequence[Seen]
    moved: Sequence[float]


def sketched(features: SketchedColumns, scores: SketchedColumns, priors: Vector) -> Sketches:
    """The sketches of a window whose class mix is `priors`: the more columns, the fewer cells each."""
    columns = len(features.columns) + len(scores.columns)
    most = min(max(SKETCH_CELLS // max(columns, 1), SKETCH_FEWEST), SKETCH_MOST)
    room = SKETCH_CELLS // SKETCH_FEWEST
    of_scores = _of_columns(scores, room // 2, most, priors)
    return Sketches(_of_columns(features, room - len(of_scores), most, priors), of_scores)


def _of_columns(group: SketchedColumns, room: int, most: int, priors: Vector) -> dict[str, Sketch]:
    furthest = sorted(range(len(group.seen)), key=lambda j: -group.moved[j])[:room]
    cells = _cells_of(group.columns, most)
    made = {group.names[j]: _sketch(group.columns[j], cells[j], group.seen[j], priors, most) for j in sorted(furthest)}
    return {name: one for name, one in made.items() if one is not None}


def _sketch(column: Column, cells: "_Cells | None", seen: Seen, priors: Vector, most: int) -> Sketch | None:
    """None where the reference has no value of the column."""
    if isinstance(seen, np.ndarray):
        return _of_category(column, seen, priors, most) if isinstance(column, FeatureProfile) else None
    return _of_number(column, cells, seen, priors) if isinstance(column, SortedColumn) and cells is not None else None


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Where the cells of a number are."""

    begin: NDArray[np.int32]
    """How many of the reference's values lie before each: of the type that a window's are searched in."""
    edges: Vector
    of_class: Matrix
    """(classes, cells): the share of each class's values in each, with an empty cell at either end."""
    reference: Vector
    """Of all values."""


@lru_cache(maxsize=REFERENCES_READY)
def _cells_of(columns: tuple[Column, ...], most: int) -> tuple[_Cells | None, ...]:
    """Of each number that the reference has values of; worked out once while the reference lives."""
    return tuple(
        _cells(column, most) if isinstance(column, SortedColumn) and column.values.size else None for column in columns
    )


def _cells(column: SortedColumn, most: int) -> _Cells:
    """A cell for each value where they are few, else for each part of the reference."""
    distinct, values = column.places.size, column.values.size
    begin = np.arange(distinct)
    if distinct > most:
        rising = column.rising(column.class_counts / column.class_counts.sum()).take(column.places.upto)
        parts = np.arange(1, most) / most
        after = np.clip(np.searchsorted(rising, parts), 1, distinct)
        nearest = np.where(parts - rising[after - 1] < rising[after] - parts, after - 1, after)
        begin = np.unique(np.append(nearest[nearest < distinct], 0))
    cell = np.searchsorted(column.places.upto[begin], np.arange(values), side="right") - 1
    classes = column.class_counts.size
    counts = np.bincount(column.labels * begin.size + cell, minlength=classes * begin.size)
    edges = column.places.fence[np.append(begin, distinct - 1)]
    by_class = np.pad(counts.reshape(classes, begin.size).astype(np.float64), ((0, 0), (1, 1)))
    of_class = by_class / np.maximum(by_class.sum(axis=1, keepdims=True), 1)
    return _Cells(column.places.upto[begin].astype(np.int32), edges, of_class, _as_it_is(by_class, column))


def _of_number(column: SortedColumn, cells: _Cells, seen: Placed, priors: Vector) -> Sketch:
    beyond = seen.before(np.array([column.values.size], dtype=np.int32))
    ends = np.concatenate([[0], seen.within(cells.begin), beyond, seen.present])
    weights = priors * (1 - column.missing)
    expected = weights @ cells.of_class / max(float(weights.sum()), SMALLEST)
    return Sketch(cells.edges, (), ends[1:] - ends[:-1], cells.reference, expected)


def _of_category(profile: FeatureProfile, seen: Vector, priors: Vector, most: int) -> Sketch:
    known = profile.counts.shape[1] - 1
    shares = _as_it_is(profile.counts, profile), mixed_shares(profile.counts, priors * (1 - profile.missing))
    commonest = np.maximum(shares[0], seen / max(seen.sum(), 1))[:known]
    named = np.sort(np.argsort(-commonest, kind="stable")[: most - 2])
    named = named[commonest[named] > 0]

    def cells(values: Vector) -> Vector:
        own, rest = values[named], np.delete(values[:known], named)
        return np.concatenate([own, [rest.sum(), values[known]]])

    names = tuple(profile.feature.categories[code] for code in named)
    return Sketch(np.zeros(0), names, np.rint(cells(seen)).astype(np.int64), *map(cells, shares))


def _as_it_is(by_class: Matrix, column: Column) -> Vector:
    """The shares of values as the reference has them."""
    return mixed_shares(by_class, column.class_counts / max(float(column.class_counts.sum()), 1.0))
