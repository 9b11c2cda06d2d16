"""A mix that may be the hold-out's: as its density says, and never beyond either."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from monitor.performance import drawn_back

HALF = np.array([0.5, 0.5])


@pytest.mark.parametrize("errors", [0.02, 0.7, 2.0, 6.0])
def test_share_and_variance_are_those_of_the_density(errors: float) -> None:
    s, d = 0.03, 0.03 * errors

    def mean_of(value: float) -> float:
        weighted = quad(lambda x: x**value * np.exp(-x * d**2 / (2 * s**2)), 0, 1)[0]
        return float(weighted / quad(lambda x: np.exp(-x * d**2 / (2 * s**2)), 0, 1)[0])

    mix, left = drawn_back(np.array([0.5 - d, 0.5 + d]), np.full(2, s**2), HALF)
    assert mix[1] == pytest.approx(0.5 + (1 - mean_of(1)) * d, abs=1e-7)
    variance = (1 - mean_of(1)) * s**2 + d**2 * (mean_of(2) - mean_of(1) ** 2)
    assert left[1] * s**2 == pytest.approx(variance, rel=1e-4)


@pytest.mark.parametrize("errors", [0.3, 1.0, 2.0, 3.0, 6.0])
def test_what_is_left_of_an_error_is_how_far_the_mix_follows_it(errors: float) -> None:
    def share(change: float) -> tuple[float, float]:
        mix, left = drawn_back(np.array([0.5 - change, 0.5 + change]), np.full(2, 0.03**2), HALF)
        return float(mix[1]), float(left[1])

    (below, _), (_, left), (above, _) = (share(0.03 * errors + step) for step in (-1e-5, 0.0, 1e-5))
    assert left == pytest.approx((above - below) / 2e-5, rel=1e-3)


def test_a_change_of_many_errors_is_kept() -> None:
    mix, left = drawn_back(np.array([0.2, 0.8]), np.full(2, 0.001**2), HALF)
    assert mix == pytest.approx([0.2, 0.8], abs=1e-5)
    assert left == pytest.approx(1, rel=1e-2)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.2))
def test_the_mix_lies_between_the_hold_out_s_and_the_estimate(share: float, source: float, error: float) -> None:
    priors, known = np.array([1 - share, share]), np.array([1 - source, source])
    mix, left = drawn_back(priors, np.full(2, error**2), known)
    assert min(share, source) - 1e-9 <= mix[1] <= max(share, source) + 1e-9
    assert (left >= 0).all()
    assert (left <= 1.25).all()
