"""Maximum likelihood: equal to its slow twins, certified, exact on the border, and honest about what it cannot know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.limits import BINNED_EVENTS
from monitor.priors import ESTIMATORS, bayes, em, likelihood
from monitor.priors.histogram import binned
from monitor.tolerances import WARM_START_ROWS
from monitor.windows import Window
from tests.priors import naive
from tests.priors.doubles import PlainReference, Problem


def random_problem(seed: int, classes: int, events: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sharpness = rng.uniform(0.3, 5.0)
    g = rng.dirichlet(np.ones(classes) / sharpness, size=events) + 1e-9
    return g / g.sum(axis=1, keepdims=True), rng.dirichlet(np.full(classes, 3.0))


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_bayes_correction_equals_its_formula(seed: int, classes: int) -> None:
    g, pi = random_problem(seed, classes, 20)
    target = np.random.default_rng(seed).dirichlet(np.ones(classes))
    np.testing.assert_allclose(bayes.correct(g, pi, target), naive.correct(g, pi, target), atol=1e-12)


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_shifting_the_intercepts_of_a_softmax_corrects_its_posteriors(seed: int, classes: int) -> None:
    rng = np.random.default_rng(seed)
    logits, alpha = rng.normal(size=(30, classes)), rng.normal(size=classes)
    pi, target = rng.dirichlet(np.ones(classes)) + 1e-6, rng.dirichlet(np.ones(classes)) + 1e-6
    pi, target = pi / pi.sum(), target / target.sum()

    def softmax(z: np.ndarray) -> np.ndarray:
        return np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)

    shifted = softmax(logits + bayes.shift_intercepts(alpha, pi, target))
    np.testing.assert_allclose(shifted, bayes.correct(softmax(logits + alpha), pi, target), atol=1e-12)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4), cap=st.integers(1, 15))
def test_sld_takes_the_printed_steps(seed: int, classes: int, cap: int) -> None:
    g, pi = random_problem(seed, classes, 40)
    expected, steps = naive.sld(g, pi, 1e-6, cap)
    estimate = em.sld(g, pi, max_iterations=cap)
    np.testing.assert_allclose(estimate.priors, expected, atol=1e-12)
    assert estimate.iterations == steps


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 4))
def test_the_stop_follows_the_weighted_precision(seed: int, classes: int) -> None:
    g, pi = random_problem(seed, classes, 40)
    train, labels = random_problem(seed + 1, classes, 40)[0], np.random.default_rng(seed).integers(0, classes, 40)
    np.testing.assert_allclose(em.stopped(g, pi, train, labels).priors, naive.stopped(g, pi, train, labels), atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6))
def test_the_optimum_is_that_of_an_independent_convex_solver(seed: int, classes: int) -> None:
    g, pi = random_problem(seed, classes)
    estimate = em.maximum_likelihood(g, pi)
    _, value = naive.convex_optimum(g, pi)
    reached = naive.log_likelihood(g, pi, estimate.priors)
    # The other solver stops a little short; neither may be above the other by more than nine digits.
    assert reached >= value - 1e-9
    assert value >= reached - 1e-6
    assert estimate.converged
    assert estimate.gap <= 1e-9
    assert estimate.log_likelihood == pytest.approx(reached, abs=1e-10)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6), absent=st.integers(0, 2))
def test_the_priors_are_those_of_an_independent_solver_to_nine_digits(seed: int, classes: int, absent: int) -> None:
    """Also on the border: the window holds no event of some classes, and their optimum is often exactly 0."""
    rng = np.random.default_rng(seed)
    source = rng.dirichlet(np.full(classes, 5.0))
    truth = rng.dirichlet(np.ones(classes)) * (np.arange(classes) >= min(absent, classes - 1))
    sharp = Problem(1.5 * rng.normal(size=(classes, classes)), source)
    g, _, _ = sharp.draw(300, truth / truth.sum(), rng)
    estimate = em.maximum_likelihood(g, source)
    if estimate.unique:
        np.testing.assert_allclose(estimate.priors, naive.exact_optimum(g, source), atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), classes=st.integers(2, 6))
def test_the_conditions_of_the_optimum_hold_to_nine_digits(seed: int, classes: int) -> None:
    """Karush-Kuhn-Tucker, computed apart from the solver: multipliers 1 inside, at most 1 on the border, 0 exactly."""
    g, pi = random_problem(seed, classes)
    p = em.maximum_likelihood(g, pi).priors
    multipliers = (g / pi / (g @ (p / pi))[:, None]).mean(axis=0)
    np.testing.assert_allclose(multipliers[p > 0], 1.0, atol=1e-9)
    assert (multipliers <= 1 + 1e-9).all()


def test_two_classes_agree_with_bisection_to_twelve_digits() -> None:
    g, pi = random_problem(5, 2, 500)
    low, high = 0.0, 1.0
    for _ in range(80):
        middle = (low + high) / 2
        slope = ((g[:, 1] / pi[1] - g[:, 0] / pi[0]) / (g @ (np.array([1 - middle, middle]) / pi))).mean()
        low, high = (middle, high) if slope > 0 else (low, middle)
    assert em.maximum_likelihood(g, pi).priors[1] == pytest.approx(low, abs=1e-12)


@given(seed=st.integers(0, 10**6), classes=st.integers(2, 5))
def test_the_gap_bounds_what_is_missing_at_any_point(seed: int, classes: int) -> None:
    g, pi = random_problem(seed, classes)
    anywhere = np.random.default_rng(seed).dirichlet(np.ones(classes))
    here = likelihood.look(likelihood.Problem(g, pi), anywhere)
    best = likelihood.maximise(likelihood.Problem(g, pi)).at
    assert best.value - here.value <= here.gap + 1e-12


def test_a_thinned_start_reaches_the_same_optimum() -> None:
    rng = np.random.default_rng(2)
    g, _, _ = Problem.simple(5, 1.2).draw(3 * WARM_START_ROWS, rng.dirichlet(np.ones(5)), rng)
    pi = np.full(5, 0.2)
    large = em.maximum_likelihood(g, pi)
    direct = likelihood.climb(likelihood.Problem(g, pi), likelihood.look(likelihood.Problem(g, pi), pi), 1e-13)
    np.testing.assert_allclose(large.priors, direct.at.priors, atol=1e-9)
    assert large.gap <= 1e-12


def test_rare_classes_keep_their_curvature_when_it_is_borrowed() -> None:
    """Evenly thinned rows see next to nothing of a class of three events in ten thousand."""
    rng = np.random.default_rng(3)
    g, _, _ = Problem.simple(6, 3.0).draw(6 * WARM_START_ROWS, np.array([0.4, 0.3, 0.29, 0.0094, 0.0003, 0.0003]), rng)
    problem = likelihood.Problem(g, np.full(6, 1 / 6))
    best = likelihood.climb(problem, likelihood.look(problem, problem.source_priors), 1e-13).at
    scales = np.sqrt(np.diag(best.hessian))

    def misses(rows: likelihood.Problem) -> float:
        difference = likelihood.look(rows, best.priors).hessian - best.hessian
        return float(np.linalg.norm(difference / np.outer(scales, scales), 2))

    bearers = likelihood.bearers(problem, best)
    evenly = likelihood.Problem(g[:: len(g) // len(bearers.posteriors)], problem.source_priors)
    assert len(bearers.posteriors) < len(g) / 10
    assert misses(bearers) < 0.25
    assert misses(bearers) < 0.5 * misses(evenly)
    np.testing.assert_allclose(em.maximum_likelihood(g, problem.source_priors).priors, best.priors, atol=1e-9)


def test_a_class_of_one_event_in_a_hundred_thousand_is_found_among_certain_rows() -> None:
    labels = np.arange(100_000) % 3
    labels[77_777] = 3
    estimate = em.maximum_likelihood(np.eye(5)[labels], np.full(5, 0.2))
    np.testing.assert_allclose(estimate.priors, np.bincount(labels, minlength=5) / 100_000, atol=1e-12)
    assert estimate.converged


@pytest.mark.parametrize("start", [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.3, 0.3, 0.4]])
def test_a_warm_start_even_from_a_border_changes_no_answer(start: list[float]) -> None:
    g, pi = random_problem(11, 3)
    np.testing.assert_allclose(
        em.maximum_likelihood(g, pi, start=start).priors, em.maximum_likelihood(g, pi).priors, atol=1e-9
    )


def test_an_absent_class_is_exactly_absent() -> None:
    labels = np.repeat([0, 1], [600, 400])
    estimate = em.maximum_likelihood(np.eye(3)[labels], np.full(3, 1 / 3))
    np.testing.assert_allclose(estimate.priors, [0.6, 0.4, 0.0], atol=1e-12)
    assert estimate.priors[2] == 0.0
    assert estimate.unique
    assert estimate.upper[2] > 0.0


def test_identical_classes_have_no_single_answer_and_it_says_so() -> None:
    g, pi = random_problem(3, 3)
    split = np.column_stack([g[:, :2], g[:, 2:] / 2, g[:, 2:] / 2])
    estimate = em.maximum_likelihood(split, np.append(pi[:2], [pi[2] / 2, pi[2] / 2]))
    whole = em.maximum_likelihood(g, pi)
    assert not estimate.unique
    assert estimate.converged
    np.testing.assert_allclose([*estimate.priors[:2], estimate.priors[2:].sum()], whole.priors, atol=1e-8)
    assert (estimate.lower[2:] == 0.0).all()
    assert (estimate.upper[2:] == 1.0).all()


def test_uninformative_posteriors_say_nothing() -> None:
    estimate = em.maximum_likelihood(np.full((50, 3), 1 / 3), np.full(3, 1 / 3))
    assert not estimate.unique
    np.testing.assert_allclose(estimate.priors, 1 / 3)
    assert (estimate.upper - estimate.lower == 1.0).all()


def test_shrinkage_pulls_towards_the_source_priors_as_counted_pseudo_events() -> None:
    g, pi = random_problem(7, 3, 100)
    share = 0.3
    shrunk = em.maximum_likelihood(g, pi, shrinkage=share)
    pseudo = np.vstack([np.repeat(np.eye(3), np.round(pi * 3000).astype(int), axis=0), np.repeat(g, 100, axis=0)])
    rounded = np.round(pi * 3000) / 3000
    literal = em.maximum_likelihood(pseudo, pi)
    np.testing.assert_allclose(shrunk.priors, literal.priors, atol=2e-3 + np.abs(rounded - pi).max())
    assert shrunk.log_likelihood is not None
    assert shrunk.log_likelihood <= (em.maximum_likelihood(g, pi).log_likelihood or 0.0)
    with pytest.raises(InputError, match="shrinkage"):
        em.maximum_likelihood(g, pi, shrinkage=-0.1)


class TestManyEventsOfTwoClasses:
    """Their posteriors are binned."""

    def test_bins_give_the_answer_of_the_rows(self) -> None:
        g, _, _ = Problem.simple(2, 2.0).draw(50_000, np.array([0.85, 0.15]), np.random.default_rng(0))
        found, rows = em.certified(binned(g, np.array([0.5, 0.5])), 0), em.maximum_likelihood(g, [0.5, 0.5])
        np.testing.assert_allclose(found.priors, rows.priors, atol=1e-6)
        np.testing.assert_allclose(found.upper, rows.upper, atol=1e-4)
        assert found.events == 50_000

    def test_what_a_row_sums_to_does_not_matter(self) -> None:
        g = np.random.default_rng(1).random((300, 2))
        found, rows = em.certified(binned(g, np.array([0.4, 0.6])), 0), em.maximum_likelihood(g, [0.4, 0.6])
        np.testing.assert_allclose(found.priors, rows.priors, atol=1e-5)

    def test_certain_events_have_bins_of_their_own(self) -> None:
        found = em.certified(binned(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.5])), 0)
        np.testing.assert_allclose(found.priors, [2 / 3, 1 / 3], atol=1e-9)

    def test_a_large_window_is_estimated_by_bins_as_by_rows(self) -> None:
        problem, rng = Problem.simple(2, 1.5), np.random.default_rng(2)
        g, labels, _ = problem.draw(2_000, problem.source_priors, rng)
        window, _, _ = problem.draw(BINNED_EVENTS, np.array([0.7, 0.3]), rng)
        reference = PlainReference.of(g, labels, names=["em"])
        estimate = ESTIMATORS["em"](Window.of(window), reference)
        rows = em.maximum_likelihood(window, reference.source_priors)
        assert estimate.events == BINNED_EVENTS
        assert estimate.standard_errors is not None
        assert np.abs(estimate.priors - rows.priors).max() < 1e-3 * estimate.standard_errors.min()


def test_the_stop_is_judged_by_rows_that_have_posteriors_and_a_class() -> None:
    g, train = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    plain = em.stopped(g, [0.5, 0.5], train, [0, 1, 0])
    spoilt = em.stopped(g, [0.5, 0.5], [*train, [np.nan, 1.0], [0.5, 0.5]], [0, 1, 0, 1, -1])
    np.testing.assert_array_equal(spoilt.priors, plain.priors)
    assert spoilt.iterations == plain.iterations
    with pytest.raises(InputError, match="below 2"):
        em.stopped(g, [0.5, 0.5], train, [0, 1, 2])


def test_classes_that_no_event_has_a_share_of_are_absent_without_a_warning() -> None:
    """Posteriors rounded to two decimals, in a window that lacks most of ten classes."""
    g = np.zeros((3, 10))
    g[:, :2] = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    estimate = em.maximum_likelihood(g, np.full(10, 0.1))
    alone = em.maximum_likelihood(g[:, :2], [0.5, 0.5])
    np.testing.assert_allclose(estimate.priors[:2], alone.priors, atol=1e-9)
    assert estimate.priors[2:].tolist() == [0.0] * 8
    assert (estimate.converged, estimate.unique) == (True, True)
    assert np.isfinite(estimate.lower).all()
    assert np.isfinite(estimate.upper).all()


@pytest.mark.parametrize("certain", [1e-18, 1e-100, 1e-160, 1e-305])
@pytest.mark.parametrize("events", [200, 20_000])
def test_a_few_certain_events_of_classes_that_are_nearly_gone_are_their_shares(certain: float, events: int) -> None:
    """Posteriors of well separated classes: what one step would make impossible is not stepped to."""
    labels = np.zeros(events, dtype=np.int64)
    labels[:6] = np.arange(6) % 3
    g = np.where(np.eye(3)[labels] > 0, 1.0, certain)
    estimate = em.maximum_likelihood(g, [0.4, 0.3, 0.3])
    np.testing.assert_allclose(estimate.priors, np.bincount(labels) / events, atol=1e-9)
    assert estimate.converged


def test_numbers_that_mean_nothing_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="shrinkage: want a finite number"):
        em.maximum_likelihood([[0.5, 0.5]], [0.5, 0.5], shrinkage=np.inf)
    with pytest.raises(InputError, match="intercepts: want one per class"):
        bayes.shift_intercepts(3, [0.5, 0.5], [0.2, 0.8])
