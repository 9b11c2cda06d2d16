"""Evidence over windows: false alarms within their budget, shifts noticed soon, and a reference's error let be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from monitor.assessment import share_scores
from monitor.shifts.evidence import SeriesEvidence, windows_to_notice
from monitor.tolerances import EVIDENCE_SIZES
from tests.bench.alarms import CALM, alarms, first, scores, two_of_three


@given(arrays(np.float64, (12, 2), elements=st.floats(-8, 8)))
def test_it_is_the_sum_over_beginnings_of_the_likelihood_ratios_since_each(x: np.ndarray) -> None:
    """Shin et al.: M_t = sum over j <= t of the product of L_i for i = j ... t, and the mean over lambda."""
    evidence = SeriesEvidence.none(2)
    for row in x:
        evidence = evidence.plus(row, 0.0, np.array([False, False]))
    naive = np.mean(
        [
            sum(np.exp((size * x[start:] - size**2 / 2).sum(axis=0)) for start in range(len(x)))
            for size in EVIDENCE_SIZES
        ],
        axis=0,
    )
    # Rounded down to thousandths at each step.
    assert np.all(evidence.log_total <= np.log(naive) + 1e-9)
    assert np.all(evidence.log_total >= np.log(naive) - 0.015)


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.9])
def test_false_alarms_keep_to_their_budget_also_where_windows_share_the_error_of_the_reference(shared: float) -> None:
    windows, budget = 2_000, 200
    raised = np.sum(list(alarms(scores(100, windows, shared, seed=4), shared, threshold=budget)), axis=0)
    assert raised.mean() <= 1.1 * windows / budget


def test_a_strict_budget_is_kept_from_the_first_window_of_a_reference_on() -> None:
    """Where windows that by chance spoke for a change taught nothing of the reference's error, six in ten series raised
    an alarm in so many windows."""
    windows, series, budget = 1_500, 200, 30_000
    raised = np.sum(list(alarms(scores(series, windows, 0.1, seed=5), 0.1, threshold=budget)))
    assert raised <= 3 * series * windows / budget


def test_shared_error_that_is_not_allowed_for_breaks_the_budget() -> None:
    """Without the correction: the windows of one reference have its error in common."""
    raised = np.sum(list(alarms(scores(100, 1_000, 0.3, seed=4), 0.0, threshold=200)), axis=0)
    assert raised.mean() > 2 * 1_000 / 200


@pytest.mark.parametrize("share", [0.02, 0.05, 0.3, 0.5])
def test_shares_of_rare_classes_in_small_windows_are_scores_that_a_guarantee_may_rest_on(share: float) -> None:
    """Exactly, for classes that are told without error."""
    x, chances = np.arange(101) / 100, binom.pmf(np.arange(101), 100, share)
    u = np.array([share_scores(np.array([one]), np.array([share]), np.zeros(1), 100, 1e9)[0] for one in x])
    for size in EVIDENCE_SIZES:
        for side in (u, -u):
            assert chances @ np.exp(size * side - size**2 / 2) < 1.02


def test_scores_by_the_errors_that_windows_claim_are_none() -> None:
    x, chances = np.arange(101) / 100, binom.pmf(np.arange(101), 100, 0.05)
    scores_of = (0.05 - x) / np.sqrt(np.maximum(x * (1 - x), 0.01) / 100)
    assert chances @ np.exp(3 * scores_of - 4.5) > 100


@pytest.mark.parametrize(("shift", "soon"), [(0.5, 65), (1.0, 20), (2.0, 6.5), (3.0, 3.7)])
def test_shifts_too_small_for_one_window_are_noticed_soon(shift: float, soon: float) -> None:
    x = scores(100, CALM + 400, 0.0, seed=7)
    x[CALM:] += shift
    found = first(alarms(x, 0.0), 100) - CALM
    assert found[found > 0].mean() < soon
    if shift <= 1:
        slow = first(two_of_three(x), 100) - CALM
        assert np.minimum(slow[slow > 0], 400).mean() > 3 * soon


@pytest.mark.parametrize("once_in", [300, 3_300, 100_000])
@pytest.mark.parametrize(("size", "slack"), [(0.5, 0.4), (1.0, 0.3), (2.0, 0.2), (3.0, 0.15)])
def test_what_check_promises_is_what_comes_or_somewhat_more(once_in: int, size: float, slack: float) -> None:
    """The evidence of a series in one direction has to reach twice the windows of the budget of both."""
    x = scores(100, CALM + 400, 0.0, seed=7)
    x[CALM:] += size
    found = first(alarms(x, 0.0, threshold=once_in), 100) - CALM
    came = found[found > 0].mean()
    promised = windows_to_notice(size, np.log(2 * once_in))
    assert (1 - slack) * promised < came < 1.1 * promised + 0.1


def test_no_shift_is_never_noticed_and_a_threshold_below_what_calm_windows_have_at_once() -> None:
    assert windows_to_notice(0.0, 1.0) == np.inf
    assert windows_to_notice(1.0, -5.0) == pytest.approx(0.5, abs=0.01)


@given(st.floats(0.151, 9), st.floats(-3, 16))
def test_a_larger_shift_is_noticed_sooner_and_a_stricter_budget_later(size: float, log_threshold: float) -> None:
    windows = windows_to_notice(size, log_threshold)
    assert windows_to_notice(1.1 * size, log_threshold) <= windows <= windows_to_notice(size, log_threshold + 0.1)
