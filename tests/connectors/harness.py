"""What the contract suite needs to know of a connector. A new connector adds a harness, and gets the suite free."""

import gzip
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
from pyarrow import parquet

from connectors.jsonl import JsonlSource
from connectors.lines import Lines
from connectors.memory import MemoryLog, MemorySink, MemorySource
from connectors.resultfiles import ResultFileOptions, ResultFiles
from connectors.resulttables import ResultTables
from connectors.synthetic import SyntheticOptions, SyntheticSource
from connectors.texts import PlainText
from connectors.worlds import Period
from monitor.ports import Checkpoint, Progress, RawBatch, Sink, Source

RECORDS: Mapping[str, Sequence[bytes]] = {
    "a": [f'{{"number":{number},"pad":"{"x" * (number * 7 % 40)}"}}'.encode() for number in range(60)],
    "b": [f'{{"letter":"{chr(97 + number % 26)}"}}'.encode() for number in range(35)],
    "c": [],
}


@dataclass(frozen=True)
class SourceCase:
    """How to open a source again and again, and what it must yield."""

    open: Callable[[], Source]
    records: Mapping[str, Sequence[bytes | None]]


def memory_source(_: Path) -> SourceCase:
    return SourceCase(lambda: MemorySource(RECORDS, batch=7), RECORDS)


def one_file(folder: Path) -> SourceCase:
    path = folder / "a"
    path.write_bytes(b"".join(record + b"\n" for record in RECORDS["a"]))
    return SourceCase(lambda: JsonlSource(path), {"a": RECORDS["a"]})


def odd_file(folder: Path) -> SourceCase:
    """Blank lines, carriage returns, and no line feed at the end."""
    path = folder / "a"
    path.write_bytes(b"\n\r\n" + b"\r\n\n".join(RECORDS["a"]))
    expected = [record + b"\r" for record in RECORDS["a"][:-1]] + [RECORDS["a"][-1]]
    return SourceCase(lambda: JsonlSource(path), {"a": expected})


def directory(folder: Path) -> SourceCase:
    for name, records in RECORDS.items():
        (folder / name).write_bytes(b"".join(record + b"\n" for record in records))
    (folder / ".hidden").write_bytes(b"not read\n")
    return SourceCase(lambda: JsonlSource(folder), RECORDS)


def gzip_files(folder: Path) -> SourceCase:
    for name, records in RECORDS.items():
        (folder / f"{name}.gz").write_bytes(gzip.compress(b"".join(record + b"\n" for record in records)))
    return SourceCase(lambda: JsonlSource(folder), {f"{name}.gz": records for name, records in RECORDS.items()})


class RedirectedSource(JsonlSource):
    """Standard input, redirected from a file for as long as it starts."""

    def __init__(self, path: Path) -> None:
        super().__init__(None)
        self._file = path.open("rb")

    def start(self, checkpoint: Checkpoint | None) -> None:
        before, sys.stdin = sys.stdin, self._file  # type: ignore[assignment]
        try:
            super().start(checkpoint)
        finally:
            sys.stdin = before

    def close(self) -> None:
        super().close()
        self._file.close()


def synthetic(_: Path) -> SourceCase:
    options = SyntheticOptions(periods=(Period("calm", 1500), Period("bad", 777, malformed=0.5)), partitions=3)
    return SourceCase(lambda: SyntheticSource(options), read_all(opened(SyntheticSource(options))))


SOURCES: dict[str, Callable[[Path], SourceCase]] = {
    "memory": memory_source,
    "one file": one_file,
    "odd file": odd_file,
    "directory": directory,
    "gzip files": gzip_files,
    "synthetic": synthetic,
}


@dataclass(frozen=True)
class SinkCase:
    """How to open a sink again after a crash, and what readers see of what it published."""

    open: Callable[[], Sink]
    published: Callable[[], Mapping[str, list[bytes]]]
    channels: Sequence[str] = field(default=("results", "recalibrations", "events"))

    @contextmanager
    def reopened(self) -> Iterator[tuple[Sink, Checkpoint | None]]:
        """A sink that has recovered, with what it found; closed in the end, as the system closes after a kill."""
        sink = self.open()
        try:
            yield sink, sink.recover()
        finally:
            sink.close()


