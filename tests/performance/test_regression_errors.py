"""How far predictions were off, by the labels of a part of a window's events: intervals hold, and none is made up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from monitor.performance import gain, prediction_errors, stratum_weights
from tests.marks import in_chaos

ERRORS = {
    "normal": lambda rng, events: rng.normal(size=events),
    "off by one": lambda rng, events: 1 + rng.normal(size=events),
    "rounded": lambda rng, events: np.round(rng.normal(size=events)),
    "Laplace": lambda rng, events: rng.laplace(size=events),
    "Student's t, 5": lambda rng, events: rng.standard_t(5, size=events),
    "Student's t, 3": lambda rng, events: rng.standard_t(3, size=events),
    "lognormal": lambda rng, events: rng.lognormal(size=events) - 1,
}
LEAST = {"Student's t, 5": 0.88, "Student's t, 3": 0.85, "lognormal": 0.85}
"""How often the interval of the root mean square holds where a few events make up most of it."""


@pytest.mark.parametrize("times", [300, in_chaos(4_000)])
@pytest.mark.parametrize("labelled", [30, 200])
@pytest.mark.parametrize("name", ERRORS)
def test_intervals_hold_the_windows_own_errors_with_heavy_tails_too(name: str, labelled: int, times: int) -> None:
    rng, held = np.random.default_rng(labelled), {"rmse": list[bool](), "mae": list[bool](), "bias": list[bool]()}
    for _ in range(times):
        errors = ERRORS[name](rng, 1_000)
        whole = prediction_errors(errors, np.zeros(1_000), 1_000)
        part = prediction_errors(errors[:labelled], np.zeros(labelled), 1_000)
        for measure, value in part.items():
            held[measure].append(value.lower <= whole[measure].value <= value.upper)
    assert np.mean(held["rmse"]) > LEAST.get(name, 0.92)
    assert min(np.mean(held["mae"]), np.mean(held["bias"])) > 0.92


@pytest.mark.parametrize("times", [300, in_chaos(4_000)])
@pytest.mark.parametrize("worth", [0.0, 0.5, 3.0])
def test_the_interval_of_a_gain_holds_what_the_correction_did_to_the_whole_window(worth: float, times: int) -> None:
    rng, held = np.random.default_rng(7), list[bool]()
    for _ in range(times):
        labels = rng.standard_t(4, size=600)
        said = labels + rng.normal(size=600) + worth
        corrected = said - 1.0
        whole, part = gain(labels, said, corrected, 600), gain(labels[:60], said[:60], corrected[:60], 600)
        assert whole is not None
        assert part is not None
        held.append(part.difference.lower <= whole.difference.value <= part.difference.upper)
    assert 0.92 < np.mean(held) < 0.99


def test_labels_that_were_chosen_by_prediction_tell_of_the_window_when_they_are_weighted() -> None:
    rng, held, plain = np.random.default_rng(1), list[bool](), list[bool]()
    for _ in range(200):
        said = rng.normal(size=2_000)
        labels = said + np.exp(said / 2) * rng.normal(size=2_000)
        known = rng.random(2_000) < 0.5 / (1 + np.exp(2 - 2 * said))
        truth = prediction_errors(labels, said, 2_000)["rmse"].value
        weights = stratum_weights(said, known)
        weighted = prediction_errors(labels[known], said[known], 2_000, weights)["rmse"]
        unweighted = prediction_errors(labels[known], said[known], 2_000)["rmse"]
        held.append(weighted.lower <= truth <= weighted.upper)
        plain.append(unweighted.lower <= truth <= unweighted.upper)
    assert np.mean(held) > 0.9
    assert np.mean(plain) < 0.5


NUMBERS = arrays(np.float64, st.integers(30, 80), elements=st.floats(-1e6, 1e6, width=32))


@settings(max_examples=60, deadline=None)
@given(labels=NUMBERS, seed=st.integers(0, 99), events=st.integers(80, 10_000))
def test_a_value_lies_in_its_interval_whatever_the_order_and_the_unit(labels, seed, events) -> None:
    rng = np.random.default_rng(seed)
    said, order = rng.permutation(labels) + rng.normal(size=labels.size), rng.permutation(labels.size)
    found = prediction_errors(labels, said, events)
    for name, value in found.items():
        assert value.lower <= value.value <= value.upper
        assert name == "bias" or value.lower >= 0
    changed = [(prediction_errors(labels[order], said[order], events), 1.0)]
    changed += [(prediction_errors(unit * labels, unit * said, events), unit) for unit in (2.0**-40, 2.0**40)]
    for other, unit in changed:
        assert other.keys() == found.keys()
        for name, value in found.items():
            scale = 1e-9 * max(abs(value.lower), abs(value.upper))
            for part in ("value", "lower", "upper"):
                assert getattr(other[name], part) / unit == pytest.approx(getattr(value, part), rel=1e-6, abs=scale)


def test_measures_are_those_of_the_textbook() -> None:
    labels, said = np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 3.0])
    found = prediction_errors(labels, said, 3)
    assert found["bias"].value == pytest.approx((-1 + 0 + 3) / 3)
    assert found["mae"].value == pytest.approx((1 + 0 + 3) / 3)
    assert found["rmse"].value == pytest.approx(np.sqrt((1 + 0 + 9) / 3))


def test_every_label_leaves_nothing_unknown_be_there_one_only() -> None:
    for events in (1, 5, 400):
        labels = np.random.default_rng(events).normal(size=events)
        for value in prediction_errors(labels, np.zeros(events), events).values():
            assert value.lower == value.value == value.upper


def test_below_thirty_labels_nothing_is_said_unless_the_window_has_no_more() -> None:
    labels, none = np.random.default_rng(2).normal(size=30), np.zeros(30)
    assert prediction_errors(labels[:29], none[:29], 30) == {}
    assert gain(labels[:29], none[:29], none[:29] + 1, 30) is None
    assert prediction_errors(np.empty(0), np.empty(0), 0) == {}
    assert prediction_errors(labels[:29], none[:29], 29).keys() == {"rmse", "mae", "bias"}
    assert prediction_errors(labels, none, 30_000).keys() == {"rmse", "mae", "bias"}


def test_labels_that_are_all_as_far_off_do_not_tell_how_far_the_others_are() -> None:
    said = np.round(np.random.default_rng(3).normal(size=50), 1)
    assert prediction_errors(said, said, 100) == {}
    assert prediction_errors(said + 0.1, said, 100) == {}  # but for rounding
    assert prediction_errors(said, said, 50)["rmse"].upper == 0.0
    assert gain(said, said + 1, said + 2, 100) is None
    exact = gain(said, said + 1, said, 50)
    assert exact is not None
    assert (exact.without, exact.corrected, exact.difference.upper) == pytest.approx((1.0, 0.0, -1.0))


@pytest.mark.parametrize("unit", [1e-150, 1.0, 1e99])
def test_no_number_is_too_large_or_too_small(unit: float) -> None:
    labels = unit * np.random.default_rng(4).normal(size=40)
    with np.errstate(all="raise", under="ignore"):
        found = prediction_errors(labels, np.zeros(40), 400)
        helped = gain(labels, np.zeros(40), labels / 2, 400)
    assert helped is not None
    everything = [*found.values(), helped.difference]
    assert all(np.isfinite([value.value, value.lower, value.upper]).all() for value in everything)
    assert helped.difference.upper < 0


def test_a_correction_that_changes_nothing_has_no_gain() -> None:
    labels, said = np.random.default_rng(5).normal(size=(2, 60))
    assert gain(labels, said, said, 100) is None
    every = gain(labels, said, said, 60)
    assert every is not None
    assert every.difference.value == 0.0
