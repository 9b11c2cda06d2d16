"""Calibrate, then reweight: with arrays, with lists, at thresholds and in biases the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor import calibration, quality
from monitor.assessment.classifier import assess
from monitor.priors import bayes
from monitor.recalibration import CalibrationMap, Recalibration
from monitor.windows.window import Window
from tests.assessment import worlds
from tests.recalibration.test_client import CLASSES, SOURCE, client_of, message

METHODS = [name for name in calibration.METHODS if name != "none"]
SHARPNESS = 2.0


def overconfident(rows: int, seed: int, priors: np.ndarray = worlds.PRIORS) -> tuple[np.ndarray, ...]:
    """Posteriors of a model that is too sure of itself, labels and features."""
    x, labels = worlds.draw(rows, seed, priors)
    scored = worlds.posteriors(x) ** SHARPNESS
    return scored / scored.sum(axis=1, keepdims=True), labels, x


def fitted(method: str) -> calibration.Calibration:
    scored, labels, _ = overconfident(4_000, 1)
    return calibration.fit(scored, labels, method)


def calibrated(method: str, target: tuple[float, ...] = (0.1, 0.2, 0.7)) -> Recalibration:
    return replace(message(target), calibration=fitted(method).to_map())


@pytest.mark.parametrize("method", METHODS)
def test_the_numbers_of_a_calibration_give_what_the_calibration_gives(method: str) -> None:
    scored = np.vstack([overconfident(500, 2)[0], np.eye(3)])
    numbers = fitted(method).to_map()
    assert numbers is not None
    np.testing.assert_allclose(numbers.rows(scored), fitted(method)(scored), rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(
        [numbers.row(row) for row in scored.tolist()], numbers.rows(scored), rtol=1e-9, atol=1e-300
    )


@pytest.mark.parametrize("method", METHODS)
def test_arrays_lists_and_another_order_of_classes_are_calibrated_and_reweighted_alike(method: str) -> None:
    told, scored = calibrated(method), overconfident(200, 3)[0]
    expected = bayes.correct(fitted(method)(scored), np.array(SOURCE), np.array(told.target_priors))
    np.testing.assert_allclose(client_of(told).apply(scored), expected, rtol=1e-8)
    np.testing.assert_allclose(client_of(told).apply(scored.tolist()), expected, rtol=1e-8)
    order = [2, 0, 1]
    other = client_of(told, classes=[CLASSES[y] for y in order])
    np.testing.assert_allclose(other.apply(scored[:, order]), expected[:, order], rtol=1e-8)
    np.testing.assert_allclose(other.apply(scored[:, order].tolist()), expected[:, order], rtol=1e-8)


def test_of_one_row_and_of_none_the_same_as_of_many() -> None:
    client, scored = client_of(calibrated("isotonic")), overconfident(3, 3)[0]
    np.testing.assert_array_equal(client.apply(scored[0]), client.apply(scored)[0])
    assert client.apply(np.empty((0, 3))).shape == (0, 3)


def test_a_row_that_is_no_posterior_stays_as_it_is() -> None:
    client = client_of(calibrated("isotonic"))
    for row in ([np.nan, 0.5, 0.5], [np.inf, 0.0, 0.0], [0.0, 0.0, 0.0]):
        np.testing.assert_array_equal(client.apply(np.array([row])), [row])
        np.testing.assert_array_equal(client.apply([row]), [row])


@pytest.mark.parametrize("method", [name for name in METHODS if name not in {"matrix", *calibration.MARGIN_METHODS}])
@given(wanted=st.floats(0.05, 0.95), y=st.integers(0, 2))
@settings(max_examples=15, deadline=None)
def test_a_moved_threshold_decides_as_the_corrected_posterior_would(method: str, wanted: float, y: int) -> None:
    client = client_of(calibrated(method))
    at = client.threshold(CLASSES[y], wanted)

    def corrected(g: float) -> float:
        rest = [(1 - g) * p / (1 - SOURCE[y]) for p in SOURCE]
        return client.apply([[g if c == y else rest[c] for c in range(3)]])[0][y]

    if at > 1e-6:
        assert corrected(at - 1e-9) <= wanted + 1e-6
    assert corrected(at) >= wanted - 1e-6 or at == 1.0


@pytest.mark.parametrize("method", ["balanced", "temperature", "bias-corrected-temperature"])
def test_moved_biases_decide_as_the_corrected_posteriors_do(method: str) -> None:
    client, scored = client_of(calibrated(method)), overconfident(500, 4)[0]
    moved = client.adjust_intercepts(np.zeros(3)) + np.log(scored)
    assert (moved.argmax(axis=1) == client.apply(scored).argmax(axis=1)).all()


def test_a_window_of_a_model_that_is_too_sure_of_itself_is_corrected_as_well_as_the_true_mix_can() -> None:
    scored, labels, x = overconfident(10_000, 5)
    reference = worlds.cheaply(worlds.reference().schema, scored, labels, x)
    target = np.array([0.15, 0.25, 0.6])
    scored, labels, x = overconfident(5_000, 6, target)
    found = assess(Window.of(scored, x), reference).recalibration
    after = client_of(found).apply(scored)
    best = bayes.correct(reference.calibration(scored), reference.source_priors, target)
    gain = [quality.brier(scored, labels) - quality.brier(each, labels) for each in (after, best)]
    assert gain[0] > 0.98 * gain[1] > 0
    assert found.thresholds["c"] == pytest.approx(client_of(found).threshold("c"), abs=1e-9)
    reweighted = bayes.correct(scored, reference.source_priors, found.target_priors)
    assert quality.brier(after, labels) < quality.brier(reweighted, labels)


def test_a_window_that_is_not_corrected_is_not_calibrated_either() -> None:
    scored, labels, x = overconfident(10_000, 5)
    reference = worlds.cheaply(worlds.reference().schema, scored, labels, x)
    scored, _, x = overconfident(3_000, 7)
    found = assess(Window.of(scored, x), reference)
    assert (found.recalibration.apply, found.recalibration.calibration) == (False, None)


def test_one_slope_of_all_classes_is_known_as_such() -> None:
    assert CalibrationMap("scaled", 1e-7, (0.0, 0.0), slopes=(2.0, 2.0)).slope == 2.0
    assert CalibrationMap("scaled", 1e-7, (0.0, 0.0), slopes=(2.0, 1.0)).slope is None