def memory_sink(_: Path) -> SinkCase:
    log = MemoryLog()
    case = SinkCase(lambda: MemorySink(log), lambda: {channel: log.values(channel) for channel in case.channels})
    return case


def result_files(folder: Path) -> SinkCase:
    paths = {"results": folder / "r.jsonl", "recalibrations": folder / "c.jsonl", "events": folder / "e.jsonl"}
    options = ResultFileOptions(recalibrations=Path("c.jsonl"), events=Path("e.jsonl"), dead_letters=Path("d.jsonl"))

    def published() -> dict[str, list[bytes]]:
        """What stands within the committed lengths."""
        lengths = msgspec.json.decode((folder / "r.jsonl.checkpoint").read_bytes())["lengths"]
        return {channel: path.read_bytes()[: lengths[path.name]].splitlines() for channel, path in paths.items()}

    return SinkCase(lambda: ResultFiles(folder / "r.jsonl", options, folder), published)


def result_tables(folder: Path) -> SinkCase:
    paths = {"recalibrations": folder / "c.jsonl", "events": folder / "e.jsonl"}
    options = ResultFileOptions(recalibrations=Path("c.jsonl"), events=Path("e.jsonl"), dead_letters=Path("d.jsonl"))

    def published() -> dict[str, list[bytes]]:
        """What a reader of the folder sees, and what stands within the committed lengths."""
        lengths = msgspec.json.decode((folder / "r" / "_parts.jsonl.checkpoint").read_bytes())["lengths"]
        files = sorted((folder / "r").glob("[!._]*.parquet"))
        results = [each.encode() for file in files for each in parquet.read_table(file)["result"].to_pylist()]
        lines = {
            channel: path.read_bytes()[: lengths[f"../{path.name}"]].splitlines() for channel, path in paths.items()
        }
        return {"results": results, **lines}

    return SinkCase(lambda: ResultTables(folder / "r", options, folder), published)


SINKS: dict[str, Callable[[Path], SinkCase]] = {
    "memory": memory_sink,
    "result files": result_files,
    "result tables": result_tables,
}


def opened(source: Source, offsets: Mapping[str, int] | None = None) -> Source:
    """The source, started at these offsets."""
    source.start(None if offsets is None else checkpoint(offsets))
    return source


def nothing() -> None:
    """What a service that has nothing under way settles before a reassignment."""


def checkpoint(offsets: Mapping[str, int]) -> Checkpoint:
    return Checkpoint({name: Progress(offset, f"kept {offset}") for name, offset in offsets.items()})


def batches(source: Source, held: Sequence[str] = ()) -> list[RawBatch]:
    """Everything up to the end."""
    found: list[RawBatch] = []
    while not source.finished:
        found.extend(source.poll(0.0, held))
    source.close()
    return found


def read_all(source: Source) -> dict[str, list[bytes | None]]:
    """All records by partition; partitions without any are there too."""
    records: dict[str, list[bytes | None]] = {name: [] for name in source.partitions()}
    for batch in batches(source):
        records[batch.partition].extend(batch.records)
    return records


def positions(found: Sequence[RawBatch]) -> dict[str, np.ndarray]:
    """The offset of every record, by partition."""
    by_partition: dict[str, list[np.ndarray]] = {}
    for batch in found:
        by_partition.setdefault(batch.partition, []).append(batch.offsets)
    return {name: np.concatenate(parts) for name, parts in by_partition.items()}


def small_lines(path: Path, *, follow: bool = False, longest: int = 20, chunk: int = 8, offset: int = 0) -> Lines:
    """A file read in chunks of a few bytes, so that every cut happens somewhere."""
    text = PlainText(path, follow)
    text.seek(offset)
    return Lines("p", text, offset, longest, chunk)
