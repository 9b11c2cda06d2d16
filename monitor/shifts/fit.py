"""Is a change of the class mix enough to explain a window? Matching of feature means, and what is left over.

Notation (see `prepared`). b = mean of Phi over the window's n events; A = columns mu_y; p the window's class mix.
Under label shift E[b] = A p, and around it b varies by

    C(p) = sum_y p_y S_y / n  +  sum_y p_y^2 S_y / n_y          (window, and the finite reference)

The shares of classes in the window also vary, but along A, where the free p takes it up. With W = (C + ridge)^-1

    p^ = argmin (b - A p)' W (b - A p)  subject to  sum p = 1,   r = b - A p^ = P (b - A p),   T = r' W r

and under label shift T is a weighted sum of chi-squares with weights the eigenvalues of P'W P C. Its first three
moments give the p-value. Where C was estimated from few rows, its inverse is too large: with f rows behind it and h
degrees of freedom, T (f - h + 1) / (f h) follows F(h, f - h + 1), as Hotelling's T^2 does. No bootstrap, one pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import chdtrc, fdtrc

from monitor.arrays import Labels, Matrix, Vector, present, pseudo_inverse
from monitor.limits import REFERENCES_READY
from monitor.shifts.blocks import BlockSums, fold_of
from monitor.shifts.categories import effective_size
from monitor.shifts.moments import CoordinateBlock, Moments, ridge, ridged, ridged_inverse
from monitor.shifts.season import UsualMix
from monitor.shifts.variation import Law, Variation, shrunk
from monitor.tolerances import (
    COVARIANCE_PRIOR_ROWS,
    EXCHANGEABLE,
    FEWEST_BLOCKS,
    IDENTIFIED_CURVATURE,
    LEAST_CURVATURE,
    LEAST_ROWS,
)


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The best class mix, how sure it is, and the test of what it leaves unexplained."""

    priors: Vector
    """On the simplex."""
    free: Vector
    """Before negative shares were cut: unbiased, and what tests are made of."""
    covariance: Matrix
    """Of `free` around the shares of classes in this window."""
    statistic: float
    p_value: float
    effect: float
    """Size of what is left over, in pooled within-class standard deviations."""
    degrees: float
    identified: bool
    """False where the coordinates cannot tell all classes apart."""
    departure: float
    """How many times as large T is as usual in a window without a shift, and at least 1."""
    natural: bool
    """Whether the blocks of the hold-out differ by more than samples do: they say what is usual."""


@dataclass(frozen=True, slots=True)
class Tested:
    """A statistic, its p-value and its effect size."""

    statistic: float
    p_value: float
    effect: float
    degrees: float
    natural: bool = False
    """Whether it is held against how much windows differ without a shift, and not against sampling alone."""


