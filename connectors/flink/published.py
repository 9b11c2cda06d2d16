"""What a job has published and how far it has come, for a process that only looks on."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType

from connectors.kafka import (
    Fetched,
    Partition,
    PositionLostError,
    SinkSettings,
    SourceSettings,
    warn_where_not_compacted,
)
from monitor.arrays import present
from monitor.ports import PartitionReport, Report

log = logging.getLogger(__name__)

_LOOK_SECONDS = 5.0
"""How often it is asked how far the job has come."""
_COUNT_SECONDS = 60.0
"""How often it is asked whether the topics have more partitions than before."""


@dataclass(frozen=True, slots=True)
class News:
    """What one poll has brought."""

    states: Sequence[bytes] = ()
    """Records of the topic of states, from its beginning."""
    rejected: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Dead letters that have come since this process began, by stream and reason."""


class PublishedTopics:
    """The topics of states and of dead letters, and the offsets that the job commits with its checkpoints."""

    def __init__(self, source: SourceSettings, sink: SinkSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._sink, self._clock = source, sink, clock
        self._states = present(sink.states, "sink.states")
        self._topics = tuple(topic for topic in (self._states, sink.dead_letters) if topic is not None)
        self._looked = self._counted = float("-inf")
        self._report = Report()
        self._letters: dict[Partition, int] = {}
        """The next dead letter of each partition, also across outages; those from before this process do not count."""

    def __enter__(self) -> "PublishedTopics":
        # kafka-python whatever the driver: its position passes the markers that transactions leave behind records.
        from connectors.kafka import cluster, python_driver  # noqa: PLC0415 - slow to import

        connection = self._sink.connection
        with ExitStack() as opening:
            self._reader = python_driver.reader(SourceSettings(connection, self._topics))
            opening.enter_context(closing(self._reader))
            self._job = python_driver.GroupOffsets(connection, self._source.group or "")
            opening.enter_context(closing(self._job))
            warn_where_not_compacted(self._sink, partial(cluster.cleanup, connection))
            if self._sink.dead_letters is None:
                log.warning("no rejected record is counted: `dead_letters` in [sink] names no topic to count them in")
            self._count = partial(cluster.partitions, connection, {*self._topics, *self._source.topics})
            self._assigned: frozenset[Partition] = frozenset()
            self._ends: dict[Partition, int] = {}
            self._take_up()
            self._closing = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def _take_up(self) -> None:
        """Read all partitions that there are now: new ones from their beginning, but dead letters from their end at the
        first time."""
        there = self._count()
        self._counted = self._clock()
        self._events = [Partition(topic, each) for topic in self._source.topics for each in there[topic]]
        every = frozenset(Partition(topic, each) for topic in self._topics for each in there[topic])
        new, self._assigned = every - self._assigned, every
        if not new:
            return
        self._reader.assign(every)
        states = [each for each in new if each.topic == self._states]
        self._ends |= self._reader.latest(states)
        unknown = new.difference(states, self._letters)
        begins = self._reader.earliest(unknown) if self._letters else self._reader.latest(unknown)
        self._letters |= begins
        letters = {each: at for each, at in self._letters.items() if each in new}
        self._reader.seek({**self._reader.earliest(states), **letters})

    def poll(self, timeout: float) -> News:
        """What has come within so many seconds."""
        if self._clock() - self._counted > _COUNT_SECONDS:
            self._take_up()
        if self._clock() - self._looked > _LOOK_SECONDS:
            self._look()
        try:
            fetched = self._reader.poll(timeout)
        except PositionLostError as error:  # the topic of dead letters has dropped what was not read yet
            self._reader.seek(self._reader.earliest(error.positions))
            return News()
        of_states = [each for each in fetched if each.partition.topic == self._states]
        self._letters = {each: self._reader.position(each) or begun for each, begun in self._letters.items()}
        rejected = Counter(
            place for each in fetched if each.partition.topic != self._states for place in _rejected(each)
        )
        return News([record for each in of_states for record in each.records if record is not None], rejected)

    @property
    def caught_up(self) -> bool:
        """Whether all states have come that were there at the start."""
        self._ends = {each: end for each, end in self._ends.items() if (self._reader.position(each) or 0) < end}
        return not self._ends

    def report(self) -> Report:
        """How far the job had come when it was last looked."""
        return self._report

    def _look(self) -> None:
        ends = self._reader.latest(self._events)
        committed = self._job.committed(self._events)
        # Before its first checkpoint a job has read nothing: it begins with the earliest records.
        begun = self._reader.earliest([each for each in self._events if each not in committed])
        read = {**begun, **committed}
        partitions = tuple(_standing(each, offset, ends[each]) for each, offset in sorted(read.items()) if each in ends)
        self._report = replace(self._report, partitions=partitions, fetch_errors=self._reader.errors)
        self._looked = self._clock()


def _standing(partition: Partition, offset: int, end: int) -> PartitionReport:
    lag = max(end - offset, 0)
    return PartitionReport(partition.name, partition.topic, offset, lag, lag)


def _rejected(fetched: Fetched) -> Sequence[tuple[str, str]]:
    """The stream and the reason of each record."""
    said = (dict(headers or ()) for headers in fetched.headers())
    return [
        (each.get("stream", b"").decode(errors="replace"), each.get("reason", b"").decode(errors="replace"))
        for each in said
    ]
