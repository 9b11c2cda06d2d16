"""Partitions that are held back in the middle of what was fetched of them, and read on afterwards."""

import time
from collections.abc import Collection

import pytest

from connectors.kafka import KafkaSource, open_source, source_settings
from tests.connectors.harness import nothing
from tests.kafka.mock import MockCluster
from tests.kafka.topics import mock_broker, unique

RECORDS = 40


@pytest.mark.parametrize("driver", ["python", "fast"])
def test_a_partition_that_was_held_back_is_read_to_its_end_when_the_others_have_ended(
    mock_cluster: MockCluster, driver: str
) -> None:
    broker, topic = mock_broker(mock_cluster), unique("held")
    broker.create(topic, partitions=3)
    broker.produce(topic, {number: [b"%d" % each for each in range(RECORDS)] for number in range(3)})
    options = {"bootstrap": broker.bootstrap, "broker_version": "2.1", "poll_records": 7}
    source = open_source(source_settings(options | {"topics": topic, "driver": driver}))
    source.start(None)
    source.reassigned(nothing)
    read = dict.fromkeys(source.partitions(), 0)
    try:
        read_on(source, read, 1)
        while min(read.values()) < RECORDS:
            slowest = min(read, key=lambda name: read[name])
            before = source.waiting(slowest), dict(read)
            read_on(source, read, 1, held={name for name in read if read[name] > read[slowest]})
            assert before[0], "what waits is said to wait"
            assert all(read[name] == count for name, count in before[1].items() if count > before[1][slowest])
        assert set(read.values()) == {RECORDS}
    finally:
        source.close()


def read_on(source: KafkaSource, read: dict[str, int], least: int, held: Collection[str] = ()) -> None:
    """At least so many records more, each partition's in order and none twice."""
    deadline, came = time.monotonic() + 60, 0
    while came < least:
        assert time.monotonic() < deadline, f"nothing comes any more: {read}, held {held}"
        for batch in source.poll(0.1, held):
            assert [int(each or b"") for each in batch.records] == list(range(read[batch.partition], batch.next_offset))
            read[batch.partition] = batch.next_offset
            came += len(batch.records)
