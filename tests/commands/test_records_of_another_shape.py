"""`[source.event]` through the commands: the same results as from our own shape, and what `check` and `guess` show."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from connectors.worlds import World
from monitor import Reference
from monitor.commands.cli import main

WORLD = World(classes=("legit", "fraud"), priors=(0.8, 0.2), separation=1.5)
NOON_MS = 1_795_003_200_000

CONFIG = """
[source]
url = "jsonl:{events}"
{mapping}
[sink]
url = "jsonl:results.jsonl"

[pace]
workers = 0

[streams.fraud-v3]
reference = "fraud.ref"
window = {{ size = "1m", lateness = "0s" }}
"""
MAPPING = """
[source.event]
stream = ""
timestamp = "meta.at"
posteriors = { legit = "out.0", fraud = "out.1" }
features = { x1 = "in.x1", x2 = "in.x2" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    labels = rng.choice(2, 2_400, p=WORLD.priors)
    inputs = rng.normal(size=(2_400, 4)) + WORLD.means[labels]
    posteriors = WORLD.posteriors(inputs).round(4)
    some = {"x1": inputs[:2_000, 0], "x2": inputs[:2_000, 1]}
    Reference.fit(posteriors[:2_000], labels[:2_000], features=some, classes=WORLD.classes).save(tmp_path / "fraud.ref")
    own: list[dict[str, Any]] = []
    other: list[dict[str, Any]] = []
    for row in range(2_000, 2_400):
        at, scores = NOON_MS + 200 * row, posteriors[row].tolist()
        values = {"x1": round(inputs[row, 0], 3), "x2": round(inputs[row, 1], 3)}
        own.append({"stream": "fraud-v3", "timestamp": at, "posteriors": scores, "features": values})
        other.append({"meta": {"at": at, "host": "a"}, "out": scores, "in": values})
    for name, events in (("own", own), ("other", other)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        mapping = MAPPING if name == "other" else ""
        (tmp_path / f"{name}.toml").write_text(CONFIG.format(events=f"{name}.jsonl", mapping=mapping))
    return tmp_path


def test_results_are_the_same_bytes_as_from_our_own_shape(folder: Path) -> None:
    for name in ("own", "other"):
        assert main(["replay", str(folder / f"{name}.toml"), "-o", str(folder / f"{name}.out")]) == 0
    results = (folder / "own.out").read_bytes()
    assert results.count(b"\n") == 2
    assert (folder / "other.out").read_bytes() == results


def test_a_delta_table_gives_the_same_results_into_a_table(folder: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
    rows = [json.loads(line) for line in (folder / "other.jsonl").read_text().splitlines()]
    for first in range(0, len(rows), 150):
        deltalake.write_deltalake(folder / "scored", pa.Table.from_pylist(rows[first : first + 150]), mode="append")
    config = (folder / "other.toml").read_text().replace("jsonl:other.jsonl", "delta:scored")
    (folder / "delta.toml").write_text(config.replace("jsonl:results.jsonl", "table:results"))
    assert main(["replay", str(folder / "own.toml"), "-o", str(folder / "own.out")]) == 0
    for _ in range(2):  # the second run finds nothing that is new
        assert main(["run", str(folder / "delta.toml")]) == 0
        results = parquet.read_table(folder / "results")["result"].to_pylist()
        assert "".join(f"{result}\n" for result in results).encode() == (folder / "own.out").read_bytes()


def test_requests_and_responses_apart_give_the_same_results(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "apart.jsonl").open("w") as file:
        for number, line in enumerate((folder / "other.jsonl").read_text().splitlines()):
            event = json.loads(line)
            common = {"trace": number, "meta": event["meta"]}
            file.write(json.dumps({**common, "kind": "asked", "in": event["in"]}) + "\n")
            file.write(json.dumps({**common, "kind": "answered", "out": event["out"]}) + "\n")
    mapping = (
        MAPPING.replace('"in.', '"request.in.').replace('"out.', '"response.out.').replace('"meta', '"request.meta')
    )
    join = '[source.join]\nid = ["trace"]\npart = "kind"\nrequest = "asked"\nresponse = "answered"\ntime = "meta.at"\n'
    (folder / "apart.toml").write_text(CONFIG.format(events="apart.jsonl", mapping=mapping + join))
    for name in ("own", "apart"):
        assert main(["replay", str(folder / f"{name}.toml"), "-o", str(folder / f"{name}.out")]) == 0
    assert (folder / "apart.out").read_bytes() == (folder / "own.out").read_bytes()
    assert main(["check", str(folder / "apart.toml")]) == 0
    assert capsys.readouterr().out.count("x1 ") == 5  # of ten records
    (folder / "apart.toml").write_text((folder / "apart.toml").read_text().replace('part = "kind"', "within = 3"))
    assert main(["check", str(folder / "apart.toml")]) == 2
    errors = capsys.readouterr().err
    assert "source.join.part: is missing" in errors
    assert "source.join.within: want a duration" in errors


def test_a_table_gives_the_same_results_as_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in (folder / "other.jsonl").read_text().splitlines()]
    (folder / "tables").mkdir()
    parquet.write_table(pa.Table.from_pylist(rows), folder / "tables" / "day.parquet", row_group_size=150)
    config = (folder / "other.toml").read_text().replace("jsonl:other.jsonl", "table:tables")
    (folder / "table.toml").write_text(config)
    for name in ("own", "table"):
        assert main(["replay", str(folder / f"{name}.toml"), "-o", str(folder / f"{name}.out")]) == 0
    assert (folder / "table.out").read_bytes() == (folder / "own.out").read_bytes()
    assert main(["check", str(folder / "table.toml")]) == 0
    assert "The first records of day.parquet" in capsys.readouterr().out


def test_a_check_shows_the_first_events_and_why_others_are_none(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(folder / "other.toml")]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if "fraud-v3  |" in line]
    assert len(shown) == 10
    assert "legit 0." in shown[0]
    assert "x1 " in shown[0]
    (folder / "some.jsonl").write_text('{"out": [0.5]}\n\nno json\n')
    assert main(["check", str(folder / "other.toml"), "--events", str(folder / "some.jsonl")]) == 0
    shown = capsys.readouterr().out.splitlines()[-3:]
    assert ["wrong-classes" in shown[0], "empty" in shown[1], "not-json" in shown[2]] == [True] * 3


def test_every_problem_of_a_mapping_stops_the_start(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = folder / "other.toml"
    config.write_text(
        config.read_text().replace("out.1", "out..1").replace("x2 =", "x3 =").replace("stream =", "strm =")
    )
    assert main(["check", str(config)]) == 2
    said = capsys.readouterr().err
    assert "source.event.strm: there is no such setting (did you mean 'stream'?)" in said
    config.write_text(config.read_text().replace("strm =", "stream ="))
    assert main(["check", str(config)]) == 2
    assert "source.event: want a path such as data.scores.0, got 'out..1'" in capsys.readouterr().err
    config.write_text(config.read_text().replace("out..1", "out.1"))
    assert main(["check", str(config)]) == 2
    assert "source.event: features: there is no path to 'x2'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("record", "missing"),
    [
        ({"at": NOON_MS, "scores": [0.25, 0.75]}, []),
        ({"at": NOON_MS, "amount": 12.5}, ["Nothing looks like scores"]),
        ({"scores": [0.25, 0.75]}, ["No time stands in these records"]),
        ({"predictions": [[0.25, 0.75]]}, ["No time stands in these records"]),
    ],
)
def test_a_guess_says_what_it_did_not_find(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], record: dict[str, Any], missing: list[str]
) -> None:
    (tmp_path / "some.jsonl").write_text(json.dumps(record))
    assert main(["guess", str(tmp_path / "some.jsonl")]) == 0
    said = [line for line in capsys.readouterr().out.splitlines()[1:] if line.startswith("#")]
    assert [line[2:].partition(":")[0].partition(".")[0] for line in said] == missing


def test_a_guess_can_be_pasted_into_the_configuration(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["guess", str(folder / "other.jsonl")]) == 0
    table = capsys.readouterr().out
    assert 'posteriors = "out"' in table
    (folder / "other.toml").write_text(CONFIG.format(events="other.jsonl", mapping=table))
    for name in ("own", "other"):
        assert main(["replay", str(folder / f"{name}.toml"), "-o", str(folder / f"{name}.out")]) == 0
    assert (folder / "other.out").read_bytes() == (folder / "own.out").read_bytes()
