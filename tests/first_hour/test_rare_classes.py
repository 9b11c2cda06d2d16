"""A class of a few in a thousand: its doubling is seen, its fall may be allowed, and few positives raise no alarm."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference, Window, assess
from monitor.assessment import Assessment, ClassRule, MixRule
from monitor.commands.cli import main


def payments(fraud: float, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    bad = rng.random(rows) < fraud
    x = rng.normal(size=(rows, 4)) * np.where(bad[:, None], [1.0, 2.0, 1.5, 1.0], 1.0) + 2.0 * bad[:, None]
    return x, np.where(bad, "fraud", "legit")


@pytest.fixture(scope="module")
def model() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*payments(0.02, 20_000, 0))


def known(model: Pipeline, fraud: float, rows: int, seed: int) -> Reference:
    x, labels = payments(fraud, rows, seed)
    return Reference.fit(model.predict_proba(x), labels, x, classes=model.classes_)


def window(model: Pipeline, fraud: float, rows: int, seed: int) -> Window:
    x, _ = payments(fraud, rows, seed)
    return Window.of(model.predict_proba(x), x)


@pytest.fixture(scope="module")
def reference(model: Pipeline) -> Reference:
    return known(model, 0.003, 30_000, 1)


@pytest.fixture(scope="module")
def doubled(model: Pipeline, reference: Reference) -> Window:
    return window(model, 0.006, 60_000, 2)


@pytest.fixture(scope="module")
def halved(model: Pipeline) -> Window:
    return window(model, 0.001, 60_000, 3)


def moved(found: Assessment) -> bool:
    return found.verdict == "prior-shift"


def test_a_fraud_rate_that_doubles_from_three_in_a_thousand_is_a_prior_shift(
    doubled: Window, reference: Reference
) -> None:
    found = assess(doubled, reference)
    assert moved(found)
    assert found.tests["prior-shift"].effect < 0.07  # half of what Cohen calls small
    assert found.tests["class-share"].effect == pytest.approx(2, abs=0.4)
    assert found.reasons[0].startswith("fraud rose from 0.29% to 0.6")


def test_the_recalibration_of_a_rare_class_that_doubled_says_what_the_verdict_says(
    model: Pipeline, reference: Reference
) -> None:
    """Cohen's w of the whole mix may be below its floor: the class itself counts, and scores get better by it."""
    at, applied = model.classes_.tolist().index("fraud"), 0
    for seed in range(1000, 1008):
        x, labels = payments(0.0055, 60_000, seed)
        scores = model.predict_proba(x)
        found = assess(Window.of(scores, x), reference)
        assert moved(found)
        # By chance a window does not tell label shift from a shift of the inputs; no change is called too small.
        assert found.recalibration.cause in {"prior-shift", "not-told-apart"}
        if not found.recalibration.apply:
            continue
        applied += 1
        calibrated = reference.calibration(scores)
        corrected = calibrated * found.recalibration.multipliers
        corrected /= corrected.sum(axis=1, keepdims=True)
        fraud = (labels == "fraud").astype(float)
        assert ((corrected[:, at] - fraud) ** 2).mean() < ((calibrated[:, at] - fraud) ** 2).mean()
    assert applied >= 5


def test_calm_windows_with_a_rare_class_are_stable(model: Pipeline, reference: Reference) -> None:
    said = [assess(window(model, 0.003, 10_000, 100 + k), reference).verdict for k in range(30)]
    assert said.count("stable") >= 29


def test_what_is_allowed_does_not_count_and_its_opposite_does(
    doubled: Window, halved: Window, reference: Reference
) -> None:
    fraud_may_fall = MixRule(classes={"fraud": ClassRule(may="fall")})
    assert moved(assess(halved, reference))
    assert assess(halved, reference, mix_rule=fraud_may_fall).verdict == "stable"
    assert moved(assess(doubled, reference, mix_rule=fraud_may_fall))


def test_a_stream_and_a_class_have_factors_and_levels_of_their_own(doubled: Window, reference: Reference) -> None:
    for rule in (
        MixRule(floor=0.2, factor=4.0),
        MixRule(floor=0.2, classes={"fraud": ClassRule(factor=4.0)}),
        MixRule(classes={"fraud": ClassRule(level=1e-200)}),
    ):
        assert assess(doubled, reference, mix_rule=rule).verdict == "stable"
    assert moved(assess(doubled, reference, mix_rule=MixRule(floor=0.01, factor=4.0)))


def test_of_three_classes_only_one_of_which_moved_as_it_may_the_others_are_compared_among_themselves() -> None:
    def events(mix: list[float], seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        labels = rng.choice(3, 6_000, p=mix)
        return 2.5 * np.eye(3)[labels] + rng.normal(size=(6_000, 3)), labels

    model = LogisticRegression().fit(*events([0.4, 0.3, 0.3], 0))
    x, labels = events([0.4, 0.3, 0.3], 1)
    reference = Reference.fit(model.predict_proba(x), labels, x)
    rule = MixRule(classes={"2": ClassRule(may="rise")})
    for mix, verdict in (([0.28, 0.22, 0.5], "stable"), ([0.15, 0.35, 0.5], "prior-shift")):
        rows, _ = events(mix, 2)
        assert assess(Window.of(model.predict_proba(rows), rows), reference, mix_rule=rule).verdict == verdict


def test_five_frauds_in_the_hold_out_are_few_and_intervals_know_it(model: Pipeline) -> None:
    held = alarms = windows = 0
    for seed in range(8):
        reference = known(model, 0.01, 500, 10 + seed)
        for k in range(5):
            found = assess(window(model, 0.02, 500, 200 + 10 * seed + k), reference)
            held += found.prevalence.lower[0] <= 0.02 <= found.prevalence.upper[0]
            alarms += found.verdict not in {"stable", "prior-shift"}
            windows += 1
    assert held >= 0.85 * windows
    assert alarms <= 2


SETTINGS = """
[source]
url = "jsonl:events.jsonl"
[sink]
url = "jsonl:results.jsonl"
[streams.payments]
reference = "payments.ref"
window = { count = 1000 }
[streams.payments.alarm]
windows = 3
of = 5
level = 0.001
[streams.payments.alarm.classes.CLASS]
may = "fall"
"""


def test_check_says_which_false_alarms_follow(
    tmp_path: Path, reference: Reference, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    reference.save(tmp_path / "payments.ref")
    (tmp_path / "events.jsonl").touch()
    settings = tmp_path / "shiftwatch.toml"
    settings.write_text(SETTINGS.replace("CLASS", "fraud"))
    assert main(["check", str(settings)]) == 0
    said = capsys.readouterr().out
    assert "without a shift 0.001 of the windows, an alarm once in 100,1" in said
    assert "fraud may fall" in said
    settings.write_text(SETTINGS.replace("CLASS", "froud"))
    assert main(["check", str(settings)]) != 0
    assert "'froud' is none of the reference's classes" in capsys.readouterr().err
