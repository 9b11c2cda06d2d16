"""Laws that hold for every estimator in the registry. A new estimator gets them for free."""

from functools import cache

import numpy as np
import pytest

from monitor.errors import InputError
from monitor.priors import ESTIMATORS, PriorEstimate, kept_for
from monitor.reference.classifier import Reference
from monitor.windows.window import Window, merge
from tests.priors.doubles import PlainReference, Problem

NAMES = sorted(ESTIMATORS)
PRIORS = {2: np.array([0.25, 0.75]), 3: np.array([0.55, 0.15, 0.30])}


def classes_of(name: str) -> int:
    return 2 if ESTIMATORS[name].binary_only else 3


@cache
def hold_out(classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    problem = Problem.simple(classes, 1.6)
    return problem.draw(900, problem.source_priors, np.random.default_rng(1))


@cache
def reference(classes: int) -> PlainReference:
    g, labels, x = hold_out(classes)
    return PlainReference.of(g, labels, x)


@cache
def events(classes: int) -> tuple[np.ndarray, np.ndarray]:
    g, _, x = Problem.simple(classes, 1.6).draw(700, PRIORS[classes], np.random.default_rng(2))
    return g, x


def estimate(name: str, g: np.ndarray, x: np.ndarray) -> PriorEstimate:
    return ESTIMATORS[name](Window.of(g, x), reference(g.shape[1]))


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_lies_on_the_simplex_and_inside_its_interval(name: str) -> None:
    found = estimate(name, *events(classes_of(name)))
    assert found.priors.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found.priors >= 0).all()
    assert (found.lower <= found.priors).all()
    assert (found.priors <= found.upper).all()
    assert (found.lower >= 0).all()
    assert (found.upper <= 1).all()
    assert found.method == name
    assert found.events == 700
    assert np.isfinite(found.gap)
    assert not any(array.flags.writeable for array in (found.priors, found.lower, found.upper))


@pytest.mark.parametrize("classes", [2, 3])
def test_what_estimators_share_of_a_window_is_what_each_alone_makes_of_it(classes: int) -> None:
    g, x = events(classes)
    g = np.concatenate([g, np.zeros((2, classes)), np.full((3, classes), 1 / classes)])
    x = np.concatenate([x, np.zeros((5, x.shape[1]))])
    shared = Window.of(g, x)
    for entry in [entry for entry in ESTIMATORS.values() if entry.applies_to(classes, features=True)]:
        among, alone = entry(shared, reference(classes)), estimate(entry.name, g, x)
        np.testing.assert_array_equal(among.priors, alone.priors)
        np.testing.assert_array_equal(among.upper, alone.upper)
        assert among.dropped == alone.dropped


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"cc", "pcc", "cde", "em-stopped"}])
def test_a_consistent_method_comes_close_to_the_truth(name: str) -> None:
    found = estimate(name, *events(classes_of(name)))
    np.testing.assert_allclose(found.priors, PRIORS[classes_of(name)], atol=0.08)


