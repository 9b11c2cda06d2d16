"""The Brier score and its parts, against slow twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import quality
from monitor.errors import InputError

seeds = st.integers(0, 2**32 - 1)


def problem(seed, rows=200, classes=3, decimals=None):
    rng = np.random.default_rng(seed)
    posteriors = rng.dirichlet(np.full(classes, 0.7), size=rows)
    if decimals is not None:
        posteriors = np.round(posteriors, decimals)
        posteriors /= posteriors.sum(axis=1, keepdims=True)
    return posteriors, rng.integers(0, classes, rows)


def slow_parts(posteriors, labels, bins, kind):
    """esuli eq 10 and 11 with the factor 1/|Y|, and Stephenson's two extra terms, bin by bin."""
    n, k = posteriors.shape
    parts = np.zeros(4)
    for j in range(k):
        f, o = posteriors[:, j], (labels == j) * 1.0
        if kind == "isometric":
            of_bin = [min(int(x * bins), bins - 1) for x in f]
        else:
            ordered = sorted(f)
            cuts = [ordered[b * n // bins] for b in range(1, bins)]
            of_bin = [sum(x >= cut for cut in cuts) for x in f]
        for b in range(bins):
            inside = np.array([x == b for x in of_bin])
            if inside.any():
                v = inside.mean()
                pi, rho = f[inside].mean(), o[inside].mean()
                parts += (
                    v * (pi - rho) ** 2,
                    v * rho * (1 - rho),
                    v * np.var(f[inside]),
                    v * np.mean((f[inside] - pi) * (o[inside] - rho)),
                )
    return parts / k


@pytest.mark.parametrize("kind", ["isometric", "isomeric"])
@given(seed=seeds, bins=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_the_parts_are_the_bin_by_bin_sums(kind, seed, bins):
    posteriors, labels = problem(seed, rows=60)
    parts = quality.brier_parts(posteriors, labels, bins, kind)
    slow = slow_parts(posteriors, labels, bins, kind)
    assert [parts.calibration, parts.refinement, parts.variance, parts.covariance] == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("kind", ["isometric", "isomeric"])
@given(seed=seeds, bins=st.integers(1, 30), classes=st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_the_parts_add_up_to_the_score_exactly_whatever_the_bins(kind, seed, bins, classes):
    posteriors, labels = problem(seed, classes=classes)
    p = quality.brier_parts(posteriors, labels, bins, kind)
    assert p.calibration + p.refinement + p.within_bins == pytest.approx(p.brier, abs=1e-12)


def test_calibration_and_refinement_alone_are_the_score_only_when_bins_hold_one_posterior():
    labels = np.array([0, 0, 1, 1, 1, 0, 1, 1])
    f = np.array([0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75])
    constant = quality.brier_parts(np.column_stack([1 - f, f]), labels)
    assert constant.binned_brier == pytest.approx(constant.brier)
    spread = quality.brier_parts(
        np.column_stack([1 - f - 0.01, f + 0.01]) + np.arange(8)[:, None] * [1e-3, -1e-3], labels
    )
    assert spread.binned_brier != pytest.approx(spread.brier, abs=1e-6)


def test_the_printed_errors_divide_by_the_bins_once_more():
    parts = quality.brier_parts(*problem(1), bins=10)
    assert parts.printed_calibration_error == pytest.approx(parts.calibration / 10)
    assert parts.printed_refinement_error == pytest.approx(parts.refinement / 10)


def test_the_perfect_the_undecided_and_the_perverse_classifier_of_the_paper():
    # esuli 3.1.2, read with the corrected factor and two classes
    labels = np.repeat([0, 1], 50)
    perfect = np.eye(2)[labels]
    parts = quality.brier_parts(perfect, labels)
    assert (parts.calibration, parts.refinement) == (0, 0)
    parts = quality.brier_parts(np.full((100, 2), 0.5), labels)
    assert (parts.calibration, parts.refinement) == (0, pytest.approx(0.25))
    parts = quality.brier_parts(1 - perfect, labels)
    assert (parts.calibration, parts.refinement) == (1, 0)


@given(seed=seeds)
@settings(max_examples=10, deadline=None)
def test_the_order_of_events_changes_nothing_even_with_ties(seed):
    posteriors, labels = problem(seed, decimals=1)
    order = np.random.default_rng(seed).permutation(labels.size)
    one = quality.brier_parts(posteriors, labels, 7, "isomeric")
    other = quality.brier_parts(posteriors[order], labels[order], 7, "isomeric")
    assert one.calibration == pytest.approx(other.calibration, abs=1e-14)


def test_the_brier_score_is_the_mean_over_classes_and_events():
    posteriors, labels = problem(3, rows=20)
    literal = np.mean([[(float(labels[i] == j) - posteriors[i, j]) ** 2 for j in range(3)] for i in range(20)])
    assert quality.brier(posteriors, labels) == pytest.approx(literal)


def test_log_loss_of_an_impossible_event_is_finite():
    assert quality.log_loss(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(np.log(1e7))


def test_calibrated_posteriors_have_a_calibration_error_of_their_sampling_noise():
    rng = np.random.default_rng(0)
    posteriors = rng.dirichlet([1, 1, 1], size=20_000)
    labels = (rng.random(20_000)[:, None] > posteriors.cumsum(axis=1)).sum(axis=1)
    assert quality.expected_calibration_error(posteriors, labels) < 0.015
    sharpened = posteriors**3 / (posteriors**3).sum(axis=1, keepdims=True)
    assert quality.expected_calibration_error(sharpened, labels) > 0.08


def test_a_reliability_curve_covers_every_event_once():
    posteriors, labels = problem(5)
    curve = quality.reliability(posteriors, labels, 1, 10)
    assert curve.events.sum() == labels.size
    assert curve.came_true @ curve.events == pytest.approx((labels == 1).sum())


def test_no_bins_is_an_error():
    with pytest.raises(InputError, match="at least one"):
        quality.brier_parts(*problem(0), bins=0)
