"""What Kafka's own client in Java has to be told, from the settings that all our connectors share."""

from collections.abc import Iterator, Mapping

from connectors.kafka.settings import Connection, SinkSettings, SourceSettings

_MODULES = {"PLAIN": "plain.PlainLoginModule"}
_SHADED = "org.apache.flink.kafka.shaded.org.apache.kafka.common.security"
# Flink looks for partitions that were added, as often as our own source does.
_DISCOVERY = 60_000
# Results of a checkpoint are in a transaction until the job has come up again: longer than any outage, and the most
# that brokers allow by default.
TRANSACTION_TIMEOUT = 900_000_000


def problems(source: SourceSettings, sink: SinkSettings) -> Iterator[str]:
    """What the two ends of a job cannot do as the configuration says."""
    if source.start != "earliest":
        yield 'source.start: a job begins with the first records: want "earliest"'
    if source.overtaken != "stop":
        yield 'source.overtaken: records that were deleted before they were read end a job: want "stop"'
    if source.partitions:
        yield "source.partitions: a job reads all partitions of its topics"
    if source.format is not None:
        yield "source.format: a job reads JSON alone"
    if source.isolation != "read_committed":
        yield "source.isolation: want read_committed"
    if sink.delivery != "exactly-once":
        yield "sink.delivery: a job publishes exactly once"
    for name, end in (("source", source), ("sink", sink)):
        if end.connection.certificate_file is not None:
            yield f"{name}.certificate_file: certificates of clients are not supported: use a `mechanism`"


def reading(settings: SourceSettings) -> Mapping[str, str]:
    """Properties of the consumer."""
    return {
        **_connection(settings.connection),
        "group.id": settings.group or settings.connection.client_id,
        "isolation.level": settings.isolation,
        "partition.discovery.interval.ms": str(_DISCOVERY),
        "commit.offsets.on.checkpoint": "true",
    }


def writing(settings: SinkSettings, transaction_timeout: int = TRANSACTION_TIMEOUT) -> Mapping[str, str]:
    """Properties of the producer."""
    return {
        **_connection(settings.connection),
        "compression.type": settings.compression,
        "max.request.size": str(2 * settings.max_message_bytes),
        "transaction.timeout.ms": str(transaction_timeout // 1_000),
    }


def _connection(connection: Connection) -> dict[str, str]:
    said = {
        "bootstrap.servers": ",".join(connection.bootstrap),
        "client.id": connection.client_id,
        "security.protocol": connection.protocol,
    }
    if connection.tls:
        said["ssl.endpoint.identification.algorithm"] = "https" if connection.check_hostname else ""
        if connection.ca_file is not None:
            # The certificates themselves: workers are on other machines, which do not have the file.
            said |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": connection.ca_file.read_text()}
    if connection.mechanism is not None:
        module = _MODULES.get(connection.mechanism, "scram.ScramLoginModule")
        login = " ".join(f'{name}="{_escaped(value or "")}"' for name, value in _login(connection))
        said |= {"sasl.mechanism": connection.mechanism, "sasl.jaas.config": f"{_SHADED}.{module} required {login};"}
    return said


def _login(connection: Connection) -> Iterator[tuple[str, str | None]]:
    yield "username", connection.username
    yield "password", connection.password


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
