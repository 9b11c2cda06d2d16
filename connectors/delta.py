"""Tables of Delta Lake as a source: what was added to them, version by version.

`delta:PATH`, or `delta:s3://BUCKET/TABLE`. The table is one partition. First come the files that it has when it is
first read, oldest first, then those that each further version adds. A position is a version and a row in it.

Compaction moves rows and adds none, and rows may be deleted by whole files. A version that changes rows ends the
reading: what windows have of them cannot be taken back.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import numpy as np

from connectors.table import LISTING, ROWS, TableRows, plain
from monitor.errors import ConfigurationError, ConnectorError
from monitor.ports import Checkpoint, RawBatch, Reassignment, Source
from monitor.ports.options import read

try:
    import pyarrow as pa
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError
except ImportError as error:
    raise ImportError("reading tables of Delta Lake needs deltalake: pip install 'shiftwatch[delta]'") from error

VERSION_BITS = 40
"""Of a position: the rest is the row in the version."""


class _File(msgspec.Struct):
    path: str
    data_change: bool = msgspec.field(name="dataChange", default=True)
    """False where the same rows are in other files now."""


class _Commit(msgspec.Struct):
    operation: str = ""


class _Action(msgspec.Struct):
    """A line of the log; those that matter here."""

    add: _File | None = None
    remove: _File | None = None
    commit_info: _Commit | None = msgspec.field(name="commitInfo", default=None)


@dataclass(frozen=True, slots=True)
class DeltaOptions:
    """What can be said about a source beside its place."""

    follow: bool = False
    """Wait for new versions."""
    after: int | None = None
    """Read only what was added after this version. By default first of all what the table has."""
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the storage wants to know, such as `AWS_REGION`; best from outside where it is secret."""


def source(place: str, options: Mapping[str, Any], base: Path) -> Source:
    """Read a table."""
    problems: list[str] = []
    said = read(DeltaOptions, options, "source", problems)
    if said is None or problems:
        raise ConfigurationError(problems)
    return DeltaSource(place if "://" in place else str(base / place), said)


