"""What a job has published and how far it has come, for a process that only looks on."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from types import TracebackType

from connectors.kafka import SinkSettings, SourceSettings
from connectors.kafka.driver import Fetched, Partition, PositionLostError, Reader
from monitor.arrays import present
from monitor.ports import PartitionReport, Report

_LOOK_SECONDS = 5.0
"""How often it is asked how far the job has come."""


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
        self._looked = float("-inf")
        self._report = Report()
        self._letters: dict[Partition, int] = {}
        """The next dead letter of each partition, also across outages; those from before this process do not count."""

    def __enter__(self) -> "PublishedTopics":
        connection, dead_letters = self._sink.connection, self._sink.dead_letters
        states = present(self._sink.states, "sink.states")
        # kafka-python whatever the driver: its position passes the markers that transactions leave behind records.
        from connectors.kafka import python_driver  # noqa: PLC0415 - slow to import

        topics = [topic for topic in (states, dead_letters) if topic is not None]
        with ExitStack() as opening:
            self._reader = self._opened(opening, python_driver.reader(SourceSettings(connection, tuple(topics))))
            self._job = self._opened(opening, python_driver.group_reader(connection, self._source.group or ""))
            every = [Partition(topic, number) for topic in topics for number in self._reader.partitions(topic)]
            self._ends = {each: end for each, end in self._reader.latest(every).items() if each.topic == states}
            self._reader.assign(every)
            self._reader.seek(self._reader.earliest(self._ends))
            self._letters = dict(self._reader.latest([each for each in every if each.topic != states])) | self._letters
            self._reader.seek(self._letters)
            self._events = [
                Partition(topic, number) for topic in self._source.topics for number in self._job.partitions(topic)
            ]
            self._closing = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    @staticmethod
    def _opened(opening: ExitStack, reader: Reader) -> Reader:
        return opening.enter_context(closing(reader))

    def poll(self, timeout: float) -> News:
        """What has come within so many seconds."""
        if self._clock() - self._looked > _LOOK_SECONDS:
            self._look()
        try:
            fetched = self._reader.poll(timeout)
        except PositionLostError as error:  # the topic of dead letters has dropped what was not read yet
            self._reader.seek(self._reader.earliest(error.positions))
            return News()
        of_states = [each for each in fetched if each.partition.topic == self._sink.states]
        self._letters = {each: self._reader.position(each) or begun for each, begun in self._letters.items()}
        rejected = Counter(
            place for each in fetched if each.partition.topic != self._sink.states for place in _rejected(each)
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
        # First what gives up after a while: kafka-python waits for committed offsets for ever where no broker answers.
        ends = self._job.latest(self._events)
        committed = self._job.committed(self._events)
        # Before its first checkpoint a job has read nothing: it begins with the earliest records.
        begun = self._job.earliest([each for each in self._events if each not in committed])
        read = dict(begun) | {each: offset for each, (offset, _) in committed.items()}
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
