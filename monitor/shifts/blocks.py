"""The hold-out as blocks of consecutive events, and how far each is from the others: how much real time varies.

A window of a real stream is no sample of independent events: weeks differ. How much they differ shows in the hold-out
itself, cut in time order into blocks of one window's length (`monitor.reference.blocks` does that). Everything that a
test of a window compares is therefore also kept for every block, *held against the other blocks alone* (leave one out).
All of it is pure functions on arrays.

Notation. Block k of K has n_ky events of class y, n_k in all, the shares p_ky = n_ky / n_k, and the sums Phi_ky of the
feature map; n_y and Phi_y are those of all blocks. Without block k:

    A_-k = columns (Phi_y - Phi_ky) / (n_y - n_ky),   b_k = sum_y Phi_ky / n_k,   e_k = b_k - A_-k p_k
    D_jk = sup_x |sum_y p_ky (F_kjy(x) - F_-kjy(x))| = sup_x |sum_y p_ky n_y / (n_y - n_ky) (F_kjy(x) - F_jy(x))|

(Half the sum over values in place of the supremum for categories.)

Where a hold-out holds few windows' lengths, a block is a part of one (`parts`): neighbours of an hour are alike, so a
block is then held against those of other stretches alone, and every "-k" above leaves out its whole stretch. A window
that is longer than a block is at most as far off by nature: what blocks vary by is too much rather than too little.

For whoever builds on it: `Reference.blocks` is a `Blocks` or None. `starts`, `ends` and `timed` say when a block was,
`counts` its classes, `posteriors` its summed calibrated posteriors by true class (so `pcc` is calibrated PCC, to be
held against `shares`), `losses` and `expected_losses` what the model's Brier score was and what calibrated posteriors
expected of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector, present
from monitor.limits import RARELY_READY, REFERENCES_READY
from monitor.shifts.phases import Mates, UsualInputs
from monitor.shifts.season import Season, UsualMix
from monitor.shifts.seasonal_columns import SeasonalColumns
from monitor.tolerances import FOLDS, LEAST_EXPLAINED


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """What is kept of the blocks of a hold-out."""

    length: str
    """Of a window."""
    parts: int
    """Blocks in each of these lengths: 1 where the hold-out holds enough of them."""
    timed: bool
    starts: Labels
    ends: Labels
    stretch: Labels
    """By block: those of one stretch are never held against each other."""
    of_sample: Labels
    """The block of each row of the reference's sample; -1 for none."""
    counts: Matrix
    """n_ky, (blocks, classes)."""
    sums: NDArray[np.float64]
    """Phi_ky, (blocks, classes, coordinates), of the map at the reference's own resolution, before scaling."""
    distances: Matrix
    """D_jk, (blocks, features)."""
    score_distances: Matrix
    """The same of each posterior, (blocks, classes)."""
    missing: Matrix
    """Share of missing values beyond what the other blocks' classes lead to expect, (blocks, features)."""
    posteriors: NDArray[np.float64]
    """Summed calibrated posteriors of each class's events, (blocks, classes, classes); calibrated out of fold."""
    estimates: Matrix
    """What the reference's estimator says of each block's class mix from them, (blocks, classes)."""
    losses: Vector
    """Brier score of the model's scores, by block (of margins: of these posteriors), and"""
    expected_losses: Vector
    """what it would be were these posteriors true."""
    season: Season | None = None
    """The class mix by the time of the day, of the week or of the year, where the hold-out was said to follow one."""
    seasonal: SeasonalColumns | None = None
    """What of the above is usual at each time, where inputs follow the season too."""
    inputs_explained: float | None = None
    """How much of what they differ by beyond their class mix goes with the season; None where nobody asked."""

    @property
    def number(self) -> int:
        """K, the number of blocks."""
        return self.starts.size

    @property
    def stretches(self) -> int:
        """How many windows' lengths they make up: as many as there are blocks, where these are whole ones."""
        return np.unique(self.stretch).size

    @property
    def fold_of_sample(self) -> Labels:
        """Of each row of the reference's sample; -1 for none."""
        return np.where(self.of_sample >= 0, fold_of(self.stretch)[self.of_sample], -1)

    @property
    def mapped(self) -> "BlockSums":
        """What `BlockSums` makes of them."""
        sums = BlockSums(self.sums, self.counts, self.stretch, whole_windows=self.parts == 1, usual=self.usual_mixes)
        return sums.in_phases(self.mates)

    @property
    def at_any_time(self) -> "Blocks":
        """The same with inputs held against the whole hold-out."""
        return self if self.seasonal is None else replace(self, seasonal=None)

    @property
    def compared(self) -> "Blocks | SeasonalColumns":
        """Distances and missing values: where inputs follow a season, from what is usual at the time of each block."""
        return self if self.seasonal is None else self.seasonal

    @property
    def mates(self) -> Mates | None:
        """The blocks by phase; None where inputs follow no season."""
        return None if self.seasonal is None else _mates(self)

    def when(self, start: int, end: int) -> Vector | None:
        """How much of a window lies in each phase; None where inputs follow no season, or too little is known of it."""
        if self.season is None or (mates := self.mates) is None:
            return None
        return self.season.when(start, end, mates.blocks > 0)

    @property
    def usual_mixes(self) -> Matrix | None:
        """What class mix the other blocks of the same phase lead to expect of each; None without a season."""
        return None if self.season is None else self.season.usual_of_others(self.starts)

    def usual_at(self, start: int, end: int) -> UsualMix | None:
        """The class mix that is usual at the time of a window; None without a season."""
        return None if self.season is None else self.season.usual(start, end)

    @property
    def events(self) -> Vector:
        """n_k, the events of each block."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def shares(self) -> Matrix:
        """p_ky, the class shares of each block."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @property
    def pcc(self) -> Matrix:
        """The mean calibrated posterior of each block."""
        return np.asarray(self.posteriors.sum(axis=1) / self.events[:, None])

    def described(self) -> dict[str, Any]:
        """What a file's header says of them."""
        season = {} if self.season is None else {"season": self.season.described()}
        inputs = {} if self.inputs_explained is None else {"inputs_explained": self.inputs_explained}
        return {"length": self.length, "parts": self.parts, "timed": self.timed, **season, **inputs}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The plain arrays that a reference's file holds; `from_arrays` is the way back."""
        season = {} if self.season is None else self.season.to_arrays()
        seasonal = {} if self.seasonal is None else self.seasonal.to_arrays()
        return {name: getattr(self, name) for name in _ARRAYS} | season | seasonal

    @classmethod
    def from_arrays(cls, described: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The blocks that `described` and `to_arrays` wrote; KeyError if something is missing."""
        named = {name: arrays[name] for name in _ARRAYS if name in arrays}
        # Files of version 1 have a stretch for each block.
        named.setdefault("stretch", np.arange(arrays["starts"].size))
        season = Season.from_arrays(described["season"], arrays) if "season" in described else None
        explained = described.get("inputs_explained")
        follows = explained is not None and explained >= LEAST_EXPLAINED
        return cls(
            described["length"],
            described.get("parts", 1),
            described["timed"],
            **named,
            season=season,
            seasonal=SeasonalColumns.from_arrays(arrays) if follows else None,
            inputs_explained=explained,
        )


@lru_cache(maxsize=REFERENCES_READY)
def _mates(blocks: Blocks) -> Mates | None:
    return None if blocks.season is None else blocks.season.mates(blocks.starts, blocks.stretch)


_ARRAYS = (
    "starts",
    "ends",
    "stretch",
    "of_sample",
    "counts",
    "sums",
    "distances",
    "score_distances",
    "missing",
    "posteriors",
    "estimates",
    "losses",
    "expected_losses",
)


@dataclass(frozen=True, slots=True, eq=False)
class BlockSums:
    """The sums of some map over each block: Phi_ky before scaling, (blocks, classes, coordinates), and n_ky."""

    sums: NDArray[np.float64]
    counts: Matrix
    stretch: Labels
    whole_windows: bool
    """Whether each block is as long as a window."""
    usual: Matrix | None = None
    """The class mix that is usual at the time of each, by the others; None where that of all others is."""
    mates: Mates | None = None
    """When each was, where inputs follow a season."""

    @classmethod
    def reduced(cls, rows: Matrix, labels: Labels, of_row: Labels, cut: Blocks, classes: int) -> Self:
        """From mapped rows and the block of each, -1 for none; a block without rows is left out."""
        inside = np.flatnonzero(of_row >= 0)
        blocks, block = np.unique(of_row[inside], return_inverse=True)
        number = int(block.max(initial=-1)) + 1
        cell = block * classes + labels[inside]
        order = np.argsort(cell, kind="stable")
        counts = np.bincount(cell, minlength=number * classes)
        sums = np.zeros((number * classes, rows.shape[1]))
        there = counts > 0
        sums[there] = np.add.reduceat(rows[inside[order]], (np.cumsum(counts) - counts)[there], axis=0)
        of_class = counts.reshape(number, classes).astype(np.float64)
        usual = None if (mixes := cut.usual_mixes) is None else mixes[blocks]
        of_blocks = sums.reshape(number, classes, -1)
        made = cls(of_blocks, of_class, cut.stretch[blocks], whole_windows=cut.parts == 1, usual=usual)
        return made.in_phases(None if (mates := cut.mates) is None else mates.of(blocks))

    def in_phases(self, mates: Mates | None) -> Self:
        """The same held against the others of the same phase; without those of which nothing is known."""
        return self if mates is None else replace(self, mates=mates).of(mates.known)

    def at(self, coordinates: Labels) -> Self:
        """The same for some of the coordinates."""
        return replace(self, sums=self.sums[:, :, coordinates])

    def of(self, picked: Flags) -> Self:
        """The same for some of the blocks."""
        some = replace(
            self,
            sums=self.sums[picked],
            counts=self.counts[picked],
            stretch=self.stretch[picked],
            usual=None if self.usual is None else self.usual[picked],
            mates=None if self.mates is None else self.mates.of(picked),
        )
        return some if some.mates is None or (known := some.mates.known).all() else some.of(known)

    @property
    def stretches(self) -> int:
        """How many there are."""
        return np.unique(self.stretch).size

    @property
    def joined(self) -> Self:
        """The stretches as blocks."""
        stretches, number = np.unique(self.stretch, return_inverse=True)
        sums = np.zeros((stretches.size, *self.sums.shape[1:]))
        counts = np.zeros((stretches.size, self.counts.shape[1]))
        np.add.at(sums, number, self.sums)
        np.add.at(counts, number, self.counts)
        return replace(self, sums=sums, counts=counts, stretch=stretches, usual=None)

    @property
    def counts_of_others(self) -> Matrix:
        """n_y - n_ky."""
        return elsewhere(self.counts, self.stretch)

    @property
    def means(self) -> Matrix:
        """b_k."""
        return np.asarray(self.sums.sum(axis=1) / self.counts.sum(axis=1, keepdims=True))

    @property
    def shares(self) -> Matrix:
        """p_k."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @property
    def seen(self) -> Matrix:
        """b_k; where inputs follow a season less what is usual at its time beyond the class mix, by the others of its
        phase: b_k - u_k, u_k = mean b_j - A_-k mean p_j."""
        if self.mates is None:
            return self.means
        together = self.mates.together
        mixes = together @ self.shares
        return np.asarray(self.means - together @ self.means + np.einsum("ky,kyd->kd", mixes, self.of_others))

    @property
    def error_of_usual(self) -> tuple[list[float], list[float]]:
        """s and g of each; zeros without a season."""
        if self.mates is None:
            return [0.0] * len(self.counts), [0.0] * len(self.counts)
        squares = self.mates.together**2
        return (squares @ (1.0 / self.counts.sum(axis=1))).tolist(), squares.sum(axis=1).tolist()

    @property
    def resting(self) -> Vector | float:
        """1 + g_k: how many times as far as a block's own is what it differs by from those of its phase."""
        return 1.0 if self.mates is None else np.asarray(1.0 + (self.mates.together**2).sum(axis=1))

    @property
    def correlation(self) -> Matrix | None:
        """Of the e_k of independent blocks, because they are held against each other; None without a season."""
        if self.mates is None:
            return None
        held = np.eye(len(self.counts)) - self.mates.together
        covariance = held @ held.T
        spread = np.sqrt(np.diag(covariance))
        return np.asarray(covariance / np.outer(spread, spread))

    @property
    def of_others(self) -> NDArray[np.float64]:
        """A_-k as (blocks, classes, coordinates): the class means of all blocks but one.

        A class that no other block has keeps its own mean: nothing else is known of it.
        """
        left = self.counts_of_others
        own = self.sums.sum(axis=0) / np.maximum(self.counts.sum(axis=0), 1.0)[:, None]
        means = elsewhere(self.sums, self.stretch) / np.maximum(left, 1.0)[:, :, None]
        return np.asarray(np.where(left[:, :, None] > 0, means, own))

    @property
    def residuals(self) -> Matrix:
        """e_k, (blocks, coordinates): what a block's own true class mix leaves unexplained."""
        return np.asarray(self.seen - np.einsum("ky,kyd->kd", self.shares, self.of_others))

    @property
    def rows(self) -> Vector:
        """m_k = 1 / (1 / n_k + sum_y p_ky^2 / (n_y - n_ky)): the rows that sampling error of e_k counts for; with a
        season that of what is usual is added."""
        n = self.counts.sum(axis=1)
        left = self.counts_of_others
        shares = self.counts / n[:, None]
        others = np.divide(shares**2, left, out=np.zeros_like(shares), where=left > 0).sum(axis=1)
        if self.mates is not None:
            others += self.mates.together**2 @ (1.0 / n)
        return np.asarray(1.0 / (1.0 / n + others))


def usual_inputs(blocks: BlockSums | None, when: Vector | None) -> UsualInputs | None:
    """At the time of a window, as `Blocks.when` tells it; None where it does not matter."""
    if blocks is None or blocks.mates is None or when is None:
        return None
    means, shares, sampling, between = _by_phase(blocks)
    return UsualInputs(when @ means, when @ shares, float(when**2 @ sampling), float(when @ between))


@lru_cache(maxsize=RARELY_READY)
def _by_phase(blocks: BlockSums) -> tuple[Matrix, Matrix, Vector, Vector]:
    """b, p, s and g of each phase."""
    mates = present(blocks.mates, "phases")
    number = np.maximum(mates.blocks, 1)
    inverse = mates.by_phase(1.0 / blocks.counts.sum(axis=1)[:, None])[:, 0]
    return mates.by_phase(blocks.means), mates.by_phase(blocks.shares), inverse / number, 1.0 / number


def fold_of(stretch: Labels) -> Labels:
    """The fold of each stretch: those of one fold are left out of covariances together, not one by one, for speed."""
    return stretch % FOLDS


def elsewhere(values: NDArray[np.float64], stretch: Labels) -> NDArray[np.float64]:
    """For each block the sum of all blocks of other stretches."""
    _, number = np.unique(stretch, return_inverse=True)
    own = np.zeros((int(number.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(own, number, values)
    return np.asarray(values.sum(axis=0) - own[number])
