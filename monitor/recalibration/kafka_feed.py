"""Recalibrations from the compacted topic: everything that is there at the first look, then what was added.

Needs kafka-python, which is imported at the first look. No consumer group: every service reads the whole topic, which
compaction keeps at one message for each stream and segment, and commits nothing.
"""

import time
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from monitor.recalibration.decoding import decoded, parsed
from monitor.recalibration.message import Recalibration

LOOK_SECONDS = 5.0
"""A look gives up after this long without reaching the end of the topic; the next one goes on from there."""


class KafkaFeed:
    """The latest message of a stream in a topic, `kafka://BROKER:PORT,BROKER:PORT/TOPIC`.

    `options` are KafkaConsumer's own, for TLS and SASL: `KafkaFeed(..., security_protocol="SSL", ssl_cafile="ca.pem")`.
    """

    def __init__(
        self,
        url: str,
        stream: str,
        segment: str = "",
        **options: Any,
    ) -> None:
        parts = urlsplit(url)
        self._topic = parts.path.strip("/")
        if not parts.netloc or not self._topic:
            raise ValueError(f"want kafka://BROKER:PORT/TOPIC, got {url!r}")
        self._options = {"bootstrap_servers": parts.netloc.split(","), **options}
        self._key = f"{stream}/{segment}".rstrip("/").encode()
        self._consumer: Any = None
        self._latest: Recalibration | None = None
        self._lock = Lock()
        self.behind = False
        """Whether the last look gave up before the end of the topic."""

    def __call__(self) -> Recalibration | None:
        """Read to the end of the topic as it is now; OSError when that cannot be done."""
        try:
            from kafka.errors import KafkaError  # noqa: PLC0415 - slow to import, and not every service has it
        except ImportError as error:
            raise OSError("reading recalibrations from Kafka needs `pip install kafka-python crc32c`") from error
        with self._lock:
            try:
                self._read()
            except KafkaError as error:
                self.close()
                raise OSError(f"{self._topic}: {error}") from error
            return self._latest

    def close(self) -> None:
        """Let go of the connection; the next look makes another."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()

    def _read(self) -> None:
        if self._consumer is None:
            self._consumer = self._connected()
        consumer = self._consumer
        ends = consumer.end_offsets(consumer.assignment())
        until, bad = time.monotonic() + LOOK_SECONDS, None
        while (
            behind := any(consumer.position(partition) < end for partition, end in ends.items())
        ) and time.monotonic() < until:
            for records in consumer.poll(timeout_ms=200).values():
                for record in records:
                    if record.key == self._key and record.value is not None:
                        bad = self._take(record.value)
        self.behind = behind
        if bad is not None:
            raise bad

    def _take(self, value: bytes) -> ValueError | None:
        """Why it is no message. Those after it are looked at all the same: what was polled does not come again."""
        try:
            self._latest = decoded(parsed(value))
        except ValueError as error:
            return error
        return None

    def _connected(self) -> Any:
        from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - as above

        consumer = KafkaConsumer(
            group_id=None, enable_auto_commit=False, isolation_level="read_committed", **self._options
        )
        numbers = consumer.partitions_for_topic(self._topic)
        if not numbers:
            consumer.close()
            raise OSError(f"there is no topic {self._topic!r}")
        consumer.assign([TopicPartition(self._topic, number) for number in sorted(numbers)])
        consumer.seek_to_beginning()
        return consumer
