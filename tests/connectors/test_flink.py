"""What operators in Java and stages in Python say to each other, and what Kafka's Java client is told."""

import struct
from pathlib import Path

import numpy as np

from connectors.flink.clients import reading, writing
from connectors.flink.frames import framed, partition_ends, raw_batch
from connectors.kafka.driver import Record
from connectors.kafka.settings import sink_settings, source_settings


def text(words: str) -> bytes:
    return struct.pack(">H", len(words.encode())) + words.encode()


def records(*values: bytes | None) -> bytes:
    """As RecordBatcher.java writes them."""
    numbers = [struct.pack(">q", 100 + 2 * place) for place in range(len(values))]
    times = [struct.pack(">q", 1_700_000_000_000 + place) for place in range(len(values))]
    lengths = [struct.pack(">i", -1 if value is None else len(value)) for value in values]
    lines = [(value or b"") + b"\n" for value in values]
    return b"\0" + text("events-3") + struct.pack(">i", len(values)) + b"".join([*numbers, *times, *lengths, *lines])


def test_records_come_as_they_stand_in_the_topic_and_may_be_decoded_as_one_text() -> None:
    batch = raw_batch(records(b'{"a":1}', b"", b'{"b":\n2}'))
    assert (batch.partition, list(batch.records)) == ("events-3", [b'{"a":1}', b"", b'{"b":\n2}'])
    assert (batch.offsets.tolist(), batch.next_offset) == ([100, 102, 104], 105)
    assert batch.timestamps is not None
    assert batch.timestamps.tolist() == [1_700_000_000_000_000 + 1_000 * place for place in range(3)]
    assert batch.timestamps.dtype == np.int64
    joined = raw_batch(records(b'{"a":1}', b'{"b":2}')).records
    assert bytes(joined.joined(0, 2)) == b'{"a":1}\n{"b":2}'  # type: ignore[attr-defined]


def test_a_tombstone_is_none_and_not_an_empty_record() -> None:
    assert list(raw_batch(records(b"{}", None, b"")).records) == [b"{}", None, b""]


def test_the_ends_of_partitions_are_told_by_name() -> None:
    frame = b"\1" + struct.pack(">i", 2) + text("events-0") + struct.pack(">q", 7) + text("événements-1") + bytes(8)
    assert partition_ends(frame) == {"events-0": 7, "événements-1": 0}


def test_a_message_carries_topic_key_value_and_headers() -> None:
    frame = framed(Record("dead", b"k", b"\0\1", (("reason", b"not-json"),)))
    assert frame == (
        text("dead") + b"\0\0\0\1k" + b"\0\0\0\2\0\1" + b"\0\0\0\1" + text("reason") + b"\0\0\0\x08not-json"
    )


def test_the_java_client_is_told_what_ours_are() -> None:
    secure = {
        "bootstrap": "a:9092,b:9092",
        "tls": True,
        "mechanism": "SCRAM-SHA-512",
        "username": "us",
        "password": 'with "quotes"\\',
    }
    told = reading(source_settings(secure | {"topics": "events", "group": "g"}))
    assert (told["bootstrap.servers"], told["group.id"], told["security.protocol"]) == (
        "a:9092,b:9092",
        "g",
        "SASL_SSL",
    )
    assert told["isolation.level"] == "read_committed"
    assert told["sasl.jaas.config"].endswith(
        'scram.ScramLoginModule required username="us" password="with \\"quotes\\"\\\\";'
    )
    assert writing(sink_settings({"bootstrap": "a", "results": "r"}))["transaction.timeout.ms"] == "900000"


def test_workers_on_other_machines_need_no_file_of_certificates(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificates")
    settings = {"bootstrap": "a", "topics": "events", "group": "g", "tls": True, "ca_file": "ca.pem"}
    told = reading(source_settings(settings, tmp_path))
    assert (told["ssl.truststore.type"], told["ssl.truststore.certificates"]) == ("PEM", "certificates")
    assert str(tmp_path) not in " ".join(told.values())
