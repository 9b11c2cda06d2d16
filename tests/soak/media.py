"""What a soak runs on: files that rotate, and Apache Kafka whose broker dies and comes back."""

import json
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read

PARTITIONS = 4
OUTPUTS = ("results", "recalibrations", "alarms", "dead")


@dataclass
class Tally:
    """What was published of windows and outcomes so far, in little memory."""

    digests: dict[str, bytes] = field(default_factory=dict)
    """By schema and window."""
    used: dict[str, int] = field(default_factory=dict)
    """How many events each window held, segments apart."""
    twice: list[str] = field(default_factory=list)
    references: set[str] = field(default_factory=set)

    def add(self, value: bytes) -> None:
        message = json.loads(value)
        key = f"{message['schema']} {message['window']}"
        if key in self.digests:
            self.twice.append(key)
        self.digests[key] = blake2b(value, digest_size=16).digest()
        if message["schema"] == "shiftwatch.window.v1":
            self.references.add(message["versions"]["reference"])
            if not message["segment"]:
                self.used[message["window"]] = message["events"]["used"]


class Medium(Protocol):
    """Where events go, and results come from."""

    name: str

    def send(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Give records to the services, each with the number of its stream."""
        ...

    def tables(self, service: str) -> str:
        """[source] and [sink] of a service."""
        ...

    def look(self, service: str) -> Tally:
        """What a service has published since it began."""
        ...

    def other_outputs(self, service: str) -> Mapping[str, list[bytes]]:
        """By name, in an order of their own: what was published beside results."""
        ...

    def close(self) -> None: ...


class OnFiles:
    """A log that rotates: what is full becomes `events.jsonl.1`, what was that becomes `events.jsonl.2`, and so on."""

    name = "files"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "events.jsonl"
        self._tallies, self._read = dict[str, Tally](), dict[str, int]()
        self._path.touch()

    def rotate(self) -> None:
        """The next records go to a new file."""
        for number in range(len([*self.folder.glob("events.jsonl.*")]), 0, -1):
            self._path.with_suffix(f".jsonl.{number}").rename(self._path.with_suffix(f".jsonl.{number + 1}"))
        self._path.rename(self._path.with_suffix(".jsonl.1"))
        self._path.touch()

    def send(self, records: Iterable[tuple[int, bytes]]) -> None:
        with self._path.open("ab") as file:
            file.write(b"".join(record + b"\n" for _, record in records))

    def tables(self, service: str) -> str:
        return f"""
[source]
url = "jsonl:events.jsonl"
follow = true

[sink]
url = "jsonl:{service}-results.jsonl"
recalibrations = "{service}-recalibrations.jsonl"
alarms = "{service}-alarms.jsonl"
dead_letters = "{service}-dead.jsonl"

[pace]
idle = "0s"
"""

    def look(self, service: str) -> Tally:
        """What is committed: the next start cuts off whatever lies behind it."""
        tally, name = self._tallies.setdefault(service, Tally()), f"{service}-results.jsonl"
        checkpoint = self.folder / f"{name}.checkpoint"
        if checkpoint.exists():
            committed, read = json.loads(checkpoint.read_bytes())["lengths"][name], self._read.get(service, 0)
            with (self.folder / name).open("rb") as file:
                file.seek(read)
                for line in file.read(committed - read).splitlines():
                    tally.add(line)
            self._read[service] = committed
        return tally

    def other_outputs(self, service: str) -> Mapping[str, list[bytes]]:
        paths = {output: self.folder / f"{service}-{output}.jsonl" for output in OUTPUTS[1:]}
        return {output: sorted(path.read_bytes().splitlines()) for output, path in paths.items() if path.exists()}

    def close(self) -> None:
        """Nothing stays open."""


class OnKafka:
    """Streams shared out over partitions, results in topics of each service."""

    name = "kafka"

    def __init__(self, folder: Path, drivers: Mapping[str, str]) -> None:
        """`drivers`: the driver of each service."""
        self._drivers = drivers
        self.cluster = Cluster(folder / "broker")
        broker = Broker(self.cluster)
        # Compaction and segments that roll belong to years.
        compacted = {"cleanup_policy": "compact", "segment_ms": "60000", "min_cleanable_dirty_ratio": "0.1"}
        broker.create("events", partitions=PARTITIONS, segment_bytes="33554432")
        for service in drivers:
            broker.create(*(f"{service}-{output}" for output in OUTPUTS))
            broker.create(f"{service}-states", **compacted)
        # An outage of any length is lived through by the producer, too.
        self._producer = Producer(
            {
                "bootstrap.servers": self.cluster.bootstrap,
                "linger.ms": 50,
                "log_level": 0,
                "enable.idempotence": True,
                "message.timeout.ms": 2_000_000,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        self._tallies = {service: Tally() for service in drivers}
        self._readers = {service: self._reader(f"{service}-results") for service in drivers}

    def outage(self, seconds: float) -> None:
        """The broker dies, and comes back later."""
        self.cluster.brokers[0].stop(signal.SIGKILL)
        time.sleep(seconds)
        self.cluster.brokers[0].start()

    def send(self, records: Iterable[tuple[int, bytes]]) -> None:
        for stream, record in records:
            self._producer.produce("events", value=record, partition=stream % PARTITIONS)
        self._producer.poll(0)

    def tables(self, service: str) -> str:
        driver = self._drivers[service]
        address = f"kafka://{self.cluster.bootstrap}"
        return f"""
[source]
url = "{address}/events"
group = "{service}"
partitions = {[*range(PARTITIONS)]}
driver = "{driver}"

[sink]
url = "{address}/{service}-results"
driver = "{driver}"
states = "{service}-states"
recalibrations = "{service}-recalibrations"
alarms = "{service}-alarms"
dead_letters = "{service}-dead"
transaction_timeout = "10s"

[pace]
commit = "1s"
idle = "0s"
"""

    def look(self, service: str) -> Tally:
        tally = self._tallies[service]
        while messages := self._readers[service].consume(1_000, 0.2):
            for message in messages:
                value = message.value()
                if message.error() is None and value is not None:
                    tally.add(value if isinstance(value, bytes) else value.encode())
        return tally

    def other_outputs(self, service: str) -> Mapping[str, list[bytes]]:
        topics = {output: read(self.cluster.bootstrap, f"{service}-{output}") for output in OUTPUTS[1:]}
        return {output: sorted(record.value or b"" for record in records) for output, records in topics.items()}

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self.cluster.close()

    def _reader(self, topic: str) -> Consumer:
        settings = {"bootstrap.servers": self.cluster.bootstrap, "group.id": "looker", "log_level": 0}
        consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        return consumer