def coordinates(blocks: tuple[CoordinateBlock, ...], *kinds: str) -> Labels:
    """The positions of all blocks of these kinds."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *(positions(b) for b in blocks if b.kind in kinds)])


def positions(block: CoordinateBlock) -> Labels:
    """The coordinates of one block."""
    return np.arange(block.at.start, block.at.stop)


def match(moments: Moments, mean: Vector, events: int, when: Vector | None = None) -> Match:
    """Match the window's mean of the map's coordinates; twice, as the covariance depends on the answer.

    Where blocks of the hold-out differ by more than samples do, directions weigh by V in place of C, and T is held
    against its values in the blocks. The effect is what is left over beyond sampling error in either case. `when` says
    how much of the window lies in each phase of a season that inputs follow: what is usual then is taken out first, and
    what that is not known better than by some blocks comes on top of the window's own error.
    """
    # As shares sum to one only differences from the mean of the classes matter; what all have in common may be large.
    centre = moments.means.mean(axis=0)
    a, b = (moments.means - centre).T, mean - centre
    varied, law = _between_blocks(moments)
    known, resting, all_events = 0.0, 1.0, events
    if (then := moments.usual(when)) is not None:
        b = b - then.beyond(moments.means, moments.scale)
        known, resting = then.sampling, 1.0 + then.between
        if varied is not None:
            # Real time has other directions in each phase than in their mean: in a window of many more events than its
            # blocks have, where nothing else is left, they would weigh too much.
            events = min(events, round(then.events))
    priors = _begun(moments, a, b, events, varied, known=known, resting=resting)
    covariance = _covariance(moments, priors, events, known)
    sampling = ridged_inverse(covariance)
    comparable = comparable_rows(moments.class_counts, priors, events, known)
    weights = sampling if varied is None else varied.inverse(sampling, comparable, resting)
    free, spread, identified = least_squares(a, b, weights @ a)
    priors = simplex(free)
    residual = b - a @ free
    statistic = float(residual @ sampling @ residual)
    of_priors = spread @ covariance @ spread.T
    # P C P' = C - A K' - K A' with K = C S' - A S C S' / 2, S = dp^ / db; and W C = 1 - ridge W.
    k = covariance @ spread.T - a @ of_priors / 2
    product = np.eye(b.size) - ridge(covariance) * sampling - (sampling @ a) @ k.T - (sampling @ k) @ a.T
    null = _null(product, statistic, rows_behind(moments, priors, events))
    effect = float(np.sqrt(max(statistic - null.mean, 0.0) / (null.inflation * comparable)))
    p_value, usual = null.p_value, float(null.mean)
    if law is not None and varied is not None:
        statistic = float(residual @ weights @ residual)
        usual = float(np.exp(law.mean))
        if all_events > events:
            # What it has less of sampling error than a block is added as blocks have it in their mean.
            rows = comparable_rows(moments.class_counts, priors, all_events, known)
            statistic += usual * (
                1 - varied.relative(rows * resting, b.size) / varied.relative(comparable * resting, b.size)
            )
        p_value = law.p_value(statistic)
    return Match(
        priors=priors,
        free=free,
        covariance=of_priors,
        statistic=statistic,
        p_value=p_value,
        effect=effect,
        degrees=null.degrees,
        identified=identified,
        departure=max(float(statistic / usual), 1.0) if usual > 0 else 1.0,
        natural=law is not None,
    )


def _begun(
    moments: Moments, a: Matrix, b: Vector, events: int, varied: Variation | None, *, known: float, resting: float
) -> Vector:
    """The class mix by the covariance at the source priors."""
    priors = moments.source_priors
    covariance = _covariance(moments, priors, events, known)
    if varied is None:
        weighted: Matrix = np.asarray(np.linalg.solve(ridged(covariance), a), dtype=np.float64)
    else:
        rows = comparable_rows(moments.class_counts, priors, events, known)
        weighted = varied.inverse(ridged_inverse(covariance), rows, resting) @ a
    return simplex(least_squares(a, b, weighted)[0])


@dataclass(frozen=True, slots=True, eq=False)
class BlockMatches:
    """The blocks of the hold-out, each matched with the others as a window is with all of them."""

    variation: Variation | None
    """How much they differ, where that is more than samples of independent events do, and"""
    law: Law | None
    """what T is then in a window without a shift."""
    statistics: Vector
    """T of each."""
    gaps: Matrix
    """Matched class mix less that of the other blocks, or with a season those of its phase, (blocks, classes)."""
    spread: Matrix
    """Covariance of a gap in a sample that counts for one row."""
    rows: Vector
    """m_k."""
    windows: int
    """How many windows' lengths they make up: usually as many as there are blocks."""
    resting: float = 1.0
    """1 + g in their mean, where inputs follow a season."""


