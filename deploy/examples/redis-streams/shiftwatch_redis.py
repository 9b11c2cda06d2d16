"""Redis Streams as a source: `redis://HOST:PORT/DB`, with the streams' keys beside it.

    [source]
    url = "redis://127.0.0.1:6379/0"
    keys = ["scored-events"]            # each is a partition
    field = "event"                     # of an entry: where its JSON stands
    password = "${REDIS_PASSWORD}"

An entry's identifier, milliseconds and a sequence number, is its position: nothing is consumed or acknowledged in
Redis, so that positions are committed with the results and each event counts once. Entries that were trimmed away
before they were read are a gap, which windows say.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import redis

from connectors.protocols import Checkpoint, RawBatch, Reassignment, Report, Source
from monitor.errors import ConfigurationError, ConnectorError, OutageError

AT_ONCE = 10_000
SEQUENCE_BITS = 21
"""An identifier as one number: its milliseconds, and a sequence number of up to two million in each."""
OPTIONS = {"keys", "field", "username", "password", "follow"}


def source(rest: str, options: Mapping[str, Any], base: Path) -> Source:  # noqa: ARG001 - no file is named
    """What a URL and its options name. Nothing is connected yet."""
    keys, unknown = options.get("keys"), sorted(options.keys() - OPTIONS)
    problems = [f"source.{name}: there is no such setting" for name in unknown]
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):
        problems.append('source.keys: want a list of streams, such as ["scored-events"]')
    if problems:
        raise ConfigurationError(problems)
    login = {name: options[name] for name in ("username", "password") if name in options}
    try:
        client = redis.Redis.from_url(f"redis:{rest}", **login)
    except ValueError as error:
        raise ConfigurationError([f"source.url: {error}"]) from None
    return RedisStreams(client, keys, options.get("field", "event"), follow=options.get("follow", True))


class RedisStreams:
    """Reads some entries of every stream a poll."""

    def __init__(self, client: redis.Redis, keys: Sequence[str], field: str, *, follow: bool = True) -> None:
        self._client = client
        self._keys = keys
        self._field = field.encode()
        self._follow = follow
        self._next = dict.fromkeys(keys, 0)
        self._ends = dict.fromkeys(keys, 0)
        """Of what is not followed: where it ended at the start."""
        self._skipped = 0

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Go to where the checkpoint stands."""
        progress = checkpoint.progress if checkpoint else {}
        self._next |= {key: progress[key].offset for key in self._keys if key in progress}
        for key in self._keys:
            newest = self._asked(self._client.xrevrange, key, count=1)
            self._ends[key] = number(newest[0][0]) + 1 if newest else 0
        return progress.keys() - set(self._keys)

    def reassigned(self, _: Callable[[], None]) -> Reassignment | None:
        return None

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        keys = [key for key in self.partitions() if key not in held]
        gaps = list(self._gaps(keys))
        wanted = {key: before(self._next[key]) for key in keys}
        if not wanted:
            return gaps
        # Redis waits for ever if it is told to wait for zero milliseconds.
        block = max(1, int(timeout * 1_000)) if self._follow and timeout > 0 and not gaps else None
        found = self._asked(self._client.xread, wanted, count=AT_ONCE, block=block)
        return [*gaps, *(self._batch(key.decode(), entries) for key, entries in found or ())]

    def report(self) -> Report:
        return Report(skipped=self._skipped)

    def partitions(self) -> Sequence[str]:
        return [key for key in self._keys if self._follow or self._next[key] < self._ends[key]]

    def waiting(self, partition: str) -> bool:
        if partition not in self.partitions():
            return False
        return bool(self._asked(self._client.xrange, partition, identifier(self._next[partition]), "+", count=1))

    @property
    def finished(self) -> bool:
        return not self.partitions()

    def close(self) -> None:
        self._client.close()

    def _batch(self, key: str, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> RawBatch:
        if not self._follow:
            entries = [entry for entry in entries if number(entry[0]) < self._ends[key]]
        offsets = np.array([number(entry) for entry, _ in entries], np.int64)
        self._next[key] = int(offsets[-1]) + 1
        # A record without the field is one without a value: it is rejected by that name.
        records = [fields.get(self._field) for _, fields in entries]
        return RawBatch(key, records, offsets, self._next[key], (offsets >> SEQUENCE_BITS) * 1_000)

    def _gaps(self, keys: Collection[str]) -> Iterator[RawBatch]:
        """Streams that were trimmed beyond what was read: where the entry is gone that was read last, and there are
        newer ones, some of these may be gone, too."""
        for key in keys:
            at = self._next[key]
            if not at or self._asked(self._client.xrange, key, before(at), identifier(at), count=1):
                continue
            told = self._asked(self._client.xinfo_stream, key) if self._asked(self._client.exists, key) else None
            if told and number(told["last-generated-id"]) >= at:
                first = told["first-entry"]
                self._next[key] = number(first[0]) if first else number(told["last-generated-id"]) + 1
                self._skipped += 1
                yield RawBatch(key, [], np.empty(0, np.int64), self._next[key], skipped=1)

    def _asked(self, ask: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return ask(*arguments, **options)
        except (redis.ConnectionError, redis.TimeoutError) as error:
            raise OutageError(f"Redis does not answer: {error}") from error
        except redis.RedisError as error:
            raise ConnectorError(f"Redis: {error}") from error


def number(entry: bytes) -> int:
    """The position of an entry."""
    milliseconds, _, sequence = entry.partition(b"-")
    if int(sequence) >> SEQUENCE_BITS:
        raise ConnectorError(f"entry {entry.decode()}: more than {1 << SEQUENCE_BITS} entries in a millisecond")
    return int(milliseconds) << SEQUENCE_BITS | int(sequence)


def identifier(position: int) -> bytes:
    """The entry at a position."""
    return b"%d-%d" % (position >> SEQUENCE_BITS, position & (1 << SEQUENCE_BITS) - 1)


def before(position: int) -> bytes:
    """What stands right before a position: reading goes on after it."""
    return identifier(max(position - 1, 0))
