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