class DeltaSource:
    """Reads some rows a poll."""

    def __init__(self, place: str, options: DeltaOptions = DeltaOptions()) -> None:
        self._place = place
        self._options = options
        self._partition = place.rstrip("/").rpartition("/")[2]
        self._first = 0
        """The version of which all rows are read."""
        self._version = 0
        """Of which rows are read next."""
        self._newest = 0
        self._id = ""
        self._batches: Iterator[RawBatch] | None = None
        self._looked = 0.0

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Go to the checkpoint's version and row."""
        progress = checkpoint.progress if checkpoint else {}
        newest = self._table()
        self._newest, self._id = newest.version(), str(newest.metadata().id)
        if self._partition not in progress:
            after = self._options.after
            self._first, self._version = (self._newest,) * 2 if after is None else (after, after + 1)
            return progress.keys()
        known = progress[self._partition]
        self._version, row = known.offset >> VERSION_BITS, known.offset % (1 << VERSION_BITS)
        table, _, first = known.mark.rpartition("@")
        if (table and table != self._id) or self._version > self._newest + 1:
            raise ConnectorError(f"{self._place}: this is not the table that was read up to version {self._version}")
        self._first = int(first or self._version)
        if row:
            self._batches = self._of_version(self._version, row)
        return progress.keys() - {self._partition}

    def reassigned(self, _: Callable[[], None]) -> Reassignment | None:
        """There is one table, and it stays."""
        return None

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        """The next rows."""
        self._look()
        while self._partition not in held and self.waiting(self._partition):
            try:
                self._batches = self._batches or self._of_version(self._version, 0)
                batch = next(self._batches, None)
            except (DeltaError, pa.ArrowException, OSError) as error:
                raise ConnectorError(f"{self._place}: version {self._version} cannot be read: {error}") from error
            if batch is None or batch.next_offset >> VERSION_BITS > self._version:
                self._version, self._batches = self._version + 1, None
            if batch is not None:
                return [batch]
        if not self.finished and timeout > 0:
            time.sleep(timeout)
        return []

    def mark(self, partition: str, offset: int) -> str:  # noqa: ARG002 - there is one, and its name holds for all of it
        """By what the table is known again, and from which version on it is read."""
        return f"{self._id}@{self._first}"

    def partitions(self) -> Sequence[str]:
        """The table, unless it is read to its end."""
        return [] if self.finished else [self._partition]

    def waiting(self, partition: str) -> bool:
        """Whether there may be rows that were not read."""
        return partition == self._partition and self._version <= self._newest

    @property
    def finished(self) -> bool:
        """Whether all is read, and nothing that is added is waited for."""
        return not self._options.follow and not self.waiting(self._partition)

    def close(self) -> None:
        """No file stays open."""
        self._batches = None

    def _look(self) -> None:
        """Are there newer versions?"""
        if self._options.follow and time.monotonic() - self._looked >= LISTING and not self.waiting(self._partition):
            self._newest = self._table().version()
            self._looked = time.monotonic()

    def _table(self, version: int | None = None) -> DeltaTable:
        try:
            return DeltaTable(self._place, version=version, storage_options=dict(self._options.storage))
        except (DeltaError, OSError, ValueError) as error:
            at = "" if version is None else f" version {version} is not there (its log may have been cleaned up):"
            raise ConnectorError(f"{self._place}:{at} {error}") from error

    def _of_version(self, version: int, row: int) -> Iterator[RawBatch]:
        """What a version adds, from a row on. The last batch goes on to the next version."""
        before = None
        for batch in self._rows(version, row):
            if before is not None:
                yield self._batch(version, row, before, 0)
                row += before.num_rows
            before = batch
        if before is not None:
            yield self._batch(version, row, before, 1)

    def _batch(self, version: int, row: int, rows: Any, last: int) -> RawBatch:
        first = (version << VERSION_BITS) + row
        after = (version + 1) << VERSION_BITS if last else first + rows.num_rows
        return RawBatch(self._partition, TableRows(plain(rows)), np.arange(first, first + rows.num_rows), after)

    def _rows(self, version: int, row: int) -> Iterator[Any]:
        """Some rows at a time. Groups of rows before the first are not read."""
        dataset, added = self._added(version)
        for fragment in chain.from_iterable(file.split_by_row_group() for file in added):
            rows = fragment.count_rows()
            if row < rows:
                batches = fragment.to_batches(
                    schema=dataset.schema, batch_size=ROWS, batch_readahead=1, fragment_readahead=1, use_threads=False
                )
                for batch in batches:
                    if row < batch.num_rows:
                        yield batch.slice(row)
                    row = max(row - batch.num_rows, 0)
            else:
                row -= rows

    def _added(self, version: int) -> tuple[Any, Sequence[Any]]:
        """The table at a version, and the files that are read of it, in order."""
        table = self._table(version)
        dataset = table.to_pyarrow_dataset()
        files = {file.path: file for file in dataset.get_fragments()}
        if version == self._first:
            actions = pa.table(table.get_add_actions()).select(["path", "modification_time"]).to_pylist()
            written = {unquote(action["path"]): action["modification_time"] for action in actions}
            return dataset, [files[path] for path in sorted(files, key=lambda path: (written.get(path, 0), path))]
        said = self._said(dataset, version)
        new = sorted({unquote(add.path) for action in said if (add := action.add) and add.data_change})
        gone = any(action.remove and action.remove.data_change for action in said)
        operation = next((action.commit_info.operation for action in said if action.commit_info), "")
        if new and (gone or operation == "RESTORE"):
            raise ConnectorError(
                f"{self._place}: version {version} changed rows that were read before ({operation}): what windows have "
                "of them cannot be taken back. To go on behind it, write to new results, with `after` in [source]"
            )
        if strange := [path for path in new if path not in files]:
            raise ConnectorError(f"{self._place}: version {version} adds {strange[0]}, which is not among its files")
        return dataset, [files[path] for path in new]

    def _said(self, dataset: Any, version: int) -> Sequence[_Action]:
        """What the log says of a version."""
        with dataset.filesystem.open_input_stream(f"_delta_log/{version:020d}.json") as file:
            return _actions(file.read())


def _actions(text: bytes) -> Sequence[_Action]:
    try:
        return msgspec.json.Decoder(_Action).decode_lines(text)
    except msgspec.DecodeError as error:
        raise ConnectorError(f"not a log of Delta Lake: {error}") from error
