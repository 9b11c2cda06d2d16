"""The stream that these tests decode, and short ways to say what was decoded."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from monitor.events.decoding import DecodedBatch, Decoder, Limits
from monitor.ports import RawBatch
from monitor.ports.schema import Feature, StreamSchema
from monitor.windows.window import Window

NOW = 1_794_992_400_000_000  # 2026-11-18T09:00:00Z
NOW_TEXT = "2026-11-18T09:00:00Z"

SHOP = StreamSchema(
    "shop",
    ("legit", "fraud"),
    (Feature("amount"), Feature("country", "category", ("BE", "FR")), Feature("gift", "boolean")),
    positive="fraud",
)
OTHER = StreamSchema("other", ("a", "b", "c"))
PRICES = StreamSchema("prices", (), (Feature("size"),))

GOOD: dict[str, Any] = {"stream": "shop", "timestamp": NOW_TEXT, "posteriors": [0.9, 0.1]}


def raw(records: Sequence[bytes | None], timestamps: Sequence[int] | None = None) -> RawBatch:
    """Records as a batch of one partition."""
    times = None if timestamps is None else np.array(timestamps)
    return RawBatch("p", records, np.arange(len(records)) * 10, len(records) * 10, times)


def encoded(*events: Any) -> list[bytes]:
    """Each event as a record."""
    return [msgspec.json.encode(event) for event in events]


def decode(*events: Any, decoder: Decoder | None = None, timestamps: Sequence[int] | None = None) -> DecodedBatch:
    """What the records of these events decode to; bytes and None are records already."""
    records = [event if event is None or isinstance(event, bytes) else msgspec.json.encode(event) for event in events]
    return (decoder or Decoder([SHOP])).decode(raw(records, timestamps), NOW)


def rows(decoded: DecodedBatch, stream: str = "shop") -> Window:
    """The rows of a stream, when nothing was rejected."""
    assert decoded.rejected == ()
    return decoded.scored[stream].rows


SMALL = Limits(record_bytes=500, record_events=3)
