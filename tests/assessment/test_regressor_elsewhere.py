"""Where inputs have moved, a regressor that errs there is told as such, and not as a relation that has changed."""

from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from monitor.assessment.regressor import assess_regression
from monitor.reference.regressor import LineCount, RegressionReference
from monitor.windows import Window

MEANS = {"parabola": lambda x: x[:, 0] ** 2 + x[:, 1], "line": lambda x: 2 * x[:, 0] + x[:, 1]}


@cache
def boosted(mean):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(10_000, 2))
    model = HistGradientBoostingRegressor(max_iter=60, early_stopping=False, random_state=0)
    return model.fit(x, MEANS[mean](x) + rng.normal(size=10_000)).predict


def least_squares(mean):
    """A line through a parabola: as wrong as its inputs are far from the middle."""
    return lambda x: 1.0 + x[:, 1]


@cache
def reference(model, mean):
    x, y = events(mean, 3_000, 0.0, 4)
    return RegressionReference.fit(model(mean)(x), y, x, feature_names=["a", "b"], lines=LineCount(1))


def events(mean, count, moved_by, seed, factor=1.0):
    rng = np.random.default_rng((seed, 8))
    x = rng.normal(size=(count, 2)) + moved_by * np.array([1.0, -0.5])
    return x, factor * MEANS[mean](x) + rng.normal(size=count)


def assessed(model, mean, moved_by, *, labels=300, seed=5, factor=1.0):
    x, y = events(mean, 1_000, moved_by, seed, factor)
    y[labels:] = np.nan
    return assess_regression(Window.of_predictions(model(mean)(x), x, y), reference(model, mean))


@pytest.mark.parametrize(("model", "moved_by"), [(boosted, 2.0), (least_squares, 1.0)])
def test_errors_of_a_model_that_is_wrong_elsewhere_are_no_other_relation(model, moved_by):
    found = assessed(model, "parabola", moved_by)
    assert found.verdict == "covariate-shift"
    assert found.relation.errors.grown
    assert "the error of the predictions grew from " in found.reasons[-1]
    assert "inputs have moved to" in found.reasons[-1]
    assert not found.recalibration.apply


def test_a_relation_that_changes_where_inputs_move_a_little_is_still_found():
    found = assessed(boosted, "parabola", 0.5, factor=2.0)
    assert found.verdict == "relation-shift"
    assert found.relation.errors.alike > 100


def test_where_labels_are_linear_in_the_inputs_a_changed_relation_is_found_however_far_inputs_move():
    assert not reference(boosted, "line").bends
    assert assessed(boosted, "line", 2.0, labels=60, factor=1.5).verdict == "relation-shift"
    assert reference(least_squares, "parabola").bends
