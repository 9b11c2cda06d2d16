"""What labels show of a part of a window, against the whole."""

import numpy as np
import pytest

from monitor.performance import Scores, measures, realised, stratum_weights
from tests.performance.test_estimated import PAIR, drawn

MEASURES = measures(2, 1, costs=False, ranking=False)


def scores_of(posteriors: np.ndarray) -> Scores:
    return Scores(posteriors, posteriors, posteriors.argmax(axis=1))


@pytest.mark.parametrize("chosen", [False, True])
def test_labels_of_a_part_tell_of_the_whole_also_where_they_were_chosen_by_score(chosen: bool) -> None:
    held, weighted_error, plain_error = [], [], []
    accuracy = {"accuracy": MEASURES["accuracy"]}
    for seed in range(80):
        posteriors, labels = drawn(2_000, seed, PAIR.priors)
        rng = np.random.default_rng(1_000 + seed)
        rate = 0.1 + (0.6 * (posteriors[:, 1] > 0.8) if chosen else 0.0)
        known = rng.random(2_000) < rate
        truth = (posteriors.argmax(axis=1) == labels).mean()
        weights = stratum_weights(posteriors[:, 1], known) if chosen else None
        scores = scores_of(posteriors[known])
        found = realised(scores, labels[known], 2_000, accuracy, weights)["accuracy"]
        held.append(found.lower <= truth <= found.upper)
        weighted_error.append(found.value - truth)
        plain_error.append((posteriors[known].argmax(axis=1) == labels[known]).mean() - truth)
    assert 0.85 <= np.mean(held) <= 1.0
    assert abs(np.mean(weighted_error)) < 0.01
    assert not chosen or abs(np.mean(plain_error)) > 0.02


def test_every_label_leaves_nothing_unknown() -> None:
    posteriors, labels = drawn(500, 1, PAIR.priors)
    found = realised(scores_of(posteriors), labels, 500, MEASURES)
    for name, value in found.items():
        assert value.lower == pytest.approx(value.value, abs=1e-6), name
        assert value.upper == pytest.approx(value.value, abs=1e-6), name


def test_without_labels_nothing_is_said() -> None:
    posteriors, labels = drawn(5, 1, PAIR.priors)
    assert realised(scores_of(posteriors), labels[:0], 5, MEASURES) == {}


@pytest.mark.parametrize("known", [[0], [9], [4], []])
def test_strata_without_a_label_join_one_that_has_some(known: list[int]) -> None:
    labelled = np.isin(np.arange(10), known)
    assert stratum_weights(np.linspace(0, 1, 10), labelled).sum() == pytest.approx(10 if known else 0)


def test_a_few_labels_of_many_events_tell_nothing() -> None:
    posteriors, labels = drawn(29, 1, PAIR.priors)
    assert realised(scores_of(posteriors), labels, 1_000, MEASURES) == {}
    assert set(realised(scores_of(posteriors), labels, 29, MEASURES)) == set(MEASURES)


def test_what_holds_classes_against_each_other_is_left_out_while_one_of_them_has_no_label() -> None:
    posteriors, labels = drawn(400, 1, PAIR.priors)
    of_one = labels == 0
    found = realised(scores_of(posteriors[of_one]), labels[of_one], 400, MEASURES)
    assert set(found) == {"accuracy", "brier", "log_loss"}


@pytest.mark.parametrize("rare", [0.002, 0.02, 0.05])
def test_labels_that_all_agree_do_not_make_sure_of_the_window(rare: float) -> None:
    """A model that never decides for the rare class: sixty labels often hold no mistake, and the window does."""
    posteriors = np.tile([0.9, 0.1], (3_000, 1))
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        labels = (rng.random(3_000) < rare).astype(np.int64)
        some = rng.choice(3_000, 60, replace=False)
        found = realised(scores_of(posteriors[some]), labels[some], 3_000, MEASURES)["accuracy"]
        held.append(found.lower <= (labels == 0).mean() <= found.upper)
    assert np.mean(held) >= 0.93


def test_a_ranking_without_a_mistake_among_few_labels_has_an_interval() -> None:
    posteriors = np.column_stack([np.linspace(1, 0, 200), np.linspace(0, 1, 200)])
    labels = (posteriors[:, 1] > 0.9).astype(np.int64)
    known = np.arange(200) % 4 == 0
    found = realised(scores_of(posteriors[known]), labels[known], 200, MEASURES)["roc_auc"]
    assert found.value == found.upper == 1.0
    assert 0.3 < found.lower < 0.7
