"""Evidence that a share has risen above what it was before: a conformal e-detector. No reference, no model of noise.

Vovk, Nouretdinov and Gammerman, "Testing exchangeability on-line" (2003): the rank of a window among itself and all
before it, p_t = #{s <= t: x_s >= x_t} / t, is uniform where windows are exchangeable and ties are broken by chance, and
independent of the ranks before it. Here ties count against evidence, which makes p_t larger and never smaller. With the
bets e = kappa p^(kappa - 1), whose mean is 1 at most, the Shiryaev-Roberts sums R_t = (R_{t-1} + 1) e_t make R_t - t a
supermartingale, and so does their mean over several kappa: an alarm at R_t >= c, after which the sums begin anew, comes
at most once in c windows on average (Shin, Ramdas and Rinaldo, 2023; as in `evidence.py`).

Shares are kept as counts by step: step 0 is below what matters, and each of the others is a ninth wider than the one
before it, so that all that is known of the past is a small table.
"""

from collections.abc import Mapping, Sequence
from math import floor, log2

from monitor.tolerances import LEAST_QUALITY, RANK_BETS

Past = Mapping[int, int]
"""How many windows there were by step."""

STEPS_PER_DOUBLING = 8
NOTHING_BET = (0.0,) * len(RANK_BETS)


def step_of(share: float) -> int:
    """The step that a share stands on."""
    return 0 if share < LEAST_QUALITY else 1 + floor(STEPS_PER_DOUBLING * log2(share / LEAST_QUALITY))


def share_of(step: int) -> float:
    """The share in the middle of a step."""
    return LEAST_QUALITY * 2.0 ** ((step - 0.5) / STEPS_PER_DOUBLING) if step else 0.0


def rank(past: Past, step: int) -> float:
    """The p-value of one more window: the part of all, itself among them, that stand at least as high."""
    return (1 + sum(count for known, count in past.items() if known >= step)) / (1 + sum(past.values()))


def bets(p_value: float) -> tuple[float, ...]:
    """What a window multiplies the evidence by, for each kappa."""
    return tuple(kappa * p_value ** (kappa - 1) for kappa in RANK_BETS)


def plus(sums: Sequence[float], p_value: float) -> tuple[float, ...]:
    """The Shiryaev-Roberts sums with one window more."""
    return tuple((before + 1) * bet for before, bet in zip(sums, bets(p_value), strict=True))


def usual(past: Past) -> float:
    """The share in the middle of the past; 0 where most windows stand on step 0."""
    left = sum(past.values()) / 2
    for step in sorted(past):
        left -= past[step]
        if left <= 0:
            return share_of(step)
    return 0.0
