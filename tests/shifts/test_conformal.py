"""Ranks among the past and the evidence of them: against slow twins, and never more than they may be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.shifts import conformal
from monitor.tolerances import LEAST_QUALITY, RANK_BETS

STEPS = st.lists(st.integers(0, 5), max_size=60)


def counted(steps: list[int]) -> dict[int, int]:
    return {step: steps.count(step) for step in steps}


@given(STEPS, st.integers(0, 5))
def test_a_rank_is_the_part_of_all_windows_that_stand_as_high(past: list[int], step: int) -> None:
    every = [*past, step]
    assert conformal.rank(counted(past), step) == sum(one >= step for one in every) / len(every)


@given(STEPS.filter(bool))
def test_in_no_order_are_ranks_smaller_than_uniform_ones(steps: list[int]) -> None:
    """Of all orders of the same windows the last one is each of them equally often."""
    total = counted(steps)
    ranks = [conformal.rank({step: count - (step == last) for step, count in total.items()}, last) for last in steps]
    for level in ranks:
        assert sum(rank <= level for rank in ranks) / len(ranks) <= level + 1e-12


@given(st.floats(LEAST_QUALITY, 1.0), st.floats(0.0, 1.0))
def test_steps_follow_the_order_of_shares(high: float, low: float) -> None:
    assert abs(conformal.share_of(conformal.step_of(high)) / high - 1) < 0.05
    assert conformal.step_of(min(low, high)) <= conformal.step_of(high)


def test_a_share_that_nobody_acts_upon_is_none() -> None:
    assert conformal.step_of(0.0) == conformal.step_of(0.99 * LEAST_QUALITY) == 0
    assert conformal.step_of(LEAST_QUALITY) == 1


@given(STEPS)
def test_the_usual_share_is_that_of_the_middle_window(steps: list[int]) -> None:
    middle = sorted(steps)[(len(steps) - 1) // 2] if steps else 0
    assert conformal.usual(counted(steps)) == conformal.share_of(middle)


def test_a_bet_on_a_uniform_rank_pays_one_on_average() -> None:
    middles = (np.arange(100_000) + 0.5) / 100_000
    for kappa, bet in zip(RANK_BETS, zip(*map(conformal.bets, middles.tolist()), strict=True), strict=True):
        assert np.mean(bet) == pytest.approx(1, abs=0.03), kappa
        assert np.mean(bet) <= 1


def test_evidence_is_the_sum_over_all_beginnings_of_the_product_of_bets() -> None:
    ranks = [0.4, 0.05, 0.9, 0.02, 0.01]
    sums = conformal.NOTHING_BET
    for rank in ranks:
        sums = conformal.plus(sums, rank)
    for kappa, found in zip(RANK_BETS, sums, strict=True):
        bets = [kappa * rank ** (kappa - 1) for rank in ranks]
        assert found == pytest.approx(sum(np.prod(bets[first:]) for first in range(len(bets))))
