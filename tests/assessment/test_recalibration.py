"""When a correction is applied, what it holds, and that it does not flap."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.priors import bayes
from monitor.recalibration import Grounds, InputCorrection, Validity, identity, imply, justified, retargeted, settled

CLASSES = ("legit", "fraud")
SOURCE = np.array([0.9, 0.1])
SURE = Grounds(
    verdict="prior-shift",
    target_priors=np.array([0.7, 0.3]),
    half_widths=np.array([0.02, 0.02]),
    trustworthy=True,
    mix_significant=True,
    disagreement=0.01,
    allowed=0.1,
)


def corrected(grounds=SURE):
    return imply(CLASSES, SOURCE, grounds, {}, Validity(reference="r1"))


def test_a_sure_prior_shift_multiplies_posteriors_as_bayes_does():
    found = corrected()
    g = np.array([[0.4, 0.6], [0.99, 0.01]])
    mine = g * found.multipliers
    assert np.allclose(mine / mine.sum(axis=1, keepdims=True), bayes.correct(g, SOURCE, SURE.target_priors))
    assert found.log_multipliers == pytest.approx(np.log(found.multipliers))


def test_at_the_moved_threshold_the_corrected_posterior_is_one_half():
    found = corrected()
    t = found.thresholds["fraud"]
    assert bayes.correct([[1 - t, t]], SOURCE, SURE.target_priors)[0, 1] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "doubt",
    [
        {"verdict": "stable"},
        {"verdict": "covariate-shift"},
        {"verdict": "prior-and-covariate-shift"},
        {"verdict": "unknown-class"},
        {"verdict": "unexplained"},
        {"verdict": "insufficient-data"},
        {"mix_significant": False},
        {"trustworthy": False},
        {"disagreement": 0.3},
        {"half_widths": np.array([0.3, 0.3])},
        {"hold_out_events": 290.0},
        {"told_apart": 1.0},
    ],
)
def test_any_doubt_leaves_scores_exactly_as_they_are_and_says_why(doubt):
    found = corrected(replace(SURE, **doubt))
    assert not found.apply
    assert found.multipliers == (1.0, 1.0)
    assert found.log_multipliers == (0.0, 0.0)
    assert found.thresholds == {"legit": 0.5, "fraud": 0.5}
    assert found.reason


def test_a_class_that_is_gone_has_a_finite_logarithm():
    found = corrected(replace(SURE, target_priors=np.array([1.0, 0.0]), half_widths=np.zeros(2)))
    assert found.multipliers[1] == 0.0
    assert np.exp(found.log_multipliers[1]) == 0.0
    assert np.isfinite(found.log_multipliers).all()
    assert all(np.isfinite(list(found.thresholds.values())))


def test_a_class_of_which_no_event_is_seen_is_taken_for_rare_and_not_for_impossible():
    found = corrected(replace(SURE, target_priors=np.array([1.0, 0.0]), half_widths=np.array([0.015, 0.015])))
    assert found.target_priors[1] == pytest.approx(0.01, rel=0.02)  # a third of what it may be at most
    assert sum(found.target_priors) == pytest.approx(1.0)
    assert found.multipliers[1] * found.source_priors[1] == pytest.approx(found.target_priors[1])
    common = corrected(SURE)
    assert common.target_priors == tuple(SURE.target_priors)


SHARES = st.lists(st.floats(0.001, 1), min_size=2, max_size=8).map(lambda parts: np.array(parts) / sum(parts))


@given(st.data(), SHARES, st.integers(30, 3_000))
def test_no_multiplier_rests_on_a_handful_of_hold_out_events(data, source, events):
    drawn = data.draw(st.lists(st.floats(0, 1), min_size=source.size, max_size=source.size).filter(sum))
    estimate, half_widths = np.array(drawn) / sum(drawn), np.full(source.size, 0.001)
    grounds = replace(SURE, target_priors=estimate, half_widths=half_widths, hold_out_events=events)
    found = imply(tuple(map(str, range(source.size))), source, grounds, {}, Validity())
    counts, multipliers = np.rint(source * events), np.array(found.multipliers)
    rare = counts < 30
    if found.apply:
        assert np.allclose(found.target_priors, multipliers * source)
        assert np.allclose(multipliers[rare], multipliers[rare][:1])
        assert sum(found.target_priors) == pytest.approx(1)
    if 0 < counts[rare].sum() < 30:
        assert np.allclose(multipliers[rare], 1)
    if not rare.any():
        assert found.apply == (np.abs(estimate - source) > half_widths).any()


def test_classes_that_are_rare_each_are_corrected_together_and_the_others_by_themselves():
    source, estimate = np.array([0.5, 0.46, 0.02, 0.02]), np.array([0.2, 0.6, 0.16, 0.04])
    grounds = replace(SURE, target_priors=estimate, half_widths=np.full(4, 0.01), hold_out_events=1_000)
    found = imply(("a", "b", "c", "d"), source, grounds, {}, Validity())
    assert found.apply
    assert found.multipliers == pytest.approx((0.4, 0.6 / 0.46, 5, 5))
    assert found.target_errors == pytest.approx((0.01, 0.01, 0.01 / 2**0.5, 0.01 / 2**0.5))


def test_the_smoothed_mix_does_not_bring_back_what_a_handful_of_events_seems_to_say():
    source, estimate = np.array([0.5, 0.48, 0.02]), np.array([0.2, 0.75, 0.05])
    grounds = replace(SURE, target_priors=estimate, half_widths=np.full(3, 0.01), hold_out_events=1_000)
    found = imply(("a", "b", "c"), source, grounds, {}, Validity())
    assert found.apply
    smoothed = retargeted(found, np.array([0.3, 0.64, 0.06]), np.full(3, 0.01), 1_000)
    assert smoothed.apply
    assert (found.multipliers[2], smoothed.multipliers[2]) == (1, 1)
    assert not retargeted(found, np.array([0.3, 0.5, 0.2]), np.full(3, 0.01), 1_000).apply


@given(st.floats(0, 1), st.floats(0.01, 0.99))
def test_any_estimate_gives_finite_numbers(target, source):
    grounds = replace(SURE, target_priors=np.array([1 - target, target]))
    found = imply(CLASSES, np.array([1 - source, source]), grounds, {}, Validity())
    assert np.isfinite([*found.multipliers, *found.log_multipliers, *found.thresholds.values()]).all()


def test_an_unsure_window_near_the_correction_in_force_keeps_it():
    unsure = corrected(replace(SURE, target_priors=np.array([0.75, 0.25]), mix_significant=False))
    assert settled(corrected(), unsure).multipliers == corrected().multipliers


def test_an_unsure_window_near_the_reference_ends_the_correction():
    unsure = corrected(replace(SURE, target_priors=np.array([0.88, 0.12]), mix_significant=False))
    assert settled(corrected(), unsure) is unsure


def unsure(fraud: float, half_width: float):
    """A window whose change is within chance, with an estimate and its error."""
    half_widths = np.array([half_width, half_width])
    target = np.array([1 - fraud, fraud])
    return corrected(replace(SURE, target_priors=target, half_widths=half_widths, mix_significant=False))


def test_small_windows_end_a_correction_together_where_a_large_one_does_alone():
    small, large = unsure(0.16, 0.25), unsure(0.16, 0.02)
    assert not settled(corrected(), large).apply
    course = corrected()
    kept = 0
    while (course := settled(course, small)).apply:
        kept += 1
    assert 1 < kept < 20
    assert course is small


def test_small_windows_on_both_sides_of_the_middle_keep_a_correction():
    course = corrected()
    for fraud in [0.16, 0.24] * 20:
        course = settled(course, unsure(fraud, 0.25))
    assert course.apply


def test_an_unsure_window_without_errors_is_taken_by_what_it_is_nearer_to():
    near, far = (replace(unsure(fraud, 0.1), target_errors=()) for fraud in (0.21, 0.19))
    assert settled(corrected(), near).apply
    assert not settled(corrected(), far).apply


def test_another_shift_or_another_reference_ends_the_correction():
    covariate = corrected(replace(SURE, verdict="covariate-shift"))
    assert settled(corrected(), covariate) is covariate
    unsure = corrected(replace(SURE, mix_significant=False))
    elsewhere = replace(unsure, validity=Validity(reference="r2"))
    assert settled(corrected(), elsewhere) is elsewhere


def test_a_window_with_too_few_events_contradicts_nothing():
    silent = corrected(replace(SURE, verdict="insufficient-data", target_priors=np.array([0.88, 0.12])))
    inputs = {"amount": InputCorrection("linear", 1.8, 32.0)}
    before = replace(corrected(), inputs=inputs, tree={"model": "m"})
    kept = settled(before, silent)
    assert (kept.apply, kept.multipliers, kept.inputs, kept.tree) == (True, before.multipliers, inputs, {"model": "m"})
    assert kept.validity == silent.validity
    unmoved = settled(replace(before, apply=False, multipliers=(1.0, 1.0)), silent)
    assert (unmoved.apply, unmoved.multipliers, unmoved.inputs) == (False, (1.0, 1.0), inputs)
    assert "insufficient-data" in unmoved.reason


def test_nothing_known_corrects_nothing():
    found = identity(CLASSES, SOURCE, reason="no window yet")
    assert (found.apply, found.multipliers, found.reason) == (False, (1.0, 1.0), "no window yet")
    assert not justified(replace(SURE, verdict="stable"), SOURCE)[0]


def test_a_scoring_service_needs_numpy_alone():
    code = (
        "import sys, monitor.recalibration\n"
        "heavy = {'scipy', 'sklearn', 'river', 'msgspec'} & {name.split('.')[0] for name in sys.modules}\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
