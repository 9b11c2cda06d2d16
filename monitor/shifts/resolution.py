"""How finely numbers are written, and both sides of a comparison brought to the coarser of the two.

A producer may write what a model says in single precision, or with a few decimals. A value that a reference holds a
thousand times is then next to itself, and an exact comparison sees all of its mass move. So a window and a reference
are compared at the resolution that they have in common: found from the numbers themselves, column by column.

A resolution is a number of decimals, or `SINGLE`, or `EXACT`: the smaller, the coarser.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Matrix, Vector
from monitor.limits import REFERENCES_READY
from monitor.tolerances import (
    COARSEST_STEP,
    DECIMALS_UP_TO,
    FINEST_DECIMALS,
    RESOLUTION_ROWS,
    RESOLUTION_VALUES,
    SINGLE_ERROR,
)

SINGLE = 16
"""Single precision: how numbers are compared unless that would take away what tells them apart."""
EXACT = 17

_SINGLE_ROUNDING = 2.0**-24
_DOUBLE_ROUNDING = 2.0**-50
"""Relative, with a few operations on top: 1 - 0.3 is 0.7 to its last bit but one."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The resolutions at which a window and its reference are compared."""

    scores: int
    features: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WrittenColumn:
    """How a column of a reference is written."""

    own: int
    coarsest: int
    """The fewest decimals that are a rounding: a step that is not small beside the spread is a change."""
    magnitude: float
    """How large its numbers are."""
    atoms: Vector
    """Its distinct values, ascending."""

    @property
    def base(self) -> int:
        """The resolution at which it stays what it is."""
        return max(self.own, self.coarsest)

    def common(self, values: Vector) -> int:
        """The resolution that a window's values have in common with it.

        Values that are all among the reference's show nothing coarser: 0.1 and 0.2 are no rounding of 0.35.
        """
        thin = thinned(values)
        shown = decimals(thin, self.magnitude)
        if shown >= self.own or among(thin, self.atoms):
            return self.base
        return self.base if max(shown, self.coarsest) >= self.own else max(shown, self.coarsest)


def written(values: Vector) -> WrittenColumn:
    """How the ascending values of a feature are written."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return WrittenColumn(EXACT, EXACT, 1.0, finite)
    magnitude, spread = float(np.quantile(np.abs(finite), 0.99)), _spread(finite)
    own = decimals(thinned(finite), magnitude)
    if own > FINEST_DECIMALS:
        own = SINGLE if _SINGLE_ROUNDING * magnitude <= SINGLE_ERROR * spread else EXACT
    steps = -np.log10(COARSEST_STEP * spread) if spread > 0 else np.inf
    coarsest = int(np.ceil(np.clip(steps, 0, FINEST_DECIMALS + 1)))
    return WrittenColumn(own, coarsest if coarsest <= FINEST_DECIMALS else own, magnitude, np.unique(finite))


def written_finer(table: Matrix, known: tuple[WrittenColumn | None, ...]) -> Flags:
    """Which numbers of a window are written no coarser than the reference's, where a few rows show that alone."""
    rows, (units, looked_for, told) = table[:RESOLUTION_VALUES], _units(known)
    with np.errstate(over="ignore", invalid="ignore"):
        off = np.abs(np.rint(rows * units) / units - rows) > np.abs(rows) * _SINGLE_ROUNDING
    return np.asarray((off.any(axis=1) | ~looked_for).all(axis=0) & told)


@lru_cache(maxsize=REFERENCES_READY)
def _units(known: tuple[WrittenColumn | None, ...]) -> tuple[NDArray[np.floating], Flags, Flags]:
    """A unit for each number of decimals, whether it is looked for in each column, and which columns tell anything."""
    own = np.array([EXACT if column is None else column.own for column in known])
    magnitudes = np.array([1.0 if column is None else column.magnitude for column in known])
    places = np.arange(FINEST_DECIMALS + 1)[:, None]
    units = 10.0**places
    looked_for = (places < own) & (1 / units >= 4 * _SINGLE_ROUNDING * magnitudes)
    return units[:, None], looked_for, own <= SINGLE


def decimals(values: Vector, magnitude: float, least: float = 0.0) -> int:
    """The fewest decimals with which all of these can be written, else `SINGLE` or `EXACT`.

    Decimals that single precision does not hold are not told from its rounding: they count as `SINGLE`. Numbers below
    `least` are as inexact as that: 1 - 0.9999 is off by more than 0.0001 itself could be.
    """
    if values.size < RESOLUTION_VALUES:
        return EXACT
    with np.errstate(over="ignore", invalid="ignore"):
        single = bool((values.astype(np.float32) == values).all())
    error = np.maximum(np.abs(values), least) * (_SINGLE_ROUNDING if single else _DOUBLE_ROUNDING)
    for d in range(FINEST_DECIMALS + 1):
        if 10.0**-d < 4 * _SINGLE_ROUNDING * magnitude:
            break
        if (np.abs(_rounded(values, d) - values) <= error).all():
            return d
    return SINGLE if single else EXACT


def coarsened(values: Vector, resolution: int) -> Vector:
    """The values at a resolution: the same for the same number, however finely it was written."""
    if resolution >= EXACT:
        return values
    if resolution == SINGLE:
        with np.errstate(over="ignore"):
            return values.astype(np.float32).astype(np.float64)
    return _rounded(values, resolution)


def coarsened_table(table: Matrix, resolutions: tuple[int, ...]) -> Matrix:
    """Every column at its resolution."""
    at = np.array(resolutions)
    if (at >= EXACT).all():
        return table
    if (at == at[0]).all():
        return coarsened(table, resolutions[0])
    coarse = np.array(table)
    for resolution in np.unique(at[at < EXACT]):
        columns = np.flatnonzero(at == resolution)
        coarse[:, columns] = coarsened(coarse[:, columns], int(resolution))
    return coarse


def thinned(values: Vector) -> Vector:
    """Some of the present values, evenly spread: what is true of all is true of them."""
    finite = values[np.isfinite(values)]
    return finite[:: max(finite.size // RESOLUTION_ROWS, 1)]


def among(values: Vector, atoms: Vector) -> bool:
    """Whether every value is one of the atoms."""
    at = np.searchsorted(atoms, values)
    return bool(atoms.size and (atoms.take(at, mode="clip") == values).all())


def _rounded(values: Vector, places: int) -> Vector:
    """Rounded to so many decimals; where doubles have no such decimals, as they are."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(values, places) + 0.0  # no negative zero
    return np.where(np.abs(values) < DECIMALS_UP_TO, rounded, values)


def _spread(values: Vector) -> float:
    """Robust where a column has a middle; of a column that is mostly one value, its standard deviation."""
    low, high = np.quantile(values, [0.25, 0.75])
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float((high - low) / 1.349) if high > low else float(values.std())
    return spread if np.isfinite(spread) else 0.0
