"""What people hand over by mistake is told, with the mistake's name: an index out of line, an identifier, the label."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from monitor import Reference, RegressionReference, Window, assess
from monitor.commands.cli import main
from monitor.errors import InputError
from monitor.events import Decoder
from monitor.ports import RawBatch
from tests.first_hour.shop import Shop

Fit = Callable[..., Reference]
Build = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def scores(my_shop: Shop) -> np.ndarray:
    return my_shop.scores(my_shop.frame)


@pytest.fixture
def fit(my_shop: Shop, scores: np.ndarray) -> Fit:
    def fitted(features: Any = None, labels: Any = None, **said: Any) -> Reference:
        given = my_shop.labels if labels is None else labels
        return Reference.fit(scores, given, features, **{"classes": my_shop.model.classes_, "estimator": "em"} | said)

    return fitted


@pytest.fixture
def build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Build:
    def command(path: Path, *arguments: str) -> tuple[int, str]:
        out = str(tmp_path / "my.ref")
        code = main(["reference", "build", str(path), "-o", out, "--estimator", "em", "--no-report", *arguments])
        said = capsys.readouterr()
        return code, " ".join((said.out + said.err).split())

    return command


@pytest.fixture
def table(my_shop: Shop, scores: np.ndarray) -> pd.DataFrame:
    named = {"posteriors.fraud": scores[:, 0], "posteriors.legit": scores[:, 1], "label": my_shop.labels}
    return my_shop.frame.assign(**named)


def test_good_data_gives_no_warning(my_shop: Shop, fit: Fit) -> None:
    assert fit(my_shop.frame).warnings == ()
    assert fit(my_shop.frame.sample(frac=1, random_state=0).reset_index(drop=True)).warnings == ()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (np.arange, "goes one way from row to row, as times and counters do"),
        (lambda n: pd.date_range("2026-01-01", periods=n, freq="min"), "goes one way from row to row"),
        (lambda n: np.random.default_rng(0).permutation(n), "is another whole number in every event"),
        (lambda n: [f"tx-{i}" for i in range(n)], "has 4,000 different values in 4,000 events"),
    ],
    ids=["counter", "time", "shuffled numbers", "texts"],
)
def test_an_identifier_or_a_time_among_the_features_is_noticed(
    my_shop: Shop, fit: Fit, column: Callable[[int], Any], said: str
) -> None:
    (warning,) = fit(my_shop.frame.assign(extra=column(len(my_shop.frame)))).warnings
    assert warning.text.startswith(f"extra {said}")
    assert "leave it out (ignore)" in warning.text
    assert fit(my_shop.frame.assign(extra=column(len(my_shop.frame))), ignore=["extra"]).warnings == ()


def test_amounts_in_cents_and_ages_are_no_identifiers(my_shop: Shop, fit: Fit) -> None:
    cents = (my_shop.frame[["amount"]] * 100).round().assign(years=my_shop.frame["age_days"] // 365)
    assert fit(cents).warnings == ()


def test_the_label_among_the_features_is_noticed(my_shop: Shop, fit: Fit) -> None:
    for target in (my_shop.labels, my_shop.labels == "fraud", (my_shop.labels == "fraud").astype(int)):
        (warning,) = fit(my_shop.frame.assign(target=target)).warnings
        assert warning.text == "target tells the label of every event: if it is the label, leave it out (ignore)"


def test_labels_in_another_order_than_the_rows_are_noticed(my_shop: Shop, fit: Fit) -> None:
    shuffled = my_shop.labels.sample(frac=1, random_state=0)
    texts = [warning.text for warning in fit(my_shop.frame, shuffled).warnings]
    assert "labels and features have the same index in another order: rows are taken as they stand, one by one" in texts
    amounts = my_shop.frame[["amount"]]
    regression = RegressionReference.fit(amounts["amount"], amounts["amount"].sample(frac=1, random_state=0), amounts)
    assert "targets and features have the same index in another order" in repr(regression)


def test_decisions_are_not_taken_for_probabilities_in_silence(my_shop: Shop, scores: np.ndarray) -> None:
    decided = np.eye(2)[scores.argmax(axis=1)]
    reference = Reference.fit(decided, my_shop.labels, classes=my_shop.model.classes_)
    assert [warning.cause for warning in reference.warnings] == ["decisions"]


@pytest.mark.parametrize(
    ("spoilt", "hint"),
    [
        (lambda p: 100 * p, "are these percentages? Divide them by 100"),
        (np.log, "are these logarithms? Take their exp"),
        (
            lambda p: np.log(p[:, :1] / p[:, 1:]) * [[1, -1]],
            "are these margins? Then build the reference with --scores margin",
        ),
    ],
    ids=["percentages", "logarithms", "margins"],
)
def test_scores_in_another_unit_are_refused_with_what_they_probably_are(
    my_shop: Shop, scores: np.ndarray, spoilt: Callable[[np.ndarray], np.ndarray], hint: str
) -> None:
    with pytest.raises(InputError) as refused:
        Reference.fit(spoilt(scores), my_shop.labels)
    assert hint in str(refused.value)


def test_labels_that_became_floats_name_the_same_classes(
    my_shop: Shop, scores: np.ndarray, build: Build, tmp_path: Path
) -> None:
    floats = (my_shop.labels == "legit").astype(float)
    for classes in (None, [0, 1], np.array([0.0, 1.0])):
        assert Reference.fit(scores, floats, classes=classes).classes == ("0", "1")
    pd.DataFrame({"score": scores[:, 1], "label": floats}).to_csv(tmp_path / "x.csv", index=False)
    assert build(tmp_path / "x.csv")[0] == 0
    assert Reference.load(tmp_path / "my.ref").classes == ("0", "1")


def test_a_bare_score_needs_a_reference_that_knows_whose_it_is(my_shop: Shop, fit: Fit, scores: np.ndarray) -> None:
    with pytest.raises(InputError, match="does not know of which class it speaks"):
        assess(Window.of(scores[:, 0]), fit())
    assert assess(Window.of(scores[:, 0]), fit(positive="fraud")).verdict == "stable"


def test_a_sparse_matrix_is_refused_with_what_to_do(fit: Fit) -> None:
    with pytest.raises(InputError, match="a sparse matrix has to be made dense"):
        fit(sparse.eye(4_000, 3).tocsr())


def test_na_among_numbers_is_a_missing_value_and_among_names_namibia(
    table: pd.DataFrame, build: Build, tmp_path: Path
) -> None:
    spoilt = table.assign(country=table["country"].replace({"NL": "NA"}))
    spoilt.to_csv(tmp_path / "r.csv", index=False, na_rep="NA")  # as R writes them
    code, said = build(tmp_path / "r.csv")
    assert code == 0
    assert f"age_days: {spoilt['age_days'].isna().sum()} values such as 'NA' are taken as missing" in said
    features = {feature.name: feature for feature in Reference.load(tmp_path / "my.ref").schema.features}
    assert (features["age_days"].kind, features["country"].categories) == ("number", ("BE", "DE", "NA"))


def test_an_empty_text_is_missing_on_both_sides(my_shop: Shop, fit: Fit, scores: np.ndarray) -> None:
    gaps = np.arange(4_000) % 10 == 0
    reference = fit(my_shop.frame.assign(country=my_shop.frame["country"].mask(gaps)))
    sent = my_shop.frame.assign(country=my_shop.frame["country"].where(~gaps, ""))
    assert assess(Window.of(scores, sent), reference).verdict == "stable"


@pytest.mark.parametrize(
    ("separator", "decimal"), [(";", "."), (";", ","), ("\t", ".")], ids=["semicolons", "as in Europe", "tabs"]
)
def test_a_table_with_other_separators_is_refused_by_name(
    table: pd.DataFrame, build: Build, tmp_path: Path, separator: str, decimal: str
) -> None:
    table.to_csv(tmp_path / "x.csv", index=False, sep=separator, decimal=decimal)
    code, said = build(tmp_path / "x.csv")
    assert code == 1
    assert f"want commas between columns, and dots in numbers; the header has {separator!r}" in said


def test_a_header_with_other_names_is_refused_with_those_that_are_there(
    table: pd.DataFrame, build: Build, tmp_path: Path
) -> None:
    table.rename(columns={"label": "Label"}).to_csv(tmp_path / "x.csv", index=False)
    assert "is it 'Label'?" in build(tmp_path / "x.csv")[1]
    table.rename(columns=lambda name: name.replace("posteriors.", "proba_")).to_csv(tmp_path / "x.csv", index=False)
    assert (
        "there is amount, age_days, country, mcc, weekend, proba_fraud, proba_legit, label"
        in build(tmp_path / "x.csv")[1]
    )


def test_a_missing_label_is_named_with_its_row(table: pd.DataFrame, build: Build, tmp_path: Path) -> None:
    table.assign(label=table["label"].mask(table.index == 6)).to_csv(tmp_path / "x.csv", index=False)
    assert "labels: 1 are missing, the first in row 7" in build(tmp_path / "x.csv")[1]


def test_features_beside_the_field_of_features_are_not_left_out_in_silence(
    my_shop: Shop, scores: np.ndarray, build: Build, tmp_path: Path
) -> None:
    rows = my_shop.frame[["amount", "country"]].to_dict("records")
    lines = [
        json.dumps({"posteriors": p, "label": label, **row})
        for p, label, row in zip(scores.tolist(), my_shop.labels, rows, strict=True)
    ]
    (tmp_path / "x.jsonl").write_text("\n".join(lines) + "\n")
    assert "left out, as features of an event stand under `features`: amount, country" in build(tmp_path / "x.jsonl")[1]


Rejected = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def rejected(fit: Fit, my_shop: Shop) -> Rejected:
    """Reason and detail of the records that the stream of a reference does not take."""

    def decode(*records: bytes, **said: Any) -> list[tuple[str, str]]:
        decoder = Decoder([fit(my_shop.frame, **said).schema])
        batch = RawBatch(
            "p", list(records), np.arange(len(records)), len(records), np.zeros(len(records), dtype=np.int64)
        )
        return [(str(one.reason), one.detail) for one in decoder.decode(batch, 2**60).rejected]

    return decode


@pytest.mark.parametrize(
    ("record", "reason", "hint"),
    [
        (b'{"score": 97.0}', "negative", "are these percentages? Or margins?"),
        (b'{"score": -2.5}', "negative", "are these margins?"),
        (b'{"posteriors": [97.0, 3.0]}', "posterior-sum", "are these percentages? Divide them by 100"),
        (b'{"posteriors": [-0.03, -3.5]}', "negative", "are these logarithms? Take their exp"),
        (b'\xef\xbb\xbf{"score": 0.5}', "not-json", "byte order mark"),
        (b"[", "not-json", "want a whole event in each line"),
        (
            b'{"score": 0.5, "features": {"amount": true}}',
            "bad-features",
            "amount: true or false where the reference has",
        ),
    ],
)
def test_events_that_are_rejected_say_what_they_probably_are(
    rejected: Rejected, record: bytes, reason: str, hint: str
) -> None:
    ((found, detail),) = rejected(record, positive="fraud")
    assert found == reason
    assert hint in detail


def test_true_and_false_are_labels_where_they_are_classes(my_shop: Shop, scores: np.ndarray) -> None:
    for labels, sent in (((my_shop.labels == "legit"), b"true"), ((my_shop.labels == "legit").astype(int), b"1")):
        reference = Reference.fit(scores, labels)
        batch = RawBatch(
            "p", [b'{"posteriors": [0.1, 0.9], "label": ' + sent + b"}"], np.arange(1), 1, np.zeros(1, np.int64)
        )
        (scored,) = Decoder([reference.schema]).decode(batch, 2**60).scored.values()
        assert scored.rows.labels.tolist() == [1]


def test_events_without_any_feature_say_so_first(my_shop: Shop, fit: Fit, scores: np.ndarray) -> None:
    found = assess(Window.of(scores, np.full((4_000, 5), np.nan)), fit(my_shop.frame))
    assert found.reasons[0] == "no event has any of the features that the reference knows"
    assert found.verdict != "stable"
