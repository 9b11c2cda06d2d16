"""Parquet and Arrow files as sources: the contract, and the same events as from JSON lines."""

import csv
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from connectors import table
from connectors.table import TableOptions, TableRows, TableSource
from monitor.errors import ConfigurationError, ConnectorError
from monitor.events import Decoder, EventMapping
from monitor.events.decoding import DecodedBatch
from monitor.ports import Checkpoint, Message, Progress, RawBatch
from monitor.ports.schema import StreamSchema
from tests.connectors.contract import SourceContract
from tests.connectors.harness import SourceCase, opened
from tests.events.shop import NOW, PRICES, SHOP

ROWS: dict[str, list[dict[str, Any]]] = {
    "a.parquet": [{"id": f"a{n}", "x": n / 2} for n in range(40)],
    "b.arrow": [{"id": f"b{n}", "x": None if n % 3 else n / 1} for n in range(25)],
    "c.parquet": [],
}


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> None:
    """In small groups."""
    table = pa.Table.from_pylist(rows, schema or pa.schema([("id", pa.string()), ("x", pa.float64())]))
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=7)
        return
    with ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=6)


def folder_of_tables(folder: Path) -> SourceCase:
    for name, rows in ROWS.items():
        write(folder / name, rows)
    (folder / ".d.parquet").write_bytes(b"not whole yet")
    (folder / "readme.txt").write_text("no table")
    records = {name: [msgspec.json.encode(row) for row in rows] for name, rows in ROWS.items()}
    return SourceCase(lambda: TableSource(folder), records)


