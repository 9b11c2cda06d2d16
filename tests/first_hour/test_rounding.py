"""A producer that rounds, or sends single precision, has not changed anything: a calm window stays `stable`."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference, RegressionReference, Window, assess, assess_regression
from monitor.commands.cli import main
from monitor.errors import InputError
from monitor.priors import ESTIMATORS
from monitor.reference.preflight import measure
from monitor.reference.table import checked_posteriors
from monitor.shifts.prepared import prepare
from monitor.shifts.resolution import EXACT, SINGLE, coarsened, decimals, written
from monitor.shifts.rounded_scores import decimals_of, rounded_scores

MODELS = {
    "boosted trees": HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=4, random_state=0),
    "forest": RandomForestClassifier(20, min_samples_leaf=5, random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "naive Bayes": GaussianNB(),
    "network": make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=400, tol=1e-3, random_state=0)),
}
WRITTEN = {
    "exact": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "6 decimals": lambda x: np.round(x, 6),
    "5 decimals": lambda x: np.round(x, 5),
    "4 decimals": lambda x: np.round(x, 4),
    "3 decimals": lambda x: np.round(x, 3),
}
CALIBRATIONS = {"boosted trees": "isotonic", "naive Bayes": "isotonic", "forest": "auto"}


@cache
def events(rows: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Eight numbers, and a tariff of 0.1, 0.2 or 0.35: none of the three is a number in single precision."""
    x, y = make_classification(rows, 8, n_informative=5, n_classes=classes, class_sep=0.8, random_state=3)
    tariff = np.array([0.1, 0.2, 0.35])[np.random.default_rng(0).integers(0, 2, rows) + (y > 0)]
    return np.column_stack([x, tariff]), y


@cache
def streamed(model: ClassifierMixin, calibration: str = "temperature") -> tuple[Reference, np.ndarray, np.ndarray]:
    """The reference of a fitted model, and further events with what it says of them."""
    x, y = events(17_000)
    said = model.fit(x[:2_000], y[:2_000]).predict_proba(x)
    hold_out = slice(2_000, 7_000)
    reference = Reference.fit(said[hold_out], y[hold_out], x[hold_out], calibration=calibration)
    return reference, said[7_000:], x[7_000:]


@pytest.mark.parametrize("name", MODELS)
def test_calm_windows_are_stable_however_their_numbers_are_written(name: str) -> None:
    reference, said, x = streamed(MODELS[name], CALIBRATIONS.get(name, "temperature"))
    alarms = {
        written_as: sum(
            assess(Window.of(write(said[rows]), write(x[rows])), reference).verdict != "stable"
            for rows in (slice(1_000 * k, 1_000 * (k + 1)) for k in range(10))
        )
        for written_as, write in WRITTEN.items()
    }
    assert max(alarms.values()) <= 1, alarms


