"""Times of the season, and what is usual at each of them: of inputs and scores, by the blocks of the hold-out.

Temperatures of a night are no shift because they are not those of the whole hold-out. The season is cut into F phases
of equal length, and what is usual in phase f is the mean of its K_f blocks. A window, and each block, is held against
that of its own phase: a block against the other blocks of the phase, those of other stretches where there are any.
Phases are fitted as they come, without shrinking: what a mean of K_f blocks costs is known exactly, and that which does
not follow the season pays no more than that.

    s_f = (sum of 1 / n_j over the K_f blocks j) / K_f^2    the sampling error of a phase's mean, in 1 / rows
    g_f = 1 / K_f                                           and what real time adds, in that of a block

A window that lies in several phases is held against their mean x, weighed by how many events there are usually at that
time: s = sum x_f^2 s_f, and g = sum x_f g_f, as if the same days were warm in all phases.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector


@dataclass(frozen=True, slots=True)
class Phases:
    """The parts of a season; times are microseconds."""

    length: int
    """P."""
    number: int
    """F."""

    def of(self, moments: Labels) -> Labels:
        """The phase of each moment."""
        return np.asarray(moments % self.length * self.number // self.length, dtype=np.int64)

    def overlap(self, start: int, end: int) -> Vector:
        """How much of this time lies in each phase, in parts of a phase."""
        ends = np.array([start, end], dtype=np.int64)
        seasons = (ends // self.length)[:, None]
        into = (ends % self.length / self.length * self.number)[:, None] - np.arange(self.number)
        upto = seasons + np.clip(into, 0.0, 1.0)
        return np.asarray(upto[1] - upto[0])


@dataclass(frozen=True, eq=False)
class Mates:
    """The blocks of a hold-out by the phase that they lie in."""

    phase: Labels
    """Of each block; -1 where too little is known of that time."""
    stretch: Labels
    phases: int
    """F."""

    def of(self, picked: Flags | Labels) -> "Mates":
        """Some of the blocks."""
        return Mates(self.phase[picked], self.stretch[picked], self.phases)

    @cached_property
    def blocks(self) -> Labels:
        """K_f."""
        return np.bincount(self.phase[self.phase >= 0], minlength=self.phases)

    @property
    def known(self) -> Flags:
        """The blocks of which it is known what is usual at their time."""
        return np.asarray(self.together.any(axis=1))

    @property
    def fitted(self) -> int:
        """How many phases have a block."""
        return int(np.count_nonzero(self.blocks))

    @cached_property
    def together(self) -> Matrix:
        """Which blocks say what is usual at the time of which, (blocks, blocks), as weights that sum to one; zeros
        where no other block lies in the phase."""
        alike = (self.phase[:, None] == self.phase) & (self.phase >= 0)
        others = alike & (self.stretch[:, None] != self.stretch)
        np.fill_diagonal(alike, val=False)
        known = np.where(others.any(axis=1, keepdims=True), others, alike).astype(np.float64)
        return np.asarray(known / np.maximum(known.sum(axis=1, keepdims=True), 1.0))

    def by_phase(self, values: NDArray[Any]) -> Matrix:
        """The mean over the blocks of each phase; 0 in one without."""
        means, there = np.zeros((self.phases, values.shape[1])), self.phase >= 0
        np.add.at(means, self.phase[there], values[there])
        return np.asarray(means / np.maximum(self.blocks, 1)[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class UsualInputs:
    """What is usual of a window's map at its time, beyond the class mix, and how well that is known."""

    mean: Vector
    """b, before scaling, and"""
    shares: Vector
    """p, of the blocks of its phases."""
    sampling: float
    """s."""
    between: float
    """g."""

    @property
    def events(self) -> float:
        """How many a block of these phases has, in as many of them."""
        return self.between / self.sampling

    def beyond(self, means: Matrix, scale: Vector) -> Vector:
        """u, where the classes have these means in this scale."""
        return np.asarray(self.mean / scale - self.shares @ means)
