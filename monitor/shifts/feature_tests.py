"""Which features moved beyond what the class mix explains: one test each, all of them corrected together.

Every feature is tested twice: plainly, and against the reference reweighted to a class mix. Only the second can
make a feature count as moved; the first stands beside it to show how much of the difference the mix explains.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.shifts import categories, correction, ks
from monitor.shifts.distance_laws import DistanceLaw, distance_laws, score_laws, varied
from monitor.shifts.prepared import Prepared
from monitor.shifts.seasonal_columns import UsualColumns
from monitor.shifts.unusual_values import expected_share, unusual_p
from monitor.shifts.window_view import Looked, SeenColumns
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


@dataclass(frozen=True, slots=True, eq=False)
class ComparedColumns:
    """The columns of a window against those of a reference, as arrays: before any correction for their number."""

    names: tuple[str, ...]
    tests: tuple[str, ...]
    distance: Vector
    statistic: Vector
    p_value: Vector
    plain_distance: Vector
    plain_p: Vector
    missing_rate: Vector
    expected_missing_rate: Vector
    missing_p: Vector
    n: Labels


def of_features(
    looked: Looked, reference: Prepared, priors: Vector, level: float, spread: Matrix | None = None
) -> tuple[Move, ...]:
    """All features at this class mix; `spread` is the mix's covariance where it was learnt from other features."""
    if looked.features is None:
        return ()
    usual = reference.usual_features(looked.when)
    found = compared(looked.features, priors, spread, usual)
    if usual is None and not varied(reference):  # else events are not independent, and blocks have their own laws
        _judge_unusual(found, reference, priors, spread)
    found = _beyond_blocks(found, distance_laws(reference), looked.features, priors, usual)
    for j in reference.untested:
        found.p_value[j] = found.missing_p[j] = 1.0
    return corrected(found, level)


def of_posteriors(looked: Looked, reference: Prepared, priors: Vector, level: float) -> tuple[Move, ...]:
    """All posteriors at this class mix."""
    usual = reference.usual_scores(looked.when)
    found = compared(looked.posteriors, priors, usual=usual)
    return corrected(_beyond_blocks(found, score_laws(reference), looked.posteriors, priors, usual), level)


def compared(
    seen: SeenColumns, priors: Vector, spread: Matrix | None = None, usual: UsualColumns | None = None
) -> ComparedColumns:
    """All columns at this class mix, before any correction for having looked at others; `usual` is what they are beyond
    the mix at this time."""
    columns, events = seen.known, seen.events
    number, known = len(columns), 0.0
    expected = np.vecdot(columns.missing, priors)
    if usual is not None:
        expected, known = np.clip(expected + usual.missing, 0.0, 1.0), usual.known.sampling
    found = ComparedColumns(
        names=columns.names,
        tests=tuple("chi-square" if j in columns.categories else "ks" for j in range(number)),
        distance=np.zeros(number),
        statistic=np.zeros(number),
        p_value=np.ones(number),
        plain_distance=np.zeros(number),
        plain_p=np.ones(number),
        missing_rate=seen.missing / max(events, 1),
        expected_missing_rate=expected,
        missing_p=categories.missing_p(seen.missing, events, expected, columns.all_counts, priors, known=known),
        n=np.zeros(number, dtype=np.int64),
    )
    if columns.numbers:
        _compare_numbers(found, seen, priors, spread, usual)
    for j in columns.categories:
        _compare_category(found, j, seen, priors, usual)
    return found


def _judge_unusual(found: ComparedColumns, reference: Prepared, priors: Vector, spread: Matrix | None) -> None:
    """Columns that are nearly all one value by the law of a few events, where that is the smaller p-value."""
    columns = reference.features
    for j, shares in reference.unusual.items():
        known = expected_share(shares, priors * (1 - columns.missing[j]), columns.class_counts[j], spread)
        found.p_value[j] = min(found.p_value[j], unusual_p(float(found.distance[j]), float(found.n[j]), *known))


def with_left_out(moves: tuple[Move, ...], left_out: frozenset[int]) -> tuple[Move, ...]:
    """The same with these counted as moved, where they are farther from the reference than the floor."""
    return tuple(
        replace(move, distribution_moved=True, left_out=not move.distribution_moved)
        if j in left_out and move.distance >= DISTANCE_FLOOR
        else move
        for j, move in enumerate(moves)
    )


def _beyond_blocks(
    found: ComparedColumns,
    laws: Sequence[DistanceLaw],
    seen: SeenColumns,
    priors: Vector,
    usual: UsualColumns | None,
) -> ComparedColumns:
    """The same held against how far the blocks of the hold-out are from each other, where there are blocks."""
    if not laws:
        return found
    columns = seen.known
    sizes = categories.effective_sizes(columns.class_counts, priors * (1 - columns.missing))
    n, resting = found.n, 1.0
    if usual is not None:
        n, resting = np.minimum(n, round(usual.known.events)), 1.0 + usual.known.between
        sizes = sizes / (1 + usual.known.sampling * sizes)
    rows = n * sizes / np.maximum(n + sizes, 1)
    beyond = found.missing_rate - found.expected_missing_rate
    p_values = [law.p_value(d, m, resting) for law, d, m in zip(laws, found.distance, rows, strict=True)]
    missing_p = [law.missing_p(each) for law, each in zip(laws, beyond, strict=True)]
    return replace(found, p_value=np.maximum(found.p_value, p_values), missing_p=np.maximum(found.missing_p, missing_p))


