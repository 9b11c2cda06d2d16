"""The two-sample Kolmogorov-Smirnov test: exact, deterministic, and at the cost of the window alone.

The reference is sorted once, when it is built. A window is sorted, merged with it, and compared at every one of its
values: no bins, no sketches, no random draws. (Windows of the service come without a sort: see `places`.)
The reference may carry a weight per value; with weights that turn its class mix into another one, a change of the mix
alone moves nothing.

Notation. F_r(x) = sum of weights of reference values <= x; F_w(x) = share of window values <= x;
D = sup_x |F_w(x) - F_r(x)|; m and n the sizes (for weights, Kish's effective size (sum w)^2 / sum w^2).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import kolmogorov

from monitor.arrays import Labels, Matrix, Vector
from monitor.errors import InputError

Method = Literal["asymptotic", "exact"]

# Cumulative weights are summed in fixed point: exact in any order, and twice as fast as floating point.
FIXED_ONE = float(2**62)

# A merge passes over the whole reference at 3 ns a value, a binary search costs 15 ns a window value.
MERGE_UP_TO = 4

# The lattice of the exact test has m * n cells; SciPy's automatic choice also ends at 10,000 values a side.
EXACT_CELLS = 10**8


@dataclass(frozen=True, slots=True)
class KsResult:
    """Distance D, its p-value, and how many values stood on either side."""

    statistic: float
    p_value: float
    n: int
    """Window values that were compared; missing ones are not."""
    reference_n: float
    """Reference values, or their effective number when they are weighted."""
    method: Method


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """Where a sorted window stands in a sorted reference."""

    values: Vector
    """The window's values, sorted, without the missing ones."""
    right: Labels
    """How many reference values are <= each window value."""
    left: Labels
    """How many are strictly smaller."""
    missing: int


def two_sample(
    reference: ArrayLike, window: ArrayLike, weights: ArrayLike | None = None, method: Method = "asymptotic"
) -> KsResult:
    """Whether two samples come from one distribution; NaN is a missing value and takes no part.

    The p-values are those of SciPy's `ks_2samp` with `method="asymp"` and `method="exact"`. With nothing on one
    side there is nothing to tell apart: the distance is 0 and the p-value 1.
    """
    values = np.asarray(reference, dtype=np.float64).ravel()
    present = ~np.isnan(values)
    mass = _checked_weights(weights, values.size)[present]
    values = values[present]
    order = np.argsort(values, kind="stable")
    merged = merge(values[order], np.asarray(window, dtype=np.float64).ravel())
    size = effective_size(mass)
    if not merged.values.size or size == 0:
        return KsResult(0.0, 1.0, merged.values.size, size, method)
    statistic = distance(merged, None if weights is None else steps(mass[order]), values.size)
    if method == "exact":
        if weights is not None and np.ptp(mass) > 0:
            raise InputError("method: want 'asymptotic' for a weighted reference, got 'exact'")
        p_value = exact_p(statistic, values.size, merged.values.size)
    else:
        p_value = float(asymptotic_p(statistic, size, merged.values.size))
    return KsResult(statistic, p_value, merged.values.size, size, method)


def merge(reference: Vector, window: Vector) -> Merged:
    """The window's values among the reference's sorted ones; `reference` holds no NaN."""
    ranked = np.sort(window)
    present = int(np.searchsorted(ranked, np.nan))
    return merge_sorted(reference, ranked[:present], missing=window.size - present)


def merge_sorted(reference: Vector, ranked: Vector, missing: int = 0) -> Merged:
    """The same for a window that is sorted already and has no NaN."""
    if reference.size <= MERGE_UP_TO * ranked.size:
        # Two sorted runs: the stable sort gallops through them, faster than a binary search for each value.
        both = np.argsort(np.concatenate([reference, ranked]), kind="stable")
        right = np.flatnonzero(both >= reference.size) - np.arange(ranked.size)
    else:
        right = np.searchsorted(reference, ranked, side="right")
    left = right
    tied = (right > 0) & (reference[right - 1] == ranked) if reference.size else np.zeros(0, dtype=bool)
    if tied.any():
        left = right.copy()
        left[tied] = np.searchsorted(reference, ranked[tied], side="left")
    return Merged(values=ranked, right=right, left=left, missing=missing)


def steps(weights: Vector) -> Vector:
    """F_r before the first and at every reference value, from weights in the order of the sorted values."""
    total = weights.sum()
    return added_up(in_fixed_point(weights, total)) if total > 0 else np.zeros(weights.size + 1)


def in_fixed_point(weights: Matrix, total: ArrayLike) -> Labels:
    """Weights as whole numbers: the total is `FIXED_ONE`."""
    return np.asarray(np.rint(weights * (FIXED_ONE / np.asarray(total))).astype(np.int64))


