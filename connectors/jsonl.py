"""Files with one record a line, plain or gzip, a directory of them, or standard input; and results into files.

`jsonl:PATH` and `jsonl:-`. Positions are byte offsets of line starts (of the uncompressed text for .gz). A file is
a partition, named after the file, so a directory may move but its files may not be renamed between runs. One file that
is followed may rotate (`rotation`).
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from connectors.lines import Lines
from connectors.resultfiles import ResultFileOptions, ResultFiles, StandardOutput
from connectors.rotation import RotatedLog
from connectors.texts import GzipText, PlainText, StandardInput, TextSource
from monitor.errors import ConfigurationError, ConnectorError
from monitor.limits import RECORD_BYTES
from monitor.ports import Checkpoint, Progress, RawBatch, Reassignment, Report, Sink, Source
from monitor.ports.options import read

STANDARD = "-"

# Read at once from one file: thousands of events, so that what a batch costs whatever it holds is spread thin. More
# gains little, and takes files of a directory further apart in time.
CHUNK_BYTES = 2 << 20

# How often a followed directory is looked through for new files, in seconds.
LISTING = 1.0


@dataclass(frozen=True, slots=True)
class JsonlOptions:
    """What can be said about a source beside its path."""

    follow: bool = False
    """Wait for more at the end of plain files, and for new files in a directory."""
    max_record_bytes: int = RECORD_BYTES
    """The rest of a longer line is skipped unread; its beginning is rejected as too large."""


def source(path: str, options: Mapping[str, Any], base: Path) -> Source:
    """Read a file, a directory or standard input."""
    read_options = _read(JsonlOptions, options, "source")
    if path == STANDARD:
        return JsonlSource(None, read_options)
    return JsonlSource(base / path, read_options)


def sink(path: str, options: Mapping[str, Any], base: Path) -> Sink:
    """Write to files beside each other, committed together; or results to standard output."""
    if path == STANDARD:
        if options:
            raise ConfigurationError([f"sink: standard output takes no options, got {', '.join(sorted(options))}"])
        return StandardOutput()
    return ResultFiles(base / path, _read(ResultFileOptions, options, "sink"), base)


def pair(
    source_end: tuple[str, Mapping[str, Any]], sink_end: tuple[str, Mapping[str, Any]], base: Path
) -> tuple[Source, Sink]:
    """Both at once: what is written must not come back as events."""
    problems: list[str] = []
    for opener, end in ((source, source_end), (sink, sink_end)):
        try:
            opener(*end, base)
        except ConfigurationError as error:
            problems += error.problems
    if problems:
        raise ConfigurationError(problems)
    opened = sink(*sink_end, base)
    if isinstance(opened, ResultFiles):
        _refuse_circle((base / source_end[0]).resolve(), opened.written)
    return source(*source_end, base), opened


def _refuse_circle(read: Path, written: Sequence[Path]) -> None:
    both = [str(path) for path in written if read in (path.resolve(), path.resolve().parent)]
    if both:
        raise ConfigurationError(
            [f"sink: {', '.join(both)} would be read as events: write to where the source does not look"]
        )


def _read(kind: type[Any], options: Mapping[str, Any], where: str) -> Any:
    problems: list[str] = []
    table = read(kind, options, where, problems)
    if problems:
        raise ConfigurationError(problems)
    return table


class _LineReader(Protocol):
    """Yields the lines of one partition."""

    def read(self) -> RawBatch | None: ...
    @property
    def finished(self) -> bool: ...


class _WhereLinesStand(Protocol):
    """Where they stand."""

    def more(self) -> bool: ...
    def mark(self, offset: int) -> str: ...
    def close(self) -> None: ...


class JsonlSource:
    """Reads one chunk of one file a poll, in turn, so that event times stay close to each other."""

    def __init__(self, path: Path | None, options: JsonlOptions = JsonlOptions()) -> None:
        """`path` None is standard input."""
        self._path = path
        self._options = options
        self._lines: dict[str, _LineReader] = {}
        self._places: dict[str, _WhereLinesStand] = {}
        self._log: RotatedLog | None = None
        """The only file, if it may rotate."""
        self._turn: list[str] = []
        self._came: dict[str, Progress | None] = {}
        self._marks: dict[str, tuple[int, str]] = {}
        """By file: an offset, and what stands before it."""
        self._listed = 0.0

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Open the files that are there, each at its offset in the checkpoint."""
        progress = checkpoint.progress if checkpoint else {}
        if self._path is not None and self._rotates(self._path, progress):
            return self._start_log(self._path, progress)
        texts = self._texts()
        for name, text in texts.items():
            self._open(name, text, progress.get(name, Progress(0)))
        self._marks = {name: (each.offset, each.mark) for name, each in progress.items()}
        return progress.keys() - texts.keys()

    def reassigned(self, _: Callable[[], None]) -> Reassignment | None:
        """New files of a followed directory."""
        self._look_for_files()
        came, self._came = self._came, {}
        return Reassignment(came=came) if came else None

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        """The next lines of the first file that has any, which then goes to the end of the queue."""
        batch = self._next(held)
        if batch is None and not self.finished and timeout > 0:
            self._wait(timeout)
            batch = self._next(held)
        return [] if batch is None else [batch]

    def mark(self, partition: str, offset: int) -> str:
        """What stands in a file before an offset; asked of each file with each commit, and read where that moved."""
        if self._log is not None:
            return self._log.mark(offset) if partition == self._log.path.name else ""
        known = self._marks.get(partition)
        place = self._places.get(partition)
        if place is not None and (known is None or known[0] != offset):
            known = self._marks[partition] = (offset, place.mark(offset))
        return "" if known is None else known[1]

    def report(self) -> Report:
        """Of a log that rotates: how often records of it were nowhere."""
        return Report(skipped=self._log.skipped if self._log is not None else 0)

    def partitions(self) -> Sequence[str]:
        """The files that are not read to their end."""
        return [name for name, lines in self._lines.items() if not lines.finished and name not in self._came]

    def waiting(self, partition: str) -> bool:
        """Whether the file has more than what was read of it."""
        lines = self._lines.get(partition)
        return lines is not None and not lines.finished and self._places[partition].more()

    @property
    def finished(self) -> bool:
        """Whether every file is read to its end, and none is followed."""
        following = self._options.follow and self._path is not None
        return not following and all(lines.finished for lines in self._lines.values())

    def close(self) -> None:
        """Close what is open."""
        for place in self._places.values():
            place.close()

    @property
    def _name(self) -> str:
        return "standard input" if self._path is None else str(self._path)

    def _rotates(self, path: Path, progress: Mapping[str, Progress]) -> bool:
        """Whether it is one file that is followed. Between two files of a log there may be none of its name."""
        if not self._options.follow or path.suffix == ".gz":
            return False
        return path.is_file() or (path.name in progress and not path.exists())

    def _start_log(self, path: Path, progress: Mapping[str, Progress]) -> Collection[str]:
        name = path.name
        self._log = RotatedLog(path, self._options.max_record_bytes, CHUNK_BYTES)
        if name in progress:
            self._log.resume(progress[name].offset, progress[name].mark)
        else:
            self._log.start()
        self._lines[name] = self._places[name] = self._log
        self._turn.append(name)
        return progress.keys() - {name}

    def _texts(self) -> dict[str, TextSource]:
        if self._path is None:
            return {STANDARD: StandardInput()}
        if self._path.is_dir():
            files = [
                entry for entry in sorted(self._path.iterdir()) if entry.is_file() and not entry.name.startswith(".")
            ]
        elif self._path.is_file():
            files = [self._path]
        else:
            kind = "such" if not self._path.exists() else "regular"
            raise ConnectorError(f"{self._path}: there is no {kind} file or directory")
        follow = self._options.follow
        return {file.name: GzipText(file) if file.suffix == ".gz" else PlainText(file, follow) for file in files}

    def _open(self, name: str, text: TextSource, progress: Progress) -> None:
        offset = progress.offset
        text.seek(offset)
        if progress.mark and text.mark(offset) not in {"", progress.mark}:
            raise ConnectorError(
                f"{name}: this is not the file that was read up to byte {offset}: other lines stand before it. Give "
                "the file that was read its name back until it is read to its end; to read this one from its "
                "beginning, give it a name of its own in a directory that is read, or write to new results"
            )
        self._lines[name] = Lines(name, text, offset, self._options.max_record_bytes, CHUNK_BYTES)
        self._places[name] = text
        self._turn.append(name)

    def _look_for_files(self) -> None:
        following_directory = self._options.follow and self._path is not None and self._path.is_dir()
        if not following_directory or time.monotonic() - self._listed < LISTING:
            return
        self._listed = time.monotonic()
        for name, text in self._texts().items():
            if name not in self._lines:
                self._open(name, text, Progress(0))
                self._came[name] = None

    def _next(self, held: Collection[str]) -> RawBatch | None:
        for name in self._turn:
            if name not in held and name not in self._came:
                batch = self._lines[name].read()
                if batch is not None:
                    self._turn.remove(name)
                    self._turn.append(name)
                    return batch
        self._turn = [name for name in self._turn if not self._lines[name].finished]
        return None

    def _wait(self, timeout: float) -> None:
        """Standard input says when there is more; files have to be asked again."""
        standard = self._places.get(STANDARD) if self._path is None else None
        if isinstance(standard, StandardInput):
            standard.wait(timeout)
        else:
            time.sleep(timeout)
