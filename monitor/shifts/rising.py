"""Distribution functions of a reference's columns, at the ranks where a window's values stand. Nothing else.

    F(i) = sum_y w_y N_y(i),    N_y(i) = how many of the first i sorted values of a column are of class y,

with w_y what one value of class y weighs at a class mix. A window of few events asks at few ranks: N_y is counted once
while the reference lives, and looked up there. One of many events asks nearly everywhere: the weights are added up
along the column. Both add whole numbers, and give the same bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix
from monitor.shifts import ks
from monitor.shifts.ranks import Ranks


@dataclass(frozen=True, eq=False)
class RisingColumns:
    """Sorted columns that lie side by side, by the class of each value."""

    labels: Sequence[Labels]
    classes: int

    @cached_property
    def counts(self) -> Matrix:
        """N_y of all values, a row for each column."""
        return np.array([np.bincount(one, minlength=self.classes) for one in self.labels], dtype=np.float64)

    @cached_property
    def starts(self) -> Labels:
        """Where a column begins in what lies side by side: each has a rank more than values. (columns, 1)"""
        sizes = np.array([one.size + 1 for one in self.labels])
        return np.asarray((np.cumsum(sizes) - sizes)[:, None])

    def at(self, weights: Matrix, *ranks: Ranks) -> list[Matrix]:
        """F at ranks, a row for each column, of weights that need not sum to one; NaN where no value has any."""
        weights = np.where(self.counts > 0, weights, 0.0)
        totals = (weights * self.counts).sum(axis=1, keepdims=True)
        fixed = ks.in_fixed_point(weights, np.where(totals > 0, totals, np.inf))
        # Looking a class up at a rank takes as long as adding a value up.
        few = self.classes * sum(each.size for each in ranks) <= self.counts.sum()
        found = self._looked_up(fixed, ranks) if few else self._added_up(fixed, ranks)
        for each in found:
            each[totals[:, 0] <= 0] = np.nan
        return found

    def _looked_up(self, fixed: Labels, ranks: Sequence[Ranks]) -> list[Matrix]:
        weights = fixed.T[:, :, None]
        by_class = (self._before.take(each + self.starts, axis=1) for each in ranks)
        return [(weights * each).sum(axis=0) * (1 / ks.FIXED_ONE) for each in by_class]

    def _added_up(self, fixed: Labels, ranks: Sequence[Ranks]) -> list[Matrix]:
        found = [np.empty(each.shape) for each in ranks]
        for j, (of_class, labels) in enumerate(zip(fixed, self.labels, strict=True)):
            rising = ks.added_up(of_class.take(labels))
            for each, into in zip(ranks, found, strict=True):
                rising.take(each[j], out=into[j], mode="clip")
        return found

    @cached_property
    def _before(self) -> NDArray[np.int32]:
        """N_y at every rank of all columns, a row for each class."""
        before = np.zeros((self.classes, sum(one.size + 1 for one in self.labels)), dtype=np.int32)
        for start, labels in zip(self.starts[:, 0].tolist(), self.labels, strict=True):
            of_class = labels == np.arange(self.classes)[:, None]
            np.cumsum(of_class, axis=1, out=before[:, start + 1 : start + 1 + labels.size])
        return before
