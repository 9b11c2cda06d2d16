"""The assessment of a regression stream's window: what moved is named, and so is what cannot be known."""

import json

import jsonschema
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monitor.assessment.regressor import assess_regression
from monitor.assessment.regressor_message import json_schema
from monitor.errors import InputError
from monitor.windows.window import Window
from tests.service import regression_streams as streams


def said(window):
    found = assess_regression(window, streams.reference())
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(found.to_json()))
    return found


def test_a_stable_window_says_what_agrees():
    found = said(streams.window(labelled=0.1))
    assert found.verdict == "stable"
    assert "every input agree with the reference" in found.reasons[0]
    assert "labels agree with the relation" in found.reasons[1]
    assert set(found.tests) == {"prediction", "features", "relation", "error"}
    assert set(found.features) == set(streams.FEATURES)


def test_a_moved_input_is_named_with_its_line():
    found = said(streams.window(shift=0.5))
    assert found.verdict == "covariate-shift"
    assert found.features["area"].kind == "linear"
    assert found.features["area"].beta == pytest.approx(0.5, abs=0.1)
    assert not found.features["age"].moved
    assert any(reason.startswith("area is") for reason in found.reasons)


def test_predictions_that_move_alone_point_at_the_model():
    window = streams.window(labelled=0.0)
    moved = Window.of_predictions(window.predictions + 2.0, window.features)
    found = said(moved)
    assert found.verdict == "covariate-shift"
    assert found.tests["prediction"].significant
    assert not found.tests["features"].significant
    assert any("look at the model that is deployed" in reason for reason in found.reasons)


def test_a_changed_relation_outranks_moved_inputs_and_names_both():
    found = said(streams.window(factors=streams.DOUBLED, shift=0.5, labelled=0.1))
    assert found.verdict == "relation-shift"
    assert found.reasons[0].startswith("all slopes doubled; intercepts unchanged (the label against area, age;")
    assert found.reasons[1].startswith("the error of the predictions grew from ")
    assert any(reason.startswith("area is") for reason in found.reasons)


def test_noise_that_has_grown_is_told_as_such_and_corrects_nothing():
    found = said(streams.window(400, noise=2.5))
    assert found.verdict == "relation-shift"
    assert found.reasons[0].startswith("noise multiplied by 2.")
    assert "slopes and intercepts unchanged" in found.reasons[0]
    assert not found.recalibration.apply
    assert found.recalibration.reason == "only the noise changed: no correction makes predictions better"
    assert not any("not corrected yet" in reason for reason in found.reasons)


@pytest.mark.parametrize("by", ["bic", "press", "bayes"])
def test_the_relation_of_now_can_be_estimated_in_three_ways(by):
    found = assess_regression(streams.window(120, factors=streams.DOUBLED), streams.reference(), by=by)
    assert found.recalibration.apply
    doubled = streams.TRUTH.weights @ (streams.TRUTH.coefficients * streams.DOUBLED)
    now = found.relation.now
    np.testing.assert_allclose(now.weights @ now.coefficients, doubled, atol=1.0)
    assert found.recalibration.relation.adapted.coefficients == tuple(map(tuple, now.coefficients.tolist()))


def test_what_labels_leave_open_is_said():
    predictions, targets, features = streams.columns(200, 5, factors=np.array([1.0, -1.0, 3.0]))
    features[:, 1] = 0.5  # as labels of one age do
    found = said(Window.of_predictions(predictions, features, targets))
    assert found.verdict == "relation-shift"
    assert "the inputs of the labelled events do not vary in every direction" in found.reasons
    assert "collinear-inputs" in found.to_result().relation.notes


def test_a_few_absurd_labels_are_no_other_relation():
    predictions, targets, features = streams.columns(300, 4)
    targets[[7, 200]] += 80.0
    found = said(Window.of_predictions(predictions, features, targets))
    assert found.relation.test.p_value < 1e-6
    assert found.relation.p_value > 0.01
    assert found.verdict == "stable"


def test_few_events_with_enough_labels_still_tell_a_changed_relation():
    found = said(streams.window(60, factors=streams.DOUBLED))
    assert found.verdict == "relation-shift"
    assert found.prediction is None


