"""Tables of Delta Lake as sources, written by deltalake itself: the contract, and every row that was added, once."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import ConfigurationError, ConnectorError
from monitor.ports import Checkpoint, Progress, Source
from tests.connectors.contract import SourceContract
from tests.connectors.harness import SourceCase

deltalake = pytest.importorskip("deltalake", reason="the extra `delta` is not installed")
from connectors import delta  # noqa: E402 - it needs the extra
from connectors.delta import DeltaOptions, DeltaSource  # noqa: E402


def rows(first: int, stop: int) -> list[dict[str, Any]]:
    return [{"id": f"r{n}", "x": n / 2, "day": "ab"[n % 2]} for n in range(first, stop)]


def add(place: Path, some: list[dict[str, Any]], **options: Any) -> None:
    deltalake.write_deltalake(place, pa.Table.from_pylist(some), mode="append", **options)


def read(source: Source, checkpoint: Checkpoint | None = None, polls: int = 100) -> tuple[list[Any], Checkpoint]:
    """What there is to read, and where to go on."""
    source.start(checkpoint)
    found: list[Any] = []
    progress: Mapping[str, Progress] = checkpoint.progress if checkpoint else {}
    for _ in range(polls):
        for batch in source.poll(0.0):
            found += [json.loads(record or b"") for record in batch.records]
            mark = source.mark(batch.partition, batch.next_offset)  # type: ignore[attr-defined]
            progress = {batch.partition: Progress(batch.next_offset, mark=mark)}
        if source.finished:
            break
    source.close()
    return found, Checkpoint(progress)


class TestDelta(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> SourceCase:
        add(tmp_path / "table", rows(0, 40))
        add(tmp_path / "table", rows(40, 60))
        records = [json.dumps(row, separators=(",", ":")).encode() for row in rows(0, 60)]
        return SourceCase(lambda: DeltaSource(str(tmp_path / "table")), {"table": records})


def test_versions_that_are_added_later_are_read_each_once_and_in_order(tmp_path: Path) -> None:
    add(tmp_path / "t", rows(0, 10))
    source = DeltaSource(str(tmp_path / "t"), DeltaOptions(follow=True))
    found, checkpoint = read(source, polls=3)
    assert found == rows(0, 10)
    add(tmp_path / "t", rows(10, 12))
    add(tmp_path / "t", rows(12, 30))
    assert source.partitions() == ["t"]
    found, _ = read(DeltaSource(str(tmp_path / "t"), DeltaOptions(follow=True)), checkpoint, polls=4)
    assert found == rows(10, 30)


def test_a_table_that_is_followed_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta, "LISTING", 0.0)
    add(tmp_path / "t", rows(0, 10))
    source = DeltaSource(str(tmp_path / "t"), DeltaOptions(follow=True))
    source.start(None)
    assert [len(batch.records) for batch in source.poll(0.0)] == [10]
    assert not source.waiting("t")
    add(tmp_path / "t", rows(10, 15))
    began = time.monotonic()
    found: list[int] = []
    while not found and time.monotonic() - began < 10:
        found = [len(batch.records) for batch in source.poll(0.01)]
    assert found == [5]
    assert not source.finished


@settings(max_examples=20, deadline=None)
@given(kills=st.lists(st.integers(0, 4), max_size=5), data=st.data())
def test_every_row_is_read_once_whatever_the_restarts_and_whatever_is_compacted_meanwhile(
    tmp_path_factory: pytest.TempPathFactory, kills: list[int], data: st.DataObject
) -> None:
    place, found, checkpoint, written = tmp_path_factory.mktemp("delta") / "t", [], None, 7
    add(place, rows(0, 7), partition_by=["day"])
    for polls in [*kills, 100]:
        some, checkpoint = read(DeltaSource(str(place), DeltaOptions(follow=True)), checkpoint, polls)
        if not checkpoint.progress:
            checkpoint = None
        found += some
        if polls < 100:
            more = data.draw(st.sampled_from(["add", "compact", "both"]))
            if more != "compact":
                add(place, rows(written, written + 3))
                written += 3
            if more != "add":
                deltalake.DeltaTable(place).optimize.compact()
    assert sorted(row["id"] for row in found) == sorted(row["id"] for row in rows(0, written))
    assert all(row in rows(0, written) for row in found)  # also the column that is in the names of folders


def test_a_column_that_comes_later_is_missing_before(tmp_path: Path) -> None:
    add(tmp_path / "t", rows(0, 2))
    add(tmp_path / "t", [{**row, "y": True} for row in rows(2, 4)], schema_mode="merge")
    found, _ = read(DeltaSource(str(tmp_path / "t")))
    assert [row["y"] for row in found] == [None, None, True, True]


def test_rows_may_be_deleted_by_whole_files_and_not_changed(tmp_path: Path) -> None:
    add(tmp_path / "t", rows(0, 4), partition_by=["day"])
    _, checkpoint = read(DeltaSource(str(tmp_path / "t")))
    deltalake.DeltaTable(tmp_path / "t").delete("day = 'a'")
    add(tmp_path / "t", rows(4, 6))
    assert read(DeltaSource(str(tmp_path / "t")), checkpoint)[0] == sorted(rows(4, 6), key=lambda row: row["day"])
    deltalake.DeltaTable(tmp_path / "t").update(updates={"x": "0.0"}, predicate="day = 'b'")
    with pytest.raises(ConnectorError, match="version 3 changed rows that were read before \\(UPDATE\\)"):
        read(DeltaSource(str(tmp_path / "t")), checkpoint)
    assert read(DeltaSource(str(tmp_path / "t"), DeltaOptions(after=3)))[0] == []


def test_another_table_of_the_same_name_is_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        add(tmp_path / folder / "t", rows(0, 4))
    _, checkpoint = read(DeltaSource(str(tmp_path / "a" / "t")))
    with pytest.raises(ConnectorError, match="not the table that was read"):
        read(DeltaSource(str(tmp_path / "b" / "t")), checkpoint)


def test_a_file_or_a_log_that_is_gone_ends_it_with_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="nowhere"):
        DeltaSource(str(tmp_path / "nowhere")).start(None)
    add(tmp_path / "t", rows(0, 4))
    next((tmp_path / "t").glob("*.parquet")).unlink()
    with pytest.raises(ConnectorError, match="version 0 cannot be read"):
        read(DeltaSource(str(tmp_path / "t")))
    with pytest.raises(ConnectorError, match="not the table that was read up to version 8"):
        read(DeltaSource(str(tmp_path / "t")), Checkpoint({"t": Progress(8 << 40, mark=mark(tmp_path / "t"))}))
    known, newest = mark(tmp_path / "t"), tmp_path / "t" / "_delta_log" / f"{1:020d}.json"
    add(tmp_path / "t", rows(4, 8))
    newest.rename(newest.with_name(f"{2:020d}.json"))
    with pytest.raises(ConnectorError, match="t:"):
        read(DeltaSource(str(tmp_path / "t")), Checkpoint({"t": Progress(1 << 40, mark=known)}))


def mark(place: Path) -> str:
    return f"{deltalake.DeltaTable(place).metadata().id}@0"


def test_secrets_of_the_storage_are_not_shown() -> None:
    assert "hush" not in repr(DeltaOptions(storage={"AWS_SECRET_ACCESS_KEY": "hush"}))
    with pytest.raises(ConfigurationError, match=r"source\.folow"):
        delta.source("t", {"folow": True}, Path())
