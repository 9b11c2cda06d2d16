"""References from files: three formats, one content; bounded rows; errors that name the place."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from monitor.commands.cli import main
from monitor.errors import InputError
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.building import Reservoir, collect
from monitor.reference.holdout import Chunk, Wanted, infer_schema, read
from monitor.shifts.profile import profile_of
from tests.reference.files import write_csv, write_jsonl
from tests.reference.worlds import CLASSES, world

SCHEMA = StreamSchema("", CLASSES, (Feature("a"),))


def columns(path, wanted=Wanted()):  # noqa: B008
    schema = infer_schema(path, wanted)
    chunks = list(read(path, schema, lambda _read: None))
    return schema, np.vstack([c.posteriors for c in chunks]), np.concatenate([c.labels for c in chunks]), chunks


def test_lines_and_tables_hold_the_same_events(tmp_path):
    schema, posteriors, labels, chunks = columns(write_jsonl(tmp_path / "x.jsonl"))
    assert schema.stream == "fraud-v3"
    assert [(f.name, f.kind, f.categories) for f in schema.features] == [
        ("a", "number", ()),
        ("b", "number", ()),
        ("country", "category", ("BE", "NL")),
    ]
    expected, classes, _ = world(200)
    assert posteriors == pytest.approx(expected)
    assert (labels == classes).all()
    _, from_table, labels_of_table, table = columns(write_csv(tmp_path / "x.csv"))
    assert (from_table == posteriors).all()
    assert (labels_of_table == labels).all()
    np.testing.assert_array_equal(chunks[0].features, table[0].features)


def test_parquet_holds_the_same_events(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="reading Parquet is an extra")
    parquet = pytest.importorskip("pyarrow.parquet")

    _, posteriors, labels, chunks = columns(write_jsonl(tmp_path / "x.jsonl"))
    events = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    parquet.write_table(pyarrow.Table.from_pylist(events), tmp_path / "x.parquet")
    schema, again, labels_again, nested = columns(tmp_path / "x.parquet")
    assert schema.classes == CLASSES
    assert (again == posteriors).all()
    assert (labels_again == labels).all()
    np.testing.assert_array_equal(nested[0].features, chunks[0].features)


def test_a_bare_score_is_the_probability_of_the_positive_class(tmp_path):
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["label", "score"], ["fraud", 0.9], ["legit", 0.2], ["fraud", 0.6]])
    schema, posteriors, labels, _ = columns(path, Wanted(positive="fraud"))
    assert (schema.classes, schema.positive) == (("legit", "fraud"), "fraud")
    assert posteriors[:, 1].tolist() == [0.9, 0.2, 0.6]
    assert labels.tolist() == [1, 0, 1]


def test_unnamed_posteriors_go_by_the_classes_that_are_given(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"posteriors": [0.2, 0.8], "label": "b"}\n{"posteriors": [0.6, 0.4], "label": "a"}\n')
    assert columns(path, Wanted(classes=("b", "a")))[2].tolist() == [0, 1]
    assert columns(path)[0].classes == ("a", "b")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": None}, "no label"),
        ({"label": "theft"}, "bad-label"),
        ({"posteriors": {"legit": 0.5, "fraud": 0.5}}, "wrong-classes"),
        ({"posteriors": {"legit": 0.5, "fraud": 0.9, "dispute": 0.1}}, "posterior-sum"),
        ({"posteriors": None}, "a label without posteriors"),
        ({"features": {"a": "many", "b": 1, "country": "BE"}}, "bad-features"),
        ({"stream": "other"}, "unknown-stream"),
    ],
)
def test_a_bad_event_is_named_with_its_line(tmp_path, fields, message):
    path = write_jsonl(tmp_path / "x.jsonl", row7=fields)
    schema = infer_schema(write_jsonl(tmp_path / "good.jsonl"), Wanted())
    with pytest.raises(InputError, match=rf"x\.jsonl: line 8: {message}"):
        list(read(path, schema, lambda _read: None))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (["", 0.5, 0.5, 1], "labels: 1 are missing"),
        (["c", 0.5, 0.5, 1], r"\['c'\] are not among the classes"),
        (["a", "nan", 0.5, 1], "1 rows are NaN or infinite"),
        (["a", "", 0.5, 1], "1 rows are NaN or infinite"),
        (["a", "half", 0.5, 1], "want 2 numbers in every event"),
        (["a", 0.5, 0.6, 1], "do not sum to 1"),
        (["a", 0.5, 0.5, "many"], "feature x: want numbers"),
    ],
)
def test_a_bad_row_of_a_table_is_named_with_its_file(tmp_path, row, message):
    def table(name, rows):
        with (tmp_path / name).open("w", newline="") as file:
            csv.writer(file).writerows([["label", "posteriors.a", "posteriors.b", "x"], *rows])
        return tmp_path / name

    good = [["a", 0.9, 0.1, 1.5], ["b", 0.2, 0.8, 2.5]]
    schema = infer_schema(table("good.csv", good), Wanted())
    with pytest.raises(InputError, match=rf"x\.csv: between rows 1 and 3: .*{message}"):
        list(read(table("x.csv", [*good, row]), schema, lambda _read: None))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", "", "holds no events"),
        ("x.csv", "", "holds no events"),
        ("x.csv", "label,score\na,0.1\nb\n", "line 3: want 2 fields as in the header, got 1"),
        ("x.jsonl", '{"label": "a"\n', "line 1: not a JSON object"),
        ("x.jsonl", '{"label": "a"}\n', "no scores"),
        ("x.csv", b"label,score\n\xe9,0.1\n", "not a table of comma-separated values in UTF-8"),
        ("x.csv", "label,score,a\na,0.1," + "9" * 200_000, "not a table of .*field limit"),
        ("x.csv", "label,score,a,a\na,0.1,1,2\n", "want every column once, got a more than once"),
        ("x.parquet", "", "Parquet"),
        ("x.txt", "", r"want a file that ends in one of \['\.csv'"),
    ],
)
def test_a_file_that_is_no_hold_out_is_named(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        columns(tmp_path / name)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        columns(tmp_path / "nowhere.csv")


def chunks(sizes, seed=0):
    posteriors, labels, features = world(sum(sizes), seed)
    ends = np.cumsum(sizes)
    return [
        Chunk(posteriors[e - s : e], labels[e - s : e], features[e - s : e, :1])
        for s, e in zip(sizes, ends, strict=True)
    ]


@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_no_way_of_cutting_the_file_changes_the_sample(sizes, seed):
    together = collect(chunks([sum(sizes) + 6]), SCHEMA, seed, rows=50).columns()
    in_parts = collect(chunks([*sizes, 6]), SCHEMA, seed, rows=50).columns()
    for one, other in zip(together, in_parts, strict=True):
        assert (one == other).all()


def test_every_event_is_as_likely_to_stay():
    kept = np.zeros(40)
    for seed in range(3000):
        reservoir = Reservoir(StreamSchema("", ("a", "b")), seed, rows=10)
        number = np.arange(40, dtype=np.float64)
        reservoir.add(Chunk(np.column_stack([number, number]), np.zeros(40, dtype=np.int64), None))
        kept[reservoir.columns()[0][:, 0].astype(int)] += 1
    assert kept / 3000 == pytest.approx(np.full(40, 0.25), abs=0.035)


def test_classes_are_counted_beyond_the_rows_that_are_kept():
    reservoir = collect(chunks([500]), SCHEMA, 0, rows=100)
    assert reservoir.class_counts.sum() == 500
    assert reservoir.columns()[1].size == 100


def test_the_error_that_a_sampled_profile_states_covers_the_distance_to_all_events():
    rng, covered = np.random.default_rng(5), []
    everything = np.sort(rng.gamma(2.0, size=4_000))
    labels = np.zeros(800, dtype=np.int64)
    for _ in range(200):
        sample = rng.choice(everything, 800, replace=False)
        kept = profile_of(Feature("x"), sample, labels, 1, keep=100, sampled_from=np.array([4_000.0]))
        assert kept.values.size == 100
        covered.append(ks_2samp(kept.values, everything).statistic <= kept.error)
    assert profile_of(Feature("x"), everything, np.zeros(4_000, dtype=np.int64), 1).error == 0
    assert np.mean(covered) >= 0.95


def test_the_command_builds_shows_and_compares(tmp_path, capsys):
    write_jsonl(tmp_path / "x.jsonl", 200)
    write_jsonl(tmp_path / "y.jsonl", 200, seed=1)

    def command(*arguments):
        code = main(["reference", *map(str, arguments)])
        return code, *capsys.readouterr()

    for name in "xy":
        code, said, _ = command("build", tmp_path / f"{name}.jsonl", "--out", tmp_path / f"{name}.ref")
        assert code == 0
    assert "the report is in" in said
    assert json.loads((tmp_path / "x.json").read_text())["classes"] == list(CLASSES)
    assert (tmp_path / "x.html").read_text().startswith("<!doctype html>")
    assert "stream       fraud-v3" in command("show", tmp_path / "x.ref")[1]
    assert command("diff", tmp_path / "x.ref", tmp_path / "x.ref")[0] == 0
    code, said, _ = command("diff", tmp_path / "x.ref", tmp_path / "y.ref")
    assert code == 1
    assert "prior of fraud:" in said
    assert "feature a: the distributions are" in said
    code, _, complaint = command("show", tmp_path / "x.jsonl")
    assert code == 1
    assert "not a reference" in complaint


@pytest.mark.parametrize("out", ["x.jsonl", "x.json", "x.html"])
def test_no_file_of_a_build_is_written_over_another(tmp_path, capsys, out):
    path = write_jsonl(tmp_path / "x.jsonl", 20)
    before = path.read_bytes()
    assert main(["reference", "build", str(path), "--out", str(tmp_path / out)]) == 1
    assert "would be written over" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["x.jsonl"]
    assert path.read_bytes() == before


def test_an_interrupted_command_says_so_without_a_traceback(monkeypatch, capsys):
    def interrupted(_path):
        raise KeyboardInterrupt

    monkeypatch.setattr("monitor.reference.holds_predictions", interrupted)
    assert main(["reference", "build", "x.jsonl", "--out", "x.ref"]) == 130
    assert capsys.readouterr().err.split("\n") == ["", "shiftwatch: interrupted", ""]


def test_a_negative_seed_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["reference", "build", "x.jsonl", "--out", "x.ref", "--seed", "-1"])
    assert "want a whole number from 0" in capsys.readouterr().err


def test_the_progress_ends_at_the_size_of_the_file(tmp_path):
    path, seen = write_jsonl(tmp_path / "x.jsonl"), []
    for _ in read(path, infer_schema(path, Wanted()), seen.append):
        pass
    assert seen[-1] == path.stat().st_size
