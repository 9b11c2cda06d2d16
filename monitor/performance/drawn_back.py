"""A class mix that may well be that of the hold-out events, and is known with errors. Pure.

A change of a share whose estimate d has the standard error s is taken to be normal about 0 with variance
s^2 (1 / x - 1), where x lies between 0 and 1 with density 1 / (2 sqrt(x)), which allows for changes of any size (Berger
1980). Given d, x has the density exp(-u x) but for a factor, u = d^2 / 2 s^2, and

    share = that of the hold-out + (1 - E x) d,        variance = (1 - E x) s^2 + d^2 Var x

    E x = 1 / u - 1 / (e^u - 1),        E x^2 = 2 E x / u - 1 / (e^u - 1)

from d / 2 with s^2 / 2 where d is small, to d with s^2 where it is many s. The variance is s^2 times the derivative of
the share by d (Tweedie; Efron 2011): what is left of an error of d, and of its covariance with whatever else.
"""

import numpy as np

from monitor.arrays import Vector
from monitor.tolerances import LEAST_ERROR

LEAST_CHANGE = 1e-4
"""Of u: x is as good as uniform, and below it digits are lost."""


def drawn_back(priors: Vector, variances: Vector, source: Vector) -> tuple[Vector, Vector]:
    """The mix as far as it differs from the hold-out's by more than its errors; and what is left of these, of 1."""
    change = priors - source
    u = np.maximum(change**2 / (2 * np.maximum(variances, LEAST_ERROR**2)), LEAST_CHANGE)
    cut = np.exp(-u) / -np.expm1(-u)
    mean = 1 / u - cut
    variance = 2 * mean / u - cut - mean**2
    mix = source + (1 - mean) * change
    return np.asarray(mix / mix.sum()), np.asarray(1 - mean + 2 * u * variance)
