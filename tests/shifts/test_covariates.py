"""Explanations: what they say about known transforms, about degenerate windows, and about what cannot be known."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.shifts import covariates, ks
from monitor.shifts.maps import InputMap, percentile_map
from monitor.tolerances import EXPLANATION_FLOOR, EXPLANATION_LEVEL

FINITE = st.floats(-1e6, 1e6, allow_nan=False)
COLUMNS = st.lists(FINITE, max_size=60)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def skewed(random: np.random.Generator, size: int) -> np.ndarray:
    return random.gamma(2.0, size=size)


def test_an_unmoved_feature_needs_no_correction() -> None:
    found = covariates.explain(skewed(rng(1), 20_000), skewed(rng(2), 2_000))
    assert found.kind == "none"
    np.testing.assert_array_equal(found.map([1.0, 2.0]), [1.0, 2.0])
    np.testing.assert_array_equal(found.inverse([1.0, 2.0]), [1.0, 2.0])


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 0.0), (0.5, 0.0), (1.0, 1.0), (1.31, 4.2), (0.5, -3.0)])
def test_a_linear_shift_is_found_with_its_parameters(alpha: float, beta: float) -> None:
    found = covariates.explain(skewed(rng(1), 50_000), alpha * skewed(rng(2), 10_000) + beta)
    assert (found.kind, found.orientation) == ("linear", "increasing")
    assert found.alpha == pytest.approx(alpha, rel=0.04)
    assert found.beta == pytest.approx(beta, abs=0.08 * alpha)
    assert found.p_value < EXPLANATION_LEVEL <= found.corrected_p_value


def test_the_test_before_the_correction_is_the_plain_two_sample_test() -> None:
    reference, weights = skewed(rng(1), 20_000), rng(3).random(20_000)
    for scale, rows, v in itertools.product((1.0, 1.02, 1.05, 1.3), (1, 40, 2_000, 9_000), (None, weights)):
        window = scale * skewed(rng(rows), rows)
        found, plain = covariates.explain(reference, window, v), ks.two_sample(reference, window, v)
        assert (found.statistic, found.p_value) == (plain.statistic, pytest.approx(plain.p_value, abs=3e-4))


def test_alpha_and_beta_are_the_moments_of_algorithm_2() -> None:
    reference, window = skewed(rng(1), 5_000), 3 * skewed(rng(2), 700) + 1
    found = covariates.explain(reference, window)
    sigma_tr, sigma_dep = reference.std(), window.std()
    assert found.alpha == pytest.approx(sigma_dep / sigma_tr)
    assert found.beta == pytest.approx(window.mean() - found.alpha * reference.mean())
    np.testing.assert_allclose(found.map(window), (window - found.beta) / found.alpha)
    np.testing.assert_allclose(found.inverse([2.5]), [found.alpha * 2.5 + found.beta])


def test_heavy_tails_spoil_the_moments_but_not_the_line() -> None:
    found = covariates.explain(rng(1).standard_cauchy(50_000), 2 * rng(2).standard_cauchy(10_000) + 3)
    assert found.kind == "linear"
    assert found.alpha == pytest.approx(2, rel=0.1)
    assert found.beta == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize("transform", [np.exp, lambda x: x**3, lambda x: np.where(x > 0.5, 5 * x, x)])
def test_a_monotone_shift_is_undone_by_percentiles(transform) -> None:
    found = covariates.explain(rng(1).normal(size=50_000), transform(rng(2).normal(size=10_000)))
    assert (found.kind, found.orientation) == ("monotone", "assumed")
    thresholds = np.array([-1.5, -0.7, 0.0, 0.4, 1.2, 1.9])
    np.testing.assert_allclose(found.map(transform(thresholds)), thresholds, atol=0.15)
    shares = (rng(3).normal(size=20_000)[:, None] <= thresholds).mean(axis=0)
    fresh = transform(rng(3).normal(size=20_000))
    np.testing.assert_allclose((fresh[:, None] <= found.inverse(thresholds)).mean(axis=0), shares, atol=0.02)


def test_a_change_that_no_map_undoes_is_a_change_of_shape() -> None:
    zeros = skewed(rng(1), 20_000) * (rng(2).random(20_000) < 0.7)
    window = skewed(rng(3), 5_000) * (rng(4).random(5_000) < 0.4)
    found = covariates.explain(zeros, window)
    assert found.kind == "shape"
    np.testing.assert_array_equal(found.map([3.0]), [3.0])


@pytest.mark.parametrize(("factor", "offset"), [(1, 3), (2, 0), (3, -5)])
def test_a_line_on_a_lattice_of_counts_is_still_a_line(factor: int, offset: int) -> None:
    found = covariates.explain(rng(1).poisson(4, 20_000), factor * rng(2).poisson(4, 5_000) + offset)
    assert found.kind == "linear"
    assert found.alpha == pytest.approx(factor, rel=0.05)


def test_zeros_stay_zeros_under_a_percentile_map() -> None:
    reference = skewed(rng(1), 20_000) * (rng(2).random(20_000) < 0.7)
    window = np.sqrt(skewed(rng(3), 5_000) * (rng(4).random(5_000) < 0.7))
    found = covariates.explain(reference, window)
    assert found.kind == "monotone"
    assert found.map([0.0])[0] == 0.0


def mixed(random: np.random.Generator, share: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    labels = (random.random(size) < share).astype(int)
    return random.normal(size=size) + 2 * labels, labels


def test_a_pure_change_of_the_class_mix_moves_nothing_under_reweighting() -> None:
    reference, labels = mixed(rng(1), 0.2, 50_000)
    window, _ = mixed(rng(2), 0.7, 5_000)
    weights = np.where(labels == 1, 0.7 / 0.2, 0.3 / 0.8)
    assert covariates.explain(reference, window).kind != "none"
    assert covariates.explain(reference, window, weights).kind == "none"


def test_a_line_is_fitted_to_the_reweighted_reference() -> None:
    reference, labels = mixed(rng(1), 0.2, 50_000)
    window, _ = mixed(rng(2), 0.7, 5_000)
    weights = np.where(labels == 1, 0.7 / 0.2, 0.3 / 0.8)
    found = covariates.explain(reference, 1.3 * window + 1, weights)
    assert (found.kind, found.orientation) == ("linear", "increasing")
    assert found.alpha == pytest.approx(1.3, rel=0.05)
    assert found.beta == pytest.approx(1.0, abs=0.1)


def test_a_mirrored_feature_is_recognised_when_the_class_mix_is_known() -> None:
    reference, labels = mixed(rng(1), 0.2, 50_000)
    window, _ = mixed(rng(2), 0.7, 5_000)
    weights = np.where(labels == 1, 0.7 / 0.2, 0.3 / 0.8)
    found = covariates.explain(reference, 4 - 1.3 * window, weights)
    assert (found.kind, found.orientation) == ("linear", "decreasing")
    assert found.alpha == pytest.approx(-1.3, rel=0.05)
    np.testing.assert_allclose(found.map(4 - 1.3 * np.array([0.5])), [0.5], atol=0.1)


def test_a_mirrored_class_mix_is_not_mistaken_for_a_mirrored_feature() -> None:
    reference, _ = mixed(rng(1), 0.2, 50_000)
    window, _ = mixed(rng(2), 0.8, 5_000)
    assert covariates.explain(reference, window).alpha > 0


def test_a_small_window_that_fits_a_mirrored_line_is_no_evidence_of_one() -> None:
    reference, window = skewed(rng(1), 50_000), -skewed(rng(2), 200)
    found = covariates.explain(reference, window, np.ones(50_000), level=0.05)
    told = covariates.explain(reference, window, np.ones(50_000), level=0.05, direction="decreasing")
    assert (told.kind, told.orientation) == ("linear", "decreasing")
    assert (found.kind, found.orientation) == ("monotone", "assumed")
    assert found.alpha > 0


def test_a_symmetric_feature_does_not_show_its_direction_and_the_result_says_so() -> None:
    found = covariates.explain(rng(1).normal(size=20_000), 2 - 3 * rng(2).normal(size=5_000))
    assert (found.kind, found.orientation) == ("linear", "assumed")
    assert found.alpha > 0
    told = covariates.explain(rng(1).normal(size=20_000), 2 - 3 * rng(2).normal(size=5_000), direction="decreasing")
    assert (told.kind, told.orientation) == ("linear", "decreasing")
    assert told.alpha == pytest.approx(-3, rel=0.05)


def test_a_known_decreasing_direction_turns_the_percentile_map_round() -> None:
    reference, window = rng(1).normal(size=20_000), np.exp(-rng(2).normal(size=5_000))
    found = covariates.explain(reference, window, direction="decreasing")
    assert (found.kind, found.orientation) == ("monotone", "decreasing")
    np.testing.assert_allclose(found.map(np.exp([-1.0, 0.0, 1.0])), [1.0, 0.0, -1.0], atol=0.12)
    assert np.all(np.diff(found.inverse([-1.0, 0.0, 1.0])) < 0)


def test_a_feature_known_to_be_mirrored_is_mapped_back_although_its_distribution_looks_the_same() -> None:
    reference, window = rng(1).normal(size=20_000), -rng(2).normal(size=5_000)
    assert covariates.explain(reference, window).kind == "none"
    found = covariates.explain(reference, window, direction="decreasing")
    assert (found.kind, found.alpha) == ("linear", pytest.approx(-1, rel=0.05))


def test_lines_and_percentiles_can_be_had_without_a_test() -> None:
    reference, window = skewed(rng(1), 5_000), skewed(rng(2), 800)
    line = covariates.line_by_moments(reference, window)
    assert (line.kind, line.alpha) == ("linear", pytest.approx(window.std() / reference.std()))
    shares = covariates.percentiles(reference, window)
    np.testing.assert_allclose(shares.inverse([np.median(reference)]), [np.median(window)], rtol=0.02)


@pytest.mark.parametrize("make", [covariates.line_by_moments, covariates.percentiles])
@pytest.mark.parametrize(("reference", "window"), [([], [1.0]), ([1.0, 2.0], [5.0]), ([1.0, 1.0], [2.0, 3.0])])
def test_without_spread_there_is_no_map(make, reference: list[float], window: list[float]) -> None:
    assert make(reference, window).kind == "none"


def test_one_constant_that_became_another_is_a_translation() -> None:
    found = covariates.explain(np.full(100, 0.1), np.full(1_000, 0.2))
    assert (found.kind, found.alpha) == ("linear", 1.0)
    np.testing.assert_allclose(found.map([0.2]), [0.1])


@pytest.mark.parametrize(
    ("reference", "window", "side"),
    [(np.ones(100), np.arange(100.0), "reference"), (np.arange(100.0), np.ones(100) * 50, "window")],
)
def test_a_constant_on_one_side_only_has_no_map(reference: np.ndarray, window: np.ndarray, side: str) -> None:
    found = covariates.explain(reference, window)
    assert found.kind == "shape"
    assert side in found.reason


def test_a_window_of_one_row_proves_nothing() -> None:
    found = covariates.explain(np.arange(1_000.0), [1e9])
    assert found.kind in {"none", "shape"}
    np.testing.assert_array_equal(found.map([1e9]), [1e9])


@pytest.mark.parametrize(("reference", "window"), [([], [1.0]), ([1.0], []), ([1.0], [np.nan] * 3), ([], [])])
def test_an_empty_side_is_no_move_with_a_reason(reference: list[float], window: list[float]) -> None:
    found = covariates.explain(reference, window)
    assert found.kind == "none"
    assert "no values" in found.reason


def test_missing_values_are_counted_and_take_no_part() -> None:
    window = 2 * skewed(rng(2), 3_000)
    holes = np.concatenate([window, [np.nan, np.inf, np.nan]])
    full, holed = covariates.explain(skewed(rng(1), 9_000), window), covariates.explain(skewed(rng(1), 9_000), holes)
    assert (full.missing, holed.missing) == (0, 3)
    assert (full.alpha, full.beta, full.p_value) == (holed.alpha, holed.beta, holed.p_value)
    assert np.isnan(holed.map([np.nan])[0])


def test_values_near_the_largest_float_have_an_explanation() -> None:
    found = covariates.explain(skewed(rng(1), 2_000) * 1e300, skewed(rng(2), 500) * 3e300)
    assert (found.kind, found.alpha) == ("linear", pytest.approx(3, rel=0.2))


def test_a_shift_below_the_floor_does_not_count_however_significant() -> None:
    reference, window = np.linspace(0, 1, 1_000_000), np.linspace(0, 1, 1_000_000) + EXPLANATION_FLOOR / 2
    found = covariates.explain(reference, window)
    assert (found.kind, found.p_value < EXPLANATION_LEVEL) == ("none", True)
    assert covariates.explain(reference, window, floor=0.0).kind == "linear"


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 1.0], [1.0, np.nan, 1.0]])
def test_weights_that_do_not_fit_are_refused(weights: list[float]) -> None:
    with pytest.raises(InputError, match="weights"):
        covariates.explain([1.0, 2.0, 3.0], [1.0], weights)


def test_rows_of_weight_zero_are_as_if_absent() -> None:
    reference, window = skewed(rng(1), 4_000), 2 * skewed(rng(2), 1_000)
    padded = covariates.explain(np.append(reference, [1e9] * 50), window, np.append(np.ones(4_000), np.zeros(50)))
    plain = covariates.explain(reference, window, np.ones(4_000))
    assert (padded.alpha, padded.beta, padded.statistic) == (plain.alpha, plain.beta, plain.statistic)


@settings(max_examples=150, deadline=None)
@given(COLUMNS, COLUMNS, st.integers(0, 2**32 - 1))
def test_any_two_columns_have_a_finite_explanation_that_ignores_their_order(reference, window, seed) -> None:
    found = covariates.explain(reference, window, level=0.05)
    mixed_up = covariates.explain(rng(seed).permutation(reference), rng(seed).permutation(window), level=0.05)
    numbers = [found.alpha, found.beta, found.statistic, found.p_value, found.corrected_statistic, found.effect]
    assert np.isfinite(numbers).all()
    assert found.correction.to_message() == mixed_up.correction.to_message()
    probe = np.array([-1e7, -1.0, 0.0, 1.0, 1e7])
    assert np.isfinite(found.map(probe)).all()
    assert np.isfinite(found.inverse(probe)).all()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=50),
    st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=50),
    st.sampled_from([1.0, -1.0]),
)
def test_a_percentile_map_is_strictly_monotone_and_its_own_inverse(reference, window, sign) -> None:
    found = percentile_map(np.sort(reference), None, np.sort(window), (sign, 0.0))
    if found is None:
        return
    probe = np.linspace(-30, 30, 61)
    assert np.all(sign * np.diff(found.map(probe)) > 0)
    np.testing.assert_allclose(found.inverse(found.map(probe)), probe, atol=1e-9)


def test_equal_weights_are_no_weights() -> None:
    reference, window = np.sort(skewed(rng(1), 500)), np.sort(skewed(rng(2), 80) ** 2)
    plain = percentile_map(reference, None, window, (1.0, 0.0))
    weighted = percentile_map(reference, np.arange(501) / 500, window, (1.0, 0.0))
    assert plain is not None
    assert weighted is not None
    assert plain.to_message() == weighted.to_message()


@pytest.mark.parametrize("transform", [lambda x: x, lambda x: 3 * x + 1, np.exp])
def test_a_correction_survives_the_feed(transform) -> None:
    sent = covariates.explain(skewed(rng(1), 5_000), transform(skewed(rng(2), 1_000))).correction
    received = InputMap.from_message(json.loads(json.dumps(sent.to_message())))
    probe = np.linspace(-1, 9, 50)
    np.testing.assert_array_equal(received.map(probe), sent.map(probe))
    np.testing.assert_array_equal(received.inverse(probe), sent.inverse(probe))


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "wild"},
        {"kind": "linear", "alpha": 0.0},
        {"kind": "linear", "alpha": float("nan")},
        {"kind": "monotone", "window": [1.0, 0.0], "reference": [0.0, 1.0]},
        {"kind": "monotone", "window": [0.0, 1.0], "reference": [1.0, 0.0]},
        {"kind": "monotone"},
        {"kind": "monotone", "window": [0.0, 1.0], "reference": [0.0]},
    ],
)
def test_a_correction_that_could_not_be_applied_is_refused(message) -> None:
    with pytest.raises(InputError):
        InputMap.from_message(message)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1.0, 3.0, 0.2]), st.sampled_from([1, 2, 3]), st.booleans())
def test_looking_at_a_few_values_first_changes_no_explanation(seed, scale, power, lattice) -> None:
    random = rng(seed)
    reference, window = random.normal(size=900), scale * random.normal(0.2, 1, size=3_000) ** power
    if lattice:
        reference, window = np.round(reference, 1), np.round(window, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(covariates, "GLANCES", 10)
        hasty = covariates.explain(reference, window)
        patch.setattr(covariates, "GLANCES", 10**9)
        thorough = covariates.explain(reference, window)
    assert hasty.correction.to_message() == thorough.correction.to_message()
    assert hasty.corrected_p_value == thorough.corrected_p_value


def test_inputs_are_left_as_they_were() -> None:
    reference, window, weights = rng(1).normal(size=300), 5 + rng(2).normal(size=200), np.ones(300)
    copies = reference.copy(), window.copy(), weights.copy()
    covariates.explain(reference, window, weights)
    for before, after in zip(copies, (reference, window, weights), strict=True):
        np.testing.assert_array_equal(before, after)
