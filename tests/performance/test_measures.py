"""Measures: with labels they are those of scikit-learn, and their gradients are what small changes do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from monitor import quality
from monitor.performance import Scores, measures


def scores(classes: int, events: int, seed: int, digits: int = 2) -> tuple[Scores, np.ndarray]:
    """Posteriors with ties, and labels that they know something of."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(0, classes, events - classes)])
    logs = rng.normal(size=(events, classes)) + 1.5 * np.eye(classes)[labels]
    posteriors = np.round(np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True), digits) + 1e-3
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    costs = rng.random((classes, classes)) * (1 - np.eye(classes))
    return Scores(posteriors, posteriors, posteriors.argmax(axis=1), costs), labels


@pytest.mark.parametrize("seed", range(5))
def test_with_labels_they_are_what_scikit_learn_says(seed: int) -> None:
    said, labels = scores(2, 300, seed)
    found = {name: measure.of(said, np.eye(2)[labels])[0] for name, measure in _all(2).items()}
    p = said.posteriors[:, 1]
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(labels, said.decisions))
    assert found["f1"] == pytest.approx(metrics.f1_score(labels, said.decisions))
    assert found["roc_auc"] == pytest.approx(metrics.roc_auc_score(labels, p))
    assert found["average_precision"] == pytest.approx(metrics.average_precision_score(labels, p))
    assert found["brier"] == pytest.approx(quality.brier(said.posteriors, labels))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(labels, said.posteriors))
    assert said.costs is not None
    assert found["cost"] == pytest.approx(said.costs[labels, said.decisions].mean())


@pytest.mark.parametrize("seed", range(5))
def test_macro_measures_are_those_of_scikit_learn(seed: int) -> None:
    said, labels = scores(4, 300, seed)
    found = {name: measure.of(said, np.eye(4)[labels])[0] for name, measure in _all(4).items()}
    auc = metrics.roc_auc_score(labels, said.posteriors, multi_class="ovr", average="macro")
    precision = metrics.average_precision_score(np.eye(4)[labels], said.posteriors, average="macro")
    assert found["macro_f1"] == pytest.approx(metrics.f1_score(labels, said.decisions, average="macro"))
    assert found["macro_roc_auc"] == pytest.approx(auc)
    assert found["macro_average_precision"] == pytest.approx(precision)


@pytest.mark.parametrize("classes", [2, 3])
@given(seed=st.integers(0, 1_000))
def test_gradients_are_what_small_changes_do(classes: int, seed: int) -> None:
    said, _ = scores(classes, 12, seed, digits=1)
    rng = np.random.default_rng(seed)
    weights = rng.random((12, classes)) + 0.1
    for measure in _all(classes).values():
        value, gradient = measure.of(said, weights)
        assert (gradient * weights).sum() == pytest.approx(0.0, abs=1e-9)
        step = 1e-6 * rng.normal(size=weights.shape)
        up, down = (measure.of(said, weights + sign * step)[0] for sign in (1, -1))
        assert (up - down) / 2 == pytest.approx((gradient * step).sum(), abs=1e-10)
        assert value == pytest.approx((up + down) / 2, abs=1e-9)


@given(seed=st.integers(0, 1_000))
def test_soft_weights_give_the_mean_over_drawn_labels(seed: int) -> None:
    """No event is held against itself, so a pair counts by the chance that its two events are of two classes."""
    rng = np.random.default_rng(seed)
    said, _ = scores(2, 6, seed, digits=1)
    q = rng.dirichlet([1, 1], size=6)
    a, b, s = q[:, 1], q[:, 0], said.ranking[:, 1]
    wins = (s[:, None] > s) + 0.5 * (s[:, None] == s)
    pairs = np.outer(a, b) * (1 - np.eye(6))
    measured = _all(2)["roc_auc"].of(said, q)[0]
    assert measured == pytest.approx((pairs * wins).sum() / pairs.sum())


def test_one_class_alone_has_a_defined_answer() -> None:
    said, _ = scores(2, 20, 0)
    for only in (0, 1):
        for measure in _all(2).values():
            value, gradient = measure.of(said, np.eye(2)[np.full(20, only)])
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()


def _all(classes: int) -> dict:
    return dict(measures(classes, 1, costs=True, ranking=True))
