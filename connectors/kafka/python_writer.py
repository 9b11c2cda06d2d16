"""Writing with kafka-python: transactions that end one way or the other, whatever becomes of the brokers.

Each workaround names the measured behaviour that it is for. Public API only, but for `_answered`.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from connectors.kafka import cluster
from connectors.kafka.driver import CommittedOffset, Partition, Record
from connectors.kafka.python_values import CLOSE_MILLISECONDS, MOVED_ON, as_offsets
from connectors.kafka.settings import SinkSettings
from monitor.errors import CommitRefusedError, OutageError

log = logging.getLogger(__name__)


class PythonWriter:
    """A `Writer` on KafkaProducer."""

    def __init__(self, settings: SinkSettings, transactional_id: str | None) -> None:
        self._settings = settings
        self._transactional_id = transactional_id
        # The brokers abort a transaction that takes longer, so there is nothing to wait for after that.
        self._patience = settings.transaction_timeout / 1e6
        self._futures: list[Any] = []
        cluster.partitions(settings.connection, settings.topics)
        self._producer = self._connect()

    def _connect(self) -> Any:
        """A producer that may begin a transaction; what an earlier one of that name left open is ended."""
        # A commit that ends here has waited for its own answer before, and the last try may take as long again.
        deadline = time.monotonic() + self._settings.commit_timeout / 1e6 - 2 * self._patience
        while True:
            producer = self._make()
            if self._transactional_id is None:
                return producer
            what = f"start transactions as {self._transactional_id}"
            try:
                self._do(what, _answered, producer, "initialize_transactions", self._patience)
            except TimeoutError as error:
                _leave(producer)
                if time.monotonic() > deadline:
                    raise OutageError(f"Kafka: cannot {what}: no answer, asked again and again") from error
                log.warning("Kafka: no answer within %.0f s: trying again to %s", self._patience, what)
            else:
                return producer

    def _make(self) -> Any:
        settings = self._settings
        return cluster.connect(
            settings.connection,
            KafkaProducer,
            transactional_id=self._transactional_id,
            transaction_timeout_ms=settings.transaction_timeout // 1000,
            compression_type=None if settings.compression == "none" else settings.compression,
            allow_auto_create_topics=False,
            acks="all",
            linger_ms=5,
            batch_size=256 * 1024,
            # Head room over the longest message that the sink sends: keys, headers and framing.
            max_request_size=settings.max_message_bytes + 64 * 1024,
            # Adding offsets right after the last transaction is answered "not yet": ask again soon, not after 100 ms.
            retry_backoff_ms=10,
        )

    def check(self, topics: Collection[str]) -> None:
        for topic in topics:
            self._do(f"write to {topic}", self._producer.partitions_for, topic)

    def cleanup(self, topic: str) -> str | None:
        return cluster.cleanup(self._settings.connection, topic)

    def begin(self) -> None:
        self._do("begin a transaction", self._producer.begin_transaction)

    def send(self, records: Sequence[Record]) -> None:
        for record in records:
            future = self._do(
                f"write to {record.topic}",
                self._producer.send,
                record.topic,
                value=record.value,
                key=record.key,
                headers=list(record.headers),
            )
            self._futures.append(future)

    def flush(self) -> None:
        self._do("write", self._producer.flush)
        for future in self._sent():
            self._do("write", future.get)

    def commit(self, offsets: Mapping[Partition, CommittedOffset], membership: object) -> None:
        """A producer that does not answer is replaced: its successor ends the transaction, one way or the other.

        As nobody knows how far it came, the commit counts as refused: what is committed is read from the group.
        """
        deadline, futures = time.monotonic() + self._patience, self._sent()
        try:
            for future in futures:  # not `flush`, which waits as long for each batch
                future.get(timeout=max(deadline - time.monotonic(), 0.0))
            if offsets:
                added = as_offsets(offsets), membership
                _answered(self._producer, "send_offsets_to_transaction", deadline - time.monotonic(), *added)
            _answered(self._producer, "begin_commit", deadline - time.monotonic())
        except MOVED_ON as error:
            self.abort()
            self._renew()
            raise CommitRefusedError(f"the group moved on: {error}") from error
        except (TimeoutError, KafkaTimeoutError) as error:
            self._replace("commit")
            raise CommitRefusedError(f"no answer to a commit within {self._patience:.0f} s") from error
        except KafkaError as error:
            raise cluster.failed("the transaction failed", error) from error

    def abort(self) -> None:
        self._futures.clear()
        try:
            self._do("abort the transaction", _answered, self._producer, "begin_abort", self._patience)
        except TimeoutError:
            self._replace("abort")

    def _sent(self) -> Sequence[Any]:
        """What became of each record is seen once."""
        futures, self._futures = self._futures, []
        return futures

    def _renew(self) -> None:
        """Go on with a fresh producer of the same id.

        kafka-python 3.0.12 keeps the offsets of an aborted transaction, and commits with the next one those that it
        does not overwrite: those of partitions that are another member's by now, whose windows would be lost.
        """
        self.close()
        self._producer = self._connect()

    def _replace(self, what: str) -> None:
        log.warning("Kafka: no answer to a transaction's %s within %.0f s: connecting anew", what, self._patience)
        _leave(self._producer)
        self._producer = self._connect()

    def close(self) -> None:
        if not _closed(self._producer):
            _leave(self._producer)

    def _do(self, what: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except KafkaError as error:
            raise cluster.failed(f"Kafka: cannot {what}", error) from error


def _answered(producer: Any, request: str, seconds: float, *arguments: Any) -> None:
    """Ask a transaction's coordinator for something, and wait for the answer; TimeoutError if that takes longer.

    KafkaProducer's own methods wait for ever where kafka-python 3.0.12 drops the request, as it does when the
    coordinator's broker refuses the connection: the thread that waits keeps the producer and all that it holds.
    """
    if seconds <= 0:  # what nobody waits for is better not asked for
        raise TimeoutError
    result = getattr(producer._transaction_manager, request)(*arguments)  # noqa: SLF001 - see above
    producer._sender.wakeup()  # noqa: SLF001 - see above
    if not result.wait(1000 * seconds):
        raise TimeoutError


def _closed(producer: Any) -> bool:
    try:
        producer.close(timeout=CLOSE_MILLISECONDS / 1000)
    except KafkaError as error:
        log.debug("the producer does not close yet: %s", error)
        return False
    return True


def _leave(producer: Any) -> None:
    """Close a producer that does not answer, and do not wait for it.

    While it holds messages kafka-python 3.0.12 does not close: it raises, and its thread, its sockets and all that it
    holds stay for good. The abort drops them, or else its successor or the brokers do by ending the transaction, each
    once there are brokers again: hence it is closed again and again.
    """

    def close() -> None:
        if producer.config["transactional_id"] is not None:
            with suppress(KafkaError, TimeoutError):
                _answered(producer, "begin_abort", CLOSE_MILLISECONDS / 1000)
        while not _closed(producer):
            time.sleep(CLOSE_MILLISECONDS / 1000)

    threading.Thread(target=close, name="shiftwatch-kafka-leave", daemon=True).start()
