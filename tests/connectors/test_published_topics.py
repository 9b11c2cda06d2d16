"""What a process that only looks on at a job does when no broker answers."""

import time
from contextlib import closing

import pytest

from connectors.flink.published import PublishedTopics
from connectors.kafka import SinkSettings, SourceSettings, python_driver
from connectors.kafka.driver import CommittedOffset, Partition
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


def test_the_offsets_of_many_partitions_are_asked_for_in_one_request() -> None:
    count, milliseconds = 100, 100
    with closing(MockCluster()) as cluster:
        cluster.create_topic("states")
        cluster.create_topic("events", count)
        Broker(cluster).produce("events", {number: [b"{}"] * 7 for number in range(count)})
        connection = Connection((cluster.bootstrap,), broker_version="2.1")
        with closing(python_driver.group_reader(connection, "job")) as job:
            job.commit({Partition("events", number): CommittedOffset(number % 8, "") for number in range(1, count)})
        source = SourceSettings(connection, ("events",), group="job")
        with PublishedTopics(source, SinkSettings(connection, results="results", states="states")) as published:
            cluster.answer_after(1, milliseconds)
            began = time.monotonic()
            published.poll(0.1)
            assert time.monotonic() - began < count * milliseconds / 1_000 / 2
            standing = {each.partition: each.lag for each in published.report().partitions}
        assert standing == {f"events-{number}": 7 - min(number % 8, 7) for number in range(count)}


def test_without_dead_letters_it_is_said_that_no_rejected_record_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    with closing(MockCluster()) as cluster:
        for topic in ("events", "states", "dead"):
            cluster.create_topic(topic)
        connection = Connection((cluster.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        for dead_letters in ("dead", None):
            caplog.clear()
            with PublishedTopics(
                source, SinkSettings(connection, results="results", states="states", dead_letters=dead_letters)
            ):
                assert ("no rejected record is counted" in caplog.text) == (dead_letters is None)


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
