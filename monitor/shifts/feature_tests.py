"""Which features moved beyond what the class mix explains: one test each, all of them corrected together.

Every feature is tested twice: plainly, and against the reference reweighted to a class mix. Only the second can
make a feature count as moved; the first stands beside it to show how much of the difference the mix explains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.arrays import Vector
from monitor.shifts import categories, correction, ks
from monitor.shifts.distance_laws import DistanceLaw, distance_laws, score_laws
from monitor.shifts.prepared import Prepared, SortedColumn
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.ranks import PlacedValues, distance
from monitor.shifts.window_view import Looked
from monitor.tolerances import DISTANCE_FLOOR, MISSING_FLOOR


@dataclass(frozen=True, slots=True)
class Move:
    """One feature (or posterior) of a window against the reference."""

    name: str
    test: str
    """`ks` or `chi-square`."""
    statistic: float
    """D for numbers, chi-square for categories."""
    distance: float
    """The effect: the part of the events by which the two distributions differ, 0 to 1."""
    p_value: float
    plain_distance: float
    """Against the reference as it is, with its own class mix."""
    plain_p: float
    missing_rate: float
    expected_missing_rate: float
    missing_p: float
    n: int
    adjusted_p: float = 1.0
    """Holm's, over all features and their missing rates."""
    missing_adjusted_p: float = 1.0
    false_discovery: float = 1.0
    """Benjamini-Hochberg's adjusted p-value over the same tests."""
    distribution_moved: bool = False
    missing_moved: bool = False
    left_out: bool = False
    """Whether the window fits only without it: what time makes of one feature may hide it there, and not from all."""

    @property
    def moved(self) -> bool:
        """Values or their absence differ significantly, and by more than the floor."""
        return self.distribution_moved or self.missing_moved


def of_features(
    looked: Looked, reference: Prepared, priors: Vector, level: float, spread: Vector | None = None
) -> tuple[Move, ...]:
    """All features at this class mix; `spread` is the mix's covariance where it was learnt from other features."""
    pairs = zip(looked.features, reference.features, looked.missing, strict=True) if looked.features else ()
    moves = [of_column(*pair, priors, events=looked.events, spread=spread) for pair in pairs]
    moves = _beyond_blocks(moves, distance_laws(reference), reference.features, priors)
    for j in reference.untested if moves else ():
        moves[j] = replace(moves[j], p_value=1.0, missing_p=1.0)
    return corrected(moves, level)


def of_column(
    seen: PlacedValues | Vector,
    column: SortedColumn | FeatureProfile,
    missing: float,
    priors: Vector,
    *,
    events: int,
    spread: Vector | None = None,
) -> Move:
    """One feature of any kind at this class mix, before any correction for having looked at others."""
    if isinstance(column, SortedColumn):
        assert isinstance(seen, PlacedValues)  # noqa: S101 - numbers are looked at by their place
        return _numeric(seen, column, priors, events, spread)
    assert isinstance(seen, np.ndarray)  # noqa: S101 - other values are counted
    return _category(seen, column, priors, events, int(missing))


def with_left_out(moves: tuple[Move, ...], left_out: frozenset[int]) -> tuple[Move, ...]:
    """The same with these counted as moved, where they are farther from the reference than the floor."""
    return tuple(
        replace(move, distribution_moved=True, left_out=not move.distribution_moved)
        if j in left_out and move.distance >= DISTANCE_FLOOR
        else move
        for j, move in enumerate(moves)
    )


def of_posteriors(looked: Looked, reference: Prepared, priors: Vector, level: float) -> tuple[Move, ...]:
    """All posteriors at this class mix."""
    pairs = zip(looked.posteriors, reference.posteriors, strict=True)
    moves = [_numeric(seen, column, priors, looked.events) for seen, column in pairs]
    return corrected(_beyond_blocks(moves, score_laws(reference), reference.posteriors, priors), level)


def _beyond_blocks(
    moves: list[Move],
    laws: Sequence[DistanceLaw],
    columns: Sequence[SortedColumn | FeatureProfile],
    priors: Vector,
) -> list[Move]:
    """The same held against how far the blocks of the hold-out are from each other, where there are blocks."""
    if not laws or not moves:
        return moves
    moves_found = []
    for move, law, column in zip(moves, laws, columns, strict=True):
        size = categories.effective_size(column.class_counts, priors * (1 - column.missing))
        p_value = max(move.p_value, law.p_value(move.distance, move.n * size / max(move.n + size, 1)))
        missing_p = max(move.missing_p, law.missing_p(move.missing_rate - move.expected_missing_rate))
        moves_found.append(replace(move, p_value=p_value, missing_p=missing_p))
    return moves_found


