"""What the operators in Java and those in Python say to each other, as bytes; all numbers are big-endian.

The same stands in `RecordBatcher.java` and `FramedMessage.java`.
"""

import struct
from collections.abc import Mapping

import numpy as np

from connectors.kafka.driver import Record
from connectors.lines import TextRecords
from monitor.limits import RECORD_BYTES
from monitor.ports import RawBatch

RECORDS, ENDS, PARTS = b"\0", b"\1", b"\2"
"""The first byte of what is handed on: records, the ends of partitions, and what the first stage made."""


def raw_batch(frame: bytes) -> RawBatch:
    """The records of one partition."""
    partition, at = _text(frame, 1)
    (count,) = struct.unpack_from(">i", frame, at)
    numbers = np.frombuffer(frame, ">i8", 2 * count, at + 4).astype(np.int64)
    lengths = np.frombuffer(frame, ">i4", count, at + 4 + 16 * count)
    text = frame[at + 4 + 20 * count :]
    ends = np.cumsum(np.maximum(lengths, 0) + 1) - 1
    lines = TextRecords(text, ends - np.maximum(lengths, 0), ends, RECORD_BYTES)
    offsets, milliseconds = numbers[:count], numbers[count:]
    gone = lengths < 0
    return RawBatch(
        partition=partition,
        records=[None if none else line for none, line in zip(gone, lines, strict=True)] if gone.any() else lines,
        offsets=offsets,
        next_offset=int(offsets[-1]) + 1,
        timestamps=milliseconds * 1_000,
    )


def partition_ends(frame: bytes) -> Mapping[str, int]:
    """The offset after the last record of each partition."""
    (count,) = struct.unpack_from(">i", frame, 1)
    found, at = {}, 5
    for _ in range(count):
        name, at = _text(frame, at)
        (found[name],) = struct.unpack_from(">q", frame, at)
        at += 8
    return found


def framed(record: Record) -> bytes:
    """A message for a topic."""
    headers = (_short(name) + _long(value) for name, value in record.headers)
    count = struct.pack(">i", len(record.headers))
    return b"".join((_short(record.topic), _long(record.key), _long(record.value), count, *headers))


def _text(frame: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">H", frame, at)
    return frame[at + 2 : at + 2 + length].decode(), at + 2 + length


def _short(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">H", len(data)) + data


def _long(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
