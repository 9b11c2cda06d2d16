"""A model that says margins (a support vector machine, the raw sums of boosted trees) is watched as it is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from monitor import Reference, Window, assess, quality
from monitor.commands.cli import main
from monitor.errors import InputError
from monitor.recalibration import RecalibratedClassifier, RecalibrationClient
from tests.first_hour.shop import Shop, orders


@pytest.fixture(scope="module")
def margins(my_shop: Shop) -> np.ndarray:
    return my_shop.model.decision_function(my_shop.frame)


@pytest.fixture(scope="module")
def reference(my_shop: Shop, margins: np.ndarray) -> Reference:
    classes = my_shop.model.classes_
    return Reference.fit(margins, my_shop.labels, my_shop.frame, classes=classes, scores="margin")


def client_of(found: Any) -> RecalibrationClient:
    client = RecalibrationClient(lambda: found.recalibration, "mine")
    client.refresh()
    return client


def test_what_the_hold_out_knows_makes_posteriors_of_them(my_shop: Shop, reference: Reference) -> None:
    assert (reference.calibration.method, reference.classes) == ("margin-platt", ("fraud", "legit"))
    frame, labels = orders(4_000, 7)
    found = assess(Window.of(my_shop.model.decision_function(frame), frame), reference)
    assert found.verdict == "stable"
    said = client_of(found).apply(my_shop.model.decision_function(frame)[:, None])
    truth = (labels == "legit").to_numpy().astype(int)
    assert quality.expected_calibration_error(said, truth) < 0.03
    assert quality.log_loss(said, truth) < quality.log_loss(my_shop.scores(frame), truth) + 0.01


def test_it_is_the_sigmoid_of_platt_with_his_targets(my_shop: Shop, margins: np.ndarray, reference: Reference) -> None:
    legit = (my_shop.labels == "legit").to_numpy()
    high, low = (legit.sum() + 1) / (legit.sum() + 2), 1 / ((~legit).sum() + 2)
    share = np.where(legit, high, low)
    twice = LogisticRegression(C=np.inf, tol=1e-10).fit(
        np.tile(margins, 2)[:, None], np.repeat([1, 0], margins.size), sample_weight=np.concatenate([share, 1 - share])
    )
    fitted = reference.calibration.parameters
    assert fitted["slopes"][1] == pytest.approx(twice.coef_[0, 0], rel=1e-3)
    assert fitted["intercepts"][1] == pytest.approx(twice.intercept_[0], rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1e6])
def test_the_unit_of_a_margin_makes_no_difference(
    my_shop: Shop, margins: np.ndarray, reference: Reference, scale: float
) -> None:
    scaled = Reference.fit(margins * scale, my_shop.labels, positive="legit", scores="margin")
    np.testing.assert_allclose(scaled.sample.posteriors, reference.sample.posteriors, atol=1e-4)


@pytest.mark.parametrize(
    "sent",
    [np.float32, lambda m: np.round(m, 5), lambda m: np.round(m, 3), lambda m: np.round(m, 2)],
    ids=["float32", "5 decimals", "3 decimals", "2 decimals"],
)
def test_rounded_margins_are_no_shift(my_shop: Shop, reference: Reference, sent: Callable[[Any], Any]) -> None:
    calm = [orders(2_000, seed)[0] for seed in range(20, 26)]
    said = [assess(Window.of(sent(my_shop.model.decision_function(f)), f), reference).verdict for f in calm]
    assert said.count("stable") >= 5


def test_a_class_mix_that_moved_is_found_and_corrected(my_shop: Shop, reference: Reference) -> None:
    frame, labels = orders(4_000, 8, fraud=0.5)
    scores = my_shop.model.decision_function(frame)
    found = assess(Window.of(scores, frame), reference)
    assert found.verdict == "prior-shift"
    assert found.prevalence.lower[0] < (labels == "fraud").mean() < found.prevalence.upper[0]
    client, truth = client_of(found), (labels == "legit").to_numpy().astype(int)
    assert client.status().correcting
    corrected, both = client.apply(scores[:, None]), np.column_stack([-scores, scores])
    assert quality.brier(corrected, truth) < quality.brier(reference.calibrated(both), truth)
    np.testing.assert_allclose(client.apply([[float(s)] for s in scores[:9]]), corrected[:9], rtol=1e-9)
    # The threshold speaks of what the margins are calibrated to, and both decide alike.
    before = reference.calibrated(both)[:, 0]
    assert ((before >= client.threshold("fraud", 0.5)) == (corrected[:, 0] >= 0.5)).mean() > 0.999


def test_without_a_correction_margins_come_out_calibrated_and_stay_so_when_the_message_expires(
    my_shop: Shop, margins: np.ndarray, reference: Reference
) -> None:
    found, clock = assess(Window.of(margins, my_shop.frame), reference), [0.0]
    client = RecalibrationClient(lambda: found.recalibration, "mine", now=lambda: clock[0])
    np.testing.assert_array_equal(client.apply(margins[:, None]), margins[:, None])  # nothing is known yet
    client.refresh()
    assert not client.status().correcting
    fresh = client.apply(margins[:, None])
    np.testing.assert_allclose(fresh, reference.calibrated(np.column_stack([-margins, margins])), rtol=1e-9)
    clock[0] = 1e9
    np.testing.assert_array_equal(client.apply(margins[:, None]), fresh)


def test_a_model_without_probabilities_gets_them_from_the_feed() -> None:
    x, y = load_digits(return_X_y=True)
    x, names = x / 16 + np.random.default_rng(0).normal(scale=0.4, size=x.shape), np.array([f"digit {d}" for d in y])
    model = LinearSVC().fit(x[:700], names[:700])
    reference = Reference.fit(model.decision_function(x[700:]), names[700:], classes=model.classes_, scores="margin")
    found = assess(Window.of(model.decision_function(x[700:])), reference)
    wrapped = RecalibratedClassifier(model, RecalibrationClient(lambda: found.recalibration, "digits"))
    with pytest.raises(ValueError, match="margins cannot be calibrated yet"):
        wrapped.predict_proba(x)
    assert (wrapped.predict(x) == model.predict(x)).all()
    wrapped.client.refresh()
    np.testing.assert_allclose(wrapped.predict_proba(x).sum(axis=1), 1)
    assert quality.expected_calibration_error(wrapped.predict_proba(x[700:]), y[700:]) < 0.03


def test_classes_that_were_exchanged_are_noticed_here_too(my_shop: Shop, margins: np.ndarray) -> None:
    wrong = Reference.fit(margins, my_shop.labels, positive="fraud", scores="margin")
    assert [warning.cause for warning in wrong.warnings] == ["classes-exchanged"]
    assert "the column of fraud fits legit" in repr(wrong)


def test_whose_margin_one_number_is_has_to_be_said(my_shop: Shop, margins: np.ndarray) -> None:
    with pytest.raises(InputError, match="that of fraud or of legit"):
        Reference.fit(margins, my_shop.labels, scores="margin")
    with pytest.raises(InputError, match="one number is the second class's"):
        Reference.fit(margins, my_shop.labels, scores="margin", classes=["fraud", "legit"], positive="fraud")


def test_margins_are_not_taken_for_probabilities(my_shop: Shop, margins: np.ndarray) -> None:
    with pytest.raises(InputError, match=r'are these margins\? .* or scores="margin" in Python'):
        Reference.fit(np.column_stack([-margins, margins]), my_shop.labels)


Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> tuple[int, str]:
        code = main([one.replace("DIR", str(tmp_path)) for one in arguments])
        said = capsys.readouterr()
        return code, " ".join((said.out + said.err).split())

    return run


@pytest.fixture(scope="module")
def holdout(my_shop: Shop, margins: np.ndarray) -> pd.DataFrame:
    """One number for each event, and one for each class."""
    each = {"scores.fraud": -margins, "scores.legit": margins}
    return pd.DataFrame({"score": -margins, "label": my_shop.labels, **each})


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
@pytest.mark.parametrize("columns", ["score", "scores"])
def test_from_a_file_one_number_or_one_for_each_class(
    holdout: pd.DataFrame, tmp_path: Path, command: Command, columns: str, ending: str
) -> None:
    path = tmp_path / f"holdout.{ending}"
    flat = holdout[["label", *(name for name in holdout if name.split(".")[0] == columns)]]
    if ending == "csv":
        flat.to_csv(path, index=False)
    elif ending == "parquet":
        flat.to_parquet(path)
    else:
        rows = flat.rename(columns=lambda name: name.removeprefix("scores.")).to_dict("records")
        nested = [{"label": row.pop("label"), "scores": row} if columns == "scores" else row for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in nested))
    said = ("--positive", "fraud", "--scores", "margin") if columns == "score" else ()
    code, told = command("reference", "build", f"DIR/holdout.{ending}", "-o", "DIR/my.ref", "--estimator", "em", *said)
    assert code == 0, told
    assert "scores margins calibration margin-platt" in told
    assert "Scores are margins. Posteriors that 'margin-platt' makes of them are off by" in told
    assert set(Reference.load(tmp_path / "my.ref").classes) == {"legit", "fraud"}


def test_a_file_of_margins_that_says_nothing_is_refused_with_what_it_probably_is(
    holdout: pd.DataFrame, tmp_path: Path, command: Command
) -> None:
    holdout[["score", "label"]].to_csv(tmp_path / "holdout.csv", index=False)
    code, told = command("reference", "build", "DIR/holdout.csv", "-o", "DIR/my.ref", "--positive", "fraud")
    assert code == 1
    assert "are these margins? Then build the reference with --scores margin" in told


def configuration(tmp_path: Path, stream: str = "", ends: str = "") -> None:
    (tmp_path / "my.toml").write_text(
        f"""
        [source]
        url = "jsonl:events.jsonl"
        [sink]
        url = "jsonl:results.jsonl"
        {ends}
        [pace]
        workers = 0
        [streams.mine]
        reference = "my.ref"
        window = {{ size = "1s", lateness = "0s" }}
        {stream}
        """
    )


def events(tmp_path: Path, my_shop: Shop, frame: pd.DataFrame, labels: pd.Series) -> np.ndarray:
    said = my_shop.model.decision_function(frame)
    rows = [
        {"id": f"tx-{i}", "timestamp": 1_790_000_000_000 + i, "score": float(m), "label": label}
        for i, (m, label) in enumerate(zip(said, labels, strict=True))
    ]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return said


def test_a_stream_of_margins_is_watched_corrected_and_followed_up(
    my_shop: Shop, reference: Reference, tmp_path: Path, command: Command
) -> None:
    plain = Reference.fit(
        my_shop.model.decision_function(my_shop.frame),
        my_shop.labels,
        classes=my_shop.model.classes_,
        positive="legit",
        scores="margin",
    )
    plain.save(tmp_path / "my.ref")
    frame, labels = orders(4_000, 9, fraud=0.6)
    said = events(tmp_path, my_shop, frame, labels)
    configuration(
        tmp_path,
        'scores = "margin"\ncorrected = "window"\nlabels = { wait = "1s" }',
        'events = "corrected.jsonl"\nrecalibrations = "recal.jsonl"',
    )
    code, told = command("check", "DIR/my.toml")
    assert code == 0
    assert "margins" in told
    code, told = command("run", "DIR/my.toml")
    assert code == 0, told
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    windows = [one for one in lines if one["schema"].startswith("shiftwatch.window")]
    assert [one["verdict"] for one in windows[:2]] == ["prior-shift"] * 2
    outcome = next(one for one in lines if one["schema"].startswith("shiftwatch.outcome"))
    assert 0 < outcome["brier"]["after"] < outcome["brier"]["before"] < 0.25
    for line in (tmp_path / "corrected.jsonl").read_text().splitlines():
        event = json.loads(line)
        margin = said[int(event["id"].removeprefix("tx-"))]
        assert event["original"] == {"fraud": -margin, "legit": margin}
        assert sum(event["posteriors"].values()) == pytest.approx(1)
    client = RecalibrationClient(str(tmp_path / "recal.jsonl"), "mine")
    client.refresh()
    truth = (labels == "legit").to_numpy().astype(int)
    before = plain.calibrated(np.column_stack([-said, said]))
    assert quality.brier(client.apply(said[:, None]), truth) < quality.brier(before, truth) - 0.005


def test_a_stream_that_says_posteriors_is_no_stream_of_margins(
    reference: Reference, my_reference: Reference, tmp_path: Path, command: Command
) -> None:
    (tmp_path / "events.jsonl").write_text("")
    for built, said in ((reference, "posterior"), (my_reference, "margin")):
        built.save(tmp_path / "my.ref")
        configuration(tmp_path, f'scores = "{said}"')
        code, told = command("check", "DIR/my.toml")
        assert code == 2
        assert f'scores = "{said}": the reference was built from' in told


def test_events_of_the_other_kind_are_rejected_with_a_hint(
    my_shop: Shop, reference: Reference, my_reference: Reference, tmp_path: Path, command: Command
) -> None:
    my_reference.save(tmp_path / "my.ref")
    configuration(tmp_path, ends='dead_letters = "dead.jsonl"')
    row = {"timestamp": 1_790_000_000_000, "posteriors": {"fraud": -1.5, "legit": 1.5}}
    (tmp_path / "events.jsonl").write_text(json.dumps(row) + "\n")
    command("run", "DIR/my.toml")
    assert "are these margins? Then build the reference with --scores margin" in (tmp_path / "dead.jsonl").read_text()
    (tmp_path / "dead.jsonl").unlink()
    (tmp_path / "results.jsonl").unlink(missing_ok=True)
    for left in tmp_path.glob("*checkpoint*"):
        left.unlink()
    reference.save(tmp_path / "my.ref")
    command("run", "DIR/my.toml")
    assert "neither `scores` nor `score` nor a label" in (tmp_path / "dead.jsonl").read_text()
