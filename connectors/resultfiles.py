"""Results into files that survive a kill at any instant: data first, then one small checkpoint, swapped atomically.

Lines are appended to the data files; a commit makes them durable and then replaces `RESULTS.checkpoint`, which holds
each file's committed length beside the positions of the source. What stands behind the committed length after a
kill was never published: `recover` cuts it off.

The states of streams stand in a file of their own beside the checkpoint, of which only each key's last record counts.
"""

import base64
import fcntl
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import msgspec

from connectors.compacted import CompactedFile, committed_records
from monitor.errors import ConfigurationError, ConnectorError
from monitor.ports import Channel, Checkpoint, Message, Progress

FORMAT = 2


@dataclass(frozen=True, slots=True)
class ResultFileOptions:
    """Where everything but the results goes. A channel without a file is not written."""

    dead_letters: Path | None = None
    recalibrations: Path | None = None
    events: Path | None = None
    alarms: Path | None = None


@dataclass(frozen=True, slots=True)
class CheckpointContent:
    """What the checkpoint file holds."""

    format: int
    lengths: Mapping[str, int]
    """Of each file, in bytes; by its path relative to the results."""
    checkpoint: Checkpoint | None


class _CheckpointBefore(msgspec.Struct):
    """The format before: the service's part of each partition's progress stood among its fields."""

    progress: dict[str, dict[str, msgspec.Raw]]


class _CommittedBefore(msgspec.Struct):
    lengths: dict[str, int]
    checkpoint: _CheckpointBefore | None


class _Format(msgspec.Struct):
    format: int


