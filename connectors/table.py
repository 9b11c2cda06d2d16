"""Rows of Parquet, Arrow and CSV files: one file, or a directory to which files are added.

`table:PATH`. A file is a partition, named after the file; positions are row numbers. A file that is listed is whole:
write it under a name that begins with a dot or an underscore, and give it its own when it is closed. As a sink it is a
folder of results (`resulttables`).
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from connectors import comma_separated
from connectors.formats.rows import ColumnarRows
from connectors.resultfiles import ResultFileOptions
from monitor.errors import ConfigurationError, ConnectorError
from monitor.ports import Checkpoint, Column, Progress, RawBatch, Reassignment, Sink, Source, Translated
from monitor.ports.options import read

try:
    import pyarrow as pa
    from pyarrow import compute, ipc, parquet
except ImportError as error:
    raise ImportError("reading tables needs pyarrow: pip install 'shiftwatch[parquet]'") from error

ROWS = 10_000
"""Read at once from one file, so that what a batch costs whatever it holds is spread thin."""
LISTING = 1.0
"""How often a followed directory is looked through for new files, in seconds."""
MARKED_BYTES = 4_096
"""The end of a file, by which it is known again: what it holds is described there."""
PARQUET, ARROW, TEXT = (".parquet", ".pq"), (".arrow", ".feather", ".ipc"), (".csv",)

_Chunk = tuple[Sequence[bytes], Translated | None]


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What can be said about a source beside its path."""

    follow: bool = False
    """Wait for new files in a directory."""


def source(path: str, options: Mapping[str, Any], base: Path) -> Source:
    """Read a file or a directory of files."""
    problems: list[str] = []
    said = read(TableOptions, options, "source", problems)
    if said is None or problems:
        raise ConfigurationError(problems)
    return TableSource(base / path, said)


def sink(path: str, options: Mapping[str, Any], base: Path) -> Sink:
    """Results into a folder of Parquet files, everything else into files of lines."""
    from connectors.resulttables import ResultTables  # noqa: PLC0415 - a source does not need it

    problems: list[str] = []
    said = read(ResultFileOptions, options, "sink", problems)
    if said is None or problems:
        raise ConfigurationError(problems)
    return ResultTables(base / path, said, base)


def pair(
    source_end: tuple[str, Mapping[str, Any]], sink_end: tuple[str, Mapping[str, Any]], base: Path
) -> tuple[Source, Sink]:
    """Both at once: what is written must not come back as events."""
    if (base / source_end[0]).resolve() == (base / sink_end[0]).resolve():
        raise ConfigurationError([f"sink: {sink_end[0]} would be read as events: write to another folder"])
    return source(*source_end, base), sink(*sink_end, base)


class TableSource:
    """Reads some rows of one file a poll, in turn, so that event times stay close to each other."""

    def __init__(self, path: Path, options: TableOptions = TableOptions()) -> None:
        self._path = path
        self._options = options
        self._files: dict[str, TableFile] = {}
        self._turn: list[str] = []
        self._came: dict[str, Progress | None] = {}
        self._listed = 0.0

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Open the files that are there, each at its row in the checkpoint."""
        progress = checkpoint.progress if checkpoint else {}
        paths = self._paths()
        for path in paths:
            self._open(path, progress.get(path.name, Progress(0)))
        return progress.keys() - {path.name for path in paths}

    def reassigned(self, _: Callable[[], None]) -> Reassignment | None:
        """New files of a followed directory."""
        if self._following and time.monotonic() - self._listed >= LISTING:
            self._listed = time.monotonic()
            for path in self._paths():
                if path.name not in self._files:
                    self._open(path, Progress(0))
                    self._came[path.name] = None
        came, self._came = self._came, {}
        return Reassignment(came=came) if came else None

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        """The next rows of the first file that has any, which then goes to the end of the queue."""
        for name in self._turn:
            if name not in held and name not in self._came and not self._files[name].finished:
                self._turn.remove(name)
                self._turn.append(name)
                return [self._files[name].next()]
        if not self.finished and timeout > 0:
            time.sleep(timeout)
        return []

    def mark(self, partition: str, offset: int) -> str:  # noqa: ARG002 - a whole file is known by its end
        """By what a file is known again."""
        return self._files[partition].mark if partition in self._files else ""

    def partitions(self) -> Sequence[str]:
        """The files that are not read to their end."""
        return [name for name, file in self._files.items() if not file.finished and name not in self._came]

    def waiting(self, partition: str) -> bool:
        """Whether rows of the file are left."""
        return partition in self._files and not self._files[partition].finished

    @property
    def finished(self) -> bool:
        """Whether every file is read to its end, and none may be added."""
        return not self._following and all(file.finished for file in self._files.values())

    def close(self) -> None:
        """No file stays open."""

    @property
    def _following(self) -> bool:
        return self._options.follow and self._path.is_dir()

    def _paths(self) -> list[Path]:
        if self._path.is_dir():
            listed = sorted(self._path.iterdir())
            return [path for path in listed if path.suffix in PARQUET + ARROW + TEXT and path.name[0] not in "._"]
        if not self._path.is_file():
            raise ConnectorError(f"{self._path}: there is no such file or directory")
        return [self._path]

    def _open(self, path: Path, progress: Progress) -> None:
        file = TableFile(path, progress.offset)
        if progress.mark and file.mark != progress.mark:
            raise ConnectorError(
                f"{path.name}: this is not the file of which {progress.offset} rows were read: give it another name"
            )
        self._files[path.name] = file
        self._turn.append(path.name)


class TableFile:
    """One file, read in order; it is open only while rows are read."""

    def __init__(self, path: Path, first: int) -> None:
        self._path = path
        self._row = first
        try:
            self._rows = _row_count(path)
            self.mark = _end_of(path)
        except (pa.ArrowException, OSError) as error:
            raise ConnectorError(f"{path}: not a whole Parquet, Arrow or CSV file: {error}") from error
        if first > self._rows:
            raise ConnectorError(f"{path}: it was read up to row {first}, and now has only {self._rows}")
        self._chunks: Iterator[_Chunk] | None = None

    @property
    def finished(self) -> bool:
        """Whether every row has been given out."""
        return self._row >= self._rows

    def next(self) -> RawBatch:
        """The next rows, some thousands at most."""
        try:
            if self._chunks is None:
                self._chunks = _chunks(self._path, self._row)
            records, translated = next(self._chunks)
        except (pa.ArrowException, OSError, StopIteration) as error:
            raise ConnectorError(f"{self._path}: row {self._row} cannot be read: {error}") from error
        first, self._row = self._row, self._row + len(records)
        return RawBatch(self._path.name, records, np.arange(first, self._row), self._row, translated=translated)


class TableRows(ColumnarRows):
    """Rows of a table in memory."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def column(self, steps: Sequence[str | int]) -> Column | None:
        index = self._batch.schema.get_field_index(steps[0])
        if index < 0:  # there is none, or two
            return None
        values = self._batch.column(index)
        for step in steps[1:]:
            if isinstance(step, str):
                if not pa.types.is_struct(values.type) or values.type.get_field_index(step) < 0:
                    return None
                values = compute.struct_field(values, step)
            else:
                if not _is_list(values.type) or (compute.min(compute.list_value_length(values)).as_py() or 0) <= step:
                    return None
                values = compute.list_element(values, step)
        return _values(values)

    def objects(self) -> Iterable[object]:
        return list(self._batch.to_pylist())


