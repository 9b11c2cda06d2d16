"""Each country has its own share of fraud and its own amounts: a segment is held against itself, not the rest."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from monitor import Reference, Window, assess
from monitor.assessment import Assessment
from monitor.commands.cli import main
from monitor.events import segment_name, segment_values
from monitor.windows import OTHER_SEGMENTS, Segments, WindowKey

FRAUD = {"BE": 0.08, "DE": 0.2, "NL": 0.35, "LU": 0.12}
SHARES = (0.5, 0.3, 0.18, 0.02)


def orders(rows: int, seed: int, times: float = 1.0) -> tuple[pd.DataFrame, np.ndarray]:
    """Orders of four countries; `times` as much fraud as usual in each."""
    rng = np.random.default_rng(seed)
    country = rng.choice(list(FRAUD), rows, p=SHARES)
    bad = rng.random(rows) < times * pd.Series(country).map(FRAUD).to_numpy()
    usual = pd.Series(country).map({"BE": 3.0, "DE": 3.6, "NL": 2.5, "LU": 4.0}).to_numpy()
    frame = pd.DataFrame(
        {
            "amount": np.exp(usual + 0.8 * bad + rng.normal(0, 0.6, rows)),
            "age_days": rng.exponential(300, rows) * (1 - 0.6 * bad),
            "pace": rng.normal(size=rows) + bad,
            "country": country,
        }
    )
    return frame, np.where(bad, "fraud", "legit")


@pytest.fixture(scope="module")
def model() -> Pipeline:
    columns = make_column_transformer((OneHotEncoder(), ["country"]), remainder=StandardScaler())
    return make_pipeline(columns, LogisticRegression(max_iter=500)).fit(*orders(6_000, 0))


@pytest.fixture(scope="module")
def by_feature(model: Pipeline) -> Reference:
    frame, labels = orders(10_000, 1)
    return Reference.fit(model.predict_proba(frame), labels, frame, classes=model.classes_)


@pytest.fixture(scope="module")
def by_segment(model: Pipeline) -> Reference:
    """Where the country is no feature of the events, but a field by which they are told apart."""
    frame, labels = orders(10_000, 1)
    return Reference.fit(
        model.predict_proba(frame),
        labels,
        frame.drop(columns="country"),
        classes=model.classes_,
        segments=frame[["country"]],
    )


def said(model: Pipeline, reference: Reference, frame: pd.DataFrame, country: str) -> Assessment:
    rows = frame[frame["country"] == country]
    features = rows[[feature.name for feature in reference.schema.features]]
    window = Window.of(model.predict_proba(rows), features)
    return assess(replace(window, key=WindowKey("shop", f"country={country}")), reference)


@pytest.mark.parametrize("kept", ["by_feature", "by_segment"])
def test_calm_segments_are_stable_and_those_that_moved_are_not(
    kept: str, model: Pipeline, request: pytest.FixtureRequest
) -> None:
    reference = request.getfixturevalue(kept)
    calm, doubled = Counter[str](), Counter[str]()
    for seed in range(4):
        for country in ("BE", "DE", "NL"):
            calm[said(model, reference, orders(4_000, 10 + seed)[0], country).verdict] += 1
            doubled[said(model, reference, orders(4_000, 20 + seed, times=2.0)[0], country).verdict] += 1
    assert calm["stable"] >= 11, calm
    assert doubled["prior-shift"] >= 11, doubled


def test_a_segment_reports_its_own_shares_and_what_became_of_them(model: Pipeline, by_feature: Reference) -> None:
    found = said(model, by_feature, orders(8_000, 30, times=2.0)[0], "NL")
    assert dict(zip(found.classes, found.source_priors, strict=True))["fraud"] == pytest.approx(0.35, abs=0.03)
    assert found.reasons[0].startswith("fraud rose from 3")
    assert found.prevalence.lower[0] < 0.7 < found.prevalence.upper[0]
    assert found.recalibration.apply


def test_a_segment_is_estimated_by_any_estimator_that_the_whole_is(model: Pipeline) -> None:
    frame, labels = orders(4_000, 1)
    scores, fields = model.predict_proba(frame), frame[["country"]]
    reference = Reference.fit(
        scores, labels, classes=model.classes_, segments=fields, estimator="dfm-energy-soft", stream="shop"
    )
    window = replace(Window.of(scores[fields["country"] == "BE"]), key=WindowKey("shop", "country=BE"))
    found = assess(window, reference)
    assert found.prevalence.method == "dfm-energy-soft"
    assert found.verdict == "stable"


def test_an_amount_in_cents_is_seen_in_its_segment(model: Pipeline, by_segment: Reference) -> None:
    frame, _ = orders(4_000, 40)
    moved = frame.assign(amount=100 * frame["amount"])
    rows = moved["country"] == "BE"
    window = Window.of(model.predict_proba(frame[rows]), moved[rows].drop(columns="country"))
    found = assess(replace(window, key=WindowKey("shop", "country=BE")), by_segment)
    assert found.verdict == "covariate-shift"
    assert [name for name, feature in found.features.items() if feature.moved] == ["amount"]


def test_of_a_small_segment_only_scores_and_class_mix_are_compared(model: Pipeline, by_feature: Reference) -> None:
    """The hold-out has some 180 orders from Luxembourg."""
    verdicts = Counter[str]()
    for seed in range(6):
        found = said(model, by_feature, orders(12_000, 50 + seed)[0], "LU")
        verdicts[found.verdict] += 1
        assert not found.features
        assert "of this segment: only scores and class mix are compared" in found.reasons[0]
    assert verdicts["stable"] >= 5, verdicts


def test_segments_that_are_watched_together_are_held_against_themselves(model: Pipeline, by_feature: Reference) -> None:
    frame, _ = orders(8_000, 60)
    rows = frame[frame["country"].isin(["NL", "LU"])]
    names = tuple(f"country={name}" for name in FRAUD)
    codes = rows["country"].map({name: code for code, name in enumerate(FRAUD)}).to_numpy(dtype=np.int32)
    window = Window.of(model.predict_proba(rows), rows)
    found = assess(replace(window, key=WindowKey("shop", OTHER_SEGMENTS), segments=Segments(codes, names)), by_feature)
    assert found.verdict == "stable"
    assert found.source_priors[0] == pytest.approx(0.33, abs=0.03)


def test_what_a_segment_fixes_is_left_out_where_the_hold_out_does_not_know_it(
    model: Pipeline, by_feature: Reference
) -> None:
    frame, _ = orders(4_000, 70)
    rows = frame[frame["country"] == "BE"]
    window = Window.of(model.predict_proba(rows), rows)
    found = assess(replace(window, key=WindowKey("shop", "region=west")), by_feature)
    assert "held against all, without country, which the segment fixes" in found.reasons[0]
    assert "country" not in found.features
    assert {"amount", "age_days", "pace"} <= found.features.keys()


def test_a_detector_of_changes_looks_for_what_is_unusual_in_the_segment(by_feature: Reference) -> None:
    assert by_feature.usual_in("country=NL").source_priors[0] == pytest.approx(0.35, abs=0.03)
    assert by_feature.usual_in("country=FR") is by_feature.usual_in("") is by_feature


def test_a_reference_that_was_saved_knows_its_segments(model: Pipeline, by_segment: Reference, tmp_path: Path) -> None:
    by_segment.save(tmp_path / "shop.ref")
    again = Reference.load(tmp_path / "shop.ref")
    frame, _ = orders(4_000, 80)
    for country in ("DE", "LU"):
        one, other = (said(model, reference, frame, country).to_json() for reference in (by_segment, again))
        assert one == other


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_segments_of_a_hold_out_file_are_kept_and_used_by_a_replay(
    suffix: str, model: Pipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def events(frame: pd.DataFrame, labels: np.ndarray | None) -> list[dict[str, object]]:
        return [
            {
                "posteriors": {"fraud": float(g[0]), "legit": float(g[1])},
                "features": {name: row[name] for name in ("amount", "age_days", "pace")},
                "segment": {"country": row["country"]},
                "timestamp": 1_790_000_000_000 + number,
                "stream": "shop",
                **({} if labels is None else {"label": str(labels[number])}),
            }
            for number, (g, row) in enumerate(zip(model.predict_proba(frame), frame.to_dict("records"), strict=True))
        ]

    def write(path: Path, rows: list[dict[str, object]]) -> None:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    held = events(*orders(5_000, 1))
    file = tmp_path / f"holdout{suffix}"
    if suffix == ".csv":
        pd.json_normalize(held).drop(columns="timestamp").to_csv(file, index=False)
    else:
        write(file, held)
    out = str(tmp_path / "shop.ref")
    assert main(["reference", "build", str(file), "-o", out, "--estimator", "em", "--no-report"]) == 0
    assert "segments country (4 values)" in " ".join(capsys.readouterr().out.split())
    write(tmp_path / "events.jsonl", events(orders(3_000, 2)[0], None))
    settings = tmp_path / "shiftwatch.toml"
    settings.write_text(
        '[source]\nurl = "jsonl:events.jsonl"\n[sink]\nurl = "jsonl:r.jsonl"\n[pace]\nworkers = 0\n'
        '[streams.shop]\nreference = "shop.ref"\nwindow = { count = 3000 }\nsegments = ["country"]\n'
    )
    assert main(["replay", str(settings), "-o", str(tmp_path / "out.jsonl")]) == 0
    windows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    verdicts = {window["segment"]: window["verdict"] for window in windows if window.get("verdict")}
    assert verdicts.keys() == {"", *(f"country={name}" for name in FRAUD)}
    assert [name for name, verdict in verdicts.items() if verdict not in {"stable", "insufficient-data"}] == []


def test_check_says_which_segments_the_reference_does_not_know(
    by_segment: Reference, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by_segment.save(tmp_path / "shop.ref")
    (tmp_path / "events.jsonl").touch()
    settings = tmp_path / "shiftwatch.toml"
    settings.write_text(
        '[source]\nurl = "jsonl:events.jsonl"\n[sink]\nurl = "jsonl:r.jsonl"\n'
        '[streams.shop]\nreference = "shop.ref"\nwindow = { count = 1000 }\nsegments = ["country", "plan"]\n'
    )
    assert main(["check", str(settings)]) == 0
    said_of = capsys.readouterr().out
    assert "does not know what is usual in a segment by plan" in said_of
    assert "usual in a segment by country" not in said_of


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(max_size=8), min_size=1, max_size=3))
def test_a_segments_name_says_the_values_of_its_fields(values: dict[str, str]) -> None:
    assert segment_values(segment_name(list(values), list(values.values()))) == values
