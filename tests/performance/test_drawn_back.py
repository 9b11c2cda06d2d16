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

    mix, variances = drawn_back(np.array([0.5 - d, 0.5 + d]), np.full(2, s**2), HALF)
    assert mix[1] == pytest.approx(0.5 + (1 - mean_of(1)) * d, abs=1e-7)
    assert variances[1] == pytest.approx((1 - mean_of(1)) * s**2 + d**2 * (mean_of(2) - mean_of(1) ** 2), rel=1e-4)


def test_a_change_of_many_errors_is_kept() -> None:
    mix, variances = drawn_back(np.array([0.2, 0.8]), np.full(2, 0.001**2), HALF)
    assert mix == pytest.approx([0.2, 0.8], abs=1e-5)
    assert np.sqrt(variances) == pytest.approx(0.001, rel=1e-2)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.2))
def test_the_mix_lies_between_the_hold_out_s_and_the_estimate(share: float, source: float, error: float) -> None:
    priors, known = np.array([1 - share, share]), np.array([1 - source, source])
    mix, variances = drawn_back(priors, np.full(2, error**2), known)
    assert min(share, source) - 1e-9 <= mix[1] <= max(share, source) + 1e-9
    assert (variances >= 0).all()
    assert (variances <= 1.25 * error**2 + 1e-9).all()
