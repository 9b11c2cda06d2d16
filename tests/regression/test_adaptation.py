"""adapt: it finds the link that was applied, says it in words, and answers degenerate questions by name."""

import numpy as np
import pytest

from monitor.errors import InputError
from monitor.regression import Mixture, adapt
from monitor.regression.adaptation import Note
from monitor.regression.candidates import FitStatus
from monitor.regression.links import LINKS, MODELS
from monitor.regression.wording import describe
from tests.regression import worlds

REFERENCE = Mixture.of([0.4, 0.6], [[4.0, 1.0, -2.0], [-3.0, 2.0, 1.5]], [0.5, 0.7], 2_000)

CASES = {
    "M1n": (
        1.0,
        np.array([2.0, 4.0]),
        "noise multiplied by 2.12 in component 1, quadrupled in component 2; slopes and intercepts unchanged",
    ),
    "M2n": (
        np.array([1.0, 2.0, 2.0]),
        np.array([0.5, 0.25]),
        "all slopes doubled; intercepts unchanged; noise halved in component 1, multiplied by 0.24 in component 2",
    ),
    "M2a": (np.array([1.0, 2.0, 2.0]), 2.0, "all slopes doubled; intercepts unchanged"),
    "M2b": (np.array([3.0, 1.0, 1.0]), 1.0, "all intercepts tripled; slopes unchanged"),
    "M2c": (np.full(3, 0.5), 0.5, "all slopes and intercepts halved"),
    "M2d": (np.array([4.0, 2.0, 2.0]), 2.0, "all slopes doubled; all intercepts quadrupled"),
    "M3a": (
        np.array([[1.0, 2.0, 2.0], [1.0, 0.5, 0.5]]),
        np.array([2.0, 0.5]),
        "slopes doubled in component 1, halved in component 2; intercepts unchanged",
    ),
    "M3b": (
        np.array([[2.0, 1.0, 1.0], [3.0, 1.0, 1.0]]),
        1.0,
        "intercepts doubled in component 1, tripled in component 2; slopes unchanged",
    ),
    "M3c": (
        np.array([[2.0], [4.0]]),
        np.array([2.0, 4.0]),
        "slopes and intercepts doubled in component 1, quadrupled in component 2",
    ),
    "M3d": (
        np.array([[3.0, 2.0, 2.0], [4.0, 0.5, 0.5]]),
        np.array([2.0, 0.5]),
        "slopes doubled in component 1, halved in component 2; "
        "intercepts tripled in component 1, quadrupled in component 2",
    ),
    "M4a": (
        np.array([1.0, 3.0, 0.5]),
        0.4,
        "slope of x1 tripled, slope of x2 halved; intercepts unchanged; noise estimated anew",
    ),
    "M4b": (
        np.array([2.0, 3.0, 0.5]),
        0.4,
        "slope of x1 tripled, slope of x2 halved; intercepts doubled; noise estimated anew",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_link_that_was_applied_is_found_estimated_and_put_into_words(name):
    factors, noise, words = CASES[name]
    x = worlds.normal(1_000, 2, seed=1)
    y = worlds.draw(
        worlds.moved(REFERENCE, factors, noise), x, seed=3
    )  # one of seeds 2-21; BIC took a larger link in 2 of 200
    found = adapt(REFERENCE, x, y, starts=3)
    assert found.model == name
    assert found.description == words
    np.testing.assert_allclose(found.factors, np.broadcast_to(factors, (2, 3)), rtol=0.12)
    assert found.chosen.converged
    assert found.notes == ()


def test_noise_that_has_grown_by_itself_is_not_taken_for_steeper_slopes():
    one = Mixture.of([1.0], [[2.0, 1.0, -1.0]], [1.0], 2_000)
    x = worlds.normal(200, 2, seed=1)
    told = [adapt(one, x, worlds.draw(worlds.moved(one, 1.0, 2.5), x, seed), starts=1) for seed in range(8)]
    assert {found.model for found in told} == {"M1n"}
    assert all(found.description.startswith("noise multiplied by 2.") for found in told)
    np.testing.assert_allclose([found.factors for found in told], 1.0, rtol=1e-12)


def test_inputs_that_all_changed_alike_are_not_told_one_by_one():
    factors = np.array([[1.0, 2.02, 1.98]] * 2)
    told = describe(MODELS["M4a"], factors, REFERENCE, REFERENCE, ["area", "age"])
    assert told == "all slopes doubled; intercepts unchanged; noise estimated anew"


def test_nothing_changed_is_m1_most_of_the_time():
    x = worlds.normal(100, 2, seed=1)
    found = [adapt(REFERENCE, x, worlds.draw(REFERENCE, x, seed), starts=1) for seed in range(12)]
    same = [one for one in found if one.model == "M1"]
    assert len(same) >= 8  # BIC at n* = 100 takes one more parameter by chance in 3 % of cases, for each of eight links
    assert {one.description for one in same} == {"nothing changed"}
    np.testing.assert_array_equal(same[0].factors, 1.0)
    assert all(abs(one.factors - 1.0).max() < 0.2 for one in found)


def test_only_the_proportions_changed_is_pm1():
    x = worlds.normal(300, 2, seed=1)
    found = adapt(REFERENCE, x, worlds.draw(worlds.moved(REFERENCE, 1.0, weights=[0.8, 0.2]), x, seed=2))
    assert found.model == "pM1"
    assert found.description.startswith("shares of the components 40%/60% became 8")
    assert found.description.endswith("slopes and intercepts unchanged")


def test_a_relation_of_its_own_is_m5_and_inputs_have_their_names():
    other = Mixture.of([0.4, 0.6], [[0.0, -4.0, 3.0], [9.0, 1.0, -5.0]], [1.0, 0.3])
    x = worlds.normal(400, 2, seed=1)
    y = worlds.draw(other, x, seed=2)
    assert adapt(REFERENCE, x, y).description == "every slope, intercept and noise level estimated anew"
    x4 = worlds.draw(worlds.moved(REFERENCE, np.array([1.0, 3.0, 0.5])), x, seed=3)
    assert "slope of amount tripled" in adapt(REFERENCE, x, x4, names=["amount", "age"]).description


def test_the_family_has_the_24_models_of_table_1_and_two_links_with_free_noise():
    assert len([name for name in MODELS if not name.endswith("n")]) == 24
    components, inputs = REFERENCE.components, REFERENCE.inputs
    table = [
        0,
        components,
        1,
        1,
        1,
        2,
        1 + components,
        components,
        components,
        components,
        2 * components,
        inputs + components,
    ]
    table += [inputs + components + 1, components * (inputs + 2)]
    assert [link.parameters(REFERENCE) for link in LINKS.values()] == table
    assert [MODELS["p" + name].parameters(REFERENCE) for name in LINKS] == [v + components - 1 for v in table]


def test_bic_is_minus_two_log_likelihood_plus_v_log_n():
    x = worlds.normal(50, 2, seed=1)
    y = worlds.draw(worlds.moved(REFERENCE, 2.0, 2.0), x, seed=2)
    for fit in adapt(REFERENCE, x, y, models=["M1", "M2c", "pM3d"]).candidates:
        assert fit.log_likelihood == pytest.approx(fit.mixture.log_likelihood(x, y), rel=1e-10)
        assert fit.bic == pytest.approx(-2 * fit.log_likelihood + fit.parameters * np.log(50), rel=1e-12)


def test_press_is_the_sum_of_squared_errors_of_refits_without_each_event():
    x = worlds.normal(20, 2, seed=1)
    y = worlds.draw(worlds.moved(REFERENCE, 2.0, 2.0), x, seed=2)
    models = ["M1", "M2c", "pM2d", "M3b"]
    found = adapt(REFERENCE, x, y, models=models, criterion="press")
    for name in models:
        total = 0.0
        for i in range(20):
            rest = np.delete(np.arange(20), i)
            total += (y[i] - adapt(REFERENCE, x[rest], y[rest], models=[name]).predict(x[i : i + 1])[0]) ** 2
        assert found.candidate(name).press == pytest.approx(total, rel=1e-4)
    assert found.chosen.press == min(found.candidate(name).press for name in models)


def test_the_same_seed_gives_the_same_answer_and_inputs_stay_as_they_were():
    x = worlds.normal(30, 2, seed=1)
    y = worlds.draw(worlds.moved(REFERENCE, 3.0, 3.0), x, seed=2)
    before = x.copy(), y.copy()
    one, two = adapt(REFERENCE, x, y, seed=5), adapt(REFERENCE, x, y, seed=5)
    assert [fit.bic for fit in one.candidates] == [fit.bic for fit in two.candidates]
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_starts_beyond_the_reference_find_what_it_alone_misses():
    found = 0
    for seed in range(10):
        x = worlds.parabola(20, seed, low=0.0)
        y = worlds.draw(worlds.moved(worlds.INTRODUCTORY, 6.0, 6.0), x, seed + 50)
        one = adapt(worlds.INTRODUCTORY, x, y, models=["pM3c"], starts=1).chosen.log_likelihood
        ten = adapt(worlds.INTRODUCTORY, x, y, models=["pM3c"], starts=10).chosen.log_likelihood
        assert ten >= one - 1e-6
        found += ten > one + 1e-3
    assert found >= 1


def test_a_line_that_was_turned_over_is_found():
    """EM does not cross zero: from starts of the reference's signs alone it stayed 233 nats below this."""
    rng = np.random.default_rng(77)
    components = rng.integers(2, 5)
    lines = rng.normal(size=(components, 2)) * np.array([10.0, 1.0])
    reference = Mixture.of(rng.dirichlet(np.full(components, 5.0)), lines, rng.uniform(0.2, 0.6, components), 1_000)
    signs = np.where(rng.random((components, 1)) < 0.5, -1.0, 1.0)
    factors = np.column_stack([signs * np.exp(0.7 * rng.normal(size=(components, 1))), np.ones(components)])
    now = Mixture.of(reference.weights, lines * factors, reference.sigmas)
    x = rng.uniform(-1, 1, (80, 1))
    y = worlds.draw(now, x, seed=1)
    found = adapt(reference, x, y, models=["pM3b"])
    assert (factors < 0).any()
    assert found.chosen.log_likelihood > now.log_likelihood(x, y) - 1e-6


def test_press_as_printed_counts_the_component_that_turns_out_nearest():
    x = worlds.parabola(30, 3)
    y = worlds.draw(worlds.moved(worlds.INTRODUCTORY, 2.0, 2.0), x, 4)
    models = ["M1", "M2a", "M3c"]
    of_mean = adapt(worlds.INTRODUCTORY, x, y, models=models, criterion="press")
    printed = adapt(worlds.INTRODUCTORY, x, y, models=models, criterion="press-nearest")
    for name in models:
        rows = np.arange(len(y))
        refits = [adapt(worlds.INTRODUCTORY, x[rows != i], y[rows != i], models=[name], starts=1).mixture for i in rows]
        total = sum(float(np.min((y[i] - refits[i].component_means(x[i : i + 1])) ** 2)) for i in rows)
        assert printed.candidate(name).press <= of_mean.candidate(name).press
        if name == "M1":
            assert printed.candidate(name).press == pytest.approx(total, rel=1e-4)
    assert printed.chosen.press == min(printed.candidate(name).press for name in models)


class TestDegenerate:
    """Each awkward question has an answer with a name."""

    def test_zero_intercepts_leave_the_intercept_links_not_identified(self):
        reference = Mixture.of([0.5, 0.5], [[0.0, 2.0], [0.0, -1.0]], [0.5, 0.5])
        x = worlds.normal(60, 1, seed=1)
        found = adapt(reference, x, worlds.draw(worlds.moved(reference, 2.0, 2.0), x, seed=2))
        for name in ("M2b", "M2d", "M3b", "M3d"):
            assert found.candidate(name).status is FitStatus.NOT_IDENTIFIED
            assert not found.candidate("p" + name).selectable
        assert Note.ZERO_INTERCEPTS in found.notes
        assert found.model == "M2a"

    def test_one_zero_intercept_keeps_its_component_and_costs_no_parameter(self):
        reference = Mixture.of([0.5, 0.5], [[0.0, 2.0], [3.0, -1.0]], [0.5, 0.5])
        x = worlds.normal(200, 1, seed=1)
        found = adapt(reference, x, worlds.draw(worlds.moved(reference, np.array([2.0, 1.0])), x, seed=2))
        fit = found.candidate("M3b")
        assert (fit.parameters, fit.status) == (1, FitStatus.OK)
        np.testing.assert_allclose(fit.factors[0], 1.0)

    def test_an_input_of_zero_slope_keeps_factor_one(self):
        reference = Mixture.of([0.5, 0.5], [[3.0, 0.0, 2.0], [-3.0, 0.0, 1.0]], [0.5, 0.5])
        x = worlds.normal(100, 2, seed=1)
        found = adapt(reference, x, worlds.draw(worlds.moved(reference, 2.0, 2.0), x, seed=2))
        assert found.candidate("M4a").parameters == 3
        np.testing.assert_allclose(found.candidate("M4a").factors[:, 1], 1.0)
        assert Note.ZERO_SLOPES in found.notes

    @pytest.mark.parametrize("events", [1, 2, 3, 5])
    def test_fewer_labels_than_parameters_is_said_and_the_rest_still_works(self, events):
        x = worlds.normal(events, 2, seed=1)
        found = adapt(REFERENCE, x, worlds.draw(REFERENCE, x, seed=2))
        for fit in found.candidates:
            few = events <= fit.parameters and fit.model != "M1"
            assert (fit.status is FitStatus.TOO_FEW_LABELS) == few
        assert found.chosen.selectable

    def test_no_label_at_all_is_an_error_that_says_so(self):
        with pytest.raises(InputError, match="at least one labelled event"):
            adapt(REFERENCE, np.empty((0, 2)), [])

    def test_collinear_inputs_leave_the_undetermined_direction_at_the_reference(self):
        x = worlds.normal(200, 1, seed=1) @ np.ones((1, 2))
        y = worlds.draw(worlds.moved(REFERENCE, 2.0, 2.0), x, seed=2)
        found = adapt(REFERENCE, x, y, models=["M5"])
        assert Note.COLLINEAR_INPUTS in found.notes
        assert not found.unique
        moved = found.mixture.coefficients - REFERENCE.coefficients
        np.testing.assert_allclose(moved[:, 1], moved[:, 2], atol=1e-6)  # nothing along x1 - x2
        assert adapt(REFERENCE, x, y).model == "M2c"
        assert adapt(REFERENCE, x, y).unique

    def test_an_empty_component_keeps_the_parameters_of_the_reference(self):
        reference = Mixture.of([0.5, 0.5], [[50.0, 1.0], [-50.0, -2.0]], [0.5, 0.5])
        x = worlds.normal(40, 1, seed=1)
        y = 50.0 + 2.0 * x[:, 0] + np.random.default_rng(2).normal(size=40)
        found = adapt(reference, x, y, models=["pM3a", "pM3d", "pM5"], starts=1)
        for fit in found.candidates:
            assert fit.empty == (1,)
            np.testing.assert_allclose(fit.mixture.coefficients[1], reference.coefficients[1])
            assert fit.mixture.weights[1] < 1e-6
        assert Note.EMPTY_COMPONENT in found.notes

    def test_a_constant_target_adapts_nothing(self):
        found = adapt(REFERENCE, worlds.normal(30, 2, seed=1), np.full(30, 7.0))
        assert found.model == "M1"
        assert Note.CONSTANT_TARGET in found.notes
        assert {fit.status for fit in found.candidates if fit.model != "M1"} == {FitStatus.CONSTANT_TARGET}

    def test_labels_without_noise_collapse_m4_and_m5_and_still_give_m2(self):
        x = worlds.normal(30, 2, seed=1)
        exact = Mixture.of([1.0], [[4.0, 1.0, -2.0]], [0.5])
        found = adapt(exact, x, exact.predict(x) + 1e-9)
        assert found.candidate("M5").status is FitStatus.COLLAPSED
        assert found.chosen.selectable

    def test_missing_values_are_refused(self):
        x = worlds.normal(30, 2, seed=1)
        x[3, 1] = np.nan
        with pytest.raises(InputError, match="finite"):
            adapt(REFERENCE, x, np.ones(30))

    def test_an_unknown_model_is_an_error_that_lists_the_known_ones(self):
        with pytest.raises(InputError, match="pM3c"):
            adapt(REFERENCE, worlds.normal(5, 2, seed=1), np.arange(5.0), models=["M6"])

    def test_something_that_is_no_mixture_is_refused(self):
        with pytest.raises(InputError, match="fitted MixtureOfRegressions"):
            adapt(object(), worlds.normal(5, 2, seed=1), np.arange(5.0))
