"""One stream in a topic that is keyed by event: on all partitions but one, with whatever may come."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from monitor.arrays import Flags, Labels
from monitor.reference.classifier import Reference

START_MS = 1_763_456_400_000
STREAM = "s0"
PARTITIONS = 8
WITHOUT_DATA = 7
AHEAD = 3
"""This partition says nothing in the first half of the stream's time: from its start on it is ahead by many windows."""
WINDOW_MS, LATENESS_MS = 60_000, 2_000
SEGMENTS = ("be", "fr", "nl")
REJECTED_EVERY = 997


@dataclass(frozen=True)
class SpreadWorld:
    """So many events, in so many windows."""

    events: int
    windows: int = 20
    seed: int = 0

    @cached_property
    def records(self) -> Mapping[int, list[bytes]]:
        """What each partition holds, in order; the last record is far ahead of all others."""
        return {partition: self._partition(partition) for partition in range(PARTITIONS) if partition != WITHOUT_DATA}

    @property
    def rejected(self) -> int:
        return sum(record.endswith(b'"half"]}') for records in self.records.values() for record in records)

    def _partition(self, partition: int) -> list[bytes]:
        rng = np.random.default_rng((self.seed, partition))
        count = self.events // (PARTITIONS - 1) - 1
        span = WINDOW_MS * self.windows
        begin = span // 2 if partition == AHEAD else 0
        times = START_MS + begin + np.arange(count) * (span - begin) // count - rng.integers(0, LATENESS_MS // 2, count)
        times[rng.random(count) < 0.01] -= 2 * LATENESS_MS
        moved = (times - START_MS) // WINDOW_MS >= self.windows // 2
        positive = rng.random(count) < np.where(moved, 0.5, 2 / 7)
        scores = np.where(positive, rng.beta(3, 5, count), rng.beta(2, 6, count))
        amounts = rng.normal(np.where(positive, 1.0, 0.0), 1.0)
        where = rng.integers(0, len(SEGMENTS), count)
        rows = zip(*(column.tolist() for column in (times, scores, amounts, where)), strict=True)
        records = [
            b'{"stream":"s0","timestamp":%d,"posteriors":[%.4f,%.4f],"features":{"amount":%.4f},"segment":{"country":"%b"}}'
            % (at, 1 - float(f"{score:.4f}"), score, amount, SEGMENTS[segment].encode())
            for at, score, amount, segment in rows
        ]
        for number in range(REJECTED_EVERY, count, REJECTED_EVERY):
            records[number] = b'{"stream":"s0","timestamp":%d,"posteriors":[0.5,"half"]}' % times[number]
        end = START_MS + span + 86_400_000
        return [*records, b'{"stream":"s0","timestamp":%d,"posteriors":[0.5,0.5],"features":{"amount":0}}' % end]

    def save(self, folder: Path) -> None:
        """The reference, and the partitions as files."""
        rng = np.random.default_rng(self.seed)
        positive: Flags = rng.random(4_000) < 2 / 7
        scores = np.where(positive, rng.beta(3, 5, 4_000), rng.beta(2, 6, 4_000))
        amounts = rng.normal(np.where(positive, 1.0, 0.0), 1.0)
        labels: Labels = positive.astype(np.int64)
        Reference.fit(
            np.column_stack([1 - scores, scores]),
            labels,
            features=amounts[:, None],
            classes=["no", "yes"],
            feature_names=["amount"],
            stream=STREAM,
        ).save(folder / "s0.ref")
        (folder / "events").mkdir()
        for partition, records in self.records.items():
            (folder / "events" / f"{partition}.jsonl").write_bytes(b"\n".join(records) + b"\n")


def closed_by_watermark(results: Path) -> list[bytes]:
    """What a replay says of windows that a topic would have closed; its partitions are the topic's, and no files."""
    lines = (line for line in results.read_bytes().splitlines() if b'"end-of-input"' not in line)
    return [re.sub(rb'"(\d)\.jsonl"', rb'"events-\1"', line) for line in lines]


def config(source: str, sink: str, most: int = 1_000_000) -> str:
    """The same streams, whatever the ends are; of each window at most so many events are kept."""
    return f"""
[source]
{source}

[sink]
{sink}

[pace]
commit = "2s"
idle = "8s"

[streams.s0]
reference = "s0.ref"
window = {{ size = "{WINDOW_MS // 1000}s", lateness = "{LATENESS_MS // 1000}s", max_events = {most} }}
segments = ["country"]
changes = "page-hinkley"
"""
