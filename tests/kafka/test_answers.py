"""A producer that is never answered: kafka-python drops a request whose coordinator refuses the connection."""

import threading
from collections.abc import Iterator

import pytest

from connectors.kafka import sink_settings
from connectors.kafka.driver import Record
from connectors.kafka.python_driver import PythonWriter, writer
from connectors.kafka.topic_sink import OwnGroup
from monitor.errors import CommitRefusedError, ConnectorError
from tests.kafka.mock import MockCluster
from tests.kafka.topics import mock_broker
from tests.processes import wait_until

RECORDS = [Record("results", b"key", b"value", ())]


@pytest.fixture(autouse=True)
def no_producer_stays_that_was_left() -> Iterator[None]:
    yield
    wait_until(lambda: not any(each.name.endswith("network-thread") for each in threading.enumerate()), "all closed")


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    """Of its own, because its brokers go away; the second one coordinates the transactions."""
    made = MockCluster(brokers=2)
    made.create_topic("results")
    made.set_transaction_coordinator("w", 2)
    yield made
    made.close()


def writer_on(cluster: MockCluster) -> PythonWriter:
    options = dict(mock_broker(cluster).options, bootstrap=cluster.bootstrap, results="results")
    options.pop("session_timeout")
    return writer(sink_settings(options | {"transaction_timeout": "1s", "commit_timeout": "30s"}), "w")


def publish(made: PythonWriter) -> None:
    made.begin()
    made.send(RECORDS)
    made.commit({}, None)


def test_a_commit_without_an_answer_is_refused_and_the_next_one_goes_through(cluster: MockCluster) -> None:
    made = writer_on(cluster)
    publish(made)
    cluster.broker_down(2)
    back = threading.Timer(1.5, cluster.broker_up, [2])
    back.start()
    with pytest.raises(CommitRefusedError, match="no answer to a commit within 1 s"):
        publish(made)
    publish(made)
    back.join()
    made.close()


def test_an_abort_without_an_answer_is_left_to_the_next_producer(cluster: MockCluster) -> None:
    made = writer_on(cluster)
    publish(made)
    made.begin()
    made.send(RECORDS)
    made.flush()
    cluster.broker_down(2)
    back = threading.Timer(1.5, cluster.broker_up, [2])
    back.start()
    made.abort()
    publish(made)
    back.join()
    made.close()


def test_a_start_goes_on_when_its_coordinator_is_back(cluster: MockCluster) -> None:
    cluster.broker_down(2)
    back = threading.Timer(1.5, cluster.broker_up, [2])
    back.start()
    made = writer_on(cluster)
    publish(made)
    back.join()
    made.close()


def test_a_source_that_cannot_begin_again_ends_with_a_refused_commit() -> None:
    with pytest.raises(ConnectorError, match="goes on where the last one stands"):
        OwnGroup(lambda: pytest.fail("no need to connect"), "results").refused()