def _chunks(path: Path, first: int) -> Iterator[_Chunk]:
    """The rows from one on, some at a time, and what they say where they are texts."""
    if path.suffix in TEXT:
        yield from comma_separated.chunks(path, first, ROWS)
    else:
        for batch in _batches(path, first):
            yield TableRows(batch), None


def _row_count(path: Path) -> int:
    if path.suffix in TEXT:
        return comma_separated.row_count(path)
    if path.suffix in PARQUET:
        return int(parquet.read_metadata(path).num_rows)
    with pa.memory_map(str(path)) as mapped:
        file = ipc.open_file(mapped)
        return sum(file.get_batch(number).num_rows for number in range(file.num_record_batches))


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - MARKED_BYTES, 0))
        return f"{size}:{blake2b(file.read(), digest_size=8).hexdigest()}"


def _batches(path: Path, first: int) -> Iterator[Any]:
    """From this row on, some rows at a time: groups before it are not read."""
    if path.suffix in PARQUET:
        with parquet.ParquetFile(path) as file:
            groups = list(range(file.num_row_groups))
            while groups and first >= (rows := file.metadata.row_group(groups[0]).num_rows):
                first -= rows
                groups.pop(0)
            yield from _after(first, file.iter_batches(batch_size=ROWS, row_groups=groups))
        return
    with pa.memory_map(str(path)) as mapped:
        file = ipc.open_file(mapped)
        yield from _after(first, map(file.get_batch, range(file.num_record_batches)))


def _after(first: int, batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        for start in range(first, batch.num_rows, ROWS):
            yield plain(batch.slice(start, ROWS))
        first = max(first - batch.num_rows, 0)


def plain(batch: Any) -> Any:
    return pa.RecordBatch.from_arrays([_plain_column(column) for column in batch.columns], names=batch.schema.names)


def _plain_column(column: Any) -> Any:
    """Decimals as numbers, times in microseconds, dictionaries as their values."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    return column.dictionary_decode() if pa.types.is_dictionary(kind) else column


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _values(values: Any) -> Column:
    kind = values.type
    if pa.types.is_struct(kind) and not values.null_count:
        return {kind.field(n).name: _values(compute.struct_field(values, [n])) for n in range(kind.num_fields)}
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return np.asarray(values.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False))
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    if pa.types.is_timestamp(kind):
        return [None if each is None else each.isoformat() for each in values.to_pylist()]
    if _is_list(kind) and not values.null_count:
        inner = values.flatten()
        lengths = set(compute.list_value_length(values).to_pylist())
        if len(lengths) == 1 and (pa.types.is_floating(inner.type) or pa.types.is_integer(inner.type)):
            return np.asarray(inner.to_numpy(zero_copy_only=False)).reshape(len(values), lengths.pop())
    return list(values.to_pylist())
