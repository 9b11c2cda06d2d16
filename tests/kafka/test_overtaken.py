"""Records that are deleted before they are read, in one partition, while another one brings records."""

import time

import pytest

from connectors.kafka import source_settings
from connectors.kafka.driver import Partition, PositionLostError, Reader
from connectors.kafka.fast_driver import FastReader
from connectors.kafka.python_driver import PythonReader
from tests.kafka.mock import MockCluster
from tests.kafka.topics import mock_broker, unique


@pytest.mark.parametrize("driver", [PythonReader, FastReader])
def test_a_partition_that_lost_its_place_costs_no_record_of_another(
    mock_cluster: MockCluster, driver: type[PythonReader] | type[FastReader]
) -> None:
    broker, topic = mock_broker(mock_cluster), unique("overtaken")
    broker.create(topic, partitions=2)
    broker.produce(topic, {0: [b"{}"] * 100, 1: [b"{}"] * 5_000})
    mock_cluster.delete_records(topic, 0, 50)
    reader = driver(source_settings({**broker.options, "bootstrap": broker.bootstrap, "topics": topic}))
    overtaken, other = Partition(topic, 0), Partition(topic, 1)
    reader.assign([overtaken, other])
    reader.seek({overtaken: 10, other: 0})
    try:
        found, lost = read(reader)
        assert found == {overtaken: list(range(50, 100)), other: list(range(5_000))}
        assert lost == [{overtaken: 10}]
    finally:
        reader.close()


def read(reader: Reader) -> tuple[dict[Partition, list[int]], list[dict[Partition, int]]]:
    """The offsets of all records, and which partitions were lost; there reading goes on at 50."""
    found: dict[Partition, list[int]] = {}
    lost: list[dict[Partition, int]] = []
    deadline = time.monotonic() + 60
    while sum(map(len, found.values())) < 5_050 and time.monotonic() < deadline:
        try:
            for fetched in reader.poll(0.5):
                found.setdefault(fetched.partition, []).extend(fetched.offsets.tolist())
        except PositionLostError as error:
            lost.append(error.positions)
            reader.seek(dict.fromkeys(error.positions, 50))
    return found, lost
