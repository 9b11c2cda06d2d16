"""Codes stay codes, numbers stay numbers, and what was guessed is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from monitor import Reference, Window, assess
from monitor.commands.cli import main
from monitor.errors import InputError
from monitor.events import Decoder
from monitor.ports import RawBatch
from monitor.reference import holdout
from tests.first_hour.shop import Shop, orders

Command = Callable[..., tuple[int, str]]


def events(my_shop: Shop, frame: pd.DataFrame, labels: pd.Series | None = None) -> list[dict[str, Any]]:
    """The events that a scoring service would send, missing values as null."""
    scores = my_shop.scores(frame)
    rows = [{k: None if pd.isna(v) else v for k, v in row.items()} for row in frame.to_dict("records")]
    told = [{}] * len(rows) if labels is None else [{"label": label} for label in labels]
    return [
        {
            "posteriors": {"fraud": float(g[0]), "legit": float(g[1])},
            "features": row,
            "timestamp": 1_790_000_000_000 + i,
        }
        | label
        for i, (g, row, label) in enumerate(zip(scores, rows, told, strict=True))
    ]


def lines(path: Path, some: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in some))
    return path


def table(my_shop: Shop, path: Path) -> Path:
    scores = my_shop.scores(my_shop.frame)
    whole = my_shop.frame.assign(
        **{"posteriors.fraud": scores[:, 0], "posteriors.legit": scores[:, 1], "label": my_shop.labels}
    )
    whole.to_parquet(path) if path.suffix == ".parquet" else whole.to_csv(path, index=False)
    return path


@pytest.fixture
def build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    def command(holdout: Path, *arguments: str) -> tuple[int, str]:
        code = main(
            ["reference", "build", str(holdout), "-o", str(tmp_path / "my.ref"), "--estimator", "em", *arguments]
        )
        said = capsys.readouterr()
        return code, " ".join((said.out + said.err).split())

    return command


def kinds(path: Path) -> dict[str, str]:
    return {feature.name: feature.kind for feature in Reference.load(path).schema.features}


def accepted(path: Path, some: list[dict[str, Any]]) -> tuple[int, set[str]]:
    """How many events the stream of a reference takes, and why it rejects the others."""
    records: list[bytes | None] = [json.dumps(one).encode() for one in some]
    decoded = Decoder([Reference.load(path).schema]).decode(
        RawBatch("p", records, np.arange(len(records)), len(records)), 2**60
    )
    return sum(scored.rows.events for scored in decoded.scored.values()), {
        f"{r.reason}: {r.detail}" for r in decoded.rejected
    }


TRUE_KINDS = {"amount": "number", "age_days": "number", "country": "category", "mcc": "category", "weekend": "boolean"}


def test_a_json_text_is_a_category_whatever_it_looks_like(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    code, said = build(lines(tmp_path / "holdout.jsonl", events(my_shop, my_shop.frame, my_shop.labels)))
    assert code == 0, said
    assert kinds(tmp_path / "my.ref") == TRUE_KINDS
    assert "guessed" not in said


def test_so_is_a_text_in_parquet(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    code, said = build(table(my_shop, tmp_path / "holdout.parquet"))
    assert code == 0, said
    assert kinds(tmp_path / "my.ref") == TRUE_KINDS


def test_what_a_csv_makes_one_guess_is_said(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    code, said = build(table(my_shop, tmp_path / "holdout.csv"))
    assert code == 0, said
    # The code 0742 begins with a zero, as no number does.
    assert kinds(tmp_path / "my.ref") == TRUE_KINDS
    assert "guessed from text: amount, age_days are taken as numbers" in said
    assert "guessed from text: country, mcc are taken as categories" in said


def test_a_code_of_digits_is_said_to_be_one(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    shop = Shop(my_shop.model, my_shop.frame.replace({"mcc": {"0742": "7420"}}), my_shop.labels)
    holdout, today = table(shop, tmp_path / "holdout.csv"), events(shop, shop.frame[:50])
    assert build(holdout)[0] == 0
    assert kinds(tmp_path / "my.ref")["mcc"] == "number"
    taken, reasons = accepted(tmp_path / "my.ref", today)
    assert taken == 0
    assert reasons == {
        "bad-features: mcc: text where the reference has numbers; is it a category? (reference build --category)"
    }
    assert build(holdout, "--category", "mcc")[0] == 0
    assert kinds(tmp_path / "my.ref")["mcc"] == "category"
    assert accepted(tmp_path / "my.ref", today) == (50, set())


def test_a_number_sent_for_a_category_is_the_category_of_that_name(
    my_shop: Shop, build: Command, tmp_path: Path
) -> None:
    build(table(my_shop, tmp_path / "holdout.parquet"))
    schema = Reference.load(tmp_path / "my.ref").schema
    (one, *_) = events(my_shop, my_shop.frame[:1])
    sent = [one | {"features": one["features"] | {"mcc": mcc}} for mcc in ("5411", 5411, 5411.0, "9999", None)]
    records: list[bytes | None] = [json.dumps(event).encode() for event in sent]
    (scored,) = Decoder([schema]).decode(RawBatch("p", records, np.arange(5), 5), 2**60).scored.values()
    code = [feature.name for feature in schema.features].index("mcc")
    assert scored.rows.features is not None
    np.testing.assert_array_equal(scored.rows.features[:, code], [1, 1, 1, 4, np.nan])


def test_columns_can_be_left_out(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    holdout = table(my_shop, tmp_path / "holdout.csv")
    assert build(holdout, "--ignore", "mcc", "--ignore", "weekend")[0] == 0
    assert list(kinds(tmp_path / "my.ref")) == ["amount", "age_days", "country"]
    reference = Reference.fit(my_shop.scores(my_shop.frame), my_shop.labels, my_shop.frame, ignore=["mcc", "weekend"])
    assert [feature.name for feature in reference.schema.features] == ["amount", "age_days", "country"]


@pytest.mark.parametrize("flag", ["--category", "--number", "--ignore"])
def test_a_column_that_is_not_there_cannot_be_anything(
    my_shop: Shop, build: Command, tmp_path: Path, flag: str
) -> None:
    code, said = build(table(my_shop, tmp_path / "holdout.csv"), flag, "mmc")
    assert code == 1
    assert "no feature is named ['mmc']; there are ['amount'" in said


def test_a_stray_text_among_numbers_is_named_with_its_row(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    frame = my_shop.frame.astype({"amount": object})
    frame.loc[41, "amount"] = "twelve"
    code, said = build(table(Shop(my_shop.model, my_shop.frame, my_shop.labels), tmp_path / "good.csv"))
    spoilt = pd.read_csv(tmp_path / "good.csv", dtype=str)
    spoilt.loc[41, "amount"] = "twelve"
    spoilt.to_csv(tmp_path / "holdout.csv", index=False)
    code, said = build(tmp_path / "holdout.csv")
    assert code == 0
    assert "amount is taken as a category, as 'twelve' in row 42 is no number; 3,999 of its 4,000 values are" in said
    code, said = build(tmp_path / "holdout.csv", "--number", "amount")
    assert code == 1
    assert "feature amount: want numbers, got 'twelve' in row 42" in said
    in_python = Reference.fit(my_shop.scores(my_shop.frame), my_shop.labels, frame)
    assert "amount is taken as a category, as 'twelve' in row 42 is no number" in repr(in_python)


def test_a_stray_text_far_down_the_file_is_named_with_its_row(tmp_path: Path, build: Command) -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(12_000) < 0.5
    long = pd.DataFrame(
        {"score": np.where(labels, 0.8, 0.2), "label": labels.astype(int), "x": rng.normal(size=12_000).astype(str)}
    )
    long.loc[11_500, "x"] = "oops"
    long.to_csv(tmp_path / "holdout.csv", index=False)
    code, said = build(tmp_path / "holdout.csv")
    assert code == 1
    assert "feature x: want numbers, got 'oops' in row 11,501" in said


def test_the_index_that_pandas_writes_is_no_feature(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    scores = my_shop.scores(my_shop.frame)
    my_shop.frame.assign(score=scores[:, 0], label=my_shop.labels).to_csv(tmp_path / "holdout.csv")
    code, said = build(tmp_path / "holdout.csv", "--positive", "fraud")
    assert code == 0
    assert list(kinds(tmp_path / "my.ref")) == list(my_shop.frame)
    assert "the column '' is an index and no feature: left out" in said


def test_events_and_frames_say_the_same(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    build(table(my_shop, tmp_path / "holdout.parquet"))
    reference = Reference.load(tmp_path / "my.ref")
    today, _ = orders(300, 5)
    records: list[bytes | None] = [json.dumps(event).encode() for event in events(my_shop, today)]
    (sent,) = Decoder([reference.schema]).decode(RawBatch("p", records, np.arange(300), 300), 2**60).scored.values()
    read = reference.matched(Window.of(my_shop.scores(today), features=today))
    np.testing.assert_array_equal(sent.rows.features, read.features)
    as_sent = Window.of(sent.rows.posteriors, sent.rows.features)
    assert assess(as_sent, reference).to_json() == assess(read, reference).to_json()


def test_kinds_are_said_in_python_as_on_the_command_line() -> None:
    scores, labels = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]] * 10, ["a", "b", "a"] * 10
    frame = pd.DataFrame({"code": [5411, 742, 5812] * 10, "price": ["1.5", "2", None] * 10})
    reference = Reference.fit(scores, labels, frame, category=["code"], number=["price"])
    code, price = reference.schema.features
    assert (code.kind, code.categories) == ("category", ("5411", "5812", "742"))
    assert (price.kind, reference.features[1].values.tolist()) == ("number", [1.5] * 10 + [2.0] * 10)
    with pytest.raises(InputError, match=r"\['code'\] are said more than once"):
        Reference.fit(scores, labels, frame, category=["code"], ignore=["code"])


def test_a_feature_without_any_value_is_left_out_aloud(my_shop: Shop, build: Command, tmp_path: Path) -> None:
    some = events(my_shop, my_shop.frame, my_shop.labels)
    for one in some:
        one["features"]["referrer"] = None
    some[-1]["features"]["late"] = 3.0
    code, said = build(lines(tmp_path / "holdout.jsonl", some))
    assert code == 0, said
    assert kinds(tmp_path / "my.ref") == TRUE_KINDS | {"late": "number"}
    assert "referrer: left out, as it has no value in any event" in said
    assert "late:" not in said


def test_a_feature_that_comes_late_in_the_file_is_left_out_aloud(
    my_shop: Shop, build: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holdout, "PROBED_ROWS", 100)
    some = events(my_shop, my_shop.frame, my_shop.labels)
    for one in some[200:]:
        one["features"]["late"] = 3.0
    code, said = build(lines(tmp_path / "holdout.jsonl", some))
    assert code == 0, said
    assert "late: left out, as it has no value before line 201" in said


def test_an_empty_place_in_a_list_of_features_stays_a_place(build: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    scores = 1 / (1 + np.exp(-rng.normal(2 * y - 1, 1)))
    code, said = build(
        lines(
            tmp_path / "holdout.jsonl",
            [
                {"posteriors": {"no": 1 - p, "yes": p}, "label": ["no", "yes"][k], "features": [p + k, None, 2 * p]}
                for p, k in zip(scores.tolist(), y.tolist(), strict=True)
            ],
        )
    )
    assert code == 0, said
    assert list(kinds(tmp_path / "my.ref")) == ["x0", "x1", "x2"]
    assert "x1: no hold-out event has a value" in said
