"""Feature matching: equal to pairwise sums, its geometry, its maps, and what the soft form leaves over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.priors import ESTIMATORS, intervals, maps, matching
from monitor.priors.by_matching import reduce
from monitor.windows.window import Window
from tests.priors import naive
from tests.priors.doubles import PlainReference, Problem


def small(classes: int = 3, rows: int = 45) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2))
    labels = np.arange(rows) % classes
    x[np.arange(rows), labels % 2] += 1.0 + labels
    return x - x.mean(axis=0), labels, rng.normal([1.0, 0.5], size=(20, 2))


@pytest.mark.parametrize("kind", ["gaussian", "energy"])
def test_a_kernel_map_with_every_row_a_landmark_is_the_exact_pairwise_matching(kind: str) -> None:
    x, labels, window = small()

    def gaussian(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.exp(-np.sum((a - b) ** 2) / (2 * 1.3**2)))

    def energy(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.linalg.norm(a) + np.linalg.norm(b) - np.linalg.norm(a - b))

    gram, scores = naive.kernel_matching(gaussian if kind == "gaussian" else energy, x, labels, window, 3)
    if kind == "gaussian":
        kept = maps.whitened(x, maps.gaussian_kernel(x, x, 1.3)) | {"sigma": np.array([1.3])}
        feature_map = maps.GAUSSIAN
    else:
        kept = maps.whitened(x, maps.energy_kernel(x, x))
        feature_map = maps.ENERGY
    counts = np.bincount(labels).astype(float)
    reduced = reduce(feature_map, kept, x, labels, counts)
    np.testing.assert_allclose(reduced["gram"], gram, atol=1e-6)
    ours = reduced["projection"] @ feature_map.apply(kept, window).mean(axis=0)
    np.testing.assert_allclose(ours, scores, atol=1e-5)
    best, _ = naive.simplex_program(gram, scores)
    found = matching.match(reduced["projection"], feature_map.apply(kept, window).mean(axis=0))
    np.testing.assert_allclose(found.priors, best, atol=1e-4)


def test_fourier_features_meet_the_gaussian_kernel_and_eq_10_varies_less_than_eq_11() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    exact = maps.gaussian_kernel(x, x, 1.5)
    errors = {"eq 10": [], "eq 11": []}
    for _ in range(10):
        plain = maps.fourier(x, rng.normal(size=(500, 4)) / 1.5)
        shifted = maps.fourier(x, rng.normal(size=(1000, 4)) / 1.5, rng.uniform(0, 2 * np.pi, 1000))
        assert plain.shape == shifted.shape
        errors["eq 10"].append(np.sqrt(np.mean((plain @ plain.T - exact) ** 2)))
        errors["eq 11"].append(np.sqrt(np.mean((shifted @ shifted.T - exact) ** 2)))
    assert np.mean(errors["eq 10"]) < np.mean(errors["eq 11"]) < 0.04


@given(seed=st.integers(0, 10**6))
def test_for_two_classes_delta_min_is_half_their_squared_distance(seed: int) -> None:
    """dussap, theorem B.2."""
    b = np.random.default_rng(seed).normal(size=(2, 5))
    assert matching.delta_min(b) == pytest.approx(np.sum((b[0] - b[1]) ** 2) / 2)
    assert matching.delta_min(b) >= matching.lambda_min(b)


@given(accuracy=st.floats(0.5, 1.0))
def test_delta_min_of_bbse_is_the_square_of_two_a_minus_one(accuracy: float) -> None:
    """Erratum 3: the print says 2a - 1."""
    means = np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
    assert matching.delta_min(means) == pytest.approx((2 * accuracy - 1) ** 2, abs=1e-12)


def test_equal_class_means_have_a_delta_min_of_zero_not_below() -> None:
    """Erratum 5: rounding may give -1e-17."""
    assert matching.delta_min(np.full((5, 7), 0.1)) >= 0
    assert not matching.match(np.full((3, 4), 0.1), np.full(4, 0.1)).unique


def test_the_soft_form_is_the_hard_one_with_a_class_at_the_origin() -> None:
    rng = np.random.default_rng(0)
    means, window = rng.random((3, 6)), 0.7 * rng.random(6)
    soft = matching.match(means, window, soft=True)
    padded = matching.match(np.vstack([means, np.zeros(6)]), window)
    np.testing.assert_allclose(soft.priors, padded.priors[:3], atol=1e-9)
    assert soft.deficit == pytest.approx(padded.priors[3], abs=1e-9)
    assert soft.priors.sum() == pytest.approx(1 - soft.deficit)


def test_the_hard_form_does_not_depend_on_the_origin_and_the_soft_one_does() -> None:
    """Erratum 4."""
    x, labels, window = small()
    answers = {}
    for soft in (False, True):
        for shift in (0.0, 3.0):
            kept = maps.whitened(x + shift, maps.energy_kernel(x + shift, x + shift))
            images = maps.ENERGY.apply(kept, x + shift)
            means = np.array([images[labels == k].mean(axis=0) for k in range(3)])
            found = matching.match(means, 0.7 * maps.ENERGY.apply(kept, window + shift).mean(axis=0), soft=soft)
            hard = matching.match(means, maps.ENERGY.apply(kept, window + shift).mean(axis=0))
            answers[soft, shift] = found.priors if soft else hard.priors
    np.testing.assert_allclose(answers[False, 0.0], answers[False, 3.0], atol=1e-4)
    assert np.abs(answers[True, 0.0] - answers[True, 3.0]).max() > 1e-3


def test_the_deficit_without_contamination_stays_within_its_error_and_beyond_it_with() -> None:
    rng = np.random.default_rng(0)
    problem = Problem.simple(3, 3.0)
    g, labels, x = problem.draw(3000, problem.source_priors, rng)
    reference = PlainReference.of(g, labels, x, names=["dfm-rff-features"])
    scores: dict[float, list[float]] = {0.0: [], 0.1: []}
    for share, found_at in scores.items():
        for _ in range(10):
            gw, _, xw = problem.draw(2000, np.array([0.6, 0.3, 0.1]), rng)
            xw[: int(share * 2000)] = rng.normal(size=(int(share * 2000), 3)) - 8.0
            found = ESTIMATORS["dfm-rff-features-soft"](Window.of(gw, xw), reference)
            assert found.deficit is not None
            assert found.deficit_error is not None
            found_at.append(found.deficit / found.deficit_error)
    assert max(scores[0.0]) < 4
    assert min(scores[0.1]) > 4


def test_the_bandwidth_maximises_delta_min_without_counting_a_row_as_its_own_neighbour() -> None:
    """In twenty dimensions the diagonal alone made the narrowest kernel win, under which nothing resembles anything."""
    rng = np.random.default_rng(0)
    problem = Problem.simple(20, 1.5)
    _, labels, x = problem.draw(3000, problem.source_priors, rng)
    sigma = maps.bandwidth(x, labels, rng)
    assert sigma > 0.3 * np.sqrt(2 * 20)


@given(size=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_a_stratified_sample_favours_no_class_and_wastes_no_room(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1, 2], [2, 10, 40])
    chosen = maps.stratified(labels, size, rng)
    assert np.unique(chosen).size == chosen.size
    if size >= 6:
        assert size - 3 < chosen.size <= size or chosen.size == labels.size
        assert (labels[chosen] == 0).sum() == 2


def test_the_smaller_of_the_two_bounds_is_reported() -> None:
    """Erratum 2: (1) <= (2) is false when the source is even and the target is one class."""
    counts, even = np.full(4, 100.0), np.full(4, 0.25)
    one = np.array([1.0, 0.0, 0.0, 0.0])
    worst = intervals.error_bound(0.5, 1.0, counts, 1000)
    assert intervals.error_bound(0.5, 1.0, counts, 1000, priors=even) <= worst
    assert intervals.error_bound(0.5, 1.0, np.array([10.0, 190, 100, 100]), 1000, priors=1 - one) <= np.inf
    reach = 2 + np.sqrt(2 * np.log(2 * 4 / 0.05))
    assert worst == pytest.approx(2 * reach / np.sqrt(0.5) * (1 / np.sqrt(100) + 1 / np.sqrt(1000)))
    assert intervals.error_bound(0.0, 1.0, counts, 1000) == np.inf


def test_the_error_bound_is_kept() -> None:
    rng = np.random.default_rng(0)
    problem = Problem.simple(3, 2.0)
    truth = np.array([0.6, 0.3, 0.1])
    for _ in range(20):
        g, labels, _ = problem.draw(600, problem.source_priors, rng)
        gw, _, _ = problem.draw(400, truth, rng)
        means = np.array([g[labels == k].mean(axis=0) for k in range(3)])
        error = np.linalg.norm(matching.match(means, gw.mean(axis=0)).priors - truth)
        counts = np.bincount(labels).astype(float)
        assert error <= intervals.error_bound(matching.delta_min(means), 1.0, counts, 400, priors=truth)


def test_missing_values_stand_at_the_reference_mean() -> None:
    kept = maps.fit_inputs("features", np.ones((3, 1)), np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, 4.0]]))
    np.testing.assert_allclose(kept["features_centre"], [2.0, 4.0])
    assert (maps.inputs(kept, "features", np.ones((1, 1)), np.array([[np.nan, np.nan]])) == 0).all()


def test_matching_on_features_without_features_is_an_input_error() -> None:
    g, labels, _ = Problem.simple(2, 1.0).draw(100, np.full(2, 0.5), np.random.default_rng(0))
    reference = PlainReference.of(g, labels, names=["dfm-rff-features"])
    with pytest.raises(InputError, match="want features"):
        ESTIMATORS["dfm-rff-features"](Window.of(g), reference)
    with pytest.raises(InputError, match="class_means"):
        matching.match(np.ones((2, 3)), np.ones(4))


@pytest.mark.parametrize("means", [[1.0, 0.0], np.empty((0, 2)), [[np.nan, 1.0], [0.0, 1.0]]])
def test_geometry_is_asked_of_finite_means_of_classes(means: object) -> None:
    for measure in (matching.delta_min, matching.lambda_min):
        with pytest.raises(InputError, match="class_means"):
            measure(means)
