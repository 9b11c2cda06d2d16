"""Scores that no longer go with the inputs are said to be what moved, and no input is blamed for them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from monitor import Reference, Window, assess
from monitor.assessment import Assessment

EVENTS = 1_000


def cases(rng: np.random.Generator, rows: int, telling: int) -> tuple[np.ndarray, np.ndarray]:
    """Five numbers, the first of which differ between three classes."""
    y = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
    x = rng.normal(size=(rows, 5))
    x[:, :telling] += 1.5 * y[:, None]
    return x, y


@pytest.fixture(scope="module", params=[1, 5], ids=["one telling feature", "five"])
def stream(request: pytest.FixtureRequest) -> tuple[Reference, np.ndarray, np.ndarray]:
    """A reference, and scores and features of a calm window."""
    rng = np.random.default_rng(request.param)
    model = LogisticRegression().fit(*cases(rng, 4_000, request.param))
    x, y = cases(rng, 5_000, request.param)
    reference = Reference.fit(
        model.predict_proba(x), y, x, classes=["cat", "dog", "fox"],
        feature_names=[f"x{j}" for j in range(5)],
    )  # fmt: skip
    x, _ = cases(rng, EVENTS, request.param)
    return reference, model.predict_proba(x), x


def said(found: Assessment) -> str:
    return "; ".join(found.reasons)


def test_calm_scores_are_stable(stream: tuple[Reference, np.ndarray, np.ndarray]) -> None:
    reference, scores, x = stream
    assert assess(Window.of(scores, x), reference).verdict == "stable"


def test_two_exchanged_columns_are_named(stream: tuple[Reference, np.ndarray, np.ndarray]) -> None:
    reference, scores, x = stream
    found = assess(Window.of(scores[:, [1, 0, 2]], x), reference)
    assert found.verdict == "unexplained"
    assert "the scores do not go with them; with the columns of cat and dog exchanged they would" in said(found)
    assert not any(feature.moved for feature in found.features.values())
    assert "x0" not in said(found)
    assert not found.recalibration.apply


def test_columns_that_went_round_or_came_from_another_model_blame_no_input(
    stream: tuple[Reference, np.ndarray, np.ndarray],
) -> None:
    reference, scores, x = stream
    flat = np.sqrt(scores) / np.sqrt(scores).sum(axis=1, keepdims=True)
    for other in (scores[:, [1, 2, 0]], flat):
        found = assess(Window.of(other, x), reference)
        assert found.verdict == "unexplained"
        assert "the scores do not go with them; is it another model, or another calibration?" in said(found)


def test_the_class_mix_is_then_what_the_inputs_show(stream: tuple[Reference, np.ndarray, np.ndarray]) -> None:
    reference, scores, x = stream
    found = assess(Window.of(scores[:, [1, 0, 2]], x), reference)
    assert np.abs(found.prevalence.priors - [0.5, 0.3, 0.2]).max() < 0.08
    assert found.prevalence.method == "unmoved-inputs"


def test_an_input_that_moved_is_still_the_one_that_is_named(stream: tuple[Reference, np.ndarray, np.ndarray]) -> None:
    reference, scores, x = stream
    moved = x.copy()
    moved[:, 4] = 1.3 * moved[:, 4] + 0.5
    found = assess(Window.of(scores, moved), reference)
    assert found.verdict == "covariate-shift"
    assert found.reasons[0].startswith("x4 is")
