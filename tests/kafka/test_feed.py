"""A scoring service reads recalibrations from the topic: all of it first, then what is added."""

from dataclasses import replace

import pytest
from confluent_kafka import Producer

from monitor.assessment.message import encode
from monitor.recalibration import KafkaFeed, Recalibration, RecalibrationClient
from tests.kafka.mock import MockCluster
from tests.kafka.topics import mock_broker, unique
from tests.recalibration.test_client import message


def send(bootstrap: str, topic: str, *messages: Recalibration) -> None:
    send_bytes(bootstrap, topic, *((each.validity.stream.encode(), encode(each)) for each in messages))


def send_bytes(bootstrap: str, topic: str, *records: tuple[bytes, bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value in records:
        producer.produce(topic, key=key, value=value, partition=0)
    producer.flush(10)


def test_the_latest_message_of_the_stream_is_in_force_and_a_newer_one_follows(mock_cluster: MockCluster) -> None:
    broker, topic = mock_broker(mock_cluster), unique("recalibrations")
    broker.create(topic)
    other = message((0.3, 0.3, 0.4), "other", stream="t")
    send(broker.bootstrap, topic, message((0.2, 0.2, 0.6), "w1"), message((0.1, 0.2, 0.7), "w2"), other)
    feed = KafkaFeed(f"kafka://{broker.bootstrap}/{topic}", "s", api_version=(2, 1))
    client = RecalibrationClient(feed, "s")
    assert client.refresh().correcting
    assert client.status().recalibration == message((0.1, 0.2, 0.7), "w2")
    send(broker.bootstrap, topic, replace(message(window="w3"), apply=False, reason="the verdict is unexplained"))
    assert client.refresh().reason == "the verdict is unexplained"
    feed.close()


def test_a_record_that_is_no_message_costs_no_later_one_of_the_topic(mock_cluster: MockCluster) -> None:
    broker, topic = mock_broker(mock_cluster), unique("recalibrations")
    broker.create(topic)
    send_bytes(broker.bootstrap, topic, *((b"s", value) for value in (b"[1]", encode(message()), b"oops")))
    feed = KafkaFeed(f"kafka://{broker.bootstrap}/{topic}", "s", api_version=(2, 1))
    client = RecalibrationClient(feed, "s")
    assert "cannot be read" in client.refresh().trouble
    assert client.refresh().recalibration == message()
    feed.close()


def test_a_topic_that_is_not_there_leaves_scores_as_they_are(mock_cluster: MockCluster) -> None:
    feed = KafkaFeed(f"kafka://{mock_broker(mock_cluster).bootstrap}/nowhere", "s", api_version=(2, 1))
    status = RecalibrationClient(feed, "s").refresh()
    assert not status.correcting
    assert "nowhere" in status.reason


def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="kafka://BROKER:PORT/TOPIC"):
        RecalibrationClient("kafka://broker", "s")