def added_up(weights: Labels) -> Vector:
    """The running sum of weights in fixed point, 0 first."""
    rising = np.zeros(weights.size + 1, dtype=np.int64)
    np.cumsum(weights, out=rising[1:])
    return np.asarray(rising * (1 / FIXED_ONE))


def distance(merged: Merged, cumulative: Vector | None, reference_size: int) -> float:
    """D at every window value and just before it; `cumulative` is None for an unweighted reference."""
    n = merged.values.size
    # F_w at the i-th sorted value is at least i / n, and is the share up to the last of its ties.
    share = np.arange(1, n + 1) / n
    tied = merged.values[1:] == merged.values[:-1]
    above = share - _below(cumulative, merged.right, reference_size)
    untied = merged.left is merged.right
    under = above if untied else share - _below(cumulative, merged.left, reference_size)
    if tied.any():
        above, under = above[np.append(~tied, True)], under[np.insert(~tied, 0, True)]
    return float(max(above.max(), -above.min(), 1 / n - under.min(), under.max() - 1 / n))


def _below(cumulative: Vector | None, positions: Labels, reference_size: int) -> Vector:
    return np.asarray(positions / reference_size if cumulative is None else cumulative.take(positions))


def effective_size(weights: Vector) -> float:
    """Kish's effective number of values: (sum w)^2 / sum w^2."""
    squares = float(weights @ weights)
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def asymptotic_p(statistic: ArrayLike, reference_size: ArrayLike, window_size: ArrayLike) -> Vector:
    """P(D >= d) by the one-sample law at the harmonic size m n / (m + n), as SciPy computes it."""
    from scipy.stats import kstwo  # noqa: PLC0415 - half a second to import, not wanted by those who never test

    m, n = np.asarray(reference_size, dtype=np.float64), np.asarray(window_size, dtype=np.float64)
    size = np.maximum(np.rint(m * n / np.maximum(m + n, 1)), 1)
    return np.clip(kstwo.sf(np.minimum(statistic, 1.0), size), 0.0, 1.0)


def series_p(statistic: ArrayLike, reference_size: ArrayLike, window_size: ArrayLike) -> Vector:
    """P(D >= d) for many tests at once: Kolmogorov's series at Vrbik's (2018) corrected argument.

    z + 1 / (6 sqrt s) + (z - 1) / (4 s) at the harmonic size s, z = d sqrt s: within 3 % of `asymptotic_p` where
    s >= 100 and p >= 1e-3, within a third down to 1e-8, and a hundred times as fast.
    """
    m, n = np.asarray(reference_size, dtype=np.float64), np.asarray(window_size, dtype=np.float64)
    size = np.maximum(m * n / np.maximum(m + n, 1), 1)
    z = np.asarray(statistic) * np.sqrt(size)
    return np.asarray(kolmogorov(np.maximum(z + 1 / (6 * np.sqrt(size)) + (z - 1) / (4 * size), 0.0)))


def exact_p(statistic: float, m: int, n: int) -> float:
    """P(D >= d) over all orders of m + n distinct values (Hodges 1958).

    A path through the lattice goes from (0, 0) to (m, n). Given that it passes (i, j), it came from (i-1, j) with
    probability i / (i + j): Q, the chance of having touched |i/m - j/n| >= d, is a mean of its two predecessors.
    Only positive terms are added, so that small p-values keep their relative precision.
    """
    if m * n > EXACT_CELLS:
        raise InputError(f"method: want sizes with product <= {EXACT_CELLS} for 'exact', got {m} and {n}")
    lcm = int(np.lcm(m, n))
    reach = round(statistic * lcm)
    if reach == 0:
        return 1.0
    # One anti-diagonal i + j = s after the other, indexed by i; touched holds Q for each i in 0..m.
    index = np.arange(m + 1)
    touched = np.zeros(m + 1)
    for s in range(1, m + n + 1):
        low, high = max(0, s - n), min(m, s)
        i = index[low : high + 1]
        moved = np.zeros(i.size)
        from_left = i > 0
        moved[from_left] = touched[i[from_left] - 1] * (i[from_left] / s)
        from_below = s - i > 0
        moved[from_below] += touched[i[from_below]] * ((s - i[from_below]) / s)
        moved[np.abs(i * (lcm // m) - (s - i) * (lcm // n)) >= reach] = 1.0
        touched[low : high + 1] = moved
    return float(min(1.0, touched[m]))


def _checked_weights(weights: ArrayLike | None, size: int) -> Vector:
    if weights is None:
        return np.ones(size)
    mass = np.asarray(weights, dtype=np.float64).ravel()
    if mass.size != size or not np.all(np.isfinite(mass)) or np.any(mass < 0):
        raise InputError(f"weights: want {size} finite numbers >= 0, one for each reference value")
    return mass
