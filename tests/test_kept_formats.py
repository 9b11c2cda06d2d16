"""What the first release has left on disk and in Kafka is read by this one; what a newer one leaves is refused.

`kept/` holds bytes of that release: a run over half of the events that was killed (results, checkpoint, label store,
with the references and the configuration that it had), and texts that it committed beside offsets.
"""

import gzip
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.progress import ALWAYS, from_metadata, hashed, notes_of, table_from_metadata
from connectors.resultfiles import ResultFiles
from monitor import Reference, RegressionReference
from monitor.errors import ConnectorError
from monitor.labels.store import LabelStore
from monitor.ports import NEVER, Progress
from monitor.windows import CountedWindows, PartitionProgress, from_stored
from monitor.windows.progress import to_stored
from tests.processes import killed_again_and_again, started

KEPT = Path(__file__).parent / "kept"
COMMITTED = json.loads((KEPT / "kafka-metadata.json").read_text(encoding="utf-8"))
COUNTED = {"c": CountedWindows(7, 12_300, 2)}
PROGRESS = PartitionProgress(12_345, 1_767_225_600_123_456, 12_400, 1_767_225_540_000_000, COUNTED, "token-1")
FRESH = PartitionProgress(0, NEVER, 0, NEVER)

_numbers = st.integers(-(2**62), 2**62)
_counts = st.integers(0, 2**40)
_progress = st.builds(
    PartitionProgress,
    offset=_counts,
    running_max=_numbers,
    read=_counts,
    closed=_numbers,
    counted=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
        st.builds(CountedWindows, _counts, _counts, _counts),
        max_size=4,
    ),
    outcomes=st.sampled_from(["", "841b86d2cf9eee59"]),
)


def in_order(results: Path) -> dict[tuple[str, str], list[bytes]]:
    """By kind and stream. Between them the order is that of polls, which a kill moves."""
    found: dict[tuple[str, str], list[bytes]] = {}
    for line in results.read_bytes().splitlines():
        said = json.loads(line)
        found.setdefault((said["schema"], said["stream"]), []).append(line)
    return found


def run(folder: Path) -> list[str]:
    """What is published in a folder once its configuration has been run: windows and outcomes, by name, in order."""
    (folder / "events.jsonl").write_bytes(gzip.decompress((KEPT / "events.jsonl.gz").read_bytes()))
    command = [sys.executable, "-m", "monitor", "run", "shiftwatch.toml"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=120)
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    return [f"{line['schema'].split('.')[1]} {line['window']}" for line in lines]


def test_a_killed_run_of_the_first_release_is_taken_up_where_it_stopped(tmp_path: Path) -> None:
    again, anew = tmp_path / "again", tmp_path / "anew"
    shutil.copytree(KEPT, again)
    anew.mkdir()
    for name in ("classifier.ref", "shiftwatch.toml"):
        shutil.copy(KEPT / name, anew)
    before = (KEPT / "results.jsonl").read_bytes()
    published = run(again)
    assert sorted(published) == sorted(run(anew))
    assert len(set(published)) == len(published)
    assert (again / "results.jsonl").read_bytes().startswith(before)
    assert json.loads((again / "results.jsonl.checkpoint").read_bytes())["format"] == 2


@pytest.mark.chaos
def test_an_upgrade_that_is_killed_again_and_again_publishes_what_one_does_that_is_not(tmp_path: Path) -> None:
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    for folder in (quiet, killed):
        shutil.copytree(KEPT, folder)
    run(quiet)
    (killed / "events.jsonl").write_bytes(gzip.decompress((KEPT / "events.jsonl.gz").read_bytes()))
    results = killed / "results.jsonl"
    done = killed_again_and_again(lambda: started(killed, "shiftwatch.toml"), 6, (0.0, 0.05), writes=results)
    assert done, "it came to its end before it could be killed"
    assert results.stat().st_size > (KEPT / "results.jsonl").stat().st_size, "the new release had begun to write"
    run(killed)
    assert in_order(results) == in_order(quiet / "results.jsonl")


def test_references_of_the_first_release_are_read() -> None:
    reference = Reference.load(KEPT / "classifier.ref")
    assert reference.classes == ("no", "yes")
    # What that release did not keep, the scores before calibration, had three decimals.
    assert np.abs(reference.raw - np.round(reference.raw, 3)).max() < 1e-9
    assert RegressionReference.load(KEPT / "regressor.ref").input_names == ("area",)


def test_what_the_first_release_committed_beside_offsets_is_read() -> None:
    assert from_stored("t-0", from_metadata("t-0", 12_345, COMMITTED["partition"])) == PROGRESS
    assert from_stored("t-0", from_metadata("t-0", 0, COMMITTED["fresh"])) == FRESH
    assert notes_of(COMMITTED["partition"]).streams == dict.fromkeys(map(hashed, ("s", "c")), ALWAYS)
    table = table_from_metadata(COMMITTED["table"])
    assert {name: from_stored(name, each) for name, each in table.items()} == {
        "events.jsonl": PROGRESS,
        "other.jsonl": FRESH,
    }


def test_a_checkpoint_file_of_the_first_release_is_read(tmp_path: Path) -> None:
    for name in ("results.jsonl", "results.jsonl.checkpoint"):
        shutil.copy(KEPT / name, tmp_path)
    with closing(ResultFiles(tmp_path / "results.jsonl")) as sink:
        checkpoint = sink.recover()
    assert checkpoint is not None
    progress = from_stored("events.jsonl", checkpoint.progress["events.jsonl"])
    kept = json.loads((KEPT / "results.jsonl.checkpoint").read_bytes())["checkpoint"]["progress"]["events.jsonl"]
    counted = {stream: CountedWindows(**each) for stream, each in kept.pop("counted").items()}
    assert progress == PartitionProgress(**kept, counted=counted)


@given(_progress)
def test_what_is_stored_of_a_partition_is_what_is_read_back(progress: PartitionProgress) -> None:
    assert from_stored("p", to_stored(progress)) == progress


def test_an_offset_without_anything_else_begins_fresh_there() -> None:
    assert from_stored("p", Progress(77)) == PartitionProgress(77, NEVER, 77, NEVER)


@pytest.mark.parametrize(
    "state", ["by hand", "[]", "{}", '{"v":2}', '{"v":2,"max":"x","read":1,"closed":1}', '{"v":"2"}']
)
def test_progress_that_nobody_has_written_is_refused_in_words(state: str) -> None:
    with pytest.raises(ConnectorError, match="p: the progress kept at offset 7 is none that Shiftwatch has written"):
        from_stored("p", Progress(7, state))


def test_progress_of_a_newer_release_is_refused_in_words() -> None:
    with pytest.raises(ConnectorError, match="p: the progress kept at offset 7 has version 3, and this release reads"):
        from_stored("p", Progress(7, '{"v":3,"marks":[1,2]}'))


def test_a_label_store_of_a_newer_release_is_refused_in_words(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "labels.sqlite") as database:
        database.execute("PRAGMA user_version = 9")
    database.close()
    with pytest.raises(ConnectorError, match="has format 9"):
        LabelStore(tmp_path / "labels.sqlite")
