"""The posteriors of two classes in a mergeable form: how many events fell into each bin, and the sum of them.

Histograms of parts add up to the histogram of the whole, in any order. The likelihood is then that of one event per bin
at the bin's mean, counted as often: with means the error falls with the fourth power of the bin's width, with midpoints
only with the second, which is visible for sharp classifiers. The certificate is that of the binned likelihood.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Vector
from monitor.limits import HISTOGRAM_BLOCK
from monitor.priors.em import certified
from monitor.priors.estimate import PriorEstimate, frozen, no_events, positive_priors
from monitor.priors.likelihood import Problem
from monitor.tolerances import HISTOGRAM_BINS


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """Counts and sums of the second class's posterior, over equal bins of [0, 1]."""

    counts: Vector
    sums: Vector
    dropped: int = 0

    @classmethod
    def of(cls, second_posteriors: ArrayLike, bins: int = HISTOGRAM_BINS) -> Self:
        """Bin the posteriors of the second class; what is not a number in [0, 1] is dropped and counted."""
        g = np.asarray(second_posteriors, dtype=np.float64)
        dropped = 0
        if g.size and not (g.min() >= 0.0 and g.max() <= 1.0):
            good = (g >= 0.0) & (g <= 1.0)
            dropped = int(g.size - good.sum())
            g = g[good]
        # The value 1 has a bin of its own, the last.
        counts, sums = np.zeros(bins + 1), np.zeros(bins + 1)
        for begin in range(0, g.size, HISTOGRAM_BLOCK):
            block = np.ascontiguousarray(g[begin : begin + HISTOGRAM_BLOCK])
            number = (block * bins).astype(np.intp)
            counts += np.bincount(number, minlength=bins + 1)
            sums += np.bincount(number, weights=block, minlength=bins + 1)
        return cls(frozen(counts), frozen(sums), dropped)

    def merge(self, other: Self) -> Self:
        """The histogram of both together."""
        return type(self)(
            frozen(self.counts + other.counts), frozen(self.sums + other.sums), self.dropped + other.dropped
        )

    def maximum_likelihood(self, source_priors: ArrayLike, shrinkage: float = 0.0) -> PriorEstimate:
        """The same as `em.maximum_likelihood`, for the binned posteriors."""
        pi = positive_priors(source_priors, 2)
        filled = self.counts > 0
        if not filled.any():
            return no_events("em", pi, self.dropped)
        means = np.clip(self.sums[filled] / self.counts[filled], 0.0, 1.0)
        problem = Problem(np.column_stack([1.0 - means, means]), pi, self.counts[filled], shrinkage)
        return certified(problem, self.dropped)
