"""Made-up streams of any size for the benches: Gaussian classes, scored by Bayes' rule itself."""

import json
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np

from monitor.arrays import Labels, Matrix
from monitor.ports import RawBatch
from monitor.ports.schema import Feature, StreamSchema
from monitor.priors import ESTIMATORS
from monitor.reference.blocks import cut
from monitor.reference.classifier import Reference
from monitor.windows.window import Window
from tests.estimators import QUICK

START_MS = 1_760_000_000_000
BATCH = 5_000
"""Records a batch: what a poll brings of a file or of a busy partition."""


def scored(rows: int, features: int, classes: int, seed: int) -> tuple[Matrix, Matrix, Labels]:
    """Posteriors under equal priors, features, labels; the classes stand where they stand whatever the seed."""
    centres = np.random.default_rng(0).normal(size=(classes, features)) * min(1.0, np.sqrt(10 / features))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, size=rows)
    x = centres[labels] + rng.normal(size=(rows, features))
    logs = x @ centres.T - (centres**2).sum(axis=1) / 2
    logs -= logs.max(axis=1, keepdims=True)
    odds = np.exp(logs)
    return odds / odds.sum(axis=1, keepdims=True), x, labels


def schema(features: int, classes: int, stream: str = "bench") -> StreamSchema:
    """Plain names."""
    return StreamSchema(
        stream, tuple(f"class-{y}" for y in range(classes)), tuple(Feature(f"x{j}") for j in range(features))
    )


def window(rows: int, features: int, classes: int, seed: int = 2) -> Window:
    """A window in which nothing moved."""
    posteriors, x, _ = scored(rows, features, classes, seed)
    return Window.of(posteriors, x)


def reference(rows: int, features: int, classes: int, block: int | None = None) -> Reference:
    """With the estimators that every window reports; the statistics of the others take longer than all the rest."""
    posteriors, x, labels = scored(rows, features, classes, 1)
    labels[: 2 * classes] = np.tile(np.arange(classes), 2)
    with patch.dict(ESTIMATORS, QUICK, clear=True):
        return Reference.reduce(
            schema(features, classes),
            posteriors,
            labels,
            x,
            seed=0,
            calibration="temperature",
            blocks=None if block is None else cut(block, rows),
        )


def batches(events: int, streams: int = 1, step_ms: int = 1) -> Iterator[RawBatch]:
    """Two classes, no features, dealt to the streams in turn, in the order of time."""
    positive = np.random.default_rng(3).random(1_000).round(4).tolist()
    names = ["bench"] if streams == 1 else [f"stream-{number}" for number in range(streams)]

    def record(number: int) -> bytes:
        time = START_MS + number * step_ms
        share = positive[number % 1_000]
        share = positive[number % 1_000]
        event = {"stream": names[number % streams], "timestamp": time, "posteriors": [1.0 - share, share]}
        return json.dumps(event).encode()

    for begin in range(0, events, BATCH):
        numbers = range(begin, min(begin + BATCH, events))
        yield RawBatch("0", [record(number) for number in numbers], np.array(numbers), numbers[-1] + 1)
