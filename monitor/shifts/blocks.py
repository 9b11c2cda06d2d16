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

For whoever builds on it: `Reference.blocks` is a `Blocks` or None. `starts`, `ends` and `timed` say when a block was,
`counts` its classes, `posteriors` its summed calibrated posteriors by true class (so `pcc` is calibrated PCC, to be
held against `shares`), `losses` and `expected_losses` what the model's Brier score was and what it said itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """What is kept of the blocks of a hold-out."""

    length: str
    timed: bool
    starts: Labels
    ends: Labels
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
    losses: Vector
    """Mean Brier score of these posteriors, by block, and"""
    expected_losses: Vector
    """what it would be were they true."""

    @property
    def number(self) -> int:
        """K, the number of blocks."""
        return self.starts.size

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
        return {"length": self.length, "timed": self.timed}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The plain arrays that a reference's file holds; `from_arrays` is the way back."""
        return {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def from_arrays(cls, described: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The blocks that `described` and `to_arrays` wrote; KeyError if something is missing."""
        return cls(described["length"], described["timed"], **{name: arrays[name] for name in _ARRAYS})


_ARRAYS = (
    "starts",
    "ends",
    "of_sample",
    "counts",
    "sums",
    "distances",
    "score_distances",
    "missing",
    "posteriors",
    "losses",
    "expected_losses",
)


def without_each(sums: NDArray[np.float64], counts: Matrix) -> NDArray[np.float64]:
    """A_-k as (blocks, classes, coordinates): the class means of all blocks but one.

    A class that no other block has keeps its own mean: nothing else is known of it.
    """
    left = counts.sum(axis=0) - counts
    total = sums.sum(axis=0)
    own = total / np.maximum(counts.sum(axis=0), 1.0)[:, None]
    means = (total - sums) / np.maximum(left, 1.0)[:, :, None]
    return np.asarray(np.where(left[:, :, None] > 0, means, own))


def sampling_weights(counts: Matrix) -> Vector:
    """1 / m_k = 1 / n_k + sum_y p_ky^2 / (n_y - n_ky): the variance of e_k under sampling, in units of an event's."""
    n = counts.sum(axis=1)
    left = counts.sum(axis=0) - counts
    shares = counts / n[:, None]
    return np.asarray(1.0 / n + np.divide(shares**2, left, out=np.zeros_like(shares), where=left > 0).sum(axis=1))


def residuals(sums: NDArray[np.float64], counts: Matrix) -> Matrix:
    """e_k, (blocks, coordinates): what a block's own true class mix leaves unexplained."""
    n = counts.sum(axis=1, keepdims=True)
    expected = np.einsum("ky,kyd->kd", counts / n, without_each(sums, counts))
    return np.asarray(sums.sum(axis=1) / n - expected)
