"""Errors of prevalences against the formulas, computed literally."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitor import quality

prevalences = st.integers(2, 6).flatmap(
    lambda k: st.tuples(*[arrays(np.float64, k, elements=st.floats(0.01, 1)).map(lambda a: a / a.sum())] * 2)
)


@given(prevalences)
def test_absolute_errors_are_the_printed_sums(pair):
    p, e = pair
    k = p.size
    literal = sum(abs(p[j] - e[j]) for j in range(k))
    assert quality.absolute_error(p, e) == pytest.approx(literal / k)
    assert quality.normalised_absolute_error(p, e) == pytest.approx(literal / (2 * (1 - min(p))))
    assert quality.squared_error(p, e) == pytest.approx(sum((p[j] - e[j]) ** 2 for j in range(k)))


@given(prevalences)
def test_relative_errors_are_computed_on_smoothed_prevalences(pair):
    p, e = pair
    eps = 1 / 2000
    ps = [(x + eps) / (1 + eps * p.size) for x in p]
    es = [(x + eps) / (1 + eps * p.size) for x in e]
    assert quality.relative_absolute_error(p, e, 1000) == pytest.approx(
        np.mean([abs(a - b) / a for a, b in zip(ps, es, strict=True)])
    )
    assert quality.kullback_leibler(p, e, 1000) == pytest.approx(
        sum(a * np.log(a / b) for a, b in zip(ps, es, strict=True)), abs=1e-12
    )


@given(prevalences)
def test_every_error_is_zero_for_the_truth_and_at_least_zero_otherwise(pair):
    p, e = pair
    for error in (quality.absolute_error, quality.normalised_absolute_error, quality.squared_error):
        assert error(p, p) == 0
        assert error(p, e) >= 0
    assert quality.kullback_leibler(p, p, 100) == 0
    assert quality.kullback_leibler(p, e, 100) >= -1e-15


def test_the_normalised_absolute_error_reaches_one_at_the_worst_answer():
    assert quality.normalised_absolute_error(np.array([0.2, 0.8]), np.array([1.0, 0.0])) == pytest.approx(1)


def test_the_thesis_calls_a_sum_of_squares_mse():
    # caelen, chapter 7: (0.1 - 0.4)^2 + (0.3 - 0.2)^2 + (0.6 - 0.4)^2 = 0.14
    assert quality.squared_error(np.array([0.4, 0.2, 0.4]), np.array([0.1, 0.3, 0.6])) == pytest.approx(0.14)


def test_entropy_is_one_for_equal_classes_and_zero_for_one_class():
    assert quality.entropy(np.full(7, 1 / 7)) == pytest.approx(1)
    assert quality.entropy(np.array([0.0, 1.0, 0.0])) == 0


def test_errors_of_an_absent_class_stay_finite():
    assert np.isfinite(quality.relative_absolute_error(np.array([1.0, 0.0]), np.array([0.5, 0.5]), 100))
    assert np.isfinite(quality.kullback_leibler(np.array([0.5, 0.5]), np.array([1.0, 0.0]), 100))
