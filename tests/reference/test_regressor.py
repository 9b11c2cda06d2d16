"""The reference of a regression stream: fitted, saved, read back, built from files, explained."""

import csv
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from monitor import Reference, RegressionReference
from monitor.commands.cli import main
from monitor.errors import ArtefactError, InputError
from monitor.kinds import load_reference
from monitor.reference.regressor import LineCount
from tests.reference.worlds import world
from tests.service import regression_streams as streams


def events(rows=200, seed=3):
    said, y, x = streams.columns(rows, seed)
    colours = np.random.default_rng(seed).choice(["red", "blue"], rows)
    return [
        {
            "stream": "prices",
            "prediction": p,
            "label": t,
            "features": {"area": a, "age": None if number % 50 == 0 else b, "colour": str(colours[number])},
        }
        for number, (p, t, (a, b)) in enumerate(zip(said.tolist(), y.tolist(), x.tolist(), strict=True))
    ]


def write_lines(path, some):
    path.write_text("".join(json.dumps(one) + "\n" for one in some), encoding="utf-8")
    return path


def test_the_relation_is_the_truth_with_its_number_of_components():
    reference = streams.reference()
    assert reference.mixture.components == 2
    assert reference.input_names == ("area", "age")
    said, y, _ = streams.columns(2_000, 0)
    assert reference.error == pytest.approx(np.sqrt(np.mean((y - said) ** 2)))
    assert reference.absolute_error == pytest.approx(np.mean(np.abs(y - said)))
    assert reference.bias == pytest.approx(np.mean(y - said))
    np.testing.assert_allclose(reference.mixture.weights @ reference.mixture.coefficients, [8.8, 4.2, -1.8], atol=0.15)


def test_how_many_lines_may_be_said_and_a_choice_at_its_cap_is_told():
    said, y, x = streams.columns(600, 0)
    fit = partial(RegressionReference.fit, said, y, x, feature_names=["area", "age"])
    assert fit(lines=LineCount(number=3)).mixture.components == 3
    capped = fit(lines=LineCount(most=2))
    assert capped.mixture.components == 2
    assert [one["cause"] for one in capped.facts["warnings"]] == ["relation"]
    assert "a mixture of 2 lines, the most that BIC may choose" in capped.facts["warnings"][0]["text"]
    assert "warnings" not in fit(lines=LineCount(number=2)).facts


def test_a_file_gives_back_the_same_reference_and_says_of_which_kind_it_is(tmp_path):
    reference = streams.reference()
    reference.save(tmp_path / "x.ref")
    again = load_reference(tmp_path / "x.ref")
    assert isinstance(again, RegressionReference)
    assert again.version == reference.version == again.sealed().version
    assert again.facts == reference.facts
    again.save(tmp_path / "y.ref")
    assert (tmp_path / "x.ref").read_bytes() == (tmp_path / "y.ref").read_bytes()
    with pytest.raises(ArtefactError, match="regression stream, not of a classifier"):
        Reference.load(tmp_path / "x.ref")


def test_the_reference_of_a_classifier_is_refused_by_name(tmp_path):
    posteriors, labels, _ = world(200)
    Reference.fit(posteriors, labels).save(tmp_path / "x.ref")
    assert isinstance(load_reference(tmp_path / "x.ref"), Reference)
    with pytest.raises(ArtefactError, match="of a classifier, not of a regression stream"):
        RegressionReference.load(tmp_path / "x.ref")


def test_categories_and_columns_without_values_are_watched_but_are_no_inputs_of_the_relation():
    said, y, x = streams.columns(250, 1)
    table = np.column_stack([x, np.full(250, np.nan), np.full(250, 3.0)]).astype(object)
    table = np.column_stack([table, np.array(["a", "b"] * 125, dtype=object)])
    names = [*streams.FEATURES, "empty", "constant", "kind"]
    reference = RegressionReference.fit(said, y, table, feature_names=names)
    assert reference.input_names == streams.FEATURES
    assert [p.feature.name for p in reference.features] == names


def test_without_features_the_relation_is_that_of_label_and_prediction():
    said, y, _ = streams.columns(250, 1)
    reference = RegressionReference.fit(said, y)
    assert reference.input_names == ("prediction",)
    np.testing.assert_allclose(reference.mixture.weights @ reference.mixture.coefficients, [0.0, 1.0], atol=0.5)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda said, y, x: (said, np.full(y.size, 4.0), x), "all are 4: there is no relation"),
        (lambda said, y, x: (said[:50], y[:50], x[:50]), "at least 100 labelled events, got 50"),
        (lambda said, y, x: (said, y[:-1], x), "want one for each of the 300 events, got 299"),
        (lambda said, y, x: (said, y, x[:-1]), "want a row for each of the 300 events, got 299"),
        (lambda said, y, x: (np.where(np.arange(300) == 7, np.nan, said), y, x), "1 are missing or infinite"),
        (lambda said, y, x: (said, np.where(np.arange(300) == 7, np.inf, y), x), "the first in row 7"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_reason(change, complaint):
    with pytest.raises(InputError, match=complaint):
        RegressionReference.fit(*change(*streams.columns(300, 1)))


def test_lines_and_tables_build_the_same_reference_and_show_explains_it(tmp_path, capsys):
    some = events()
    lines = write_lines(tmp_path / "holdout.jsonl", some)
    with (tmp_path / "holdout.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["prediction", "label", "area", "age", "colour"])
        for one in some:
            f = one["features"]
            row = [one["prediction"], one["label"], f["area"], f["age"], f["colour"]]
            table.writerow(["" if value is None else value for value in row])
    assert main(["reference", "build", str(lines), "-o", str(tmp_path / "lines.ref")]) == 0
    built = [
        "reference",
        "build",
        str(tmp_path / "holdout.csv"),
        "-o",
        str(tmp_path / "table.ref"),
        "--stream",
        "prices",
    ]
    assert main(built) == 0
    capsys.readouterr()
    assert main(["reference", "diff", str(tmp_path / "lines.ref"), str(tmp_path / "table.ref")]) == 0
    assert main(["reference", "show", str(tmp_path / "lines.ref")]) == 0
    shown = capsys.readouterr().out
    assert "relation     of the label to area, age; tested from" in shown
    assert "(root mean square of label minus prediction; mean size " in shown
    assert "200 labelled" in shown
    assert "category of 2 values" in shown


def test_diff_tells_what_changed(tmp_path, capsys):
    old = streams.reference()
    area = replace(old.features[0], values=old.features[0].values + 1.0)
    mixture = replace(old.mixture, sigmas=old.mixture.sigmas * np.array([2.0, 1.0]))
    new = replace(old, error=2 * old.error, features=(area, *old.features[1:]), mixture=mixture).sealed()
    for name, reference in (("old", old), ("new", new)):
        reference.save(tmp_path / name)
    assert main(["reference", "diff", str(tmp_path / "old"), str(tmp_path / "new")]) == 1
    told = capsys.readouterr().out
    assert "error:" in told
    assert "feature area: the distributions are" in told
    assert told.count("component: ") == 1


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda one: one.pop("label"), "line 8: no label"),
        (lambda one: one.pop("prediction"), "line 8: a label without posteriors or prediction"),
        (lambda one: one.update(prediction="high"), "line 8: bad-prediction"),
    ],
)
def test_a_line_that_does_not_fit_is_named(tmp_path, capsys, spoil, complaint):
    some = events()
    spoil(some[7])
    lines = write_lines(tmp_path / "holdout.jsonl", some)
    assert main(["reference", "build", str(lines), "-o", str(tmp_path / "x.ref")]) == 1
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "x.ref").exists()
