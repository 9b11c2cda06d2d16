"""Whatever a window holds: a verdict with a reason, JSON that fits its schema, and nothing that is not a number."""

import json

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from monitor.assessment.classifier import assess
from monitor.assessment.message import json_schema
from monitor.assessment.verdict import Verdict
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.classifier import Reference
from monitor.windows.window import Window
from tests.assessment import worlds

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def refuse(constant):
    raise AssertionError(f"{constant} in the JSON")


def checked(window, reference):
    """The assessment, after its message was held against the schema."""
    found = assess(window, reference)
    message = json.loads(found.to_json(), parse_constant=refuse)
    VALIDATOR.validate(message)
    assert message["reasons"]
    assert all(reason for reason in message["reasons"])
    assert "nan" not in " ".join(message["reasons"])
    return found


@pytest.mark.parametrize("rows", [0, 1, 99])
def test_too_few_events_are_insufficient_data(rows):
    found = checked(worlds.window(max(rows, 1), 1).take(slice(0, rows)), worlds.reference())
    assert found.verdict is Verdict.INSUFFICIENT_DATA
    assert not found.recalibration.apply


def test_rows_that_are_no_posteriors_are_counted_and_left_out():
    g = np.array(worlds.window(1000, 2).posteriors)
    g[:300] = np.nan
    g[300:400] = 0.0
    g[400:410] = -1.0
    found = checked(Window.of(g), worlds.reference())
    assert (found.events, found.unusable) == (590, 410)


@pytest.mark.parametrize("one_hot", [True, False])
def test_one_hot_and_uniform_posteriors(one_hot):
    g = np.tile([1.0, 0.0, 0.0], (500, 1)) if one_hot else np.full((500, 3), 1 / 3)
    checked(Window.of(g), worlds.plain_reference())
    checked(Window.of(g, np.zeros((500, 4))), worlds.reference())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, 1e300, -1e300])
def test_every_feature_the_same_value(value):
    g = worlds.window(500, 3).posteriors
    found = checked(Window.of(g, np.full((500, 4), value)), worlds.reference())
    assert found.verdict not in {Verdict.STABLE, Verdict.PRIOR_SHIFT}


def test_unseen_categories_are_a_moved_feature():
    x, _ = worlds.draw(1000, 4)
    table = worlds.mixed(x, 1)
    assert checked(Window.of(worlds.posteriors(x), table), worlds.mixed_reference()).verdict is Verdict.STABLE
    table[:, 3] = 3.0
    found = checked(Window.of(worlds.posteriors(x), table), worlds.mixed_reference())
    assert found.features["colour"].kind == "categories"
    assert found.verdict is Verdict.COVARIATE_SHIFT


def test_a_hundred_classes():
    rng = np.random.default_rng(5)
    labels = np.concatenate([np.repeat(np.arange(100), 2), rng.integers(0, 100, 3000)])
    logits = rng.normal(size=(labels.size, 100))
    logits[np.arange(labels.size), labels] += 3
    g = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    schema = StreamSchema("wide", tuple(f"c{y}" for y in range(100)))
    reference = worlds.cheaply(schema, g, labels, None)
    checked(Window.of(g[:1500]), reference)


@pytest.mark.parametrize("size", [3.5e38, 1e-45])
def test_posteriors_beyond_single_precision_are_unusable(size):
    g = np.full((200, 3), 0.3)
    g[0] = [size, size / 3, size / 5]
    found = assess(Window.of(g, np.zeros((200, 5))), worlds.mixed_reference())
    assert found.unusable == 1
    assert np.isfinite(found.prevalence.priors).all()


rows = st.integers(0, 260)
wild = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from([0.0, 1.0, 3.0, np.nan]))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_window_at_all(data):
    n = data.draw(rows)
    g = data.draw(hnp.arrays(float, (n, 3), elements=wild, fill=st.sampled_from([0.0, 0.3, 1.0])))
    x = data.draw(hnp.arrays(float, (n, 5), elements=wild, fill=wild))
    with np.errstate(over="ignore", invalid="ignore"):
        window = Window.of(g, x)
        checked(window, worlds.mixed_reference())


def extremes(rows, seed):
    """Columns at the ends of what floating-point numbers can hold, and such as say nothing."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=rows)
    return np.column_stack(
        [
            np.where(z > 0, 1.7e308, -1.7e308),
            5e-324 * rng.integers(0, 100, rows),
            10.0 ** rng.uniform(-300, 300, rows) * np.sign(z),
            np.where(rng.random(rows) < 0.01, 1e300, z),
            np.full(rows, 1e308),
            np.where(np.arange(rows) == 0, 1.0, np.nan),
            np.full(rows, np.nan),
            np.where(z > 0, 0.0, -0.0),
        ]
    )


def test_extreme_numbers_in_reference_and_window_give_a_verdict_without_a_warning():
    x, labels = worlds.draw(2_000, 0)
    columns = extremes(2_000, 1)
    schema = StreamSchema("w", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(columns.shape[1])))
    reference = worlds.cheaply(schema, worlds.posteriors(x), labels, columns)
    for turned in range(columns.shape[1]):
        for rows in (1, 500):
            seen, _ = worlds.draw(rows, 2)
            checked(Window.of(worlds.posteriors(seen), np.roll(extremes(rows, 3), turned, axis=1)), reference)
    huge = np.full((500, 3), 1e308)
    assert checked(Window.of(huge, extremes(500, 4)), reference).verdict is Verdict.INSUFFICIENT_DATA


@pytest.mark.parametrize("certainty", [0.5, 0.7, 0.95])
def test_a_model_that_always_tells_its_classes_apart_is_judged_as_any_other(certainty):
    rng = np.random.default_rng(0)

    def posteriors(labels):
        return certainty * np.eye(3)[labels] + (1 - certainty) * rng.dirichlet(np.ones(3), size=labels.size)

    known = rng.choice(3, 6_000, p=[0.6, 0.3, 0.1])
    reference = Reference.fit(posteriors(known), known)
    for mix, verdict in (([0.6, 0.3, 0.1], "stable"), ([0.2, 0.3, 0.5], "prior-shift")) * 5:
        found = assess(Window.of(posteriors(rng.choice(3, 3_000, p=mix))), reference)
        assert found.verdict == verdict, found.reasons