class TestTables(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> SourceCase:
        return folder_of_tables(tmp_path)


class TestCsv(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> SourceCase:
        rows = [[f"a{n}", f"{n / 2}", 'say "x, y"' if n % 3 else ""] for n in range(11_000)]
        (tmp_path / "b.csv").write_text("id,x,note\n")
        with (tmp_path / "a.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["id", "x", "note"], *rows])
        lines = [f'{a},{x},"say ""x, y"""' if note else f"{a},{x}," for a, x, note in rows]
        return SourceCase(lambda: TableSource(tmp_path), {"a.csv": [line.encode() for line in lines], "b.csv": []})


def test_rows_of_text_are_the_events_that_they_say_and_bad_ones_are_kept_as_lines(tmp_path: Path) -> None:
    header = "timestamp,posteriors.legit,posteriors.fraud,features.amount,features.country,features.gift,id\r\n"
    good = ["1794992399000,0.75,0.25,12.5,BE,true,007", "2026-11-18T08:59:59Z,1,0,,FR,FALSE,12345678901234567890"]
    bad = ["1794992399000,0.75,0.25", "1794992399000,0.75,1e999,1,BE,true,x", "1794992399000,0.5,0.5,n/a,BE,true,y"]
    text = "\ufeff" + header + "\r\n".join([good[0], *bad, good[1]]) + "\r\n"
    (tmp_path / "a.csv").write_bytes(text.encode() + b"1794992399000,0.5,0.5,1,\xff,true,z\r\n")
    (batch,) = opened(TableSource(tmp_path / "a.csv")).poll(0.0)
    decoder = Decoder([SHOP], identified=["shop"])
    found = decoder.decode(batch, NOW)
    assert [(each.index, str(each.reason)) for each in found.rejected] == [
        (1, "unreadable"),
        (2, "bad-posteriors"),
        (3, "bad-features"),
        (5, "unreadable"),
    ]
    assert [each.raw for each in found.rejected][:3] == [line.encode() for line in bad]
    events = [
        {
            "timestamp": 1794992399000,
            "posteriors": {"legit": 0.75, "fraud": 0.25},
            "features": {"amount": 12.5, "country": "BE", "gift": True},
            "id": "007",
        },
        {
            "timestamp": "2026-11-18T08:59:59Z",
            "posteriors": {"legit": 1, "fraud": 0},
            "features": {"amount": None, "country": "FR", "gift": False},
            "id": "12345678901234567890",
        },
    ]
    native = decoder.decode(RawBatch("p", [msgspec.json.encode(event) for event in events], np.arange(2), 2), NOW)
    mine, theirs = found.scored["shop"], native.scored["shop"]
    assert mine.index.tolist() == [0, 4]
    for name in ("posteriors", "features", "times"):
        assert getattr(mine.rows, name).tobytes() == getattr(theirs.rows, name).tobytes()
    assert list(mine.rows.ids) == list(theirs.rows.ids)


@pytest.mark.parametrize(("text", "problem"), [("a;b\n", "want commas"), ("a,a\n", "named, and once")])
def test_a_header_that_names_no_columns_is_told(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ConnectorError, match=problem):
        opened(TableSource(tmp_path))


def test_files_that_are_added_are_read_in_their_turn(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ROWS["a.parquet"])
    source = opened(TableSource(tmp_path, TableOptions(follow=True)))
    assert sum(len(batch.records) for batch in source.poll(0.0)) == 40
    assert source.poll(0.0) == []
    assert not source.finished
    write(tmp_path / "b.arrow", ROWS["b.arrow"])
    time.sleep(1.1)
    came = source.reassigned(lambda: None)
    assert came is not None
    assert list(came.came) == ["b.arrow"]
    assert sum(len(batch.records) for _ in range(5) for batch in source.poll(0.0)) == 25


def test_another_file_of_the_same_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, ROWS["a.parquet"])
    source = opened(TableSource(path))
    source.poll(0.0)
    mark = source.mark("a.parquet", 7)
    write(path, [{"id": "other", "x": 1.0}] * 40)
    at = Checkpoint({"a.parquet": Progress(7, mark=mark)})
    with pytest.raises(ConnectorError, match="not the file of which 7 rows were read"):
        TableSource(path).start(at)


def test_a_file_that_is_not_whole_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ConnectorError, match=r"a\.parquet: not a whole Parquet, Arrow or CSV file"):
        TableSource(tmp_path).start(None)


# What a column of a stream's table may be, also where it does not fit.
NUMBERS = st.none() | st.floats(0, 1, width=32) | st.sampled_from([0.25, 0.5, float("nan"), float("inf")])
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["a", "b", None]),
            "legit": st.sampled_from([0.25, 0.5, None, float("nan"), -1.0, float("inf")]) | st.just(0.75),
            "amount": NUMBERS,
            "country": st.sampled_from(["BE", "XX", "", None]),
            "gift": st.sampled_from([True, False, None]),
            "label": st.sampled_from(["fraud", "legit", None, "odd"]),
            "plan": st.sampled_from(["gold", None]),
        }
    ),
    max_size=6,
)
SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("id", pa.string()),
        ("timestamp", pa.timestamp("ns", "UTC")),
        ("posteriors", pa.struct([("legit", pa.float64()), ("fraud", pa.float64())])),
        (
            "features",
            pa.struct(
                [("amount", pa.float64()), ("country", pa.dictionary(pa.int8(), pa.string())), ("gift", pa.bool_())]
            ),
        ),
        ("label", pa.string()),
        ("segment", pa.struct([("plan", pa.string())])),
    ]
)
DECODER = Decoder([SHOP], identified=["shop"], segments={"shop": ["plan"]})


def table_of(events: list[dict[str, Any]]) -> pa.RecordBatch:
    rows = []
    for number, event in enumerate(events):
        legit = event["legit"]
        fraud = None if legit is None else 1.0 - legit
        rows.append(
            {
                "stream": "shop",
                "id": event["id"],
                "timestamp": datetime(2026, 11, 18, 8, 0, number, 120, tzinfo=UTC),
                "posteriors": {"legit": legit, "fraud": fraud},
                "features": {name: event[name] for name in ("amount", "country", "gift")},
                "label": event["label"],
                "segment": {"plan": event["plan"]},
            }
        )
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def both_ways(decoder: Decoder, table: pa.RecordBatch) -> tuple[DecodedBatch, DecodedBatch]:
    """As columns, and row by row."""
    rows, at = TableRows(table), np.arange(len(table))
    found = [decoder.decode(RawBatch("p", records, at, len(table)), NOW) for records in (rows, rows[:])]
    return found[0], found[1]


