"""Whether labels follow the scores: what class weights cannot move, what chance cannot win, what is seen how soon."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from monitor.arrays import Labels, Matrix
from monitor.labels import concept
from monitor.labels.concept import Strata, Usual
from monitor.tolerances import CONCEPT_LOG_ODDS, CONCEPT_ONCE_IN, CONCEPT_STRATUM

LABELS = 200
"""Of a window."""


def world(seed: int, events: int, shares: Matrix, slope: float = 1.0) -> tuple[Matrix, Labels]:
    """Scores that are right for slope 1 at even shares; labels with these class shares and this slope."""
    rng = np.random.default_rng(seed)
    classes = shares.size
    logits = 1.5 * rng.normal(size=(events, classes))
    truth = softmax(slope * logits + np.log(shares), axis=1)
    labels = (rng.random(events)[:, None] > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    return softmax(logits, axis=1), labels


def hold_out(classes: int = 2, events: int = 4_000) -> Usual:
    found = concept.as_usual(*world(99, events, np.full(classes, 1 / classes)))
    assert found is not None
    return found


def without_bends(usual: Usual) -> Usual:
    return replace(
        usual,
        mixing=usual.mixing[:, :1],
        base=usual.base[:1],
        spread=usual.spread[:1],
        natural=usual.natural[:1],
    )


def alarms(windows: list[tuple[Matrix, Labels]], usual: Usual) -> list[int]:
    """The windows at which evidence is enough; it then begins anew."""
    found, logs = [], None
    for number, (calibrated, labels) in enumerate(windows):
        some = concept.strata(calibrated, labels)
        steps = concept.increments(some, usual)
        logs = steps if logs is None else np.maximum(logs, 0.0) + steps
        if concept.total(logs) >= np.log(CONCEPT_ONCE_IN):
            found.append(number)
            logs = None
    return found


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 60))
def test_a_stratum_is_one_event_of_a_class_and_some_of_another_and_no_event_is_in_two(
    seed: int, classes: int, events: int
) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, rng.integers(1, classes + 1), events)
    calibrated = rng.dirichlet(np.ones(classes), events)
    some = concept.strata(calibrated, labels)
    assert some.log_odds.shape[0] == some.sign.size <= events // 2
    assert some.sign.size == min(events // 2, events - int(np.bincount(labels).max()))
    z = np.log(np.maximum(calibrated, np.exp(-CONCEPT_LOG_ODDS)))
    by_label = {
        round(float(z[i, labels[i]] - z[i, b]), 9) for i in range(events) for b in range(classes) if b != labels[i]
    }
    others = {round(float(z[i, a] - z[i, labels[i]]), 9) for i in range(events) for a in range(classes)}
    assert {round(value, 9) for value in some.log_odds[:, 0].tolist()} <= by_label
    assert {round(value, 9) for value in some.log_odds[:, 1:].ravel().tolist()} <= others
    assert np.unique(some.log_odds).size == some.log_odds.size


@given(st.integers(0, 10**6), st.integers(2, 4))
def test_class_weights_cancel_so_that_neither_prior_shift_nor_selected_labels_count(seed: int, classes: int) -> None:
    usual = hold_out(classes)
    calibrated, labels = world(seed, 60, np.full(classes, 1 / classes))
    calibrated = 0.9 * calibrated + 0.1 / classes  # the floor of scores is not what this is about
    weights = np.random.default_rng(seed).dirichlet(np.ones(classes)) + 0.05
    weighed = calibrated * weights / (calibrated * weights).sum(axis=1, keepdims=True)
    only_slope = replace(
        usual, mixing=usual.mixing[:, :1], base=usual.base[:1], spread=usual.spread[:1], natural=usual.natural[:1]
    )
    some, other = (concept.strata(each, labels) for each in (calibrated, weighed))
    steps = (concept.increments(each, only_slope) for each in (some, other))
    np.testing.assert_allclose(*steps, rtol=1e-6, atol=1e-9)


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(2, 6), st.floats(-1.0, 1.0))
def test_no_stake_wins_on_average_while_theta_is_tolerated(seed: int, events: int, within: float) -> None:
    """Exactly: over every event of the stratum that may be the one of class a."""
    usual = hold_out()
    odds = 3 * np.random.default_rng(seed).normal(size=events)
    sign = np.array([1.0])
    orders = [np.roll(odds, -k)[None, :] for k in range(events)]
    for direction in range(usual.base.size):
        theta = usual.base + within * usual.edges[direction].min() * np.eye(usual.base.size)[direction]
        phi = usual.directions(Strata(odds[None, :], sign))
        chances = softmax(np.tensordot(theta, phi, axes=1)[0])
        won = np.array([concept.increments(Strata(order, sign), usual)[direction] for order in orders])
        assert (np.tensordot(chances, np.exp(won), axes=1) <= 1 + 1e-9).all()


def test_no_event_is_worth_more_than_one_nat() -> None:
    """A wrong label among scores that are sure is no concept."""
    sure = Strata(np.array([[-15.0, 15.0]]), np.array([1.0]))
    assert concept.increments(sure, hold_out()).max() == CONCEPT_STRATUM


@pytest.mark.parametrize("classes", [2, 3])
def test_a_class_mix_that_moves_in_every_window_raises_no_alarm(classes: int) -> None:
    rng = np.random.default_rng(3)
    windows = [world(seed, LABELS, rng.dirichlet(np.ones(classes))) for seed in range(300)]
    assert not alarms(windows, hold_out(classes, 2_000))


@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.3])
def test_a_strong_change_is_seen_within_three_windows_of_200_labels(slope: float) -> None:
    for start in range(0, 50, 5):
        windows = [world(1_000 + start + k, LABELS, np.array([0.3, 0.7]), slope) for k in range(3)]
        assert alarms(windows, hold_out(2, 2_000))


def test_a_change_that_leaves_the_slope_is_seen_by_its_bend() -> None:
    """Low scores have become worthless, and high ones as much surer: on average a score says what it said."""
    usual = hold_out(2, 10_000)
    windows = []
    for seed in range(12):
        calibrated, _ = world(seed, 1_000, np.array([0.5, 0.5]))
        eta = np.log(calibrated[:, 1] / calibrated[:, 0])
        bent = np.where(eta > 0, 1.9 * eta, 0.1 * eta)
        chance = 1 / (1 + np.exp(-bent))
        windows.append((calibrated, (np.random.default_rng(seed).random(1_000) < chance).astype(np.int64)))
    only_slope = replace(
        usual, mixing=usual.mixing[:, :1], base=usual.base[:1], spread=usual.spread[:1], natural=usual.natural[:1]
    )
    assert alarms(windows, usual)[0] <= 2
    seen_by_slope = alarms(windows, only_slope)
    assert not seen_by_slope or seen_by_slope[0] > alarms(windows, usual)[0]


def test_a_hold_out_whose_parts_differ_tolerates_as_much_and_a_shuffled_one_less() -> None:
    """Weeks in which scores say everything follow weeks in which they say little."""
    weeks = [world(seed, 300, np.array([0.5, 0.5]), 2.0 if seed % 2 else 0.3) for seed in range(20)]
    calibrated, labels = (np.concatenate(parts) for parts in zip(*weeks, strict=True))
    order = np.random.default_rng(0).permutation(labels.size)
    in_time, shuffled = concept.as_usual(calibrated, labels), concept.as_usual(calibrated[order], labels[order])
    assert in_time is not None
    assert shuffled is not None
    assert in_time.natural[0] > 0.3
    assert shuffled.natural[0] == 0
    assert not alarms([weeks[k % 20] for k in range(60)], in_time)
    assert alarms([weeks[0]] * 10, shuffled)


def test_where_parts_differ_in_their_slopes_a_smaller_difference_in_a_bend_is_believed_too() -> None:
    """By itself it could be chance in twenty parts."""
    alike, apart = (bent_weeks(slopes, bend=0.15) for slopes in ((1.0,), (0.4, 0.4, 1.6, 1.6)))
    assert not alike.natural.any()
    assert apart.natural[0] > 0.3
    assert apart.natural.all()


def bent_weeks(slopes: tuple[float, ...], bend: float) -> Usual:
    """A hold-out of twenty weeks whose bend has the one sign and the other, week by week."""
    weeks = []
    for week in range(20):
        rng = np.random.default_rng(week)
        odds = 1.5 * rng.normal(size=300)
        ranks = 2 * np.argsort(np.argsort(odds)) / odds.size - 1
        truth = slopes[week % len(slopes)] * odds + (-1) ** week * bend * (1 - 3 * ranks**2) / 2
        labels = (np.log(1 / rng.random(odds.size) - 1) > -truth).astype(np.int64)
        weeks.append((softmax(np.column_stack([np.zeros(odds.size), odds]), axis=1), labels))
    found = concept.as_usual(*(np.concatenate(parts) for parts in zip(*weeks, strict=True)))
    assert found is not None
    return found


def test_labels_of_one_class_say_nothing() -> None:
    calibrated, _ = world(1, 50, np.array([0.5, 0.5]))
    assert not concept.strata(calibrated, np.ones(50, dtype=np.int64)).sign.size
    assert not concept.strata(calibrated[:0], np.empty(0, dtype=np.int64)).sign.size


def test_scores_that_say_nothing_of_the_labels_have_no_usual_relation() -> None:
    labels = np.arange(1_000) % 2
    assert concept.as_usual(np.full((1_000, 2), 0.5), labels) is None
    assert concept.as_usual(np.full((1_000, 2), 0.5), np.zeros(1_000, dtype=np.int64)) is None


def test_of_a_model_that_makes_hardly_a_mistake_labels_by_chance_are_seen() -> None:
    """Its hold-out knows the slope badly, and yet that it is no small one."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 2_200)
    sure = 1 / (1 + np.exp(-8.0 * (2 * labels - 1) + rng.normal(size=labels.size)))
    calibrated = np.column_stack([1 - sure, sure])
    usual = concept.as_usual(calibrated[:2_000], labels[:2_000])
    assert usual is not None
    assert usual.tells
    assert not alarms([(calibrated[2_000:], labels[2_000:])] * 5, usual)
    assert alarms([(calibrated[2_000:], rng.permutation(labels[2_000:]))] * 3, usual)


def test_scores_of_few_values_have_fewer_bends_and_no_warning() -> None:
    """A tree of two leaves: a rank says no more than the score."""
    rng = np.random.default_rng(5)
    scores = np.where(rng.random(2_000) < 0.5, 0.2, 0.8)
    labels = (rng.random(2_000) < scores).astype(np.int64)
    usual = concept.as_usual(np.column_stack([1 - scores, scores]), labels)
    assert usual is not None
    assert usual.base.size == 1
    assert usual.base[0] == pytest.approx(1.0, abs=0.2)
