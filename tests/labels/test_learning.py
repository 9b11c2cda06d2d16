"""What labels teach: bounded harm for any labels, a changed slope that is found, labels that are no fair sample."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from monitor import quality
from monitor.arrays import UNLABELLED, Labels, Matrix
from monitor.labels import learning
from monitor.labels.pool import Copies, given_back, losses, taken
from monitor.labels.recursive import taught, untaught
from monitor.labels.selection import NOTHING_SEEN, seen
from monitor.limits import LEARNED_COPIES
from monitor.recalibration import expert_rows, pooled_rows
from monitor.tolerances import LEARNED_PATIENCE, LEARNED_PRIOR, POSTERIOR_FLOOR, PRIOR_WEIGHTS

SOURCE = (0.5, 0.3, 0.2)


def scores(rng: np.random.Generator, events: int, sharp: float = 3.0) -> Matrix:
    return np.asarray(softmax(sharp * rng.normal(size=(events, 3)), axis=1))


def follow(known: learning.Learned, number: int, g: Matrix, labels: Labels) -> learning.Learned:
    """One window that settles at once."""
    known, pool = learning.corrected(known, f"{number}", (), None)
    return learning.settled(known, learning.Settled(f"{number}", g, labels, pool), None)


class Adversary:
    """Labels that hurt: of each event the class that the pool believes least beside the scores as they were."""

    def __init__(self, seed: int, spite: float) -> None:
        self.rng, self.spite = np.random.default_rng(seed), spite

    def labels(self, raw: Matrix, pooled: Matrix) -> Labels:
        worst = np.argmax(np.log(raw) - np.log(pooled), axis=1)
        drawn = self.rng.integers(0, 3, size=len(raw))
        return np.where(self.rng.random(len(raw)) < self.spite, worst, drawn)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    delay=st.integers(1, 6),
    spite=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    turns=st.integers(1, 40),
    sharp=st.sampled_from([0.5, 3.0, 8.0]),
)
def test_no_labels_make_all_windows_together_worse_by_more_than_the_bound(
    seed: int, delay: int, spite: float, turns: int, sharp: float
) -> None:
    rng, adversary = np.random.default_rng(seed), Adversary(seed, spite)
    known = learning.nothing_learned(3)
    excess, waiting = 0.0, []
    for t in range(turns):
        while waiting and waiting[0][0] <= t - delay:
            known = learning.settled(known, waiting.pop(0)[1], None)
        g = np.maximum(scores(rng, 12, sharp), POSTERIOR_FLOOR)
        mix = rng.dirichlet(np.ones(3)) + 1e-3
        feed = tuple((mix / SOURCE).tolist()) if rng.random() < 0.7 else ()
        known, pool = learning.corrected(known, f"{t}", feed, None)
        after = pooled_rows(g, pool)
        labels = adversary.labels(g, after)
        excess += quality.log_loss(after, labels) - quality.log_loss(g, labels)
        waiting.append((t, learning.Settled(f"{t}", g, labels, pool)))
    assert excess <= delay * np.log(1 / PRIOR_WEIGHTS[0]) + 1e-9


@given(st.lists(st.booleans(), max_size=80))
def test_there_are_never_more_copies_than_windows_under_way_at_once(moves: list[bool]) -> None:
    copies: Copies = ()
    under_way: list[str] = []
    most = 0
    for number, begins in enumerate(moves):
        if begins:
            copies, held = taken(copies, f"{number}")
            assert held is not None
            under_way.append(f"{number}")
            most = max(most, len(under_way))
        elif under_way:
            copies = given_back(copies, under_way.pop(0), (0.1, 0.2, 0.3))
        assert len(copies) == most
        assert sorted(copy.window for copy in copies if copy.window) == sorted(under_way)


def test_a_window_without_a_free_copy_is_not_corrected_by_a_pool() -> None:
    known = learning.nothing_learned(3)
    for number in range(LEARNED_COPIES):
        known, pool = learning.corrected(known, f"{number}", (), None)
        assert pool
    same, pool = learning.corrected(known, "one more", (), None)
    assert pool == ()
    assert same == known


def test_the_recursive_recalibration_is_the_posterior_mode_after_one_window() -> None:
    rng = np.random.default_rng(1)
    z = np.log(scores(rng, 400, 1.0))
    labels = (rng.random(400)[:, None] > np.cumsum(softmax(0.6 * z + [0.4, 0, -0.4], axis=1), axis=1)).sum(axis=1)

    def objective(theta: np.ndarray) -> float:
        fit = -log_softmax(theta[0] * z + theta[1:], axis=1)[np.arange(400), labels].sum()
        return float(fit + LEARNED_PRIOR / 2 * ((theta[0] - 1) ** 2 + (theta[1:] ** 2).sum()))

    best = minimize(objective, np.array([1.0, 0, 0, 0]), tol=1e-10).x
    found = taught(untaught(3), z, labels)
    np.testing.assert_allclose([found.slope, *found.intercepts], best, atol=5e-3)


def test_a_slope_and_intercepts_that_changed_are_found() -> None:
    rng, known = np.random.default_rng(2), untaught(3)
    for _ in range(60):
        z = np.log(scores(rng, 400, 1.5))
        q = softmax(0.4 * z + [0.5, 0.0, -0.5], axis=1)
        known = taught(known, z, (rng.random(400)[:, None] > np.cumsum(q, axis=1)).sum(axis=1))
    assert known.slope == pytest.approx(0.4, abs=0.03)
    assert known.intercepts[0] - known.intercepts[2] == pytest.approx(1.0, abs=0.08)


def test_where_the_scores_say_nothing_any_more_the_mean_is_that_of_the_labels() -> None:
    rng, known = np.random.default_rng(9), untaught(3)
    for _ in range(60):
        z = np.log(scores(rng, 200, 2.0) ** 3)
        known = taught(known, z, rng.choice(3, size=200, p=[0.2, 0.2, 0.6]))
    assert known.slope < 0.03
    mean = softmax(known.slope * z + np.array(known.intercepts), axis=1).mean(axis=0)
    np.testing.assert_allclose(mean, [0.2, 0.2, 0.6], atol=0.05)


def test_a_handful_of_labels_of_one_class_stays_finite() -> None:
    known, z = untaught(3), np.log(np.full((3, 3), [0.999, 0.0005, 0.0005]))
    for _ in range(200):
        known = taught(known, z, np.zeros(3, dtype=np.int64))
    assert np.isfinite([known.slope, *known.intercepts, *np.ravel(known.information)]).all()
    assert taught(known, z[:0], np.zeros(0, dtype=np.int64)) == known


def test_labels_are_a_fair_sample_unless_one_class_is_found_more_often() -> None:
    rng, fair, unfair = np.random.default_rng(3), NOTHING_SEEN, NOTHING_SEEN
    for _ in range(60):
        g = scores(rng, 300)
        labels = (rng.random(300)[:, None] > np.cumsum(g, axis=1)).sum(axis=1)
        fair = seen(fair, g, rng.random(300) < 0.2)
        unfair = seen(unfair, g, rng.random(300) < np.where(labels == 0, 0.3, 0.1))
        assert not fair.selected
    assert unfair.selected
    assert unfair.scores[0] > 4
    assert seen(fair, g, np.ones(300, dtype=np.bool_)) == fair


def test_selected_labels_teach_the_slope_and_leave_the_mean_where_it_was() -> None:
    rng, known = np.random.default_rng(4), learning.nothing_learned(3)
    for number in range(80):
        g = scores(rng, 500, 1.5)
        labels = (rng.random(500)[:, None] > np.cumsum(g, axis=1)).sum(axis=1)
        came = rng.random(500) < np.where(labels == 0, 0.6, 0.2)
        known = follow(known, number, g, np.where(came, labels, UNLABELLED))
    assert known.selection.selected
    assert known.recursive.slope == pytest.approx(1.0, abs=0.06)
    _, pool = learning.corrected(known, "next", (), None)
    g = scores(rng, 5_000, 1.5)
    np.testing.assert_allclose(expert_rows(g, pool[2]).mean(axis=0), g.mean(axis=0), atol=0.02)
    naive = replace(pool[2], intercepts=known.recursive.intercepts)
    assert expert_rows(g, naive).mean(axis=0)[0] > g.mean(axis=0)[0] + 0.05


def test_the_first_window_has_the_pool_of_the_prior_weights() -> None:
    known, pool = learning.corrected(learning.nothing_learned(3), "first", (0.5, 1.0, 2.0), None)
    assert tuple(expert.weight for expert in pool) == pytest.approx(PRIOR_WEIGHTS)
    g = scores(np.random.default_rng(5), 50)
    np.testing.assert_allclose(expert_rows(g, pool[2]), expert_rows(g, pool[1]))
    assert not known.taught


@pytest.mark.parametrize("labels_before", [0, 1])
def test_nothing_is_pooled_after_a_long_silence(labels_before: int) -> None:
    rng, known = np.random.default_rng(5), learning.nothing_learned(3)
    none, g = np.full(50, UNLABELLED), scores(rng, 50)
    for number in range(labels_before):
        known = follow(known, number, g, np.zeros(50, dtype=np.int64))
    assert known.taught == bool(labels_before)
    for number in range(LEARNED_PATIENCE + 1):
        assert learning.corrected(known, "now", (), None)[1]
        known = follow(known, 2 + number, g, none)
    assert learning.corrected(known, "now", (), None)[1] == ()


def test_the_expert_that_was_right_is_believed() -> None:
    rng, copies = np.random.default_rng(6), ()
    for number in range(30):
        copies, _ = taken(copies, f"{number}")
        g = scores(rng, 200)
        labels = (rng.random(200)[:, None] > np.cumsum(softmax(0.3 * np.log(g), axis=1), axis=1)).sum(axis=1)
        copies = given_back(copies, f"{number}", losses([g, g, softmax(0.3 * np.log(g), axis=1)], labels))
    assert copies[0].weights[2] > 0.99
