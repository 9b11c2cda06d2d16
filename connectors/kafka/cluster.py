"""Reaching a cluster with kafka-python, and saying in words why it cannot be reached.

The library reports a wrong password, a wrong protocol and a dead host alike as a timeout; the cause stands in its log
only. So its log is read while connecting, and becomes part of the error.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.admin import ConfigResource
from kafka.errors import KafkaError, RetriableError

from connectors.kafka.settings import RECONNECT_MILLISECONDS, Connection
from monitor.errors import ConnectorError, OutageError

Client = TypeVar("Client")

_UNKNOWN_TOPIC = 3
_NOT_ALLOWED = 29
_ASK_AGAIN_SECONDS = 0.2
_HUNG_UP = "socket disconnected"
_ABSENT = "ECONNREFUSED"
_HINTS = {
    "Authentication": "the user name or the password is wrong",
    "is not valid for": "the broker's certificate is for another host",
    "CERTIFICATE_VERIFY_FAILED": "the broker's certificate is not signed by the given ca_file",
    "_ALERT_": "the broker refuses our certificate_file (expired, or signed by somebody else?), or wants one",
    "Handshake failed": "the broker does not speak TLS at this port, or wants another",
    "UnsupportedSaslMechanism": "the broker does not offer this mechanism",
    _ABSENT: "nobody listens there",
    _HUNG_UP: "the broker hung up: perhaps this port wants TLS or SASL, or none of them",
}
"""What the library says of it, the most telling first, and what it means."""


def client_options(connection: Connection) -> dict[str, Any]:
    """What every kafka-python client is told about the connection."""
    options: dict[str, Any] = {
        "bootstrap_servers": list(connection.bootstrap),
        "client_id": connection.client_id,
        "security_protocol": connection.protocol,
        "api_version": _version(connection.broker_version),
        "reconnect_backoff_max_ms": RECONNECT_MILLISECONDS,
        "bootstrap_timeout_ms": connection.connect_timeout // 1000,
    }
    if connection.tls:
        options |= {
            "ssl_cafile": _path(connection.ca_file),
            "ssl_certfile": _path(connection.certificate_file),
            "ssl_keyfile": _path(connection.key_file),
            "ssl_password": connection.key_password,
            "ssl_check_hostname": connection.check_hostname,
        }
    if connection.mechanism is not None:
        options |= {
            "sasl_mechanism": connection.mechanism,
            "sasl_plain_username": connection.username,
            "sasl_plain_password": connection.password,
        }
    return options


def connect(connection: Connection, make: Callable[..., Client], **options: Any) -> Client:
    """Make a kafka-python client; an unreachable cluster is an error that names the cause."""
    network: list[Any] = []

    def kept(**settings: Any) -> Any:
        network.append(KafkaConsumer.DEFAULT_CONFIG["kafka_client"](**settings))
        return network[-1]

    with _overheard() as said:
        try:
            return make(**client_options(connection), **options, kafka_client=kept)
        except (KafkaError, OSError, ValueError) as error:
            for each in network:  # a constructor that fails leaves its thread and its sockets behind
                each.close()
            away = isinstance(error, RetriableError) and _sign(said) in (None, _ABSENT)
            raise (OutageError if away else ConnectorError)(
                f"cannot reach Kafka at {_where(connection)}: {_cause(said, error, connection)}"
            ) from error


def failed(what: str, error: KafkaError) -> ConnectorError:
    """The error in words: an outage, where asking again may help."""
    return (OutageError if isinstance(error, RetriableError) else ConnectorError)(f"{what}: {error!r}")


def partitions(connection: Connection, topics: Collection[str]) -> Mapping[str, frozenset[int]]:
    """The partitions of each topic; an error that names every topic that is missing or forbidden."""
    admin = connect(connection, KafkaAdminClient)
    try:
        described = answered(lambda: admin.describe_topics(sorted(topics)), connection.connect_timeout / 1e6)
    except KafkaError as error:
        raise failed(f"Kafka at {_where(connection)} does not describe its topics", error) from error
    finally:
        admin.close()
    problems = {_UNKNOWN_TOPIC: "does not exist", _NOT_ALLOWED: f"must not be seen by {connection.username or 'us'}"}
    wrong = [
        f"topic {topic['name']} {problems.get(topic['error_code'], 'has error ' + str(topic['error_code']))}"
        for topic in described
        if topic["error_code"]
    ]
    if wrong:
        raise ConnectorError(f"Kafka at {_where(connection)}: {'; '.join(sorted(wrong))}")
    return {topic["name"]: frozenset(each["partition_index"] for each in topic["partitions"]) for topic in described}


def cleanup(connection: Connection, topic: str) -> str | None:
    """What becomes of a topic's old records: delete, compact or both; None where that may not be asked."""
    admin = connect(connection, KafkaAdminClient)
    try:
        described = admin.describe_configs([ConfigResource("topic", topic)], config_filter="all")
    except KafkaError:
        return None
    finally:
        admin.close()
    policy = described.get("topic", {}).get(topic, {}).get("cleanup.policy", {})
    return policy.get("value") if isinstance(policy, Mapping) else policy


def answered(ask: Callable[[], Any], seconds: float) -> Any:
    """The first answer: one broker of several may be away, and the library does not ask another one by itself."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except RetriableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_ASK_AGAIN_SECONDS)


def _version(text: str | None) -> tuple[int, ...] | None:
    return None if text is None else tuple(map(int, text.split(".")))


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _where(connection: Connection) -> str:
    return f"{','.join(connection.bootstrap)} ({connection.protocol})"


def _cause(said: list[str], error: Exception, connection: Connection) -> str:
    sign = _sign(said)
    if sign is None:
        return str(error)
    telling = [line for line in said if sign in line][-1]
    if sign == _HUNG_UP and connection.mechanism is not None:
        # A broker closes right after its refusal, and the client may see only that.
        return f"the broker hung up at the login: the user name or the password is probably wrong ({telling})"
    return f"{_HINTS[sign]} ({telling})"


def _sign(said: list[str]) -> str | None:
    """The most telling of what the library has said."""
    return next((sign for sign in _HINTS if any(sign in line for line in said)), None)


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """What the client library logs meanwhile."""
    said: list[str] = []

    class _Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    ear, logger = _Ear(logging.WARNING), logging.getLogger("kafka")
    logger.addHandler(ear)
    try:
        yield said
    finally:
        logger.removeHandler(ear)
