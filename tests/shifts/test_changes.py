"""Series of windows: change points, and our detector among River's."""

import numpy as np
import pytest
from river import base

from monitor.errors import InputError
from monitor.shifts.changes import DETECTORS, ChangePoints, PriorShiftDetector


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_a_level_that_changed_is_found_soon_and_not_before(name):
    rng = np.random.default_rng(0)
    series = np.concatenate([rng.normal(0, 1, 100), rng.normal(4, 1, 60)])
    watch = ChangePoints(name)
    found = [change for i, value in enumerate(series) for change in watch.update(str(i), {"fraud": value})]
    assert found
    assert 100 <= int(found[0].window) < 140


def test_a_value_that_could_not_be_computed_is_skipped():
    watch = ChangePoints()
    assert watch.update("w", {"a": float("nan")}) == []
    assert watch.watched == {}


def test_an_unknown_detector_is_refused_by_name():
    with pytest.raises(InputError, match="adwin"):
        ChangePoints("oracle").update("w", {"a": 1.0})


def scores(rate, events, rng):
    """Calibrated posteriors of a class that shifts a normal by 2, at a source prior of 0.1."""
    z = rng.normal(size=events) + 2.0 * (rng.random(events) < rate)
    return 1 / (1 + np.exp(-(2 * z - 2 + np.log(0.1 / 0.9))))


def test_our_detector_is_one_of_rivers_and_finds_a_prior_shift():
    rng = np.random.default_rng(1)
    detector = PriorShiftDetector([0.9, 0.1], size=500, step=100, level=0.001)
    assert isinstance(detector, base.DriftDetector)
    detected = []
    for i, score in enumerate(np.concatenate([scores(0.1, 2000, rng), scores(0.3, 1500, rng)])):
        detector.update(float(score))
        if detector.drift_detected:
            detected.append(i)
    assert 2000 < detected[0] < 2600
    assert detector.clone().source_priors == [0.9, 0.1]


def test_our_detector_takes_posterior_vectors_too():
    rng = np.random.default_rng(2)
    one, two = (PriorShiftDetector([0.9, 0.1], size=200, step=50) for _ in range(2))
    for score in scores(0.5, 400, rng):
        one.update(score)
        two.update([1 - score, score])
    assert one.p_value == two.p_value


@pytest.mark.parametrize("name", sorted(DETECTORS))
def test_a_level_that_stays_is_hardly_ever_said_to_have_changed(name):
    rng = np.random.default_rng(3)
    watch = ChangePoints(name)
    found = [change for i in range(2_000) for change in watch.update(str(i), {"fraud": rng.normal()})]
    assert len(found) <= 3
