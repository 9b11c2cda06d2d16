"""How far one feature is from the reference in windows without a shift: laws of its distance and of its missing values.

Under sampling a distance D of m comparable rows has E[D^2] = s^2 / m with s^2 known: pi^2 / 12 for Kolmogorov's, less
where values are tied, and for shares of categories that of the mean deviation of normal gaps. Of the blocks of the
hold-out

    x^2 = max(mean D_jk^2 - s^2 mean 1 / m_k, 0)

is what real time adds, whatever the size of a window; and in one that counts for m rows the logarithm of D_j follows
Student's law about the blocks' mean, moved by ln sqrt((x^2 + s^2 / m) / mean D_jk^2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy
from scipy.special import digamma, polygamma

from monitor.arrays import Vector
from monitor.limits import REFERENCES_READY
from monitor.shifts.blocks import Blocks, BlockSums
from monitor.shifts.columns import Column, SortedColumn
from monitor.shifts.fit import block_matches
from monitor.shifts.prepared import Prepared
from monitor.shifts.variation import Law
from monitor.tolerances import BLOCK_CELLS, EXCHANGEABLE, EXPECTED_IN_CELL

KOLMOGOROV_MEAN, KOLMOGOROV_SPREAD = float(np.sqrt(np.pi / 2) * np.log(2)), 0.2603
KOLMOGOROV_SQUARE = np.pi**2 / 12
BRIDGES, BRIDGE_SEED = 400, 19
"""Drawn where values are tied: their mean is known to 1.5 %."""
LEAST_DISTANCE = 0.25
"""A block is as far from the others as a quarter of what sampling makes, at least."""
FEWEST_ALIKE = 3
"""Features whose spreads say how alike spreads are."""
MOST_ALIKE = 60.0
"""Degrees of freedom that the spreads of others are worth at most: features are not independent of each other."""


@dataclass(frozen=True, slots=True)
class DistanceLaw:
    """How far one feature lies from the reference without a shift."""

    law: Law | None
    """None where the blocks are no farther apart than samples."""
    square: float
    """mean D_jk^2."""
    beyond: float
    """x^2."""
    sampling: float
    """s^2."""
    missing: Law | None
    """Of the share of missing values beyond what the class mix leads to expect; None where no block had any."""

    def p_value(self, distance: float, rows: float, resting: float = 1.0) -> float:
        """The p-value of a distance in a window that counts for so many rows; 0 where there is nothing but sampling.

        `resting` is how many times as much real time makes of it as of a block, where it is one from what is usual.
        """
        if self.law is None or rows <= 0:
            return 0.0
        moved = np.log((self.beyond * resting + self.sampling / rows) / self.square) / 2
        return replace(self.law, mean=self.law.mean + float(moved)).p_value(distance)

    def missing_p(self, beyond: float) -> float:
        """The p-value of a share of missing values that is so much beyond what the class mix leads to expect."""
        return 0.0 if self.missing is None else self.missing.p_value(abs(beyond))


@lru_cache(maxsize=REFERENCES_READY)
def distance_laws(reference: Prepared) -> tuple[DistanceLaw, ...]:
    """One for each feature; none where there are no blocks."""
    blocks = reference.hold_out
    if blocks is None:
        return ()
    kept = blocks.compared
    pairs = zip(reference.features, kept.distances.T, kept.missing.T, strict=True)
    laws = [_law(*each, blocks, reference.source_priors, varied=varied(reference)) for each in pairs]
    tested = [j for j in range(len(laws)) if j not in reference.untested]
    together = dict(zip(tested, alike_spreads([laws[j].law for j in tested]), strict=True))
    return tuple(replace(law, law=together.get(j, law.law)) for j, law in enumerate(laws))


@lru_cache(maxsize=REFERENCES_READY)
def score_laws(reference: Prepared) -> tuple[DistanceLaw, ...]:
    """One for each posterior."""
    blocks = reference.hold_out
    if blocks is None:
        return ()
    never = np.zeros(blocks.number)
    pairs = zip(reference.posteriors, blocks.compared.score_distances.T, strict=True)
    return tuple(_law(*each, never, blocks, reference.source_priors, varied=varied(reference)) for each in pairs)


def alike_spreads(laws: Sequence[Law | None]) -> list[Law | None]:
    """The laws with spreads that are drawn towards that of all, as far as they are alike (Smyth 2004).

    With ln s_j^2 - psi(v / 2) + ln(v / 2) of mean e and variance w: psi'(d / 2) = w - psi'(v / 2),
    ln s_0^2 = e + psi(d / 2) - ln(d / 2), and s_j^2 -> (d s_0^2 + v s_j^2) / (d + v) with v + d degrees of freedom. A
    few blocks that happen to be equally far from the others in one feature do not make the next one a shift.
    """
    known = [law for law in laws if law is not None and law.spread > 0]
    if len(known) < FEWEST_ALIKE:
        return list(laws)
    own = known[0].degrees
    logs = np.log([law.spread**2 for law in known]) - digamma(own / 2) + np.log(own / 2)
    beyond = max(float(logs.var(ddof=1) - polygamma(1, own / 2)), float(polygamma(1, MOST_ALIKE / 2)))
    prior = 2 * float(scipy.optimize.brentq(lambda half: float(polygamma(1, half)) - beyond, 1e-3, MOST_ALIKE))
    square = float(np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2)))

    def drawn(law: Law) -> Law:
        together = (prior * square + own * law.spread**2) / (prior + own)
        return replace(law, spread=float(np.sqrt(together)), degrees=own + prior)

    return [None if law is None else drawn(law) for law in laws]


def varied(reference: Prepared) -> bool:
    """Whether the blocks differ as a whole: then they do so by each feature, whether a few blocks show it or not."""
    matches = block_matches(reference.moments)
    return matches is not None and matches.variation is not None


def _law(
    feature: Column,
    distances: Vector,
    missing: Vector,
    blocks: Blocks,
    priors: Vector,
    *,
    varied: bool,
) -> DistanceLaw:
    absent, mapped, events, fitted = float(priors @ feature.missing), blocks.mapped, blocks.events, 1
    if (mates := blocks.mates) is not None:
        known, fitted = mates.known, mates.fitted
        distances, missing, events = distances[known], missing[known], events[known]
    rows = np.maximum(mapped.rows * (1 - absent), 1.0)
    number, square = distances.size, float((distances**2).mean())
    mean, spread, sampling = _under_sampling(feature, float(np.median(rows)))
    z = (float((np.sqrt(rows) * distances).mean()) - mean) / (spread / np.sqrt(number))
    beyond = max(square - sampling * float((1 / rows).mean()), 0.0) / float(np.mean(mapped.resting))
    # Of a block that happens to be just like the others only that is known, and not how much.
    law = Law.of(np.maximum(distances, LEAST_DISTANCE * mean / np.sqrt(rows))) if varied or z >= EXCHANGEABLE else None
    least = LEAST_DISTANCE * np.sqrt(absent * (1 - absent) / events)
    of_missing = Law.of(np.maximum(np.abs(missing), least)) if missing.any() else None
    worth = (None if each is None else _worth(each, blocks, mapped, fitted) for each in (law, of_missing))
    return DistanceLaw(next(worth), square, beyond, sampling, next(worth))


def _worth(law: Law, blocks: Blocks, mapped: BlockSums, fitted: int) -> Law:
    """What it is worth as one of windows, and beside so many phases that were fitted."""
    return law.worth(blocks.stretches) if mapped.mates is None else law.worth(mapped.stretches).fitted(fitted)


def _under_sampling(feature: Column, rows: float) -> tuple[float, float, float]:
    """Mean and standard deviation of sqrt(m) D, and the mean of its square.

    For shares q_v: the gaps are about normal, so E = sum_v sqrt(2 q_v (1 - q_v) / pi) / 2, and of the v - 1 that are
    free each has a relative standard deviation of sqrt(pi / 2 - 1). Values too rare in so many rows share a cell.
    """
    if isinstance(feature, SortedColumn):
        return _of_numbers(feature)
    counts = feature.counts.sum(axis=0)
    shares = counts / max(float(counts.sum()), 1.0)
    frequent = shares * rows >= EXPECTED_IN_CELL
    shares = np.append(shares[frequent], shares[~frequent].sum())
    shares = shares[shares > 0]
    mean = float(np.sqrt(2 * shares * (1 - shares) / np.pi).sum() / 2)
    relative = (np.pi / 2 - 1) / max(shares.size - 1, 1)
    mean = max(mean, 1e-9)
    return mean, mean * float(np.sqrt(relative)), mean**2 * (1 + float(relative))


def _of_numbers(column: SortedColumn) -> tuple[float, float, float]:
    """Kolmogorov's law; where values are tied, that of a Brownian bridge seen at as many places as there are values.

    A number of guests that is 2 in seven bookings of ten lies half as far off by sampling: held against Kolmogorov's
    law, blocks that differ twice as much as samples would seem to be samples.
    """
    upto = column.places.upto
    total = max(int(upto[-1]), 1)
    shares = np.bincount((upto[1:] - 1) * BLOCK_CELLS // total, weights=np.diff(upto)) / total
    if shares.max(initial=0.0) < 2 / BLOCK_CELLS:
        return KOLMOGOROV_MEAN, KOLMOGOROV_SPREAD, KOLMOGOROV_SQUARE
    shares = shares[shares > 0]
    steps = np.random.default_rng(BRIDGE_SEED).normal(size=(BRIDGES, shares.size)) * np.sqrt(shares)
    walks = np.cumsum(steps, axis=1)
    highest = np.abs(walks - walks[:, -1:] * np.cumsum(shares)).max(axis=1, initial=0.0)
    return float(max(highest.mean(), 1e-9)), float(max(highest.std(), 1e-9)), float((highest**2).mean())