def corrected(moves: list[Move], level: float) -> tuple[Move, ...]:
    """The same with p-values corrected over all tests, and the decision: significant *and* above the floor."""
    if not moves:
        return ()
    p_values = np.array([p for move in moves for p in (move.p_value, move.missing_p)])
    holm = correction.holm(p_values)
    false_discovery = correction.benjamini_hochberg(p_values)
    return tuple(
        replace(
            move,
            adjusted_p=float(holm[2 * j]),
            missing_adjusted_p=float(holm[2 * j + 1]),
            false_discovery=float(false_discovery[2 * j]),
            distribution_moved=bool(holm[2 * j] < level and move.distance >= DISTANCE_FLOOR),
            missing_moved=bool(
                holm[2 * j + 1] < level and abs(move.missing_rate - move.expected_missing_rate) >= MISSING_FLOOR
            ),
        )
        for j, move in enumerate(moves)
    )


def _numeric(
    seen: PlacedValues, column: SortedColumn, priors: Vector, events: int, spread: Vector | None = None
) -> Move:
    n, kept = seen.n, column.values.size
    totals = column.class_counts / np.maximum(1 - column.missing, 1e-12)
    plain = beyond = 0.0
    plain_p = p_value = 1.0
    if n and kept:
        values = float(column.class_counts.sum())
        # Where a reference keeps only quantiles, kept values stand for different numbers of events.
        source = column.rising(totals / totals.sum()) if kept < values else column.as_kept
        rising = column.rising(priors)
        size = categories.effective_size(column.class_counts, priors * (1 - column.missing))
        if spread is not None and size > 0:
            size = 1 / (1 / size + 4 * _mix_variance(column, spread))
        plain = distance(seen, source)
        if rising[-1] > 0:  # else no class of this mix has any value: nothing to compare with
            beyond = distance(seen, rising)
        plain_p, p_value = (float(p) for p in ks.series_p([plain, beyond], [values, size], n))
    missing = categories.missing_rate(seen.missing, events, column.missing, totals, priors)
    return Move(
        name=column.name,
        test="ks",
        statistic=beyond,
        distance=beyond,
        p_value=p_value,
        plain_distance=plain,
        plain_p=plain_p,
        n=n,
        missing_rate=seen.missing / max(events, 1),
        expected_missing_rate=float(priors @ column.missing),
        missing_p=missing.p_value,
    )


def _category(seen: Vector, profile: FeatureProfile, priors: Vector, events: int, missing: int) -> Move:
    totals = profile.class_counts / np.maximum(1 - profile.missing, 1e-12)
    present = priors * (1 - profile.missing)
    plain = categories.chi_square(seen, profile.counts, profile.class_counts / max(profile.class_counts.sum(), 1))
    weighted = categories.chi_square(seen, profile.counts, present)
    absent = categories.missing_rate(missing, events, profile.missing, totals, priors)
    return Move(
        name=profile.feature.name,
        test="chi-square",
        statistic=weighted.statistic,
        distance=weighted.distance,
        p_value=weighted.p_value,
        plain_distance=plain.distance,
        plain_p=plain.p_value,
        n=weighted.n,
        missing_rate=missing / max(events, 1),
        expected_missing_rate=float(priors @ profile.missing),
        missing_p=absent.p_value,
    )


def _mix_variance(column: SortedColumn, spread: Vector) -> float:
    """The largest variance that an uncertain mix gives to F_r(x) = sum_y p_y F_y(x): max_x F(x)' V F(x).

    A Kolmogorov distance of a Gaussian process is governed by its largest variance, which is 1/4 per value.
    """
    classes = column.class_counts.size
    # 32 quantiles are enough: the distribution functions change by 3 % in between.
    cell = np.arange(column.values.size) * 32 // column.values.size
    counts = np.bincount(column.labels * 32 + cell, minlength=classes * 32).reshape(classes, 32)
    rising = np.cumsum(counts, axis=1) / np.maximum(counts.sum(axis=1), 1)[:, None]
    return float(np.maximum(np.einsum("yk,yz,zk->k", rising, spread, rising), 0.0).max())
