"""Writing with confluent-kafka: transactions that end one way or the other, whatever becomes of the brokers."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaException, Producer

from connectors.kafka import cluster
from connectors.kafka.driver import CommittedOffset, Partition, Record
from connectors.kafka.fast_values import LIBRARY, as_offsets, client_options, failed, translated
from connectors.kafka.settings import SinkSettings
from connectors.kafka.watchdog import within
from monitor.errors import CommitRefusedError, ConnectorError, OutageError

_LEAST_SECONDS = 0.5
"""What a call is given at least, and how much later it is left to itself."""


class FastWriter:
    """A `Writer` on confluent_kafka.Producer."""

    def __init__(self, settings: SinkSettings, transactional_id: str | None) -> None:
        self._settings = settings
        self._failed: list[ConnectorError] = []
        # The brokers abort a transaction that takes longer, so there is nothing to wait for after that.
        self._patience = settings.transaction_timeout / 1e6
        cluster.partitions(settings.connection, settings.topics)
        options = client_options(settings.connection) | {
            "enable.idempotence": True,
            "allow.auto.create.topics": False,
            "linger.ms": 5,
            "compression.type": settings.compression,
            # Head room over the longest message that the sink sends: keys, headers and framing.
            "message.max.bytes": settings.max_message_bytes + 64 * 1024,
        }
        if transactional_id is not None:
            options["transactional.id"] = transactional_id
            options["transaction.timeout.ms"] = settings.transaction_timeout // 1000
        self._producer = Producer(options, logger=LIBRARY)
        if transactional_id is not None:
            self._persist(f"start transactions as {transactional_id}", self._producer.init_transactions)

    def check(self, topics: Collection[str]) -> None:
        cluster.partitions(self._settings.connection, topics)

    def cleanup(self, topic: str) -> str | None:
        return cluster.cleanup(self._settings.connection, topic)

    def begin(self) -> None:
        self._persist("begin a transaction", lambda _: self._producer.begin_transaction())

    def send(self, records: Sequence[Record]) -> None:
        for record in records:
            self._produce(record)
            self._producer.poll(0)

    def flush(self) -> None:
        deadline = time.monotonic() + self._patience
        while self._producer.flush(1.0):
            if time.monotonic() > deadline:
                raise OutageError(f"Kafka: nothing could be written for {self._patience:.0f} s")
        if self._failed:
            raise self._failed[0]

    def commit(self, offsets: Mapping[Partition, CommittedOffset], membership: object) -> None:
        self.flush()
        try:
            if offsets:
                self._persist(
                    "commit offsets", self._producer.send_offsets_to_transaction, as_offsets(offsets), membership
                )
            self._persist("commit", self._producer.commit_transaction)
        except CommitRefusedError:
            self.abort()
            raise

    def abort(self) -> None:
        self._persist("abort the transaction", self._producer.abort_transaction)
        self._failed.clear()

    def close(self) -> None:
        self._producer.flush(1.0)

    def _produce(self, record: Record) -> None:
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise translated(error, f"Kafka: cannot write to {record.topic}") from error
            else:
                return

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failed.append(failed(error, f"Kafka: cannot write to {message.topic()}"))

    def _persist(self, what: str, call: Callable[..., Any], *arguments: Any) -> None:
        """Transaction calls may be repeated as long as the library says so, and for a while.

        After an outage librdkafka may not keep to the time that a call is given: who calls does not wait for that.
        """
        deadline = time.monotonic() + self._patience
        while True:
            seconds = max(deadline - time.monotonic(), _LEAST_SECONDS)
            try:
                within(seconds + _LEAST_SECONDS, partial(call, *arguments, seconds))
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise translated(error, f"Kafka: cannot {what}") from error
                time.sleep(0.05)
            except TimeoutError as error:
                raise OutageError(f"Kafka: cannot {what}: no answer within {self._patience:.0f} s") from error
            else:
                return