@lru_cache(maxsize=REFERENCES_READY)
def block_matches(moments: Moments) -> BlockMatches | None:
    """None where there are no blocks. A few milliseconds, once for each set of coordinates."""
    blocks = moments.blocks
    if blocks is None or len(blocks.counts) < FEWEST_BLOCKS:
        return None
    known, pi = _scatter(moments, blocks), moments.source_priors
    statistics, gaps = _by_each_other(moments, blocks, known)
    law = Law.of(statistics) if known.varied else None
    if law is not None and not blocks.whole_windows:
        # A window varies by more than its parts in directions in which these hardly show it.
        law = Law.of(_by_each_other(moments, blocks.joined, known)[0]).no_less_than(law)
    if law is not None:
        law = law.worth(blocks.stretches)
        if blocks.mates is not None:
            law = law.fitted(blocks.mates.fitted).rising(statistics)
    _, spread, _ = least_squares(moments.means.T, moments.means[0], known.sampling @ moments.means.T)
    return BlockMatches(
        variation=shrunk(known.scaled, known.products, _mean_worth(known, blocks)) if known.varied else None,
        law=law,
        statistics=statistics,
        gaps=gaps,
        spread=spread @ known.covariance @ spread.T + np.diag(pi) - np.outer(pi, pi),
        rows=known.rows,
        windows=blocks.stretches,
        resting=float(np.mean(blocks.resting)),
    )


def _by_each_other(moments: Moments, blocks: BlockSums, known: "_Scatter") -> tuple[Vector, Matrix]:
    """T of each block, or stretch of blocks, matched with the others, and its class mix less that of these."""
    means, seen, left = blocks.of_others / moments.scale, blocks.seen / moments.scale, blocks.counts_of_others
    statistics, gaps = np.zeros(len(seen)), np.zeros((len(seen), moments.source_priors.size))
    for k, weights in enumerate(_by_others(moments, known, blocks)):
        free, _, _ = least_squares(means[k].T, seen[k], weights @ means[k].T)
        residual = seen[k] - means[k].T @ free
        statistics[k] = residual @ weights @ residual
        gaps[k] = free - (left[k] / left[k].sum() if blocks.usual is None else blocks.usual[k])
    return statistics, gaps


def weights_by_others(moments: Moments) -> Iterator[Matrix]:
    """V^-1 of each block's mean by the other blocks; nothing where there are none."""
    blocks = moments.blocks
    return iter(()) if blocks is None else _by_others(moments, _scatter(moments, blocks), blocks)


@dataclass(frozen=True, slots=True, eq=False)
class _Scatter:
    """How the blocks lie about each other."""

    scaled: Matrix
    """sqrt(m_k) e_k, and"""
    products: Matrix
    """z_j' z_k."""
    rows: Vector
    covariance: Matrix
    sampling: Matrix
    """C and W."""
    without: Sequence[Matrix]
    """W by the rows of the other folds, for each fold."""
    varied: bool


def _scatter(moments: Moments, blocks: BlockSums) -> _Scatter:
    covariance = moments.covariance
    sampling, rows = ridged_inverse(covariance), blocks.rows
    scaled = _scaled(moments, blocks)
    products = scaled @ sampling @ scaled.T
    varied = not exchangeable(products, sampling @ covariance, blocks.correlation)
    without = [ridged_inverse(each) for each in present(moments.without, "covariances of folds")]
    return _Scatter(scaled, products, rows, covariance, sampling, without, varied)


def _mean_worth(known: "_Scatter", blocks: BlockSums) -> float:
    """The rows that a block's sampling error counts for beside what real time makes of it."""
    return float(known.rows.mean() if blocks.mates is None else (blocks.rows * blocks.resting).mean())


def _scaled(moments: Moments, blocks: BlockSums) -> Matrix:
    return np.asarray(np.sqrt(blocks.rows)[:, None] * blocks.residuals / moments.scale)


