"""What is usual of windows at one time of the season, of anything that each block of the hold-out has a value of.

Temperatures of a night are no shift because they are not those of the whole hold-out. With v_k the values of block k,
one or many, K_f the number of blocks of phase f, m_f their mean and m the mean over the phases, phases of which little
is known are drawn to what is usual at any time, as class mixes are (`season`):

    u_f = m + B (m_f - m),   B = max(0, 1 - mean_f (s^2 / K_f) / v)

s^2 within and v between the phases, both of all values together, each in units of its own standard deviation. Values
that do not follow the season have B near 0, and then nothing is usual at a time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector


@dataclass(frozen=True, slots=True, eq=False)
class UsualValues:
    """What is usual of some values beyond what they are at any time: u_f - m."""

    of_block: Matrix
    """At the time of each block, by the others, (blocks, values)."""
    phases: Labels
    """Those that occur, and"""
    of_phase: Matrix
    """what is usual then, (phases, values)."""
    explained: float
    """How much of the variance between blocks goes with the phase."""

    def at(self, phase: int | None) -> Vector:
        """0 in a phase that no block had."""
        known = np.flatnonzero(self.phases == phase)
        return self.of_phase[known[0]] if known.size else np.zeros(self.of_phase.shape[1])

    def of(self, values: Labels) -> "UsualValues":
        """Of some of the values."""
        return UsualValues(self.of_block[:, values], self.phases, self.of_phase[:, values], self.explained)


@dataclass(frozen=True, slots=True, eq=False)
class Phases:
    """When the blocks of a hold-out were in their season."""

    of_block: Labels
    stretch: Labels
    """Blocks of one stretch do not tell each other what is usual."""

    def of(self, blocks: Labels) -> "Phases":
        """The same of some of the blocks."""
        return Phases(self.of_block[blocks], self.stretch[blocks])

    def usual(self, values: Matrix) -> UsualValues:
        """Of values of the blocks, (blocks, values)."""
        phases, number = np.unique(self.of_block, return_inverse=True)
        sums, blocks = _by(number, values, phases.size), np.bincount(number)
        means = sums / blocks[:, None]
        mean = means.mean(axis=0)
        believed, explained = _believed(values, means, number, blocks)
        stretches, stretch = np.unique(self.stretch, return_inverse=True)
        cell = stretch * phases.size + number
        own = _by(cell, values, stretches.size * phases.size)
        left = blocks[number] - np.bincount(cell, minlength=len(own))[cell]
        of_others = (sums[number] - own[cell]) / np.maximum(left, 1)[:, None]
        # Of a phase that came once the others know nothing.
        others = np.where(left[:, None] > 0, believed * (of_others - mean), 0.0)
        return UsualValues(others, phases, believed * (means - mean), explained)


def _by(number: Labels, values: Matrix, groups: int) -> Matrix:
    """The sums of each group's rows."""
    sums: NDArray[np.float64] = np.zeros((groups, values.shape[1]))
    np.add.at(sums, number, values)
    return sums


def _believed(values: Matrix, means: Matrix, number: Labels, blocks: Labels) -> tuple[float, float]:
    """B, and how much of the variance goes with the phase."""
    phases, free = len(means), len(values) - len(means)
    total = values.var(axis=0)
    varied = total > 0
    if phases < 2 or free <= 0 or not varied.any():
        return 0.0, 0.0
    within = (((values - means[number]) ** 2).sum(axis=0)[varied] / total[varied]).mean() / free
    between = (means.var(axis=0, ddof=1)[varied] / total[varied]).mean()
    believed = max(1.0 - float(within * (1 / blocks).mean() / between), 0.0) if between > 0 else 0.0
    return believed, max(1.0 - float(within) * (len(values) - 1) / len(values), 0.0)