class ResultFiles:
    """The sink behind `jsonl:PATH`."""

    def __init__(self, results: Path, options: ResultFileOptions = ResultFileOptions(), base: Path = Path()) -> None:
        others = {
            "dead-letters": options.dead_letters,
            "recalibrations": options.recalibrations,
            "events": options.events,
            "alarms": options.alarms,
        }
        self._paths: dict[str, Path] = {"results": results}
        self._paths |= {channel: base / path for channel, path in others.items() if path is not None}
        self._checkpoint = results.with_name(results.name + ".checkpoint")
        self._states_base = results.with_name(results.name + ".states")
        self._states: CompactedFile | None = None
        named = Counter(path.resolve() for path in self.written)
        shared = [str(path) for path, times in named.items() if times > 1]
        if shared:
            raise ConfigurationError([f"sink: {', '.join(shared)} would be written twice: want a file for each output"])
        self._files: dict[str, BinaryIO] = {}

    @property
    def written(self) -> tuple[Path, ...]:
        """All files that it writes."""
        return (*self._paths.values(), self._checkpoint, self._states_base)

    def recover(self) -> Checkpoint | None:
        """Open the files, cut off what was not committed, and return the committed checkpoint."""
        for channel, path in self._paths.items():
            self._files[channel] = self._opened(path)
        committed = self._committed()
        self._states = self._opened_states({} if committed is None else committed.lengths)
        if committed is None:
            self._refuse_strange_files({})
            # From here on, a file with contents and without a checkpoint cannot be ours.
            self._replace(CheckpointContent(FORMAT, self._lengths(), None))
            return None
        self._refuse_strange_files(committed.lengths)
        for channel, file in self._files.items():
            self._cut(channel, file, committed.lengths.get(self._name(channel), 0))
        return committed.checkpoint

    def write(self, message: Message) -> None:
        """Append a line."""
        if message.channel == "states" and self._states is not None:
            self._states.write(message.key, message.value)
            return
        file = self._files.get(message.channel)
        if file is None:
            return
        try:
            file.write(_line(message))
        except OSError as error:
            raise ConnectorError(f"{self._paths[message.channel]}: cannot be written: {error.strerror}") from error

    def commit(self, checkpoint: Checkpoint) -> None:
        """Make the lines durable, then the checkpoint that counts them in."""
        try:
            for channel, file in self._files.items():
                at = self._paths[channel]
                file.flush()
                os.fsync(file.fileno())
            if self._states is not None:
                at = self._states.path
                self._states.flush()
            at = self._checkpoint
            self._replace(CheckpointContent(FORMAT, self._lengths(), checkpoint))
        except OSError as error:
            raise ConnectorError(f"{at}: cannot be written: {error.strerror}") from error

    def keeps(self, channel: Channel) -> bool:
        """Whether the channel has a file."""
        return channel == "states" or channel in self._paths

    def read_back(self, channel: Channel) -> Iterator[bytes]:
        """The whole lines of the channel's file."""
        if channel == "states":
            yield from self._committed_states() if self._states is None else self._states.records()
            return
        path = self._paths[channel]
        try:
            with path.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield line
        except OSError as error:
            raise ConnectorError(f"{path}: cannot be read: {error.strerror}") from error

    def amend(self, messages: Iterable[Message]) -> None:
        """Under the lock of a run; where nothing was ever committed there is nothing to change."""
        try:
            checkpoint = self.recover()
            for message in messages if checkpoint is not None else ():
                self.write(message)
            self.commit(checkpoint or Checkpoint())
        finally:
            self.close()

    def close(self) -> None:
        """Close the files. What was written and not committed is cut off by the next `recover`."""
        opened: list[BinaryIO | CompactedFile] = [*self._files.values()]
        for file in opened if self._states is None else [*opened, self._states]:
            # A full disk fails here once more; everything that counts has been committed.
            with suppress(OSError):
                file.close()

    def _name(self, channel: str) -> str:
        return os.path.relpath(self._paths[channel], self._checkpoint.parent)

    def _lengths(self) -> dict[str, int]:
        lengths = {self._name(channel): file.tell() for channel, file in self._files.items()}
        return lengths if self._states is None else lengths | {self._states.path.name: self._states.length}

    def _committed_states(self) -> Iterator[bytes]:
        """While another process writes them."""
        committed = self._committed()
        if committed is not None and (name := self._states_name(committed.lengths)) is not None:
            yield from committed_records(self._states_base.with_name(name), committed.lengths[name])

    def _states_name(self, lengths: Mapping[str, int]) -> str | None:
        return next((name for name in lengths if name.startswith(self._states_base.name)), None)

    def _opened_states(self, lengths: Mapping[str, int]) -> CompactedFile:
        """Where no length is committed the states begin anew: without results there is nothing to know."""
        base = self._states_base
        name = self._states_name(lengths)
        try:
            return CompactedFile(base, name, 0 if name is None else lengths[name])
        except OSError as error:
            raise ConnectorError(f"{base}: cannot be written: {error.strerror}") from error

    def _opened(self, path: Path) -> BinaryIO:
        try:
            file = path.open("ab")
        except OSError as error:
            raise ConnectorError(f"{path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise ConnectorError(f"{path}: another process is writing to it") from error
        return file

    def _committed(self) -> CheckpointContent | None:
        try:
            raw = self._checkpoint.read_bytes()
            version = msgspec.json.decode(raw, type=_Format).format
            if version == FORMAT - 1:
                return _migrated(msgspec.json.decode(raw, type=_CommittedBefore))
            if version == FORMAT:
                return msgspec.json.decode(raw, type=CheckpointContent)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise ConnectorError(f"{self._checkpoint}: cannot be read: {error}") from error
        raise ConnectorError(
            f"{self._checkpoint}: has format {version}, and this release reads up to {FORMAT}: run the release that "
            "wrote it, or a newer one"
        )

    def _refuse_strange_files(self, lengths: Mapping[str, int]) -> None:
        for channel, file in self._files.items():
            if file.tell() and self._name(channel) not in lengths:
                raise ConnectorError(
                    f"{self._paths[channel]}: it has contents, but there is no {self._checkpoint.name} that says how "
                    "much of it counts; move it away, or write elsewhere"
                )

    def _cut(self, channel: str, file: BinaryIO, length: int) -> None:
        size = file.tell()
        if size < length:
            raise ConnectorError(
                f"{self._paths[channel]}: {length} bytes were committed, and only {size} are left; "
                f"restore it, or move it away together with {self._checkpoint.name}"
            )
        if length and not _line_ends(self._paths[channel], length):
            raise ConnectorError(
                f"{self._paths[channel]}: {length} bytes were committed, and no line ends there: the file was changed; "
                f"restore it, or move it away together with {self._checkpoint.name}"
            )
        file.truncate(length)
        file.seek(length)

    def _replace(self, committed: CheckpointContent) -> None:
        """Swap the checkpoint file: at any instant either the old or the new one is there, whole."""
        temporary = self._checkpoint.with_name(self._checkpoint.name + ".tmp")
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(committed))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._checkpoint)
        directory = os.open(self._checkpoint.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


class StandardOutput:
    """Results to standard output, one a line. Nothing can be taken back, so nothing is ever resumed."""

    CHANNEL: Channel = "results"

    def __init__(self, file: BinaryIO | None = None) -> None:
        self._file = sys.stdout.buffer if file is None else file
        self._pending: list[bytes] = []

    def recover(self) -> Checkpoint | None:
        """There is nothing to recover."""
        return None

    def write(self, message: Message) -> None:
        """Keep a result until the commit; other channels have no place here."""
        if message.channel == self.CHANNEL:
            self._pending.append(_line(message))

    def commit(self, checkpoint: Checkpoint) -> None:  # noqa: ARG002 - nowhere to keep it
        """Write out what was sent; standard output has nowhere to keep a checkpoint."""
        pending, self._pending = self._pending, []
        try:
            self._file.write(b"".join(pending))
            self._file.flush()
        except OSError as error:
            raise ConnectorError(f"standard output: {error.strerror}") from error

    def close(self) -> None:
        """Standard output is not ours to close."""


def _migrated(before: _CommittedBefore) -> CheckpointContent:
    """The service reads its own part, whatever its version: it is passed on as it stood."""
    if before.checkpoint is None:
        return CheckpointContent(FORMAT, before.lengths, None)
    progress = {}
    for name, fields in before.checkpoint.progress.items():
        offset = msgspec.json.decode(fields.pop("offset"), type=int)
        progress[name] = Progress(offset, msgspec.json.encode(fields).decode())
    return CheckpointContent(FORMAT, before.lengths, Checkpoint(progress))


def _line_ends(path: Path, offset: int) -> bool:
    with path.open("rb") as file:
        file.seek(offset - 1)
        return file.read(1) == b"\n"


def _line(message: Message) -> bytes:
    """Messages are JSON in one line already, except dead letters: those may hold any bytes."""
    if message.channel != "dead-letters":
        return message.value + b"\n"
    letter = {name: value.decode(errors="replace") for name, value in message.headers}
    try:
        letter["record"] = message.value.decode()
    except UnicodeDecodeError:
        letter["record_base64"] = base64.b64encode(message.value).decode()
    return msgspec.json.encode(letter) + b"\n"