def corrected(found: ComparedColumns, level: float) -> tuple[Move, ...]:
    """With p-values corrected over all tests, and the decision: significant *and* above the floor."""
    p_values = np.stack([found.p_value, found.missing_p], axis=1).ravel()
    holm = correction.holm(p_values)
    away = np.abs(found.missing_rate - found.expected_missing_rate)
    columns = {
        "name": found.names,
        "test": found.tests,
        "statistic": found.statistic.tolist(),
        "distance": found.distance.tolist(),
        "p_value": found.p_value.tolist(),
        "plain_distance": found.plain_distance.tolist(),
        "plain_p": found.plain_p.tolist(),
        "missing_rate": found.missing_rate.tolist(),
        "expected_missing_rate": found.expected_missing_rate.tolist(),
        "missing_p": found.missing_p.tolist(),
        "n": found.n.tolist(),
        "adjusted_p": holm[::2].tolist(),
        "missing_adjusted_p": holm[1::2].tolist(),
        "false_discovery": correction.benjamini_hochberg(p_values)[::2].tolist(),
        "distribution_moved": ((holm[::2] < level) & (found.distance >= DISTANCE_FLOOR)).tolist(),
        "missing_moved": ((holm[1::2] < level) & (away >= MISSING_FLOOR)).tolist(),
    }
    return tuple(Move(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True))


def _compare_numbers(
    found: ComparedColumns, seen: SeenColumns, priors: Vector, spread: Matrix | None, usual: UsualColumns | None
) -> None:
    columns = seen.known
    at = columns.numbers_at
    n, kept = seen.numbers.present, columns.kept
    sizes = categories.effective_sizes(columns.class_counts[at], priors * (1 - columns.missing[at]))
    if spread is not None:
        by_mix = np.maximum(np.einsum("jyk,yz,jzk->jk", columns.by_class, spread, columns.by_class), 0.0).max(axis=1)
        # A Kolmogorov distance of a Gaussian process is governed by its largest variance, which is 1/4 per value; an
        # uncertain mix adds that of F_r(x) = sum_y p_y F_y(x): max_x F(x)' V F(x).
        sizes = np.divide(1.0, 1 / np.maximum(sizes, 1e-300) + 4 * by_mix, out=sizes, where=sizes > 0)
    plain, weights = seen.plain_distances, columns.weights(priors)
    if usual is None:
        beyond = seen.numbers.distances(*columns.rising.at(weights, seen.numbers.upto, seen.numbers.below))
    else:
        beyond = _from_usual(seen, weights, usual)
        sizes = sizes / (1 + usual.known.sampling * sizes)
    p_values = ks.series_p([plain, beyond], [columns.class_counts[at].sum(axis=1), sizes], n)
    found.n[at], found.plain_distance[at], found.distance[at], found.statistic[at] = n, plain, beyond, beyond
    found.plain_p[at], found.p_value[at] = np.where((n > 0) & (kept > 0), p_values, 1.0)


def _from_usual(seen: SeenColumns, weights: Matrix, usual: UsualColumns) -> Vector:
    """D of each number from what is usual at this time, at the ends of the cells in which blocks are compared."""
    columns = seen.known
    ends = columns.cell_ends
    expected = columns.rising.at(weights, ends)[0]
    expected += np.cumsum([usual.gaps[j] for j in columns.numbers_at], axis=1)
    own = np.array([seen.numbers.of(row).within(each) for row, each in enumerate(ends)])
    apart = np.abs(own / np.maximum(seen.numbers.present, 1)[:, None] - expected).max(axis=1)
    return np.asarray(np.where((seen.numbers.present > 0) & (columns.kept > 0), apart, 0.0))


def _compare_category(
    found: ComparedColumns, at: int, seen: SeenColumns, priors: Vector, usual: UsualColumns | None
) -> None:
    counts, profile = seen.categories[at], seen.known.categories[at]
    as_it_is = profile.class_counts / max(profile.class_counts.sum(), 1)
    plain = categories.chi_square(counts, profile.counts, as_it_is)
    beyond, known = (None, 0.0) if usual is None else (usual.gaps[at], usual.known.sampling)
    weighted = categories.chi_square(counts, profile.counts, priors * (1 - profile.missing), beyond, known)
    found.n[at], found.statistic[at] = weighted.n, weighted.statistic
    found.distance[at], found.p_value[at] = weighted.distance, weighted.p_value
    found.plain_distance[at], found.plain_p[at] = plain.distance, plain.p_value
