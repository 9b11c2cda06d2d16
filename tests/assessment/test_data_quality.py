"""Data quality: shares that anybody can check by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from monitor import Reference, Window, assess
from monitor.assessment.regressor import assess_regression
from monitor.windows import WindowCounts
from tests.assessment import worlds
from tests.service import regression_streams


@pytest.fixture(scope="module")
def reference():
    """Numbers, a flag that is nearly never raised, and a category."""
    x, labels = worlds.draw(2_000, 0)
    return Reference.fit(worlds.posteriors(x), labels, table(x), classes=("a", "b", "c"), calibration="temperature")


def table(x):
    made = pd.DataFrame(x, columns=["x0", "x1", "x2", "x3"])
    made["flag"] = np.arange(len(x)) == 7
    made["kind"] = np.where(np.arange(len(x)) % 3 == 0, "u", "v")
    return made


def test_shares_are_those_of_a_plain_count(reference):
    x, _ = worlds.draw(1_000, 1)
    features = table(x)
    features["flag"] = False
    features.loc[:49, "x0"] = 1_000.0
    features.loc[50:59, "x0"] = -1_000.0
    features.loc[100:199, "x1"] = np.nan
    features["x2"] = 0.25
    features.loc[:19, "kind"] = "w"
    window = Window.of(worlds.posteriors(x), features)
    found = assess(window, reference).quality
    numbers = features[["x0", "x1", "x2", "x3"]].to_numpy()
    least, most = (np.array([feature.values[end] for feature in reference.features[:4]]) for end in (0, -1))
    assert found.outside_range == pytest.approx(np.sum((numbers < least) | (numbers > most)) / 3_900)
    assert found.outside_range > 60 / 3_900
    assert found.missing == pytest.approx(100 / 6_000)
    assert found.new_categories == pytest.approx(20 / 2_000)
    assert found.constant == ("x2",), "a flag that is never raised is as usual"
    assert list(found.features)[:2] == ["x0", "kind"]
    assert found.features["kind"].new_categories == pytest.approx(0.02)


def test_rejects_are_known_of_windows_that_are_too_small_for_anything_else(reference):
    x, _ = worlds.draw(5, 1)
    window = replace(Window.of(worlds.posteriors(x), table(x)), counts=WindowCounts(rejected=95))
    assert assess(window, reference).quality.rejected == pytest.approx(0.95)


def test_a_regressors_inputs_are_looked_at_and_its_predictions_are_not():
    window = regression_streams.window()
    found = assess_regression(window, regression_streams.reference()).quality
    assert found.constant == ()
    assert set(found.features) <= set(regression_streams.FEATURES)
    assert 0 <= found.outside_range < 0.05


def test_features_that_the_reference_does_not_know_miss_nothing():
    x, labels = worlds.draw(500, 0)
    known = Reference.fit(worlds.posteriors(x), labels, classes=("a", "b", "c"), calibration="none")
    sparse = np.where(np.arange(500)[:, None] % 2, x, np.nan)
    assert assess(Window.of(worlds.posteriors(x), sparse), known).quality.missing == 0.0
