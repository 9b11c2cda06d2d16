"""Results as a table: a folder of Parquet files, one for each commit that has any; everything else as `resultfiles`.

A file is written and durable before the commit that counts it in, and gets its name after it. Which files count stands
in `_parts.jsonl`, which is committed as results are elsewhere; a start gives those their name that a kill kept from it,
and deletes what was never committed. Readers of a folder of Parquet pass over names that begin with `_` or `.`.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import parquet

from connectors.resultfiles import ResultFileOptions, ResultFiles
from monitor.errors import ConnectorError
from monitor.ports import Channel, Checkpoint, Message

PARTS = "_parts.jsonl"
_TIME = pa.timestamp("us", "UTC")
_SHARE = pa.struct([(name, pa.float64()) for name in ("estimate", "lower", "upper", "reference")])
SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("segment", pa.string()),
        ("window", pa.string()),
        ("start", _TIME),
        ("end", _TIME),
        ("verdict", pa.string()),
        ("complete", pa.bool_()),
        ("reasons", pa.list_(pa.string())),
        ("events", pa.map_(pa.string(), pa.int64())),
        ("prevalence", pa.map_(pa.string(), _SHARE)),
        ("result", pa.string()),
    ]
)
"""What one looks for, and the whole result as it is written elsewhere."""


class _Row(msgspec.Struct):
    """What a result says of the columns. An outcome, which is no window, leaves some of them empty."""

    stream: str | None = None
    segment: str | None = None
    window: str | None = None
    start: datetime | None = None
    end: datetime | None = None
    verdict: str | None = None
    complete: bool | None = None
    reasons: list[str] | None = None
    events: dict[str, int] = {}
    prevalence: dict[str, dict[str, float | None]] | None = None
    result: str = ""


class ResultTables:
    """The sink behind `table:FOLDER`."""

    def __init__(self, folder: Path, options: ResultFileOptions, base: Path) -> None:
        self._folder = folder
        self._files = ResultFiles(folder / PARTS, options, base)
        self._pending: list[bytes] = []
        self._written = 0
        """How many files there are."""

    def recover(self) -> Checkpoint | None:
        """Give committed files their names, delete what was not committed, and return the committed checkpoint."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            checkpoint = self._files.recover()
            self._written = sum(1 for _ in self._files.read_back("results"))
            for path in self._folder.glob(".*.parquet"):
                if int(path.stem[1:]) < self._written:
                    path.replace(self._folder / path.name[1:])
                else:
                    path.unlink()
        except OSError as error:
            raise ConnectorError(f"{self._folder}: cannot be written: {error.strerror}") from error
        return checkpoint

    def write(self, message: Message) -> None:
        """Keep a result until the commit."""
        if message.channel == "results":
            self._pending.append(message.value)
        else:
            self._files.write(message)

    def commit(self, checkpoint: Checkpoint) -> None:
        """A durable file, the commit that counts it in, and its name."""
        if not self._pending:
            self._files.commit(checkpoint)
            return
        name = f"{self._written:010d}.parquet"
        hidden = self._folder / f".{name}"
        try:
            with hidden.open("wb") as file:
                parquet.write_table(_table(self._pending), file)
                file.flush()
                os.fsync(file.fileno())
            part = msgspec.json.encode({"file": name, "windows": len(self._pending)})
            self._files.write(Message("results", b"", part))
            self._files.commit(checkpoint)
            hidden.replace(self._folder / name)
        except OSError as error:
            raise ConnectorError(f"{hidden}: cannot be written: {error.strerror}") from error
        self._pending = []
        self._written += 1

    def keeps(self, channel: Channel) -> bool:
        """Whether the messages of a channel go anywhere."""
        return self._files.keeps(channel)

    def read_back(self, channel: Channel) -> Iterator[bytes]:
        """The committed messages of a channel."""
        if channel != "results":
            yield from self._files.read_back(channel)
            return
        for line in self._files.read_back("results"):
            file = self._folder / msgspec.json.decode(line)["file"]
            yield from (each.encode() for each in parquet.read_table(file, ["result"])["result"].to_pylist())

    def amend(self, messages: Iterable[Message]) -> None:
        """Publish these by themselves."""
        self._files.amend(messages)

    def close(self) -> None:
        """What was written and not committed is deleted by the next `recover`."""
        self._files.close()


def _table(results: Iterable[bytes]) -> Any:
    rows = []
    for result in results:
        said = _Row()
        with suppress(msgspec.DecodeError):
            said = msgspec.json.decode(result, type=_Row)
        maps = {"events": list(said.events.items()), "prevalence": list((said.prevalence or {}).items())}
        rows.append(msgspec.structs.asdict(said) | maps | {"result": result.decode()})
    return pa.Table.from_pylist(rows, SCHEMA)
