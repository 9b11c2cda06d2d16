"""Which class mix is published where label shift does not explain a window, and that its interval is honest then."""

import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from monitor.assessment import assess
from monitor.assessment.prevalence import BasedOn
from monitor.ports.schema import Feature, StreamSchema
from monitor.priors import DEFAULT
from monitor.recalibration import Cause
from monitor.reference.blocks import cut
from monitor.windows.window import Window
from tests.assessment import worlds

BLOCK = 250
BLOCKS = 40
SCHEMA = StreamSchema("weeks", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))


def weeks(number, seed, inputs=0.5, mix=0.3):
    """Blocks whose inputs and mix differ by more than their sampling: features, labels, one block after the other."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for _ in range(number):
        weights = worlds.PRIORS * np.exp(mix * rng.normal(size=3))
        y = rng.choice(3, size=BLOCK, p=weights / weights.sum())
        rows.append(worlds.features(y, rng) + inputs * rng.normal(size=4))
        labels.append(y)
    return np.concatenate(rows), np.concatenate(labels)


@cache
def reference(inputs=0.5, mix=0.3, blocks=True):
    x, labels = weeks(BLOCKS, 0, inputs, mix)
    return worlds.cheaply(SCHEMA, worlds.posteriors(x), labels, x, cut(BLOCK, labels.size) if blocks else None)


def windows(inputs=0.5, mix=0.3, number=60, seed=1):
    """Each with the shares of its classes."""
    x, labels = weeks(number, seed, inputs, mix)
    for k in range(number):
        at = slice(k * BLOCK, (k + 1) * BLOCK)
        yield Window.of(worlds.posteriors(x[at]), x[at]), np.bincount(labels[at], minlength=3) / BLOCK


def errors(assessments):
    """Mean absolute error and coverage of what is published."""
    off = [np.abs(one.prevalence.priors - truth) for one, truth in assessments]
    held = [
        (one.prevalence.lower <= truth + 1e-12) & (truth <= one.prevalence.upper + 1e-12) for one, truth in assessments
    ]
    return np.mean(off), np.mean(held)


def test_where_weeks_differ_by_nature_the_published_mix_is_no_worse_than_simple_rules_and_its_interval_holds() -> None:
    known = reference()
    found = [(assess(window, known), truth) for window, truth in windows()]
    published, coverage = errors(found)
    rules = {
        "reference": np.mean([np.abs(known.source_priors - truth) for _, truth in found]),
        "pcc": np.mean([np.abs(one.estimates["pcc"].priors - truth) for one, truth in found]),
        "em": np.mean([np.abs(one.estimates[DEFAULT].priors - truth) for one, truth in found]),
    }
    assert published <= 1.05 * min(rules.values())
    assert coverage >= 0.9
    assert {one.based_on for one, _ in found} == {BasedOn.FAMILIAR_INPUTS}


def test_where_label_shift_is_the_whole_truth_it_is_what_is_published() -> None:
    known = reference(inputs=0.0, mix=0.0)
    x, _ = worlds.draw(1_000, 5, np.array([0.1, 0.3, 0.6]))
    found = assess(Window.of(worlds.posteriors(x), x), known)
    assert (found.verdict, found.based_on) == ("prior-shift", BasedOn.LABEL_SHIFT)
    assert (found.prevalence.priors == found.estimates[DEFAULT].priors).all()


def test_where_nothing_moved_the_mix_is_what_was_closest_in_the_blocks_within_the_interval_of_label_shift() -> None:
    known = reference(inputs=0.0, mix=0.0)
    off = []
    for window, truth in windows(inputs=0.0, mix=0.0, number=30):
        found = assess(window, known)
        if found.verdict != "stable":
            continue
        of_label_shift = found.estimates[DEFAULT]
        assert found.based_on is BasedOn.LABEL_SHIFT
        assert (found.prevalence.lower <= np.minimum(of_label_shift.lower, found.prevalence.priors)).all()
        assert (found.prevalence.upper >= np.maximum(of_label_shift.upper, found.prevalence.priors)).all()
        assert (found.label_shift.priors == of_label_shift.priors).all()
        assert any("nothing moved that counts" in reason for reason in found.reasons)
        estimates = (found.prevalence.priors, of_label_shift.priors)
        off.append([np.abs(mix - truth).mean() for mix in estimates])
    assert len(off) >= 28
    assert np.divide(*np.mean(off, axis=0)) < 0.95


def test_where_nothing_moves_scores_that_tell_little_are_hardly_believed() -> None:
    rng = np.random.default_rng(4)

    def drawn(rows):
        y = rng.choice(3, size=rows, p=worlds.PRIORS)
        hints = 0.3 * np.eye(3)[y] + rng.normal(size=(rows, 3))
        return softmax(np.log(worlds.PRIORS) + 0.3 * hints, axis=1), y, rng.normal(size=(rows, 4))

    posteriors, y, x = drawn(30 * BLOCK)
    known = worlds.cheaply(SCHEMA, posteriors, y, x, cut(BLOCK, y.size))
    off = []
    for _ in range(20):
        posteriors, y, x = drawn(BLOCK)
        found, truth = assess(Window.of(posteriors, x), known), np.bincount(y, minlength=3) / BLOCK
        if found.verdict == "stable":
            off.append(
                [np.abs(mix - truth).mean() for mix in (found.prevalence.priors, found.estimates[DEFAULT].priors)]
            )
            assert (found.prevalence.upper - found.prevalence.lower > 0.1).any()  # of a shift that nobody can see
    assert len(off) >= 18
    assert np.divide(*np.mean(off, axis=0)) < 0.3


def test_a_reference_without_blocks_does_not_know_what_estimates_are_worth_and_publishes_label_shift() -> None:
    known = reference(inputs=0.0, mix=0.0, blocks=False)
    window, _ = next(windows(inputs=0.0, mix=0.0, number=1))
    found = assess(window, known)
    assert found.verdict == "stable"
    assert (found.prevalence.priors == found.estimates[DEFAULT].priors).all()


def test_where_weeks_differ_by_nature_no_mix_that_moved_is_believed_to_be_all_that_moved() -> None:
    known = reference()
    found = [(assess(window, known), truth) for window, truth in windows(mix=2.0, number=30)]
    moved = [(answer, truth) for answer, truth in found if "prior" in answer.verdict]
    assert errors(moved)[1] >= 0.9
    for answer, _ in moved:
        assert answer.based_on is BasedOn.FAMILIAR_INPUTS
        assert not answer.recalibration.apply
        assert set(answer.recalibration.multipliers) == {1.0}
        assert answer.recalibration.cause in {Cause.OTHER_SHIFT, Cause.STABLE}


def test_errors_that_differ_between_the_halves_of_the_hold_out_are_expected_to_go_on_doing_so() -> None:
    x, labels = weeks(BLOCKS, 0)
    late = np.arange(labels.size) >= labels.size // 2
    flipped = np.where(late & (labels == 0) & (np.random.default_rng(5).random(labels.size) < 0.5), 1, labels)
    drifting = worlds.cheaply(SCHEMA, worlds.posteriors(x), flipped, x, cut(BLOCK, labels.size))
    window, _ = next(windows())
    calm, wide = assess(window, reference()).prevalence, assess(window, drifting).prevalence
    assert (wide.upper - wide.lower)[0] > 2 * (calm.upper - calm.lower)[0]


def test_errors_that_began_shortly_before_the_end_of_the_hold_out_are_expected_to_go_on() -> None:
    x, labels = weeks(BLOCKS, 0)
    late = np.arange(labels.size) >= labels.size - 2 * BLOCK
    flipped = np.where(late & (labels == 0), 1, labels)
    changed = worlds.cheaply(SCHEMA, worlds.posteriors(x), flipped, x, cut(BLOCK, labels.size))
    going_on = [
        (assess(window, changed), np.array([0.0, truth[0] + truth[1], truth[2]]))
        for window, truth in windows(number=20)
    ]
    off, held = errors(going_on)
    assert off > 0.1
    assert held >= 0.9


def test_without_blocks_a_window_that_nothing_explains_gets_an_interval_that_holds_every_simple_answer() -> None:
    known, seen = reference(blocks=False), 0
    for window, truth in windows(number=10):
        found = assess(window, known)
        if found.verdict != "unexplained":
            continue
        seen += 1
        mix = found.prevalence
        assert found.based_on is BasedOn.FAMILIAR_INPUTS
        assert "no blocks" in found.reasons[-1]
        for other in (known.source_priors, found.estimates["pcc"].priors, found.estimates[DEFAULT].priors):
            assert (mix.lower <= other + 1e-12).all()
            assert (other <= mix.upper + 1e-12).all()
        assert ((mix.lower <= truth) & (truth <= mix.upper)).all()
    assert seen


def test_the_message_says_by_which_rule_and_why() -> None:
    window, _ = next(windows())
    message = json.loads(assess(window, reference()).to_json())
    assert message["based_on"] == message["estimator"] == "familiar-inputs"
    assert any("calibrated scores" in reason for reason in message["reasons"])


def test_strange_inputs_pull_the_mix_towards_the_reference_and_widen_its_interval() -> None:
    known = reference()
    window, _ = next(windows())
    assert window.features is not None
    shift = np.array([0.0, 0.0, 6.0, 6.0])
    strange = Window.of(window.posteriors, window.features + shift)
    usual, odd = assess(window, known), assess(strange, known)
    away = [np.abs(one.prevalence.priors - known.source_priors).sum() for one in (usual, odd)]
    width = [(one.prevalence.upper - one.prevalence.lower).sum() for one in (usual, odd)]
    assert away[1] < away[0]
    assert width[1] > width[0]
    assert "as far from the reference as usual" in odd.reasons[-1]


def test_inputs_that_are_wholly_strange_leave_an_interval_that_says_nobody_knows() -> None:
    known = reference()
    for window, _ in windows(number=3):
        usual = assess(window, known).prevalence
        strange = assess(Window.of(window.posteriors, np.asarray(window.features) + 50.0), known).prevalence
        assert (strange.upper - strange.lower).mean() > 2 * (usual.upper - usual.lower).mean()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 5), st.sampled_from([100, 250, 1_000]))
def test_a_published_mix_is_one_with_an_interval_around_it(seed: int, change: float, rows: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=rows, p=rng.dirichlet(np.ones(3)))
    x = worlds.features(labels, rng) + change * rng.normal(size=4)
    for blocks in (True, False):
        mix = assess(Window.of(worlds.posteriors(x), x), reference(blocks=blocks)).prevalence
        assert mix.priors.sum() == pytest.approx(1)
        assert (mix.lower <= mix.priors + 1e-12).all()
        assert (mix.priors <= mix.upper + 1e-12).all()
        assert mix.lower.min() >= 0
        assert mix.upper.max() <= 1