def _by_others(moments: Moments, known: _Scatter, blocks: BlockSums) -> Iterator[Matrix]:
    """V^-1 of each block, in which it has no part.

    Neither by its rows nor in the residuals of the others: held against all but themselves these would sum to what is
    its own residual, and the fewer they are the better they would know it beforehand.
    """
    parts = present(moments.blocks, "blocks")
    of_others: dict[int, Variation] = {}
    resting = (np.ones(len(blocks.rows)) * blocks.resting).tolist()
    each = zip(blocks.stretch.tolist(), fold_of(blocks.stretch).tolist(), blocks.rows, resting, strict=True)
    for stretch, fold, rows, rested in each:
        weights = known.without[fold] * rows
        if known.varied:
            if stretch not in of_others:
                others = parts.of(parts.stretch != stretch)
                scaled = _scaled(moments, others)
                products = scaled @ known.without[fold] @ scaled.T
                of_others[stretch] = shrunk(scaled, products, _mean_worth(known, others))
            weights = of_others[stretch].inverse(weights, rows, rested)
        yield weights


def _between_blocks(moments: Moments) -> tuple[Variation | None, Law | None]:
    matches = block_matches(moments)
    return (None, None) if matches is None else (matches.variation, matches.law)


def exchangeable(products: Matrix, b: Matrix, correlation: Matrix | None = None) -> bool:
    """Whether blocks are no more different than samples: neither far from the others, nor in the same directions.

    Under sampling z_k is normal with covariance B = W C. Far: sum_k |z_k|^2 has mean K tr B and variance 2 K tr B^2. In
    the same directions: z_j' z_k + tr B / (K - 1) has mean 0 (each is held against the others, so all are nearly 0 in
    sum), and its square has mean tr B^2 and variance 2 (tr B^2)^2 + 6 tr B^4. Blocks that are held against those of
    their phase alone are correlated by R: z_j' z_k has mean R_jk tr B, and sum_k |z_k|^2 variance 2 |R|^2 tr B^2.
    """
    number = len(products)
    square = b @ b
    t1, t2, t4 = float(np.trace(b)), float(np.trace(square)), float(np.vdot(square.T, square))
    free = number if correlation is None else float((correlation**2).sum())
    far = (float(np.trace(products)) - number * t1) / np.sqrt(2 * free * t2)
    above = np.triu_indices(number, 1)
    pairs = products[above] - t1 * (-1 / (number - 1) if correlation is None else correlation[above])
    alike = (float((pairs**2).sum()) - pairs.size * t2) / np.sqrt(pairs.size * (2 * t2**2 + 6 * t4))
    return bool(max(far, alike) < EXCHANGEABLE)


def explained(moments: Moments, plain: BlockSums, seasonal: BlockSums) -> float:
    """How much of what blocks differ by, beyond their class mixes, goes with the phase: each by the others."""
    sampling = ridged_inverse(moments.covariance)

    def differ(blocks: BlockSums) -> float:
        away = blocks.residuals / moments.scale
        squares = np.einsum("kd,de,ke->k", away, sampling, away)
        return float((squares / blocks.resting).mean())

    if not len(seasonal.counts) or not (whole := differ(plain)) > 0:
        return 0.0
    return max(1.0 - differ(seasonal) / whole, 0.0)


