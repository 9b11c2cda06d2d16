"""Places, offsets, settings and errors in librdkafka's own types: what its reader and its writer have in common."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connectors.kafka.driver import CommittedOffset, Partition
from connectors.kafka.settings import RECONNECT_MILLISECONDS, Connection
from monitor.errors import CommitRefusedError, ConnectorError, OutageError

LIBRARY = logging.getLogger("kafka.librdkafka")
"""What the library says goes where the other driver's does: it repeats itself."""

_MOVED_ON = (
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._STATE,
    KafkaError._ASSIGNMENT_LOST,
)
OUTAGES = (
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.REQUEST_TIMED_OUT,
)
"""Asking again may help, whatever the library has given up."""


def client_options(connection: Connection) -> dict[str, Any]:
    """What every client of the library is told about the connection."""
    options: dict[str, Any] = {
        "bootstrap.servers": ",".join(connection.bootstrap),
        "client.id": connection.client_id,
        "security.protocol": connection.protocol.lower(),
        "reconnect.backoff.max.ms": RECONNECT_MILLISECONDS,
        # Broker outages are the library's to survive; their noise is not ours to repeat.
        "log.connection.close": False,
    }
    if connection.tls:
        given = {
            "ssl.ca.location": connection.ca_file,
            "ssl.certificate.location": connection.certificate_file,
            "ssl.key.location": connection.key_file,
            "ssl.key.password": connection.key_password,
        }
        options |= {key: str(value) for key, value in given.items() if value is not None}
        options["ssl.endpoint.identification.algorithm"] = "https" if connection.check_hostname else "none"
    if connection.mechanism is not None:
        options |= {
            "sasl.mechanism": connection.mechanism,
            "sasl.username": connection.username,
            "sasl.password": connection.password,
        }
    return options


def translated(error: KafkaException, what: str) -> ConnectorError:
    """The exception in words: a refusal, where the group has gone on without this member."""
    if error.args[0].code() in _MOVED_ON:
        return CommitRefusedError(f"the group moved on: {error}")
    return failed(error.args[0], what)


def failed(error: Any, what: str) -> ConnectorError:
    """The error in words: an outage, where asking again may help."""
    away = error.code() in OUTAGES or error.retriable()
    return (OutageError if away else ConnectorError)(f"{what}: {error}")


def as_partitions(given: Sequence[Any]) -> frozenset[Partition]:
    return frozenset(Partition(each.topic, each.partition) for each in given)


def as_offsets(offsets: Mapping[Partition, CommittedOffset]) -> list[Any]:
    return [TopicPartition(*partition, each.offset, metadata=each.metadata) for partition, each in offsets.items()]
