"""Harm: how likely the model is worse in a window than it was on the hold-out, without a label.

A verdict says whether something moved; a model may be worse where nothing seems to, and as good as ever where much has.
Three things speak of it, in standard deviations of the hold-out's blocks:

    z = (B - mean_k B_k) / sd_k L_k         the Brier score that calibrated posteriors expect of themselves, against the
                                            blocks' expectations B_k and scores L_k: the model's own confidence
    ln(dep) / 2                             how many times as far from the reference inputs are as usual
    s = sqrt((PCC - pi)' S^-1 (PCC - pi) / (c - 1))     the move of the shares of calibrated posteriors, S the
                                            covariance of the blocks' mixes; at most 3

    score = z + ln(dep) / 2 + (1 - beta) min(s, 3) / 2,   beta = tau^2 / (tau^2 + sigma^2 dep)

with tau^2 the natural variance of the mix and sigma^2 the mean squared error of PCC in the blocks: where inputs look
familiar and scores gave the right shares, the move of these shares says nothing against the model.
"""

from dataclasses import dataclass

import numpy as np

from monitor.arrays import Matrix
from monitor.shifts import Diagnosis, ShiftReference
from monitor.tolerances import FEWEST_BLOCKS, LARGEST_MOVE, LEAST_ERROR


@dataclass(frozen=True, slots=True)
class Harm:
    """The score, and what it is made of."""

    score: float
    """In standard deviations of the hold-out's blocks: none of them came above 2."""
    confidence: float
    """z: above 0 the model is less sure of itself than it was."""
    departure: float
    """dep."""
    shares: float
    """s."""
    expected: float
    """B, summed over the classes."""
    usual: float
    """Mean of L_k."""


def harm(posteriors: Matrix, diagnosis: Diagnosis, reference: ShiftReference) -> Harm | None:
    """Of calibrated posteriors; None where no blocks of the hold-out say what is usual."""
    blocks = reference.blocks
    if blocks is None or blocks.number < FEWEST_BLOCKS:
        return None
    source, pcc, departure = reference.source_priors, posteriors.mean(axis=0), diagnosis.whole.departure
    expected = 1.0 - float((posteriors**2).sum(axis=1).mean())
    spread = max(float(blocks.losses.std(ddof=1)), LEAST_ERROR)
    confidence = (expected - float(blocks.expected_losses.mean())) / spread
    natural = float(((blocks.shares - source) ** 2).sum(axis=1).mean())
    error = float(((blocks.pcc - blocks.shares) ** 2).sum(axis=1).mean())
    familiar = natural / max(natural + error * departure, LEAST_ERROR**2)
    # Shares sum to 1: one class fewer says the same. No block may have varied a share by less than can be told.
    gap = (pcc - source)[:-1]
    mixes = np.atleast_2d(np.cov(blocks.shares[:, :-1].T)) + LEAST_ERROR**2 * np.eye(gap.size)
    shares = float(np.sqrt(gap @ np.linalg.solve(mixes, gap) / gap.size))
    score = confidence + np.log(departure) / 2 + (1 - familiar) * min(shares, LARGEST_MOVE) / 2
    usual = float(blocks.losses.mean())
    return Harm(float(score), confidence, departure, shares, expected, usual)
