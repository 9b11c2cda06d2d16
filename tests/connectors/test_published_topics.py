"""What a process that only looks on at a job does when no broker answers."""

import time
from collections.abc import Collection, Mapping
from contextlib import closing

import pytest

from connectors.flink.published import PublishedTopics
from connectors.kafka import SinkSettings, SourceSettings, cluster, python_driver
from connectors.kafka.driver import CommittedOffset, Partition
from connectors.kafka.settings import Connection
from monitor.errors import OutageError
from tests.kafka.mock import MockCluster
from tests.kafka.topics import Broker


def test_a_job_without_a_checkpoint_lags_by_all_that_there_is() -> None:
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states"):
            brokers.create_topic(topic)
        Broker(brokers).produce("events", {0: [b"{}"] * 7})
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        with PublishedTopics(source, SinkSettings(connection, results="results", states="states")) as published:
            published.poll(0.1)
            (only,) = published.report().partitions
        assert (only.position, only.lag) == (0, 7)


def test_the_offsets_of_many_partitions_are_asked_for_in_one_request() -> None:
    count, milliseconds = 100, 100
    with closing(MockCluster()) as brokers:
        brokers.create_topic("states")
        brokers.create_topic("events", count)
        Broker(brokers).produce("events", {number: [b"{}"] * 7 for number in range(count)})
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
        with closing(python_driver.group_reader(connection, "job")) as job:
            job.commit({Partition("events", number): CommittedOffset(number % 8, "") for number in range(1, count)})
        source = SourceSettings(connection, ("events",), group="job")
        with PublishedTopics(source, SinkSettings(connection, results="results", states="states")) as published:
            brokers.answer_after(1, milliseconds)
            began = time.monotonic()
            published.poll(0.1)
            assert time.monotonic() - began < count * milliseconds / 1_000 / 2
            standing = {each.partition: each.lag for each in published.report().partitions}
        assert standing == {f"events-{number}": 7 - min(number % 8, 7) for number in range(count)}


def test_without_dead_letters_it_is_said_that_no_rejected_record_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states", "dead"):
            brokers.create_topic(topic)
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        for dead_letters in ("dead", None):
            caplog.clear()
            with PublishedTopics(
                source, SinkSettings(connection, results="results", states="states", dead_letters=dead_letters)
            ):
                assert ("no rejected record is counted" in caplog.text) == (dead_letters is None)


def test_dead_letters_that_came_in_an_outage_are_counted_after_it() -> None:
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states", "dead"):
            brokers.create_topic(topic)
        broker = Broker(brokers)
        broker.produce("dead", {0: [b"{}"] * 3})  # before this process
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
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


def test_partitions_that_are_added_are_read_from_their_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers have two of each topic all the time, and tell of the second one later."""
    shown, asked = 1, cluster.partitions

    def partitions(connection: Connection, topics: Collection[str]) -> Mapping[str, frozenset[int]]:
        return {topic: frozenset(range(shown)) for topic in asked(connection, topics)}

    monkeypatch.setattr(cluster, "partitions", partitions)
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states", "dead"):
            brokers.create_topic(topic, 2)
        broker = Broker(brokers)
        for topic in ("events", "states", "dead"):
            broker.produce(topic, {0: [b"{}"], 1: [b"[]"] * 2})
        connection, seconds = Connection((brokers.bootstrap,), broker_version="2.1"), 0.0
        sink = SinkSettings(connection, results="results", states="states", dead_letters="dead")
        source = SourceSettings(connection, ("events",), group="job")
        with PublishedTopics(source, sink, lambda: seconds) as published:
            assert not published.caught_up
            assert everything(published) == ([b"{}"], 0)
            assert published.caught_up
            shown, seconds = 2, 59.0
            assert everything(published) == ([], 0)
            seconds = 61.0
            assert everything(published) == ([b"[]"] * 2, 2)
            seconds = 67.0
            published.poll(0.0)
            assert [each.lag for each in published.report().partitions] == [1, 2]


def everything(published: PublishedTopics) -> tuple[list[bytes], int]:
    """What comes now: states, and how many dead letters."""
    news = [published.poll(0.2) for _ in range(5)]
    return [state for each in news for state in each.states], sum(sum(each.rejected.values()) for each in news)


def test_what_retention_has_deleted_before_it_was_read_is_passed_over() -> None:
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states", "dead"):
            brokers.create_topic(topic)
        broker = Broker(brokers)
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
        sink = SinkSettings(connection, results="results", states="states", dead_letters="dead")
        published = PublishedTopics(SourceSettings(connection, ("events",), group="job"), sink)
        with published:
            assert everything(published) == ([], 0)
        broker.produce("dead", {0: [b"{}"] * 5})  # while this process was away
        brokers.delete_records("dead", 0, 3)
        with published:
            assert everything(published) == ([], 2)


def test_what_compaction_leaves_of_a_state_that_is_gone_is_no_state() -> None:
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states"):
            brokers.create_topic(topic)
        Broker(brokers).produce("states", {0: [b"1", None, b"2"]})
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        with PublishedTopics(source, SinkSettings(connection, results="results", states="states")) as published:
            assert everything(published) == ([b"1", b"2"], 0)


def test_a_topic_of_states_that_is_not_compacted_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "cleanup", lambda *_: "delete")
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states"):
            brokers.create_topic(topic)
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        with PublishedTopics(source, SinkSettings(connection, results="results", states="states")):
            assert "topic states is not compacted (cleanup.policy=delete)" in caplog.text


@pytest.mark.chaos
def test_an_outage_is_told_and_not_waited_out() -> None:
    with closing(MockCluster()) as brokers:
        for topic in ("events", "states"):
            brokers.create_topic(topic)
        connection = Connection((brokers.bootstrap,), broker_version="2.1")
        source = SourceSettings(connection, ("events",), group="job")
        sink = SinkSettings(connection, results="results", states="states")
        now = iter(range(0, 10_000, 100))
        with PublishedTopics(source, sink, lambda: next(now)) as published:
            published.poll(0.1)
            brokers.broker_down(1)
            began = time.monotonic()
            with pytest.raises(OutageError):
                published.poll(0.1)
            assert time.monotonic() - began < 120