@pytest.mark.parametrize("name", NAMES)
def test_permuting_the_classes_permutes_the_answer(name: str) -> None:
    classes = classes_of(name)
    order = np.roll(np.arange(classes), 1)
    problem = Problem.simple(classes, 1.6)
    g, labels, x = hold_out(classes)
    gw, xw = events(classes)
    moved = PlainReference.of(g[:, order], np.argsort(order)[labels], x, names=_needed(name))
    plain = PlainReference.of(g, labels, x, names=_needed(name))
    there = ESTIMATORS[name](Window.of(gw[:, order], xw), moved)
    here = ESTIMATORS[name](Window.of(gw, xw), plain)
    # Maps that draw landmarks or frequencies draw others in another order of classes: equal up to that choice.
    drawn = name.startswith("dfm")
    np.testing.assert_allclose(there.priors, here.priors[order], atol=0.03 if drawn else 1e-8)
    assert problem.source_priors.size == classes


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"em-debiased"}))
def test_duplicating_every_event_moves_no_estimate(name: str) -> None:
    """All but the one that is weighed by how sure the window is."""
    g, x = events(classes_of(name))
    twice = estimate(name, np.repeat(g, 2, axis=0), np.repeat(x, 2, axis=0))
    np.testing.assert_allclose(twice.priors, estimate(name, g, x).priors, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_events_moves_no_estimate(name: str) -> None:
    g, x = events(classes_of(name))
    shuffled = np.random.default_rng(0).permutation(len(g))
    np.testing.assert_allclose(estimate(name, g[shuffled], x[shuffled]).priors, estimate(name, g, x).priors, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_untouched_and_the_same_seed_gives_the_same_bytes(name: str) -> None:
    g, x = (np.array(array) for array in events(classes_of(name)))
    before = g.tobytes() + x.tobytes()
    first, second = estimate(name, g, x), estimate(name, g, x)
    assert g.tobytes() + x.tobytes() == before
    assert first.priors.tobytes() == second.priors.tobytes()
    again, labels, features = hold_out(classes_of(name))
    rebuilt = PlainReference.of(again, labels, features, names=_needed(name))
    assert ESTIMATORS[name](Window.of(g, x), rebuilt).upper.tobytes() == first.upper.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_window_that_equals_the_reference_gives_the_source_priors(name: str) -> None:
    classes = classes_of(name)
    g, labels, x = hold_out(classes)
    # Calibrated to have the source priors as its mean, as every built reference is; the biased counters stay close.
    found = ESTIMATORS[name](Window.of(g, x), reference(classes))
    loose = name in {"cc", "pcc", "cde", "em", "em-shrunk", "em-sld", "em-stopped", "retargeted", "em-debiased"}
    np.testing.assert_allclose(found.priors, reference(classes).source_priors, atol=0.05 if loose else 1e-6)
    assert labels.size == 900


@pytest.mark.parametrize("name", NAMES)
def test_unusable_rows_are_dropped_and_counted(name: str) -> None:
    g, x = events(classes_of(name))
    classes = g.shape[1]
    bad = np.vstack([np.zeros(classes), np.full(classes, np.nan), np.append(-0.5, np.full(classes - 1, 1.0)), g])
    found = estimate(name, bad, np.vstack([np.zeros((3, x.shape[1])), x]))
    assert (found.dropped, found.events) == (3, 700)
    np.testing.assert_allclose(found.priors, estimate(name, g, x).priors, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_rows_that_do_not_sum_to_one_are_made_to(name: str) -> None:
    g, x = events(classes_of(name))
    factors = np.resize([1.0, 1e-305, 0.3, 7.0, 1e300], len(g))[:, None]
    np.testing.assert_allclose(estimate(name, g * factors, x).priors, estimate(name, g, x).priors, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in NAMES if ESTIMATORS[name].needs_features])
@pytest.mark.parametrize("absurd", [np.inf, -np.inf, 1e300, np.nan])
def test_one_absurd_feature_costs_one_event(name: str, absurd: float) -> None:
    g, x = events(classes_of(name))
    broken = np.array(x)
    broken[7, 0] = absurd
    np.testing.assert_allclose(estimate(name, g, broken).priors, estimate(name, g, x).priors, atol=0.02)


@pytest.mark.parametrize("name", ["dfm-energy-features", "dfm-gaussian-features", "dfm-rff-features"])
@pytest.mark.parametrize("absurd", [np.inf, 1e300, np.nan])
def test_an_absurd_feature_of_the_reference_leaves_a_defined_answer(name: str, absurd: float) -> None:
    g, labels, x = hold_out(3)
    broken = np.array(x)
    broken[7, 0] = absurd
    found = ESTIMATORS[name](Window.of(*events(3)), PlainReference.of(g, labels, broken, names=[name]))
    np.testing.assert_allclose(found.priors, PRIORS[3], atol=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_windows_that_are_merged_in_any_order_give_the_answer_of_the_whole(name: str) -> None:
    g, x = events(classes_of(name))
    first, second, third = (Window.of(g[a:b], x[a:b]) for a, b in ((0, 120), (120, 121), (121, 700)))
    whole = estimate(name, g, x)
    for merged in (merge([third, first, second]), merge([merge([second, third]), first])):
        found = ESTIMATORS[name](merged, reference(g.shape[1]))
        np.testing.assert_allclose(found.priors, whole.priors, atol=1e-9)
        np.testing.assert_allclose(found.upper, whole.upper, atol=1e-9)


@cache
def with_two_classes_alike() -> tuple[Window, PlainReference]:
    """The last class is split into two: every hold-out event of it comes once as each."""
    g, labels, x = hold_out(3)
    last = labels == 2
    split = np.column_stack([g[:, :2], g[:, 2] / 2, g[:, 2] / 2])
    doubled = np.append(labels, np.full(last.sum(), 3))
    return Window.of(split[:300], x[:300]), PlainReference.of(
        np.vstack([split, split[last]]), doubled, np.vstack([x, x[last]])
    )


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"cc", "pcc", "cde", "em-shrunk"}))
def test_identical_classes_are_said_to_have_no_single_answer(name: str) -> None:
    """All but plain counts, which do not ask, and shrinkage, which splits the two as the source does."""
    found = ESTIMATORS[name](*with_two_classes_alike())
    assert not found.unique
    assert found.priors.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal((found.upper - found.lower)[2:], 1.0)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("acc", "pacc", "dfm", "em-stopped", "retargeted"))])
