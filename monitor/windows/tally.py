"""What is known of events whose rows were left out by sampling: whole numbers, which add up in any order and grouping.

Windows only add tallies up; what is counted, and how that is read, is the affair of whoever knows the reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Vector

UNIT = 2.0**-33
"""Of sums of numbers up to 1: a billion events fit 63 bits. What is less than that is summed in units of its square: of
a statistic that subtracts nearly all of a mean no digit is lost."""
_FINER = ", finer"
_ZERO: Labels = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Of some rows."""

    rows: int
    events: int
    """Those of them that could be used."""
    basis: str
    """What they were counted by; empty where that was not the same for all: then no more is known than how many."""
    numbers: Mapping[str, Labels]

    def __add__(self, other: "Tally") -> "Tally":
        rows, events = self.rows + other.rows, self.events + other.events
        if self.basis != other.basis or not self.basis:
            return Tally(rows, events, "", {})
        names = self.numbers.keys() | other.numbers.keys()  # without usable rows there are none
        added = {name: self.numbers.get(name, _ZERO) + other.numbers.get(name, _ZERO) for name in sorted(names)}
        return Tally(rows, events, self.basis, added)

    def sum(self, name: str) -> Vector:
        """A sum that `fixed_sums` has made."""
        return np.asarray(self.numbers[name] * UNIT + self.numbers.get(name + _FINER, _ZERO) * UNIT**2)


def compact(numbers: Labels) -> NDArray[np.integer]:
    """The same in the smallest type that holds them."""
    low, high = int(numbers.min(initial=0)), int(numbers.max(initial=0))
    return numbers.astype(np.min_scalar_type(min(low, -high - 1) if low < 0 else high))


def fixed_sums(name: str, values: NDArray[np.floating]) -> dict[str, Labels]:
    """The numbers that say the sums of the columns: in whole `UNIT`s, and what is left in squares of it."""
    units = values.astype(np.float64) / UNIT
    whole = np.rint(units)
    left = np.rint((units - whole) / UNIT)
    return {name: whole.astype(np.int64).sum(axis=0), name + _FINER: left.astype(np.int64).sum(axis=0)}
