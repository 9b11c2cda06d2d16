"""Calibration maps: laws that hold for all, and what each is for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import calibration, quality
from monitor.errors import InputError
from monitor.priors import em
from tests.reference.worlds import world

METHODS = sorted(calibration.METHODS)
FITTED = [name for name in METHODS if name != "none"]


@pytest.mark.parametrize("method", METHODS)
def test_calibrated_posteriors_are_posteriors_even_of_exact_zeros_and_ones(method):
    posteriors, labels, _ = world(300)
    posteriors[::3] = np.eye(3)[posteriors[::3].argmax(axis=1)]
    fitted = calibration.fit(posteriors, labels, method)
    mapped = fitted(np.vstack([posteriors, np.eye(3)]))
    assert np.isfinite(mapped).all()
    assert (mapped >= 0).all()
    assert mapped.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("method", FITTED)
@given(seed=st.integers(0, 1000), sharpness=st.floats(0.3, 3))
@settings(max_examples=8, deadline=None)
def test_the_mean_calibrated_posterior_is_the_prevalence(method, seed, sharpness):
    posteriors, labels, _ = world(200, seed, sharpness)
    mapped = calibration.fit(posteriors, labels, method)(posteriors)
    assert mapped.mean(axis=0) == pytest.approx(np.bincount(labels) / labels.size, abs=1e-6)


@pytest.mark.parametrize("method", FITTED)
def test_em_on_the_reference_itself_returns_the_reference_prevalence(method):
    posteriors, labels, _ = world(800, 1, sharpness=2.5)
    prevalence = np.bincount(labels) / labels.size
    mapped = calibration.fit(posteriors, labels, method)(posteriors)
    estimate = em.maximum_likelihood(mapped, prevalence)
    assert estimate.priors == pytest.approx(prevalence, abs=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_permuting_the_classes_permutes_the_answer(method):
    posteriors, labels, _ = world(300, 2, sharpness=2)
    order = np.array([2, 0, 1])
    renamed = np.argsort(order)[labels]
    straight = calibration.fit(posteriors, labels, method)(posteriors)
    permuted = calibration.fit(posteriors[:, order], renamed, method)(posteriors[:, order])
    assert permuted == pytest.approx(straight[:, order], abs=2e-3)


@pytest.mark.parametrize(
    "method", ["temperature", "bias-corrected-temperature", "platt", "vector", "matrix", "isotonic"]
)
def test_sharpened_posteriors_are_mended(method):
    posteriors, labels, _ = world(3000, 3, sharpness=3)
    out = calibration.cross_fit(posteriors, labels, method, seed=0)
    assert out.log_loss < 0.8 * quality.log_loss(posteriors, labels)
    assert quality.expected_calibration_error(out.posteriors, labels) < 0.03


def test_the_temperature_of_sharpened_posteriors_is_found():
    posteriors, labels, _ = world(20_000, 4, sharpness=2)
    fitted = calibration.fit(posteriors, labels, "temperature")
    assert fitted.parameters["slopes"] == pytest.approx(np.full(3, 0.5), abs=0.02)


def test_platt_never_promises_more_than_its_targets():
    # Platt's targets: (N+ + 1)/(N+ + 2) and 1/(N- + 2); separable classes would otherwise end at 0 and 1.
    posteriors = np.repeat([[1.0, 0.0], [0.0, 1.0]], 10, axis=0)
    labels = np.repeat([0, 1], 10)
    parameters = calibration.fit(posteriors, labels, "platt").parameters
    u = parameters["slopes"] * np.log(1e-7) * -1 + parameters["intercepts"]
    assert 1 / (1 + np.exp(-u)) == pytest.approx(11 / 12, abs=1e-3)


def test_auto_keeps_good_posteriors_as_they_are_and_mends_bad_ones():
    good, labels, _ = world(3000, 5)
    assert calibration.choose(good, labels, "auto", 0)[0].calibration.method == "balanced"
    bad, labels, _ = world(3000, 5, sharpness=3)
    fitted, losses = calibration.choose(bad, labels, "auto", 0)
    assert losses[fitted.calibration.method] < losses["none"]
    assert fitted.calibration.method not in ("none", "balanced")


def test_no_event_is_calibrated_by_a_map_that_saw_its_label():
    posteriors, labels, _ = world(200, 6)
    straight = calibration.cross_fit(posteriors, labels, "isotonic", seed=3)
    fold = calibration.stratified_folds(labels, 5, 3)
    others = calibration.fit(posteriors[fold != 2], labels[fold != 2], "isotonic")
    assert straight.posteriors[fold == 2] == pytest.approx(others(posteriors[fold == 2]))


def test_the_same_seed_gives_the_same_map():
    posteriors, labels, _ = world(300, 7, sharpness=2)
    one, other = (calibration.choose(posteriors, labels, "auto", 4)[0] for _ in range(2))
    assert (one.posteriors == other.posteriors).all()


def test_an_unknown_method_is_named_with_the_known_ones():
    with pytest.raises(InputError, match=r"bias-corrected-temperature.*'magic'"):
        calibration.fit(*world(50)[:2], "magic")


def overconfident(events, seed):
    """Two classes whose scores lean towards the truth, and are twice too sure of it."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(0, 2.5, events)
    labels = (rng.random(events) < 1 / (1 + np.exp(-log_odds))).astype(int)
    positive = 1 / (1 + np.exp(-2 * log_odds))
    return np.column_stack([1 - positive, positive]), labels


def test_two_hundred_events_are_enough_to_see_that_a_model_is_far_too_sure():
    chosen = [calibration.choose(*overconfident(200, seed), "auto", 0)[0].calibration.method for seed in range(10)]
    assert "balanced" not in chosen


def test_two_hundred_events_are_too_few_to_doubt_a_model_that_is_right():
    kept = 0
    for seed in range(10):
        posteriors, labels, _ = world(200, seed)
        kept += calibration.choose(posteriors, labels, "auto", 0)[0].calibration.method == "balanced"
    assert kept >= 8


def test_what_simpler_posteriors_claim_of_their_losses_is_the_spread_if_they_are_right():
    q, best = (world(50, seed)[0] for seed in (1, 2))
    variances = []
    for own, other in zip(q, best, strict=True):
        excess = np.log(other / own)
        variances.append(sum(own * excess**2) - sum(own * excess) ** 2)
    assert calibration.claimed_spread(q, best) == pytest.approx(np.sqrt(np.mean(variances)))


def test_posteriors_that_are_what_is_wanted_stay_as_they_are():
    posteriors, _, _ = world(500)
    assert calibration.sharpened(posteriors, posteriors)(posteriors) == pytest.approx(posteriors, abs=1e-6)


@given(seed=st.integers(0, 1000), sharpness=st.floats(0.3, 3))
@settings(max_examples=20, deadline=None)
def test_blunted_posteriors_get_the_mean_of_those_that_are_wanted_and_come_nearer_to_them(seed, sharpness):
    wanted, _, _ = world(300, seed)
    blunt = wanted**sharpness / (wanted**sharpness).sum(axis=1, keepdims=True)
    mended = calibration.sharpened(blunt, wanted)(blunt)
    assert mended.mean(axis=0) == pytest.approx(wanted.mean(axis=0), abs=1e-3)
    assert mended == pytest.approx(wanted, abs=0.02)