@given(st.integers(2, 20), st.integers(0, 2**31))
def test_no_event_is_refused_because_its_posteriors_were_written_with_three_decimals(classes: int, seed: int) -> None:
    written_so = np.round(np.random.default_rng(seed).dirichlet(np.full(classes, 0.7), 200), 3)
    read = checked_posteriors(written_so)
    np.testing.assert_allclose(read.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(read, written_so, atol=classes * 5e-4)


def test_posteriors_of_two_decimals_that_do_not_sum_to_one_are_refused_with_that_hint() -> None:
    with pytest.raises(InputError, match=r"do not sum to 1 within 0\.0015, the first is row 1; .* two decimals"):
        checked_posteriors([[0.2, 0.3, 0.5], [0.33, 0.33, 0.33]])


def test_digits_sent_with_three_decimals_lose_no_event_on_their_way_from_files_to_results(tmp_path: Path) -> None:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(y.size)
    x, y = x[order], y[order]
    said = np.round(RandomForestClassifier(70, random_state=0).fit(x[:600], y[:600]).predict_proba(x[600:]), 3)
    assert (np.abs(said.sum(axis=1) - 1) > 1.1e-3).any()
    events = [
        json.dumps({"timestamp": 1_794_992_400_000 + i, "label": str(label), "posteriors": row})
        for i, (label, row) in enumerate(zip(y[600:].tolist(), said.tolist(), strict=True))
    ]
    (tmp_path / "holdout.jsonl").write_text("\n".join(events[:700]))
    (tmp_path / "events.jsonl").write_text("\n".join(events[700:]))
    (tmp_path / "my.toml").write_text("""
        source.url = "jsonl:events.jsonl"
        sink.url = "jsonl:unused.jsonl"
        pace.workers = 0
        streams.digits = { reference = "digits.ref", window = { size = "1h", lateness = "0s" } }
    """)
    assert main(["reference", "build", str(tmp_path / "holdout.jsonl"), "-o", str(tmp_path / "digits.ref")]) == 0
    assert main(["replay", str(tmp_path / "my.toml"), "-o", str(tmp_path / "results.jsonl")]) == 0
    result = json.loads((tmp_path / "results.jsonl").read_text())
    assert (result["events"]["used"], result["verdict"]) == (497, "stable")


def test_ten_digits_written_with_four_decimals_that_were_made_to_sum_to_one_are_stable() -> None:
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(y.size)
    x, y = x[order], y[order]
    said = GaussianNB(var_smoothing=0.05).fit(x[:600], y[:600]).predict_proba(x)
    reference = Reference.fit(said[600:1_300], y[600:1_300])
    rounded = np.round(said[1_300:], 4)
    assert assess(Window.of(rounded / rounded.sum(axis=1, keepdims=True)), reference).verdict == "stable"


@cache
def certain_model(classes: int) -> tuple[Reference, np.ndarray, np.ndarray]:
    """Naive Bayes on 64 pixels is certain of nearly all digits, and often wrong: its reference, and further events."""
    x, digits = load_digits(return_X_y=True)
    y = digits % classes
    order = np.random.default_rng(4).permutation(y.size)
    fitted, hold_out, later = order[:500], order[500:1_150], order[1_150:]
    said = GaussianNB().fit(x[fitted], y[fitted]).predict_proba(x)
    return Reference.fit(said[hold_out], y[hold_out], x[hold_out]), said[later], x[later]


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("classes", [2, 10])
def test_a_model_that_is_certain_of_all_it_says_is_stable_however_its_scores_are_written(
    classes: int, how: str
) -> None:
    """Its calibration tells 1 - 1e-9 from 1 - 1e-4, which rounding does not."""
    reference, said, x = certain_model(classes)
    rng, verdicts = np.random.default_rng(5), []
    for _ in range(8):
        rows = rng.choice(said.shape[0], 300, replace=False)
        found = assess(Window.of(WRITTEN[how](said[rows]), features=x[rows]), reference)
        verdicts.append(found.verdict)
        assert not found.recalibration.apply
    assert verdicts.count("stable") >= 7, verdicts


@cache
def sure_of_seven() -> tuple[Reference, np.ndarray]:
    """Naive Bayes on inputs that repeat each other: far too sure, and of several classes at once."""
    x, y = make_classification(
        16_000, 20, n_informative=6, n_redundant=14, n_classes=7, n_clusters_per_class=1, class_sep=3.0, random_state=3
    )
    said = GaussianNB().fit(x[:2_000], y[:2_000]).predict_proba(x)
    reference = Reference.fit(said[2_000:6_000], y[2_000:6_000], calibration="matrix")
    return reference, said[6_000:]


@pytest.mark.parametrize("how", ["exact", "4 decimals", "3 decimals"])
def test_a_model_of_seven_classes_that_is_too_sure_is_stable_however_its_scores_are_written(how: str) -> None:
    """What a calibration makes of several small scores together is not what it makes of each."""
    reference, said = sure_of_seven()
    windows = [said[1_000 * k : 1_000 * (k + 1)] for k in range(10)]
    found = [assess(Window.of(WRITTEN[how](rows)), reference) for rows in windows]
    assert [one.verdict for one in found].count("stable") >= 9
    for one, rows in zip(found, windows, strict=True):
        exact = assess(Window.of(rows), reference).prevalence.priors
        np.testing.assert_allclose(one.prevalence.priors, exact, atol=0.005)


def test_a_class_mix_that_moved_is_still_seen_through_three_decimals() -> None:
    x, y = events(17_000)
    model = MODELS["boosted trees"].fit(x[:2_000], y[:2_000])
    reference = Reference.fit(model.predict_proba(x[2_000:7_000]), y[2_000:7_000], x[2_000:7_000])
    rows = 7_000 + np.concatenate([np.flatnonzero(y[7_000:] == 1)[:1_400], np.flatnonzero(y[7_000:] == 0)[:600]])
    found = assess(Window.of(np.round(model.predict_proba(x[rows]), 3), np.round(x[rows], 3)), reference)
    assert found.verdict == "prior-shift"
    assert found.prevalence.priors[1] == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize(("change", "feature"), [(lambda v: 100 * v, "x8"), (lambda v: v + 0.1, "x8")])
def test_a_unit_that_changed_is_still_seen_when_it_comes_in_single_precision(
    change: Callable[[np.ndarray], np.ndarray], feature: str
) -> None:
    reference, said, x = streamed(MODELS["logistic regression"])
    moved = x[:2_000].copy()
    moved[:, 8] = change(moved[:, 8])
    found = assess(Window.of(said[:2_000], moved.astype(np.float32)), reference)
    assert found.verdict == "covariate-shift"
    assert found.features[feature].kind == "linear"


def test_hard_labels_in_the_place_of_scores_are_no_rounding() -> None:
    reference, said, x = streamed(MODELS["logistic regression"])
    assert assess(Window.of(np.round(said[:2_000]), x[:2_000]), reference).verdict != "stable"


def test_the_same_reference_serves_all_windows_that_are_written_alike() -> None:
    reference, said, x = streamed(MODELS["forest"])
    prepare.cache_clear()
    for begin in range(0, 6_000, 1_000):
        assess(Window.of(np.round(said[begin : begin + 1_000], 4), x[begin : begin + 1_000]), reference)
    assert prepare.cache_info().misses == 1


def test_a_score_of_zero_is_worth_what_the_reference_said_of_such_events() -> None:
    raw = np.column_stack([1 - np.linspace(0, 4e-4, 500), np.linspace(0, 4e-4, 500)])
    said = rounded_scores(raw).at(np.array([[1.0, 0.0]]), 3)
    np.testing.assert_allclose(said, [[1 - 2e-4, 2e-4]])


def test_single_precision_of_scores_that_are_all_but_certain_keeps_what_the_small_ones_say() -> None:
    small = 10.0 ** -np.linspace(1, 15, 300)
    raw = np.column_stack([small, 1 - small])
    known = rounded_scores(raw)
    single = raw.astype(np.float32).astype(np.float64)
    for rows in (single, 2 * single):  # whatever they sum to
        np.testing.assert_allclose(1 - known.at(rows, SINGLE)[:, 1], small, rtol=1e-6, atol=1e-16)


def test_a_dozen_scores_that_seem_to_be_divided_by_chance_are_rounded_as_they_are() -> None:
    """0.79237682 and 0.20762318 are 0.792376 and 0.207623 divided by their sum, to seven digits."""
    raw = np.tile([[0.79237682, 0.20762318], [0.74154125, 0.25845875]], (100, 1))
    known = rounded_scores(raw)
    np.testing.assert_array_equal(known.at(raw, 6), known.at(np.round(raw, 6), 6))


@pytest.mark.parametrize("decimals_written", [3, 4, 5, 6])
def test_the_few_scores_of_a_small_model_are_the_same_scores_with_any_number_of_decimals(decimals_written: int) -> None:
    atoms = np.random.default_rng(0).random(100)
    raw = np.column_stack([1 - atoms, atoms])
    known = rounded_scores(raw)
    exact, rounded = (known.at(s, decimals_written) for s in (raw, np.round(raw, decimals_written)))
    np.testing.assert_array_equal(exact, rounded)


def test_a_regressor_may_send_single_precision() -> None:
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.choice([0.1, 0.2, 0.35], 6_000), rng.normal(size=6_000)])
    said = np.round(10 * x[:, 0] + x[:, 1], 1) / 3
    reference = RegressionReference.fit(said[:4_000], said[:4_000] + rng.normal(size=4_000), x[:4_000])
    window = Window.of_predictions(said[4_000:].astype(np.float32), x[4_000:].astype(np.float32))
    assert assess_regression(window, reference).verdict == "stable"


