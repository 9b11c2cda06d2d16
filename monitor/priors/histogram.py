"""The likelihood of many posteriors of two classes, by bins: how many events fell into each, and the sum of them.

The likelihood is that of one event per bin at the bin's mean, counted as often: with means the error falls with the
fourth power of the bin's width, with midpoints only with the second, which is visible for sharp classifiers. The
certificate is that of the binned likelihood.
"""

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.limits import HISTOGRAM_BLOCK
from monitor.priors.likelihood import Problem
from monitor.tolerances import HISTOGRAM_BINS


def binned(posteriors: Matrix, source_priors: Vector, bins: int = HISTOGRAM_BINS) -> Problem:
    """What EM maximises, from usable rows of two classes: of each row only the ratio of the two counts."""
    # The value 1 has a bin of its own, the last.
    counts, sums = np.zeros(bins + 1), np.zeros(bins + 1)
    for begin in range(0, posteriors.shape[0], HISTOGRAM_BLOCK):
        block = posteriors[begin : begin + HISTOGRAM_BLOCK]
        second = block[:, 1] / (block[:, 0] + block[:, 1])
        number = (second * bins).astype(np.intp)
        counts += np.bincount(number, minlength=bins + 1)
        sums += np.bincount(number, weights=second, minlength=bins + 1)
    filled = counts > 0
    means = np.clip(sums[filled] / counts[filled], 0.0, 1.0)
    return Problem(np.column_stack([1.0 - means, means]), source_priors, counts[filled])