def test_predictions_of_other_events_are_wrong_though_inputs_and_labels_are_as_they_were():
    """Nothing moves but the errors: another model was deployed, or labels are joined to other events."""
    predictions, targets, features = streams.columns(400, 4)
    found = said(Window.of_predictions(np.roll(predictions, 1), features, targets))
    assert found.verdict == "unexplained"
    assert found.reasons[0].startswith("the error of the predictions grew from ")
    assert "the labels agree with the relation" in found.reasons[0]
    assert "look at the model that is deployed" in found.reasons[1]
    assert not found.recalibration.apply


def test_two_labels_that_are_wrong_by_the_same_say_nothing_of_the_errors():
    predictions, targets, features = streams.columns(400, 4, labelled=0.0)
    targets[:2] = predictions[:2] + 50.0
    assert said(Window.of_predictions(predictions, features, targets)).verdict == "stable"


NUMBERS = streams.columns(300, 4)
DEGENERATE = {
    "no labels": (lambda p, y, x: (p, x, np.full(300, np.nan)), "stable", "no labels"),
    "no column of labels": (lambda p, y, x: (p, x, None), "stable", "no labels"),
    "no features": (lambda p, y, x: (p, None, y), "stable", "no labels"),
    "constant labels": (lambda p, y, x: (p, x, np.full(300, 3.0)), "unexplained", "all of the 300 labels are equal"),
    "one event": (lambda p, y, x: (p[:1], x[:1], y[:1]), "insufficient-data", "1 usable events, 100 are needed"),
    "no event": (lambda p, y, x: (p[:0], x[:0], y[:0]), "insufficient-data", "0 usable events"),
    "no usable prediction": (lambda p, y, x: (p * np.nan, x, y), "insufficient-data", "300 more had no usable"),
    "all inputs missing": (lambda p, y, x: (p, x * np.nan, y), "covariate-shift", "area is missing in all events"),
    "one input missing": (lambda p, y, x: (p, x * [np.nan, 1.0], y), "covariate-shift", "area is missing in all"),
    "infinite inputs": (lambda p, y, x: (p, x * np.inf, y), "covariate-shift", "no labels"),
    "constant predictions": (lambda p, y, x: (p * 0 + 5, x, y), "covariate-shift", "look at the model"),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_windows_have_a_named_answer(name):
    change, verdict, word = DEGENERATE[name]
    predictions, features, targets = change(*NUMBERS)
    found = said(Window.of_predictions(predictions, features, targets))
    assert found.verdict == verdict
    assert any(word in reason for reason in found.reasons), found.reasons
    assert not found.recalibration.apply
    assert found.recalibration.reason


def test_windows_that_do_not_fit_the_reference_are_refused_by_name():
    with pytest.raises(InputError, match="want predictions"):
        assess_regression(Window.of(np.full((5, 2), 0.5)), streams.reference())
    with pytest.raises(InputError, match="features: want 2 columns, got 3"):
        assess_regression(Window.of_predictions(np.zeros(5), np.zeros((5, 3))), streams.reference())
    with pytest.raises(InputError, match="want 4 rows"):
        Window.of_predictions(np.zeros(4), np.zeros((5, 3)))


@settings(max_examples=15, deadline=None)
@given(
    rows=st.lists(
        st.tuples(*[st.floats(-1e6, 1e6) | st.just(np.nan) | st.just(np.inf)] * 2, st.floats(-1e3, 1e3), st.floats()),
        max_size=30,
    )
)
@example(rows=[(0.0,) * 4, (0.0, 0.0, 0.0, 4.9e-155)])  # errors whose squares underflow, and overflow
@example(rows=[(0.0,) * 4, (0.0, 0.0, 0.0, 1.7e77)])
def test_whatever_the_numbers_the_answer_is_a_message(rows):
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    said(Window.of_predictions(table[:, 2], table[:, :2], table[:, 3]))


def test_the_same_window_gives_the_same_bytes():
    one, other = (said(streams.window(factors=streams.DOUBLED, labelled=0.1)).to_json() for _ in range(2))
    assert one == other
