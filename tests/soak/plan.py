"""What is soaked in what: sizes and times of a run, and every event of it, worked out from its number alone."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from monitor.reference.classifier import Reference
from tests.service.streams import scores

START_MS = 1_750_000_020_000
"""A full minute, at which windows of any plan begin."""

MALFORMED_EVERY = 997
LABELLED = 4
"""One event in so many gets a label, later."""
LABELS_LATE = 2.5
"""Windows, at most."""
MOVED, EPISODE = 10, 6
"""So many streams have another class mix in every other stretch of so many windows: alarms begin and end."""
ROWS = 10_000
LATENESS_MS = 1_000
COUNTRIES = ("BE", "BE", "FR")


@dataclass(frozen=True)
class Plan:
    """How long, how much, and what happens meanwhile; seconds."""

    seconds: float = 240.0
    rate: int = 1_200
    """Events a second, of all streams together."""
    streams: int = 60
    window: int = 20
    """Event time goes as fast as the clock."""
    remembered: int = 3
    """Windows that a page remembers: few, so that it is full before memory is judged."""
    kill_after: tuple[float, float] = (2.0, 20.0)
    """A random pause between the first result of a process and its SIGKILL."""
    rotate_every: float = 40.0
    outage_every: float = 90.0
    outage: tuple[float, float] = (5.0, 20.0)
    new_reference_at: float = 0.15
    """Of the whole; memory is judged in the second half."""

    steps: float = 0.1
    """Of what is resident: it may grow so much in the second half, as allocators step and young processes warm up."""

    @property
    def per_window(self) -> int:
        """Events of all streams in a window."""
        return self.rate * self.window

    @property
    def names(self) -> list[str]:
        return [f"s{number}" for number in range(self.streams)]

    @classmethod
    def lasting(cls, seconds: float) -> "Plan":
        """Minutes as CI has them; from half an hour on longer windows and outages."""
        if seconds < 1_800:
            return cls(seconds)
        return cls(
            seconds,
            window=60,
            remembered=12,
            kill_after=(5.0, 90.0),
            rotate_every=240.0,
            outage_every=420.0,
            outage=(20.0, 90.0),
            steps=0.03,
        )

    def save_references(self, folder: Path, seed: int) -> str:
        """One hold-out, a file for each stream; returns its version."""
        posteriors, labels = scores(2_000, 0.3, seed)
        kept = Reference.fit(
            posteriors,
            labels,
            features=inputs(labels, seed),
            feature_names=["amount", "age"],
            classes=["no", "yes"],
            segments={"country": [COUNTRIES[row % 3] for row in range(len(labels))]},
        )
        for name in self.names:
            beside = folder / f"{name}.ref.new"
            kept.save(beside)
            beside.replace(folder / f"{name}.ref")
        return kept.version


def inputs(labels: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng((seed, 1)).normal(labels[:, None], 1.0, (len(labels), 2))


@dataclass
class Events:
    """The n-th event belongs to stream n modulo their number, and to the time n / rate after the start."""

    plan: Plan
    sent: int = 0
    _labels: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    """By the number of the event that they come before: the number of theirs, and its class."""

    def __post_init__(self) -> None:
        self._usual, self._moved = (self._rows(positives) for positives in (0.3, 0.5))

    @staticmethod
    def _rows(positives: float) -> list[tuple[bytes, int]]:
        """What an event says, and its class."""
        posteriors, labels = scores(ROWS, positives, seed=3)
        columns = np.column_stack([posteriors, inputs(labels, 3)]).tolist()
        said = [b'"posteriors":[%.6f,%.6f],"features":[%.3f,%.3f]' % tuple(row) for row in columns]
        return list(zip(said, labels.tolist(), strict=True))

    def next(self, count: int) -> Iterator[tuple[int, bytes]]:
        """The stream of each of the next records, and the record."""
        plan = self.plan
        late = int(LABELS_LATE * plan.per_window)
        for number in range(self.sent, self.sent + count):
            stream, at = number % plan.streams, START_MS + number * 1000 // plan.rate
            for of, label in self._labels.pop(number, ()):
                told = {
                    "stream": f"s{of % plan.streams}",
                    "id": f"e{of}",
                    "timestamp": at,
                    "label": ["no", "yes"][label],
                }
                yield of % plan.streams, json.dumps(told).encode()
            if number % MALFORMED_EVERY == 0:
                yield stream, b'{"stream":"s%d","posteriors":[0.5' % stream
                continue
            moved = stream < MOVED and number // (EPISODE * plan.per_window) % 2
            said, label = (self._moved if moved else self._usual)[number % ROWS]
            country = COUNTRIES[number // plan.streams % 3].encode()
            yield (
                stream,
                b'{"stream":"s%d","id":"e%d","timestamp":%d,%b,"segment":{"country":"%b"}}'
                % (stream, number, at, said, country),
            )
            if number % LABELLED == number // plan.streams % LABELLED:
                self._labels[number + 1 + number * 7_919 % late].append((number, label))
        self.sent += count

    @property
    def at_border(self) -> bool:
        """Whether the next event begins a window."""
        return self.sent % self.plan.per_window == 0

    def start_ms(self, window: int) -> int:
        """Where a window begins in time, by its number."""
        return START_MS + window * self.plan.window * 1000

    @property
    def due(self) -> int:
        """How many windows of each stream must have been published, and not those of the last second."""
        return max(0, self.sent * 1000 // self.plan.rate - LATENESS_MS - 1000) // (self.plan.window * 1000)

    def used(self, stream: int, window: int) -> int:
        """How many events a window has to hold, counted apart from the product."""
        numbers = np.arange(window * self.plan.per_window, (window + 1) * self.plan.per_window)
        own = numbers[numbers % self.plan.streams == stream]
        return int((own % MALFORMED_EVERY != 0).sum())

    @property
    def malformed(self) -> int:
        return -(-self.sent // MALFORMED_EVERY)