def alike_neighbours(moments: Moments, blocks: BlockSums) -> int:
    """How many neighbouring blocks vary as one: the autocorrelation time of their residuals.

    With r_l the mean product z_k' z_(k+l) relative to the mean square, both beside what leaving one out makes of them,

        1 + 2 sum_l r_l,   up to the first lag whose r_l is no more than chance,

    is by how much the mean of autocorrelated blocks varies more than that of independent ones. 1 for blocks that differ
    no more than samples do.
    """
    sampling, scaled = ridged_inverse(moments.covariance), _scaled(moments, blocks)
    products, number = scaled @ sampling @ scaled.T, len(scaled)
    if exchangeable(products, sampling @ moments.covariance, blocks.correlation):
        return 1
    square = float(np.trace(products)) / number
    effective = float(np.trace(products)) ** 2 / float((products**2).sum())
    time = 1.0
    for lag in range(1, number // 2):
        alike = (float(np.diag(products, lag).mean()) / square + 1 / (number - 1)) * (number - 1) / number
        if alike < 2 / np.sqrt((number - lag) * max(effective, 1.0)):
            break
        time += 2 * alike
    return round(time)


def comparable_rows(class_counts: Vector, priors: Vector, events: int, known: float = 0.0) -> float:
    """The harmonic size of a window and a reweighted reference: 1 / (1/n + 1/m), and `known` in what they sum to."""
    m = effective_size(class_counts, priors)
    rows = events * m / (events + m) if m > 0 else 0.0
    return rows / (1 + known * rows)


def mix_moved(
    found: Match, moments: Moments, hold_out_events: float, events: int, usual: UsualMix | None = None
) -> Tested:
    """Whether the matched class mix differs from the reference's, or from what is `usual` at this time of its season:
    a Wald test on c - 1 shares.

    Besides the match's own error the class shares of the window and of the hold-out events are samples:
    (diag(pi) - pi pi') (1/n + 1/N). The effect is Cohen's w = sqrt(sum_y (p_y - pi_y)^2 / pi_y).

    Where the mix of the blocks varies by more than that, what it varies by is added, and the statistic follows

        (K - q) / (q (K - 1) (1 + 1/K)) g' V^-1 g  ~  F(q, K - q),   q = c - 1                      (Hotelling)
    """
    pi, hold_out_events = (moments.source_priors, hold_out_events) if usual is None else (usual.shares, usual.events)
    gap = found.free - pi
    sampled = (np.diag(pi) - np.outer(pi, pi)) * (1 / events + 1 / hold_out_events)
    variance = found.covariance + sampled
    effect, degrees, blocks = cohen_w(found.priors, pi), pi.size - 1, block_matches(moments)
    beyond = None if blocks is None else mix_beyond_sampling(blocks)
    if blocks is None or beyond is None:
        statistic = _wald(gap, variance)
        return Tested(statistic, float(chdtrc(degrees, statistic)), effect, degrees)
    number = blocks.windows
    statistic, left = _wald(gap, variance + beyond), max(number - degrees, LEAST_ROWS)
    scaled = statistic * left / (degrees * (number - 1) * (1 + 1 / number))
    return Tested(statistic, float(fdtrc(degrees, left, scaled)), effect, degrees, natural=True)


def _wald(gap: Vector, variance: Matrix) -> float:
    """g' V^-1 g. Sums to zero in every direction that matters: one class fewer says the same."""
    return float(gap[:-1] @ pseudo_inverse(variance[:-1, :-1], 1e-10) @ gap[:-1])


@lru_cache(maxsize=REFERENCES_READY)
def mix_beyond_sampling(blocks: BlockMatches) -> Matrix | None:
    """By how much the mix of the blocks varies more than by sampling: a covariance of shares; None where it does not,
    in blocks that do not differ otherwise either.

    In a window it comes on top of sampling error, whatever the window's size.
    """
    number, degrees = len(blocks.gaps), blocks.gaps.shape[1] - 1
    total = sum(_wald(gap, blocks.spread / m) for gap, m in zip(blocks.gaps, blocks.rows, strict=True))
    if blocks.variation is None and (total - number * degrees) / np.sqrt(2 * number * degrees) < EXCHANGEABLE:
        return None
    values, vectors = np.linalg.eigh(
        blocks.gaps.T @ blocks.gaps / number - blocks.spread * float((1 / blocks.rows).mean())
    )
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def simplex(free: Vector) -> Vector:
    """Negative shares cut, the rest scaled to 1."""
    cut = np.maximum(free, 0.0)
    return np.asarray(cut / cut.sum())


def cohen_w(priors: Vector, source: Vector) -> float:
    """Cohen's w = sqrt(sum_y (p_y - pi_y)^2 / pi_y): 0.1 is small, 0.3 medium, 0.5 large."""
    return float(np.sqrt(((priors - source) ** 2 / source).sum()))


def _covariance(moments: Moments, priors: Vector, events: int, known: float = 0.0) -> Matrix:
    """C(p), the covariance of the mean map under label shift alone, at these priors; what is usual at its time is
    `known` as well as a mean of 1 / known events of the hold-out."""
    counts = moments.class_counts
    weights = priors / events + np.divide(priors**2, counts, out=np.zeros_like(priors), where=counts > 0)
    weights = weights + known * moments.source_priors
    return np.asarray((weights @ moments.within.reshape(counts.size, -1)).reshape(moments.within.shape[1:]))


def least_squares(a: Matrix, b: Vector, weighted: Matrix) -> tuple[Vector, Matrix, bool]:
    """p^ with sum 1, d p^ / d b, and whether all classes could be told apart; `weighted` is W A."""
    classes = a.shape[1]
    centring = np.eye(classes) - 1.0 / classes
    inverse, identified = _seen_inverse(centring @ (a.T @ weighted) @ centring)
    spread: Matrix = inverse @ weighted.T
    even = np.ones(classes) / classes
    free: Vector = even + spread @ (b - a @ even)
    return free, spread, identified


def _seen_inverse(curvature: Matrix) -> tuple[Matrix, bool]:
    """The inverse on directions that the data see, and whether they see all that sum to zero.

    The inverse of a curvature is a variance of shares: a direction with a variance above 1 is not seen at all.
    """
    values, vectors = np.linalg.eigh(curvature)
    seen = values > max(LEAST_CURVATURE, IDENTIFIED_CURVATURE * float(values[-1]))
    inverse: Matrix = (vectors[:, seen] / values[seen]) @ vectors[:, seen].T
    return inverse, int(seen.sum()) >= len(values) - 1


def rows_behind(moments: Moments, priors: Vector, events: int) -> float:
    """f: how many rows of one class would know a covariance as well as C(p) is known (Satterthwaite 1946).

    C(p) weighs the classes by w_y = p_y / n + p_y^2 / n_y; of S_y a part comes from the n_y rows of the class, the rest
    from all. Rows with heavy tails know a covariance less well than normal ones, by their kurtosis (Tyler 1982).
    """
    counts = moments.class_counts
    weights = priors / events + np.divide(priors**2, counts, out=np.zeros_like(priors), where=counts > 0)
    own = weights * counts / (counts + COVARIANCE_PRIOR_ROWS)
    pooled = float(weights.sum() - own.sum())
    squares = float((own**2 / np.maximum(counts - 1, 1)).sum()) + pooled**2 / max(
        float(counts.sum()) - counts.size, 1.0
    )
    return float(weights.sum() ** 2 / squares) / moments.kurtosis if squares > 0 else 1.0


@dataclass(frozen=True, slots=True)
class _Null:
    """What T does under label shift."""

    mean: float
    degrees: float
    inflation: float
    """By how much T is larger than with a known covariance."""
    p_value: float


def _null(product: Matrix, statistic: float, rows: float) -> _Null:
    """The null distribution from the first three cumulants of T under label shift.

    With weights l_i: c_k = sum l_i^k; h = c_2^3 / c_3^2 degrees of freedom; (T - c_1) sqrt(h / c_2) + h is about
    chi-square with h degrees (Imhof 1961), and Hotelling's where the covariance was estimated from few rows.
    """
    square = product @ product
    c1, c2, c3 = float(np.trace(product)), float(np.trace(square)), float(np.vdot(square.T, product))
    if c2 <= 0 or c3 <= 0:
        return _Null(c1, 0.0, 1.0, 1.0)
    h = c2**3 / c3**2
    left = max(rows - h + 1, LEAST_ROWS)
    inflation = max(rows, left) / left
    standard = max((statistic - c1) * np.sqrt(h / c2) + h, 0.0)
    mean = c1 + (inflation * left / (left - 2) - 1) * np.sqrt(c2 * h)
    return _Null(mean, h, inflation, float(fdtrc(h, left, standard / (inflation * h))))
