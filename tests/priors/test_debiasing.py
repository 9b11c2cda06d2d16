"""`em-debiased`: as precise as EM where posteriors are right, and not as wrong as it where they are not."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from monitor import Reference
from monitor.arrays import Vector
from monitor.priors import DEFAULT, ESTIMATORS, PriorEstimate, solve
from monitor.tolerances import DOUBT, LEAST_DOUBT
from monitor.windows import Window
from tests.bench.papers.esuli import HARD
from tests.bench.papers.esuli_runs import World
from tests.priors.doubles import PlainReference
from tests.priors.test_doubt import MIX, SOURCE, scored


def answers(wrong: float, held_out: int, events: int, seed: int) -> tuple[dict[str, PriorEstimate], Vector]:
    """What all three say of a window, and its mix."""
    g, labels = scored(held_out, SOURCE, wrong, 100 + seed)
    reference = PlainReference.of(g, labels, None, names=["em", "pacc", "retargeted", "em-debiased"])
    posteriors, truth = scored(events, MIX, wrong, 200 + seed)
    return solve(["em", "retargeted", "em-debiased"], Window.of(posteriors), reference), np.bincount(truth) / truth.size


def mean_errors(wrong: float, held_out: int, events: int) -> dict[str, float]:
    found = [answers(wrong, held_out, events, seed) for seed in range(20)]
    return {name: float(np.mean([np.abs(said[name].priors - mix) for said, mix in found])) for name in found[0][0]}


def test_where_posteriors_are_wrong_more_events_lead_to_the_truth() -> None:
    few, many = mean_errors(0.6, 20_000, 500), mean_errors(0.6, 20_000, 5_000)
    assert many["em-debiased"] < 0.6 * few["em-debiased"]
    assert many["em-debiased"] < 0.6 * many["em"]


def test_where_they_are_right_it_is_em_but_for_chance() -> None:
    found = mean_errors(0.0, 20_000, 1_000)
    assert found["em-debiased"] < 1.03 * found["em"] < found["retargeted"]


def test_it_is_drawn_as_the_formula_says_though_most_windows_need_not_know_how_sure_the_other_is() -> None:
    certain, drawn = 0, 0
    for seed in range(40):
        both, _ = answers((0.0, 0.3)[seed % 2], 2_000, 500, seed)
        em, other = both["em"], both["retargeted"]
        of_em = em.standard_errors**2 - em.bias**2
        of_other = np.maximum(other.standard_errors**2, of_em)
        squares = (other.priors - em.priors) ** 2
        beyond = max((squares - DOUBT**2 * np.maximum(of_other - of_em, LEAST_DOUBT * of_em)).sum(), 0.0)
        share = beyond / (beyond + of_other.sum())
        want = em.priors + share * (other.priors - em.priors)
        np.testing.assert_allclose(both["em-debiased"].priors, want, rtol=1e-12)
        certain += squares.sum() <= DOUBT**2 * LEAST_DOUBT * of_em.sum()
        drawn += share > 0
    assert certain > 5
    assert drawn > 5


@pytest.mark.parametrize("wrong", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("events", [500, 5_000])
def test_its_intervals_hold(wrong: float, events: int) -> None:
    held = [
        (said["em-debiased"].lower <= mix) & (mix <= said["em-debiased"].upper)
        for said, mix in (answers(wrong, 20_000, events, seed) for seed in range(20))
    ]
    assert np.mean(held) >= 0.9


def test_with_one_hold_out_event_of_a_class_that_event_does_not_decide() -> None:
    """By itself it varies by nothing: what is matched would claim to be sure of it."""
    g, labels = scored(2_000, SOURCE, 0.0, 1)
    one = np.concatenate([np.flatnonzero(labels != 2), np.flatnonzero(labels == 2)[:1]])
    reference = PlainReference.of(g[one], labels[one], None, names=["em", "pacc", "retargeted", "em-debiased"])
    said = solve(["em", "em-debiased"], Window.of(scored(500, SOURCE, 0.0, 2)[0]), reference)
    assert np.abs(said["em-debiased"].priors - said["em"].priors).max() < said["em"].standard_errors.max() / 2


def test_without_labelled_events_of_every_class_it_is_em() -> None:
    g, labels = scored(2_000, SOURCE, 0.0, 1)
    whole = PlainReference.of(g, labels, None, names=["em", "pacc", "retargeted", "em-debiased"])
    lacking = replace(whole, statistics={**whole.statistics, "retargeted": {}})
    said = solve(["em", "em-debiased"], Window.of(g[:500]), lacking)
    np.testing.assert_array_equal(said["em-debiased"].priors, said["em"].priors)
    assert said["em-debiased"].method == "em-debiased"


def test_a_regularised_model_of_words_is_what_no_calibration_mends_and_this_does() -> None:
    errors: dict[str, list[float]] = {"em": [], DEFAULT: []}
    for seed in range(6):
        world = World.draw(HARD, 5, seed)
        model = LogisticRegression(max_iter=300).fit(world.train, world.labels[0])
        reference = Reference.fit(model.predict_proba(world.held), world.labels[2], seed=0)
        window = Window.of(model.predict_proba(world.test))
        mix = np.bincount(world.labels[1], minlength=5) / window.events
        for name, found in errors.items():
            found.append(float(np.abs(ESTIMATORS[name](window, reference).priors - mix).mean()))
    assert np.mean(errors[DEFAULT]) < np.mean(errors["em"]) / 1.5


def test_a_class_that_cannot_be_told_from_another_leaves_it_as_unsure_as_em() -> None:
    g, labels = scored(600, SOURCE, 0.0, 1)
    alike = np.column_stack([g[:, :2], g[:, 2] / 2, g[:, 2] / 2])
    split = labels + (labels == 2) * (np.arange(labels.size) % 2)
    reference = PlainReference.of(alike, split, None, names=["em", "pacc", "retargeted", "em-debiased"])
    said = solve(["em", "em-debiased"], Window.of(alike[:300]), reference)
    assert np.isfinite(said["em-debiased"].priors).all()
    np.testing.assert_array_equal((said["em-debiased"].upper - said["em-debiased"].lower)[2:], 1.0)


def test_what_em_allows_for_bias_is_allowed_where_it_is_not_drawn() -> None:
    """Where hold-out events of a class are two, they say nothing against EM, whose interval `pacc` has widened."""
    g, labels = scored(9_000, SOURCE, 0.6, 3)
    few = np.concatenate([np.flatnonzero(labels != 2), np.flatnonzero(labels == 2)[:2]])
    reference = PlainReference.of(g[few], labels[few], None, names=["em", "pacc", "retargeted", "em-debiased"])
    for seed in range(8):
        window = Window.of(scored(2_000, MIX, 0.6, 50 + seed)[0])
        said = solve(["em", "em-debiased"], window, reference)
        undrawn = np.allclose(said["em-debiased"].priors, said["em"].priors)
        if undrawn:
            assert (said["em-debiased"].standard_errors >= said["em"].standard_errors * (1 - 1e-12)).all()
    widened = PlainReference.of(g, labels, None, names=["em", "pacc", "retargeted", "em-debiased"])
    window = Window.of(scored(2_000, MIX, 0.6, 2)[0])
    both = solve(["em", "em-debiased", "retargeted"], window, widened)
    found, em, other = both["em-debiased"], both["em"], both["retargeted"]
    apart = other.priors - em.priors
    share = float((found.priors - em.priors) @ apart / (apart @ apart))
    of_other = np.maximum(other.standard_errors**2, em.standard_errors**2 - em.bias**2)
    want = (1 - share) * em.standard_errors**2 + share * of_other + share * (1 - share) * apart**2
    np.testing.assert_allclose(found.standard_errors**2, want, rtol=1e-9)
    assert (em.bias > 0).any()
