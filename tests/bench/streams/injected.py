"""Shifts that are made on top of whatever a window has by itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Labels, Matrix
from tests.bench.streams.table import Table

INCH = 2.54
HALF = 0.5
TOUCHED = 0.5
"""Of a window's values are changed at least; missing ones count."""
PRIOR = 0.2
NEIGHBOURS = 8
"""Windows' lengths to either side from which the events of the class that rises are taken, the nearest first."""


@dataclass(frozen=True, slots=True, eq=False)
class Shifted:
    """A window's rows and labels with a shift, and the feature that was touched; the empty name for none."""

    rows: Matrix
    labels: Labels
    feature: str = ""


def _unit(table: Table, at: slice, turn: int) -> Shifted | None:
    """One feature, another each time, in centimetres instead of inches."""
    return _changed(table, at, turn, lambda values, _: values * INCH)


def _half_deviation(table: Table, at: slice, turn: int) -> Shifted | None:
    """One feature, another each time, by half of its standard deviation in the hold-out."""
    return _changed(table, at, turn, lambda values, spread: values + HALF * spread)


def _changed(table: Table, at: slice, turn: int, change: Callable[[Matrix, float], Matrix]) -> Shifted | None:
    """Features are passed over that it hardly touches: an amount of snow is 0 in whatever unit."""
    for j in np.roll(table.numbers, -turn).tolist():
        rows = table.rows[at].copy()
        rows[:, j] = change(rows[:, j], float(np.nanstd(table.rows[table.fifth : 2 * table.fifth, j])))
        if np.count_nonzero(rows[:, j] != table.rows[at, j]) >= TOUCHED * len(rows):
            return Shifted(rows, table.labels[at], table.features[j].name)
    return None


def _prior(table: Table, at: slice, turn: int) -> Shifted | None:
    """The share of one class, another each time, rises by .2: its events from around replace some of the others."""
    labels, n = table.labels[at], at.stop - at.start
    classes = len(table.classes)
    for y in np.roll(np.arange(classes), -turn):
        others = np.flatnonzero(labels != y)
        wanted = round(PRIOR * n)
        around = np.arange(max(at.start - NEIGHBOURS * n, 0), min(at.stop + NEIGHBOURS * n, table.labels.size))
        pool = around[(table.labels[around] == y) & ((around < at.start) | (around >= at.stop))]
        if others.size < wanted or pool.size < wanted:
            continue
        nearest = pool[np.argsort(np.abs(pool - (at.start + at.stop) / 2), kind="stable")[:wanted]]
        kept = np.ones(n, dtype=np.bool_)
        kept[np.random.default_rng([19, turn]).choice(others, wanted, replace=False)] = False
        rows = np.concatenate([np.arange(at.start, at.stop)[kept], nearest])
        return Shifted(table.rows[rows], table.labels[rows])
    return None


INJECTED: Mapping[str, Callable[[Table, slice, int], Shifted | None]] = {
    "unit": _unit,
    "half sd": _half_deviation,
    "prior": _prior,
}