def same(one: DecodedBatch, other: DecodedBatch) -> None:
    assert [(r.index, r.reason, r.raw) for r in one.rejected] == [(r.index, r.reason, r.raw) for r in other.rejected]
    assert one.scored.keys() == other.scored.keys()
    assert one.late_labels.keys() == other.late_labels.keys()
    for name, scored in one.scored.items():
        np.testing.assert_array_equal(scored.index, other.scored[name].index)
        for field in ("posteriors", "features", "timestamps", "ids", "predictions"):
            np.testing.assert_array_equal(getattr(scored.rows, field), getattr(other.scored[name].rows, field))
    for name, late in one.late_labels.items():
        for field in ("index", "labels", "ids", "timestamps"):
            np.testing.assert_array_equal(getattr(late, field), getattr(other.late_labels[name], field))


@given(EVENTS)
def test_columns_are_the_same_events_and_rejections_as_the_rows_one_by_one(events: list[dict[str, Any]]) -> None:
    same(*both_ways(DECODER, table_of(events)))


FLAT = EventMapping(
    stream="",
    timestamp="at",
    posteriors={"legit": "p_legit", "fraud": "p_fraud"},
    features={"amount": "amount", "country": "country", "gift": "gift"},
)


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"amount": [Decimal("12.50"), Decimal("1.25")]},
        {"amount": ["12.5", "1"]},
        {"amount": [True, False]},
        {"gift": [0, 1]},
        {"gift": [0, 2]},
        {"country": [5411, 5412]},
        {"at": ["2026-11-18T08:00:00Z", "yesterday"]},
        {"at": [1_794_900_000_000, 1_794_900_000]},
        {"at": [datetime(2026, 11, 18, 8, tzinfo=UTC).replace(tzinfo=None)] * 2},
        {"p_legit": [0.25, None]},
        {"p_legit": [0.25, float("inf")]},
    ],
)
def test_columns_of_any_type_are_the_same_events_as_the_rows_one_by_one(changed: dict[str, Any]) -> None:
    columns = {
        "at": [datetime(2026, 11, 18, 8, tzinfo=UTC)] * 2,
        "p_legit": [0.25, 0.5],
        "p_fraud": [0.75, 0.5],
        "amount": [1.5, None],
        "country": ["BE", "XX"],
        "gift": [True, None],
    }
    same(*both_ways(Decoder([SHOP], mapping=FLAT), pa.RecordBatch.from_pydict(columns | changed)))


@pytest.mark.parametrize(
    ("mapping", "columns"),
    [
        (EventMapping(posteriors="p", timestamp="at"), {"p": [[0.25, 0.75], [0.5, 0.5]]}),
        (EventMapping(posteriors="p", timestamp="at"), {"p": [[0.25, 0.75], [0.5]]}),
        (EventMapping(score="out.s", timestamp="at"), {"out": [{"s": 0.75}, {"s": None}]}),
        (EventMapping(posteriors={"legit": "p.0", "fraud": "p.1"}, timestamp="at"), {"p": [[0.25, 0.75], [0.5, 0.5]]}),
        (EventMapping(posteriors="r|json.p", timestamp="at"), {"r": ['{"p": [0.25, 0.75]}', "no json"]}),
    ],
)
def test_paths_lead_into_lists_and_objects_of_a_table(mapping: EventMapping, columns: dict[str, Any]) -> None:
    table = pa.RecordBatch.from_pydict({"at": [1_794_900_000_000] * 2} | columns)
    found, rows = both_ways(Decoder([SHOP], mapping=mapping), table)
    same(found, rows)
    np.testing.assert_array_equal(found.scored["shop"].rows.posteriors[0], [0.25, 0.75])