def test_decimals_are_told_from_the_numbers_alone() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=500)
    assert [decimals(np.round(numbers, d), 1.0) for d in range(7)] == list(range(7))
    assert decimals(np.round(numbers, 3).astype(np.float32).astype(float), 1.0) == 3
    assert decimals(1 - np.round(rng.random(500), 4), 1.0, least=1.0) == 4
    assert decimals(numbers.astype(np.float32).astype(float), 1.0) == SINGLE
    assert decimals(numbers, 1.0) == EXACT
    assert decimals_of(np.round(rng.dirichlet(np.ones(5), 300), 4)) == 4


def test_times_in_milliseconds_are_compared_as_they_come() -> None:
    times = 1.76e12 + np.arange(10_000.0) / 3
    assert written(times).base == EXACT
    np.testing.assert_array_equal(coarsened(times, EXACT), times)


def test_the_preflight_says_which_share_of_the_events_has_the_most_common_score() -> None:
    x, y = events(7_000)
    said = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=3).fit(x[:2_000], y[:2_000]).predict_proba(x)
    report = measure(Reference.fit(said[2_000:], y[2_000:]), said[2_000:], y[2_000:])
    share = np.unique(said[2_000:, 1], return_counts=True)[1].max() / 5_000
    assert f"Scores have atoms: the most common value holds {share:.0%}" in report["atoms"]["sentence"]
    assert report["atoms"]["sentence"] in [one["text"] for one in report["advice"]]


def test_every_estimator_sees_the_same_rounded_scores() -> None:
    reference, said, _ = streamed(MODELS["boosted trees"])
    for name in ("pacc", "acc-qp", "em"):
        exact, single = (ESTIMATORS[name](Window.of(s), reference).priors for s in (said, said.astype(np.float32)))
        np.testing.assert_allclose(exact, single, atol=1e-6)
