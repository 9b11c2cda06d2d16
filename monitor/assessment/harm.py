"""Harm: how likely the model is worse in a window than it was on the hold-out, without a label.

A verdict says whether something moved; a model may be worse where nothing seems to, and as good as ever where much has.
Two things speak of it, in standard deviations of the hold-out's blocks:

    z = (B - mean_k B_k) / sd_k L_k         the Brier score that calibrated posteriors expect of the model's scores,
                                            against that of the blocks B_k; L_k what it was: the model's own confidence
    s = sqrt((PCC - pi)' S^-1 (PCC - pi) / (c - 1))     the move of the shares of calibrated posteriors, S the
                                            covariance of the blocks' mixes; at most 3

    score = z + (1 - beta) min(s, 3) / 2,   beta = tau^2 / (tau^2 + sigma^2 dep)

with tau^2 the natural variance of the mix, sigma^2 the mean squared error of PCC in the blocks, and dep how many times
as far from the reference inputs are as usual: where inputs look familiar and scores gave the right shares, the move of
these shares says nothing against the model.
"""

from dataclasses import dataclass

import numpy as np

from monitor import quality
from monitor.arrays import Matrix
from monitor.shifts import Diagnosis, ShiftReference
from monitor.tolerances import FEWEST_BLOCKS, LARGEST_MOVE, LEAST_ERROR


@dataclass(frozen=True, slots=True)
class Harm:
    """The score, and what it is made of."""

    score: float
    """In standard deviations of the hold-out's blocks."""
    confidence: float
    """z: above 0 the model is less sure of itself than it was."""
    departure: float
    """dep."""
    shares: float
    """s."""
    expected: float
    """B."""
    usual: float
    """Mean of L_k."""


def harm(scores: Matrix, posteriors: Matrix, diagnosis: Diagnosis, reference: ShiftReference) -> Harm | None:
    """Of the model's scores and the calibrated posteriors; None where no blocks of the hold-out say what is usual."""
    blocks = reference.blocks
    if blocks is None or blocks.number < FEWEST_BLOCKS:
        return None
    source, pcc, departure = reference.source_priors, posteriors.mean(axis=0), diagnosis.whole.departure
    expected = quality.expected_brier(scores, posteriors)
    spread = max(float(blocks.losses.std(ddof=1)), LEAST_ERROR)
    confidence = (expected - float(blocks.expected_losses.mean())) / spread
    natural = float(((blocks.shares - source) ** 2).sum(axis=1).mean())
    error = float(((blocks.pcc - blocks.shares) ** 2).sum(axis=1).mean())
    familiar = natural / max(natural + error * departure, LEAST_ERROR**2)
    # Shares sum to 1: one class fewer says the same. No block may have varied a share by less than can be told.
    gap = (pcc - source)[:-1]
    mixes = np.atleast_2d(np.cov(blocks.shares[:, :-1].T)) + LEAST_ERROR**2 * np.eye(gap.size)
    shares = float(np.sqrt(gap @ np.linalg.solve(mixes, gap) / gap.size))
    score = confidence + (1 - familiar) * min(shares, LARGEST_MOVE) / 2
    usual = float(blocks.losses.mean())
    return Harm(float(score), confidence, departure, shares, expected, usual)