def test_a_reference_that_lacks_a_class_is_an_error_and_not_an_answer(name: str) -> None:
    g, labels, x = hold_out(3)
    known = labels != 2
    lacking = PlainReference.of(g[known], labels[known], x[known], names=[name, name.removesuffix("-soft")])
    with pytest.raises(InputError, match=r"class 2|every class"):
        ESTIMATORS[name](Window.of(*events(3)), lacking)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [0, 1])
def test_no_event_and_one_event_have_an_answer(name: str, rows: int) -> None:
    g, x = events(classes_of(name))
    found = estimate(name, g[:rows], x[:rows])
    assert found.priors.sum() == pytest.approx(1.0)
    assert np.isfinite(found.priors).all()
    if rows == 0:
        assert found.stop_reason == "no events"
        np.testing.assert_array_equal(found.priors, reference(classes_of(name)).source_priors)
        np.testing.assert_array_equal(found.upper - found.lower, 1.0)


@pytest.mark.parametrize("name", NAMES)
def test_one_hot_rows_are_no_trouble(name: str) -> None:
    classes = classes_of(name)
    labels = np.repeat(np.arange(classes), [300, 100, 0][:classes])
    _, x = events(classes)
    found = estimate(name, np.eye(classes)[labels], np.resize(x, (labels.size, x.shape[1])))
    assert np.isfinite(found.priors).all()
    assert found.priors.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", [name for name in NAMES if ESTIMATORS[name].applies_to(150, features=False)])
def test_a_hundred_and_fifty_classes_are_no_trouble(name: str) -> None:
    rng = np.random.default_rng(0)
    problem = Problem.simple(150, 4.0)
    g, labels, _ = problem.draw(3000, problem.source_priors, rng)
    built = PlainReference.of(g, np.concatenate([np.arange(150), labels[150:]]), names=_needed(name))
    found = ESTIMATORS[name](Window.of(g[:1500]), built)
    assert found.priors.sum() == pytest.approx(1.0)
    assert np.isfinite(found.priors).all()


def test_every_estimator_runs_on_the_real_reference() -> None:
    g, labels, x = hold_out(2)
    gw, xw = events(2)
    built = Reference.fit(g, labels, x)
    for name, estimator in ESTIMATORS.items():
        assert estimator.applies_to(len(built.classes), True)
        found = estimator(Window.of(gw, xw), built)
        assert abs(found.priors[0] - 0.25) < 0.2, name
        unchanged = estimator(Window.of(g, x), built)
        np.testing.assert_allclose(unchanged.priors, built.source_priors, atol=0.02, err_msg=name)


def test_names_are_keys_and_applicability_is_said() -> None:
    assert all(name == estimator.name for name, estimator in ESTIMATORS.items())
    assert not ESTIMATORS["cde"].applies_to(3, True)
    assert not ESTIMATORS["dfm-rff-features"].applies_to(3, False)


def _needed(name: str) -> list[str]:
    """A soft estimator reads what the hard one keeps, em-sld what em keeps, and em asks pacc."""
    return sorted(kept_for(name) | {"pacc"})
