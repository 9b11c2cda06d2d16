"""A class that a small window hardly shows is not corrected away: scores of the next window are not worse for it."""

import numpy as np
import pytest

from monitor import assess, quality
from monitor.arrays import Matrix
from monitor.assessment.mix_rule import USUAL, held_against
from monitor.recalibration import RecalibrationClient
from monitor.reference import Reference
from monitor.windows import Window
from tests.assessment import worlds


@pytest.mark.parametrize("back", [0.02, 0.04])
def test_a_rare_class_that_a_window_does_not_show_costs_nothing_when_it_comes_back(back: float) -> None:
    changes = []
    for seed in range(6):
        found = assess(worlds.window(300, seed=seed + 10, priors=[0.58, 0.4, 0.02]), worlds.reference())
        client = RecalibrationClient(lambda found=found: found.recalibration, "s")  # type: ignore[misc]
        client.refresh()
        x, labels = worlds.draw(1_000, seed + 100, [0.6 - back, 0.4, back])
        scores = worlds.posteriors(x)
        assert min(found.recalibration.multipliers) > 0
        changes.append(quality.log_loss(client.apply(scores), labels) - quality.log_loss(scores, labels))
    assert np.mean(changes) < 0.005
    assert np.count_nonzero(changes) >= 3  # or it corrects nothing


def few_of_the_last(count: int, priors: list[float]) -> Reference:
    """A reference of which the last class has so many hold-out events."""
    x, labels = worlds.draw(2_000, 1, priors)
    last = np.flatnonzero(labels == 2)[:count]
    kept = np.sort(np.concatenate([np.flatnonzero(labels < 2), last]))
    return Reference.fit(worlds.posteriors(x[kept]), labels[kept], x[kept], classes=["0", "1", "2"])


@pytest.mark.parametrize("of_the_rarest", [29, 60])
def test_a_class_with_a_handful_of_hold_out_events_is_left_alone_and_the_others_are_corrected(
    of_the_rarest: int,
) -> None:
    reference = few_of_the_last(of_the_rarest, [0.5, 0.4, 0.1])
    x, labels = worlds.draw(1_000, 2, [0.2, 0.79, 0.01])
    scores = worlds.posteriors(x)
    found = assess(Window.of(scores, x), reference).recalibration
    assert found.apply
    assert (found.multipliers[2] == pytest.approx(1.0)) is (of_the_rarest < 30)
    client = RecalibrationClient(lambda: found, "s")
    client.refresh()
    assert quality.brier(client.apply(scores), labels) < quality.brier(scores, labels) - 0.01


def test_nothing_is_corrected_where_the_window_is_full_of_a_class_with_a_handful_of_hold_out_events() -> None:
    x, _ = worlds.draw(1_000, 2, [0.3, 0.5, 0.2])
    found = assess(Window.of(worlds.posteriors(x), x), few_of_the_last(11, [0.5, 0.4, 0.1])).recalibration
    assert not found.apply
    assert found.reason == "too little of the class mix is in classes with 30 hold-out events or more to tell by"


def test_of_two_classes_a_rare_one_corrects_nothing() -> None:
    def scores_of_two(x: Matrix) -> Matrix:
        return np.asarray(worlds.posteriors(x)[:, :2] / worlds.posteriors(x)[:, :2].sum(axis=1, keepdims=True))

    x, labels = worlds.draw(4_000, 1, [0.5, 0.5, 0.0])
    kept = np.sort(np.concatenate([np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)[:11]]))
    reference = Reference.fit(scores_of_two(x[kept]), labels[kept], x[kept], classes=["0", "1"])
    x, _ = worlds.draw(1_000, 2, [0.7, 0.3, 0.0])
    found = assess(Window.of(scores_of_two(x), x), reference)
    assert found.verdict == "prior-shift"
    assert not found.recalibration.apply
    assert found.recalibration.multipliers == (1, 1)


@pytest.mark.parametrize("share", [0.001, 0.002, 0.0037, 0.013, 0.03])
def test_of_two_classes_the_rarer_stands_out_whatever_rounding_does(share: float) -> None:
    """What one class wins the other loses: p-values and errors are the same but for their last digits."""
    priors, source = np.array([1 - 2 * share, 2 * share]), np.array([1 - share, share])
    for order in ([0, 1], [1, 0]):
        for step in range(-3, 4):
            rounded = priors * (1 + np.array([step, 0]) * 2.0**-52)
            move = held_against(
                USUAL, ("a", "b"), rounded[order], source[order], np.full(2, 1e-6), events=2_000, hold_out_events=1e4
            )
            assert move.factor == pytest.approx(2)


def test_the_factor_of_a_class_that_no_event_shows_is_that_of_half_an_event() -> None:
    move = held_against(
        USUAL, ("a", "b"), np.array([1.0, 0.0]), np.array([0.9, 0.1]), np.full(2, 1e-6), events=500, hold_out_events=1e4
    )
    assert move.factor == pytest.approx(0.1 / (0.5 / 500))
    assert move.counts
