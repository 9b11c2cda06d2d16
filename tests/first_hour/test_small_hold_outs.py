"""A few hundred labelled events are enough to stay calm: covariances from few rows are not taken for the truth."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference, Window, assess
from monitor.shifts import fit
from monitor.shifts.moments import Moments


def split(x: np.ndarray, y: np.ndarray, train: int, held: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(y.size)
    return order[:train], order[train : train + held], order[train + held :]


@pytest.mark.parametrize(
    ("data", "model", "train", "held"),
    [
        (load_digits, GaussianNB(var_smoothing=0.05), 800, 450),
        (load_breast_cancer, make_pipeline(StandardScaler(), LogisticRegression()), 180, 200),
        (
            lambda return_X_y: make_classification(4_000, 30, n_informative=12, random_state=2),
            RandomForestClassifier(30, min_samples_leaf=3, random_state=0),
            1_000,
            300,
        ),
    ],
    ids=["digits", "breast cancer", "thirty features"],
)
def test_windows_without_a_shift_are_stable(data, model, train: int, held: int) -> None:
    x, y = data(return_X_y=True)
    alarms = windows = 0
    for seed in range(2):
        fitted, hold_out, rest = split(x, y, train, held, seed)
        model.fit(x[fitted], y[fitted])
        reference = Reference.fit(model.predict_proba(x[hold_out]), y[hold_out], x[hold_out])
        for begin in range(0, min(rest.size - 180, 1_200), 180):
            rows = rest[begin : begin + 180]
            alarms += assess(Window.of(model.predict_proba(x[rows]), x[rows]), reference).verdict != "stable"
            windows += 1
    assert alarms <= 1, f"{alarms} of {windows}"


@pytest.mark.parametrize("rows", [60, 120, 1_000])
def test_the_p_values_of_the_fit_are_uniform_for_covariances_from_few_rows(rows: int) -> None:
    rng = np.random.default_rng(rows)
    p_values = []
    for _ in range(200):
        sample = [rng.normal(size=(rows, 20)) + shift for shift in (0.0, 1.0)]
        moments = Moments(
            np.ones(20),
            np.stack([x.mean(axis=0) for x in sample]),
            np.stack([np.cov(x.T) for x in sample]),
            np.full(2, 0.5),
            np.full(2, float(rows)),
        )
        window = np.vstack([rng.normal(size=(150, 20)), rng.normal(size=(150, 20)) + 1.0])
        p_values.append(fit.match(moments, window.mean(axis=0), 300).p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.10
    assert 0.35 < np.median(p_values) < 0.75


def test_a_rare_class_that_spreads_wider_than_the_other_may_become_more_frequent() -> None:
    def events(rate: float, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        labels = (rng.random(rows) < rate).astype(int)
        spread = np.where(labels[:, None] == 1, [1.0, 2.0, 1.5, 3.0, 1.0, 2.0], 1.0)
        return rng.normal(size=(rows, 6)) * spread + 1.5 * labels[:, None], labels

    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*events(0.023, 10_000, 0))
    said = []
    for seed in range(2):
        x, labels = events(0.023, 5_000, 10 + seed)
        reference = Reference.fit(model.predict_proba(x), labels, x)
        for k in range(6):
            more, _ = events(0.1, 1_000, 100 + 10 * seed + k)
            said.append(assess(Window.of(model.predict_proba(more), more), reference).verdict)
    assert said.count("prior-shift") >= 11


def measured(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Shells whose measures all follow from one size, nearly: their cosines hardly vary in most directions."""
    rng = np.random.default_rng(seed)
    size, y = rng.normal(size=(rows, 1)), rng.integers(0, 2, rows)
    return np.exp(0.3 * size + 0.03 * rng.normal(size=(rows, 6)) + 0.2 * y[:, None]), y


