"""A source that is posted to, for those who have no broker: `http://127.0.0.1:8090/events`.

NDJSON, JSON objects and arrays, and CloudEvents in all three modes. A post is answered with 200 once its events are
durable in a log beside the configuration (`log`); from there on they are read like any file. Positions are those of the
log, which is its one partition. It keeps what open windows need, and takes no more than `max_log_bytes`.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from connectors.http.door import Door
from connectors.http.log import EventLog, LogFrame
from connectors.lines import TextRecords
from monitor.errors import ConfigurationError
from monitor.limits import RECORD_BYTES
from monitor.ports import Checkpoint, Intake, RawBatch, Reassignment, Report, Source
from monitor.ports.access import Access, of_this_machine
from monitor.ports.certificates import Certificate
from monitor.ports.listening import Address, HttpListener
from monitor.ports.options import read

PARTITION = "posted"
CHUNK_BYTES = 2 << 20
"""Read at once from the log, as from files."""
TOGETHER_S = 0.05
"""What comes within so many seconds is read at once: a turn of the loop for each small post would cost more than the
post, and keep Python's lock from the thread that answers it."""
_LINE_FEED = 10


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What can be said about a source beside its URL."""

    log: Path = Path("posted")
    """The folder of the log."""
    max_log_bytes: int = 4 << 30
    """It has to hold the events of all open windows. What is posted beyond it is refused with 429."""
    token: str = field(default="", repr=False)
    """What senders have to show; best from outside, as "${file:/run/secrets/token}"."""
    anyone: bool = False
    """Take posts of other machines without a token: where senders have none, and a network policy says who they are."""
    certificate: Path | None = None
    key: Path | None = None
    """TLS, in PEM."""
    hosts: tuple[str, ...] = ()
    """Further names under which senders of this machine reach it, where it asks for no token."""
    max_body_bytes: int = 8 << 20
    max_record_bytes: int = RECORD_BYTES
    """Of a longer line only the beginning is kept in mind, and rejected as too large."""
    max_connections: int = 100

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.max_log_bytes < 4 * self.max_body_bytes or self.max_body_bytes < 1:
            yield "want `max_log_bytes` of at least four times `max_body_bytes`"
        if (self.certificate is None) != (self.key is None):
            yield "want `certificate` and `key` together"
        if min(self.max_record_bytes, self.max_connections) < 1:
            yield "want `max_record_bytes` and `max_connections` of at least 1"


def source(rest: str, options: Mapping[str, Any], base: Path) -> Source:
    """What listens at a URL, once it is started."""
    problems: list[str] = []
    said = read(HttpOptions, options, "source", problems)
    parts = urlsplit(f"http:{rest}")
    port = None
    try:
        port = parts.port
    except ValueError:
        problems.append(f"source.url: want a port from 0 to 65535, got {rest!r}")
    if not parts.hostname or parts.query or parts.username:
        problems.append(f'source.url: want a place to listen at, as "http://127.0.0.1:8090/events", got {rest!r}')
    elif said is not None and not (said.token or said.anyone or of_this_machine(parts.hostname)):
        problems.append(f"source: want a `token`, or `anyone = true`: {parts.hostname} is reached from other machines")
    if said is None or problems:
        raise ConfigurationError(problems)
    said = replace(
        said,
        log=base / said.log,
        certificate=None if said.certificate is None else base / said.certificate,
        key=None if said.key is None else base / said.key,
    )
    address = Address(parts.hostname or "", 80 if port is None else port, said.certificate, said.key)
    return HttpSource(address, parts.path, said)


class HttpSource:
    """Reads the log that a server beside it writes."""

    def __init__(self, address: Address, path: str, options: HttpOptions) -> None:
        self._address = address
        self._path = path
        self._options = options
        self._log = EventLog(options.log, options.max_log_bytes)
        self._door: Door | None = None
        self._open = ExitStack()
        self._position = 0
        self._least = 0
        """Records before it were read before this process began."""
        self._committed = 0
        self._expires: float | None = None
        """When the certificate does that connections are made with."""
        self.url = ""
        """Where it listens, once it does."""

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Open the log where it was read up to, and the door."""
        progress = checkpoint.progress if checkpoint else {}
        at = progress[PARTITION].offset if PARTITION in progress else None
        self._open.callback(self._log.close)
        self._least = self._committed = self._log.open(at)
        self._position = self._log.frame_of(self._least)
        options = self._options
        access = Access.of(options.token, self._address.host, options.hosts)
        self._door = Door(self._path, access, self._log, options.max_body_bytes)
        listener = HttpListener(self._address, options.max_connections)
        self.url = self._open.enter_context(listener.listening(self._door, "source")) + self._path
        if options.certificate is not None:
            self._expires = Certificate(options.certificate, options.key).expires()
        return progress.keys() - {PARTITION}

    def reassigned(self, _: Callable[[], None]) -> Reassignment | None:
        """There is one log, and it stays."""
        return None

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        """The next records of the log."""
        # Whoever polls again has committed what was marked; waiting for the next mark, a full log would stay full.
        self._log.forget(self._committed)
        if self._log.lost:
            self._log.lost = False
            return [RawBatch(PARTITION, [], np.empty(0, np.int64), self._position, skipped=1)]
        if PARTITION in held:
            self._log.wait(self._log.end, timeout)
            return []
        if timeout > 0:
            self._log.wait(self._position, timeout)
            if self.waiting(PARTITION) and self._log.end - self._position < CHUNK_BYTES:
                time.sleep(min(TOGETHER_S, timeout))
        if not self.waiting(PARTITION):
            return []
        frames, self._position = self._log.read(self._position, CHUNK_BYTES)
        return [self._batch(frames)]

    def mark(self, partition: str, offset: int) -> str:  # noqa: ARG002 - there is one
        """Nothing is needed to know the log again; what is before the offset is needed no more once it is committed."""
        self._committed = max(offset, self._committed)
        return ""

    def report(self) -> Report:
        """What became of posts, and how full the log is."""
        posts = {} if self._door is None else self._door.answered()
        intake = Intake(posts, self._log.size, self._options.max_log_bytes)
        return Report(intake=intake, certificate_expires=self._expires)

    def partitions(self) -> Sequence[str]:
        """The log."""
        return [PARTITION]

    def waiting(self, partition: str) -> bool:
        """Whether something was posted that was not read."""
        return partition == PARTITION and self._position < self._log.end

    @property
    def finished(self) -> bool:
        """Somebody may always post more."""
        return False

    def close(self) -> None:
        """Answer nobody any more, and let go of the log."""
        self._open.close()

    def _batch(self, frames: Sequence[LogFrame]) -> RawBatch:
        text = b"".join(frame.lines for frame in frames)
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED)
        starts = np.concatenate([[0], ends[:-1] + 1])
        firsts = np.array([0, *accumulate(len(frame.lines) for frame in frames[:-1])])
        ahead = np.array([frame.position for frame in frames]) - firsts
        offsets = starts + ahead[np.searchsorted(firsts, starts, side="right") - 1]
        records = TextRecords(text, starts, ends, self._options.max_record_bytes)
        wanted = ~records.blank & (offsets >= self._least)
        return RawBatch(PARTITION, records.only(wanted), offsets[wanted], self._position)
