"""What a process that only looks on at a job takes in of topics on a broker."""

from itertools import count

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from connectors.flink.published import News, PublishedTopics
from connectors.kafka import SinkSettings, SourceSettings
from connectors.kafka.settings import Connection
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, unique
from tests.processes import wait_until


@pytest.fixture
def broker(apache_kafka: Cluster) -> Broker:
    return Broker(apache_kafka)


def test_partitions_that_are_added_meanwhile_are_taken_in(broker: Broker) -> None:
    events, states, dead = unique("events"), unique("states"), unique("dead")
    broker.create(events, dead)
    broker.create(states, cleanup_policy="compact")
    broker.produce(dead, {0: [b"old"]})
    minutes = count(0.0, 61.0)
    with followed(broker, events, states, dead, clock=lambda: next(minutes)) as published:
        assert [each.partition for each in reported(published)] == [f"{events}-0"]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_partitions([NewPartitions(each, 3) for each in (events, states, dead)]).values():
            made.result()
        for topic in (events, states, dead):
            broker.produce(topic, {0: [b"a"], 2: [b"b", b"c"]})
        found = News()

        def all_there() -> bool:
            nonlocal found
            came = published.poll(0.1)
            rejected = sum(found.rejected.values()) + sum(came.rejected.values())
            found = News([*found.states, *came.states], {("", ""): rejected})
            return len(found.states) == 3 and rejected == 3 and len(reported(published)) == 3

        wait_until(all_there, "what is in new partitions")
        assert sorted(found.states) == [b"a", b"b", b"c"]
        assert {each.partition: each.lag for each in reported(published)} == {
            f"{events}-{number}": lag for number, lag in enumerate((1, 0, 2))
        }


def test_topics_that_have_to_be_compacted_and_are_not_are_warned_of(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    events, states = unique("events"), unique("states")
    broker.create(events, states)
    with followed(broker, events, states):
        assert f"topic {states} is not compacted (cleanup.policy=delete)" in caplog.text


def followed(broker: Broker, events: str, states: str, dead: str | None = None, **options) -> PublishedTopics:
    connection = Connection((broker.bootstrap,))
    sink = SinkSettings(connection, results="results", states=states, dead_letters=dead)
    return PublishedTopics(SourceSettings(connection, (events,), group=unique("job")), sink, **options)


def reported(published: PublishedTopics):
    published.poll(0.1)
    return published.report().partitions
