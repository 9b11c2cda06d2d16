"""Many tests at once: p-values that keep their meaning however many features are looked at.

Holm keeps the chance of any false alarm in a window at the level: verdicts use it. Benjamini-Hochberg keeps the
expected share of false ones among the flagged at the level: it is reported for those who look at lists.
"""

import numpy as np

from monitor.arrays import Labels, Vector


def holm(p_values: Vector) -> Vector:
    """Adjusted p-values (Holm 1979): max over j <= i of (k - j + 1) p_(j), at most 1."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * np.arange(p_values.size, 0, -1))
    return _placed(stepped, order)


def benjamini_hochberg(p_values: Vector) -> Vector:
    """Adjusted p-values (Benjamini and Hochberg 1995): min over j >= i of k / j p_(j), at most 1."""
    order = np.argsort(p_values, kind="stable")
    stepped = p_values[order] * p_values.size / np.arange(1, p_values.size + 1)
    return _placed(np.minimum.accumulate(stepped[::-1])[::-1], order)


def _placed(stepped: Vector, order: Labels) -> Vector:
    adjusted = np.empty(stepped.size)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