def test_a_few_heights_that_were_typed_wrongly_move_nothing() -> None:
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*measured(2_000, 0))
    x, y = measured(1_500, 1)
    reference = Reference.fit(model.predict_proba(x), y, x)
    for seed in range(4):
        today, _ = measured(400, 10 + seed)
        today[0, 2] *= 10
        today[1, 4] /= 10
        assert assess(Window.of(model.predict_proba(today), today), reference).verdict == "stable"
        today[:40, 2] *= 10
        assert assess(Window.of(model.predict_proba(today), today), reference).verdict != "stable"


def test_heavy_tails_in_a_small_hold_out_raise_no_alarm() -> None:
    def events(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, rows)
        return rng.standard_t(2.5, size=(rows, 5)) + 1.5 * y[:, None], y

    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*events(3_000, 0))
    alarms = 0
    for seed in range(5):
        x, y = events(1_500, 1 + seed)
        reference = Reference.fit(model.predict_proba(x), y, x)
        for k in range(10):
            today, _ = events(400, 100 + 10 * seed + k)
            alarms += assess(Window.of(model.predict_proba(today), today), reference).verdict != "stable"
    assert alarms <= 2


def test_a_flag_that_becomes_ten_times_as_frequent_is_named_however_rare_it_was() -> None:
    rng = np.random.default_rng(4)

    def drawn(rows: int, flagged: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels = rng.integers(0, 2, rows)
        inputs = np.column_stack([labels + rng.normal(size=rows), rng.random(rows) < flagged])
        positive = 1 / (1 + np.exp(0.5 - inputs[:, 0]))
        return np.column_stack([1 - positive, positive]), labels, inputs

    posteriors, labels, inputs = drawn(5_000, 0.005)
    reference = Reference.fit(posteriors, labels, inputs, feature_names=["age", "manual_review"])
    calm = [assess(Window.of(p, x), reference).verdict for p, _, x in (drawn(1_000, 0.005) for _ in range(40))]
    assert calm.count("stable") >= 38
    posteriors, _, inputs = drawn(1_000, 0.05)
    found = assess(Window.of(posteriors, inputs), reference)
    assert found.verdict == "covariate-shift"
    assert found.reasons[0].startswith("manual_review")


def test_rare_flags_raise_no_alarm_where_they_are_often_missing_either() -> None:
    rng = np.random.default_rng(8)

    def drawn(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels = rng.integers(0, 2, rows)
        flags = (rng.random((rows, 3)) < 0.01).astype(float)
        flags[rng.random((rows, 3)) < 0.5] = np.nan
        inputs = np.column_stack([labels + rng.normal(size=rows), flags])
        positive = 1 / (1 + np.exp(0.5 - inputs[:, 0]))
        return np.column_stack([1 - positive, positive]), labels, inputs

    reference = Reference.fit(*drawn(2_000))
    alarms = sum(assess(Window.of(p, x), reference).verdict != "stable" for p, _, x in (drawn(300) for _ in range(100)))
    assert alarms <= 4


def test_the_first_late_fee_in_a_column_that_was_all_zero_is_no_shift_and_a_tenth_of_them_is() -> None:
    """None in three hundred rows: one in a hundred is nothing to speak of, whatever its amount."""
    rng = np.random.default_rng(6)

    def drawn(rows: int, late: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        labels = rng.integers(0, 2, rows)
        inputs = np.column_stack([labels + rng.normal(size=rows), rng.normal(size=rows), np.zeros(rows)])
        inputs[:late, 2] = 100 * rng.random(late).round(4) + 1
        positive = 1 / (1 + np.exp(0.5 - inputs[:, 0]))
        return np.column_stack([1 - positive, positive]), labels, inputs

    posteriors, labels, inputs = drawn(300, 0)
    reference = Reference.fit(posteriors, labels, inputs, feature_names=["age", "visits", "late_fee"])
    verdicts = []
    for late in (1, 2, 30):
        posteriors, _, inputs = drawn(200, late)
        verdicts.append(assess(Window.of(posteriors, inputs), reference))
    assert [each.verdict.value for each in verdicts] == ["stable", "stable", "covariate-shift"]
    assert "late_fee" in verdicts[-1].reasons[0]
