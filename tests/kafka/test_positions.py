"""Where reading stands in a partition can be asked while another one has just come and was not sought yet."""

import time

import pytest

from connectors.kafka import source_settings
from connectors.kafka.driver import Partition
from connectors.kafka.fast_driver import FastReader
from connectors.kafka.python_driver import PythonReader
from tests.kafka.mock import MockCluster
from tests.kafka.topics import mock_broker, unique


@pytest.mark.parametrize("driver", [PythonReader, FastReader])
def test_a_partition_that_came_without_a_commit_ends_nobody_who_asks_for_another(
    mock_cluster: MockCluster, driver: type[PythonReader] | type[FastReader]
) -> None:
    broker, topic = mock_broker(mock_cluster), unique("positions")
    broker.create(topic, partitions=2)
    broker.produce(topic, {0: [b"{}"] * 10, 1: [b"{}"] * 10})
    group = unique("group")
    options = {**broker.options, "bootstrap": broker.bootstrap, "topics": topic, "group": group}
    reader = driver(source_settings(options))
    known, new = Partition(topic, 0), Partition(topic, 1)
    reader.assign([known, new])
    reader.seek({known: 3})
    try:
        for _ in range(20):  # the client learns by and by that the other one has no commit
            assert reader.position(known) in {3, None}
            assert reader.position(new) is None
            time.sleep(0.05)
        reader.seek({new: 5})
        assert (reader.position(known), reader.position(new)) == (3, 5)
    finally:
        reader.close()
