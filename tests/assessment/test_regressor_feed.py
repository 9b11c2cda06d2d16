"""The correction of a regression stream: exactly nothing unless justified, and what the client makes of it."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from monitor.assessment.regressor import assess_regression
from monitor.recalibration import RecalibrationClient
from monitor.recalibration.decoding import decoded
from monitor.windows.window import Window, WindowKey
from tests.service import regression_streams as streams


def message(number=1, **changes):
    keyed = replace(streams.window(**changes), key=WindowKey("prices", "", 0, number))
    told = assess_regression(keyed, streams.reference()).recalibration
    return decoded(msgspec.json.decode(msgspec.json.encode(told)))


@pytest.fixture(scope="module")
def moved():
    """The message of a window in which all slopes had doubled."""
    return message(factors=streams.DOUBLED, labelled=0.1)


class Feed:
    """Says what it is told to."""

    def __init__(self, *messages):
        self.messages = list(messages)

    def __call__(self):
        return self.messages.pop(0) if self.messages else None


def client(*messages):
    made = RecalibrationClient(Feed(*messages), "prices")
    for _ in messages:
        made.refresh()
    return made


def test_predictions_follow_a_changed_relation_and_are_nearer_to_the_labels(moved):
    made = client(moved)
    said, y, x = streams.columns(2_000, 9, factors=streams.DOUBLED)
    after = made.correct_predictions(said, x)
    assert np.mean((y - after) ** 2) < 0.6 * np.mean((y - said) ** 2)
    by_name = made.correct_predictions(said.tolist(), {"age": x[:, 1], "area": x[:, 0], "other": None})
    np.testing.assert_array_equal(by_name, after)


@pytest.mark.parametrize("changes", [{}, {"shift": 0.5}, {"labelled": 0.0}, {"labelled": 0.005}])
def test_nothing_changes_to_the_last_bit_where_nothing_is_justified(changes):
    told = message(**changes)
    assert not told.apply
    assert told.reason
    assert told.relation.adapted == told.relation.reference
    said, _, x = streams.columns(500, 9)
    np.testing.assert_array_equal(client(told).correct_predictions(said, x), said)


def test_a_change_in_the_middle_of_the_labels_is_seen_but_not_yet_corrected():
    old, new = streams.window(600, 1, labelled=0.1), streams.window(600, 2, labelled=0.1, factors=streams.DOUBLED)
    both = Window.of_predictions(
        np.concatenate([old.predictions, new.predictions]),
        np.concatenate([old.features, new.features]),
        np.concatenate([old.targets, new.targets]),
    )
    found = assess_regression(both, streams.reference())
    assert found.verdict == "relation-shift"
    assert not found.recalibration.apply
    assert "the change may be recent" in found.recalibration.reason


def test_a_correction_in_force_outlives_windows_without_labels_but_not_one_that_contradicts_it(moved):
    silent, calm = message(2, labelled=0.0), message(3)
    kept = client(moved, silent).status()
    assert kept.correcting
    assert (kept.recalibration.cause, kept.recalibration.relation) == ("kept", moved.relation)
    assert not client(moved, silent, calm).status().correcting


def test_a_row_without_all_inputs_stays_as_it_is(moved):
    made = client(moved)
    said, _, x = streams.columns(10, 9)
    x[3, 0] = np.nan
    after = made.correct_predictions(said, x)
    assert after[3] == said[3]
    assert (np.delete(after, 3) != np.delete(said, 3)).all()


def test_inputs_of_another_shape_are_refused_by_name(moved):
    made = client(moved)
    with pytest.raises(ValueError, match="want 2 rows of"):
        made.correct_predictions([1.0, 2.0], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="or columns by name"):
        made.correct_predictions([1.0, 2.0])


@pytest.mark.parametrize("told", ["moved", "calm"])
def test_inputs_that_are_not_there_are_named_before_the_relation_changes(told, moved):
    made = client(moved if told == "moved" else message())
    with pytest.raises(ValueError, match=r"\['age'\] are not there"):
        made.correct_predictions([1.0, 2.0], {"area": [1.0, 2.0]})
    with pytest.raises(ValueError, match="want 2 values of each"):
        made.correct_predictions([1.0, 2.0], {"area": [1.0, 2.0], "age": 3.0})


def test_predictions_in_a_column_come_back_in_a_column(moved):
    made = client(moved)
    said, _, x = streams.columns(10, 9)
    np.testing.assert_array_equal(made.correct_predictions(said[:, None], x)[:, 0], made.correct_predictions(said, x))


def test_a_relation_whose_parts_do_not_fit_is_no_message(moved):
    table = msgspec.json.decode(msgspec.json.encode(moved))
    table["relation"]["adapted"]["coefficients"][0].pop()
    with pytest.raises(ValueError, match="want 3 numbers, got 2"):
        decoded(table)


def test_a_regressors_message_leaves_posteriors_alone(moved):
    made = client(moved)
    np.testing.assert_array_equal(made.apply(np.array([[0.2, 0.8]])), [[0.2, 0.8]])
    assert made.threshold("fraud") == 0.5


def test_without_features_the_prediction_itself_is_corrected():
    from monitor.reference.regressor import RegressionReference  # noqa: PLC0415

    said, y, _ = streams.columns(300, 1)
    reference = RegressionReference.fit(said, y)
    found = assess_regression(Window.of_predictions(said, targets=3.0 + 2.0 * y), reference)
    assert found.recalibration.apply
    after = client(found.recalibration).correct_predictions(said)
    np.testing.assert_allclose(after, 3.0 + 2.0 * said, rtol=0.1, atol=1.0)
    with_inputs = client(found.recalibration).correct_predictions(said, np.ones((said.size, 2)))
    np.testing.assert_array_equal(with_inputs, after)