def test_regressors_are_read_from_tables_too() -> None:
    table = pa.RecordBatch.from_pydict(
        {
            "timestamp": [1_794_900_000_000] * 2,
            "prediction": [1, 2],
            "features": [{"size": 3}, {"size": None}],
            "label": [5, 6],
        }
    )
    same(*both_ways(Decoder([PRICES]), table))


@pytest.mark.parametrize("labels", [[1.0, None, 0.0, 0.5], [1.0, float("nan"), 0.0, 7.0], [1, None, 0, 2]])
def test_labels_that_are_fractions_beside_missing_ones_are_classes_again(labels: list[float | None]) -> None:
    table = pa.RecordBatch.from_pydict(
        {"timestamp": [1_794_900_000_000] * 4, "posteriors": [[0.5, 0.5]] * 4, "label": labels}
    )
    one, other = both_ways(Decoder([StreamSchema("shop", ("0", "1"))]), table)
    same(one, other)
    assert one.scored["shop"].rows.labels.tolist() == [1, -1, 0]
    assert [rejected.index for rejected in one.rejected] == [3]


def result(window: str) -> Message:
    said = {
        "stream": "shop",
        "segment": "",
        "window": window,
        "start": "2026-11-18T09:00:00.000000Z",
        "end": "2026-11-18T09:05:00.000000Z",
        "verdict": "prior-shift",
        "complete": True,
        "reasons": ["more fraud"],
        "events": {"used": 500, "late": 2},
        "prevalence": {"fraud": {"estimate": 0.1, "lower": 0.05, "upper": 0.2, "reference": 0.03}},
    }
    return Message("results", b"k", msgspec.json.encode(said))


def committed(folder: Path, *windows: str) -> None:
    """A process that writes results, commits them and is gone."""
    sink = table.sink(str(folder), {}, Path())
    sink.recover()
    for window in windows:
        sink.write(result(window))
    sink.commit(Checkpoint({"p": Progress(len(windows))}))
    sink.close()


def test_results_are_a_table_that_others_read(tmp_path: Path) -> None:
    committed(tmp_path / "results", "w1", "w2")
    committed(tmp_path / "results", "w3")
    read = parquet.read_table(tmp_path / "results")
    assert read["window"].to_pylist() == ["w1", "w2", "w3"]
    row = read.to_pylist()[0]
    assert (row["verdict"], row["reasons"], dict(row["events"])["used"]) == ("prior-shift", ["more fraud"], 500)
    assert row["start"] == datetime(2026, 11, 18, 9, tzinfo=UTC)
    assert dict(row["prevalence"])["fraud"]["upper"] == 0.2
    assert row["result"].encode() == result("w1").value


def test_a_kill_around_a_commit_leaves_neither_a_result_too_few_nor_one_too_many(tmp_path: Path) -> None:
    committed(tmp_path, "w1")
    committed(tmp_path, "w2")
    (tmp_path / "0000000001.parquet").rename(tmp_path / ".0000000001.parquet")  # committed, and not named yet
    (tmp_path / ".0000000002.parquet").write_bytes(b"not committed, and not whole")
    committed(tmp_path, "w3")
    assert parquet.read_table(tmp_path)["window"].to_pylist() == ["w1", "w2", "w3"]
    assert not list(tmp_path.glob(".*.parquet"))


def test_results_are_not_written_to_where_events_are_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="would be read as events"):
        table.pair(("t", {}), ("t/", {}), tmp_path)
    with pytest.raises(ConfigurationError, match=r"sink\.alarm: there is no such setting"):
        table.sink("t", {"alarm": "a.jsonl"}, tmp_path)
