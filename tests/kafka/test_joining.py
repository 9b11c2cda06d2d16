"""Joining a group on Apache Kafka in a hurry: the service polls for moments only while windows are being assessed."""

import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from connectors.kafka import source_settings
from connectors.kafka.driver import Partition
from connectors.kafka.python_driver import PythonReader
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, unique
from tests.processes import wait_until


@pytest.fixture
def broker(apache_kafka: Cluster) -> Broker:
    return Broker(apache_kafka)


@pytest.mark.parametrize("seconds", [0.0, 0.002])
def test_a_member_that_polls_for_moments_joins_and_stays(broker: Broker, seconds: float) -> None:
    topic = filled(broker)
    reader = joined(broker, topic)
    try:
        poll_until(reader, seconds, lambda: reader.membership() is not None)
        generation, later = reader.membership(), time.monotonic() + 1
        poll_until(reader, seconds, lambda: time.monotonic() > later)
        assert reader.membership() == generation, "no second join, which moments would cut off"
    finally:
        reader.close()


def test_members_that_are_busy_between_short_polls_come_to_rest_with_each_other(broker: Broker) -> None:
    topic = filled(broker)
    group, over = unique("g"), threading.Event()
    readers = [joined(broker, topic, group) for _ in range(3)]

    def go_on(reader: PythonReader) -> None:
        while not over.wait(0.2):
            poll(reader, 0.002)

    members = [threading.Thread(target=go_on, args=[reader]) for reader in readers]
    for member in members:
        member.start()
    try:
        at_rest_since, before, deadline = time.monotonic(), (), time.monotonic() + 90
        while time.monotonic() < at_rest_since + 3:
            now = tuple(reader.membership() for reader in readers)
            if None in now or now != before:
                at_rest_since, before = time.monotonic(), now
            assert time.monotonic() < deadline, f"they join again and again: {now}"
            time.sleep(0.02)
    finally:
        over.set()
        for member, reader in zip(members, readers, strict=True):
            member.join()
            reader.close()


@pytest.mark.parametrize("records", [0, 100_000])
def test_partitions_that_are_added_while_polls_are_short_are_read(broker: Broker, records: int) -> None:
    topic = filled(broker, records)
    reader = joined(broker, topic)
    try:
        poll_until(reader, 0.0, lambda: reader.membership() is not None)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
        # Asked for the end of a partition that it does not know, the client looks at the topic at once.
        added = frozenset({Partition(topic, 1), Partition(topic, 2)})
        wait_until(lambda: reader.latest(added).keys() == added, "the client sees three partitions")
        poll_until(reader, 0.0, lambda: reader.membership() is not None and all(map(is_assigned(reader), added)))
    finally:
        reader.close()


def filled(broker: Broker, records: int = 100_000) -> str:
    """A topic that always has more to read, or nothing."""
    topic = unique("hurry")
    broker.create(topic)
    broker.produce(topic, {0: [b"{}"] * records})
    return topic


def joined(broker: Broker, topic: str, group: str = "") -> PythonReader:
    options = {"bootstrap": broker.bootstrap, "topics": topic, "group": group or unique("g"), "poll_records": 50}
    reader = PythonReader(source_settings(options | {"assignment_timeout": "4s"}))
    reader.subscribe([topic])
    return reader


def is_assigned(reader: PythonReader) -> Callable[[Partition], bool]:
    return lambda partition: reader.position(partition) is not None


def poll_until(reader: PythonReader, seconds: float, reached: Callable[[], bool]) -> None:
    """In a hurry: no pause but the polls' own."""
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline, f"not reached, as a member: {reader.membership()}"
        poll(reader, seconds)


def poll(reader: PythonReader, seconds: float) -> None:
    """Once, beginning at the beginning of what is assigned."""
    reader.poll(seconds)
    for change in reader.changes():
        if change.kind == "assigned":
            reader.seek(dict.fromkeys(change.partitions, 0))
