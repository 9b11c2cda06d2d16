"""What a process that only looks on at a job does when no broker answers."""

import time
from contextlib import closing

import pytest

from connectors.flink.published import PublishedTopics
from connectors.kafka import SinkSettings, SourceSettings
from connectors.kafka.settings import Connection
from monitor.errors import OutageError
from tests.kafka.mock import MockCluster
from tests.kafka.topics import Broker


def test_a_job_without_a_checkpoint_lags_by_all_that_there_is() -> None:
    with closing(MockCluster()) as cluster:
        for topic in ("events", "states"):
            cluster.create_topic(topic)
        Broker(cluster).produce("events", {0: [b"{}"] * 7})
        connection = Connection((cluster.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        with PublishedTopics(source, SinkSettings(connection, results="results", states="states")) as published:
            published.poll(0.1)
            (only,) = published.report().partitions
        assert (only.position, only.lag) == (0, 7)


def test_dead_letters_that_came_in_an_outage_are_counted_after_it() -> None:
    with closing(MockCluster()) as cluster:
        for topic in ("events", "states", "dead"):
            cluster.create_topic(topic)
        broker = Broker(cluster)
        broker.produce("dead", {0: [b"{}"] * 3})  # before this process
        connection = Connection((cluster.bootstrap,), broker_version="2.1")
        sink = SinkSettings(connection, results="results", states="states", dead_letters="dead")
        published = PublishedTopics(SourceSettings(connection, ("events",), group="job"), sink)

        def rejected() -> int:
            return sum(sum(published.poll(0.2).rejected.values()) for _ in range(5))

        with published:
            broker.produce("dead", {0: [b"{}"]})
            assert rejected() == 1
        broker.produce("dead", {0: [b"{}"] * 2})
        with published:
            assert rejected() == 2


@pytest.mark.chaos
def test_an_outage_is_told_and_not_waited_out() -> None:
    with closing(MockCluster()) as cluster:
        for topic in ("events", "states"):
            cluster.create_topic(topic)
        connection = Connection((cluster.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        sink = SinkSettings(connection, results="results", states="states")
        now = iter(range(0, 10_000, 100))
        with PublishedTopics(source, sink, lambda: next(now)) as published:
            published.poll(0.1)
            cluster.broker_down(1)
            began = time.monotonic()
            with pytest.raises(OutageError):
                published.poll(0.1)
            assert time.monotonic() - began < 120
