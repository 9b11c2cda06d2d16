"""Small real streams for the service's tests: a two-class classifier's events as JSON lines, and its reference."""

import json
from functools import cache

import numpy as np

from monitor.kinds import Declared
from monitor.reference.classifier import Reference

START_MS = 1_750_000_000_000
SECOND_MS = 1_000
ONLY_MIX = Declared(only_mix=True)
"""Scores alone, in windows of a few hundred events, are corrected only by those who know that nothing else moves."""


@cache
def reference() -> Reference:
    """From 2,000 labelled events at 30 % positives."""
    posteriors, labels = scores(2_000, 0.3, seed=1)
    return Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s")


def scores(events: int, positives: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated posteriors at a source prior of 0.3, and the labels."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(events) < positives).astype(int)
    evidence = rng.normal(loc=2.0 * labels - 1.0, scale=1.0)
    odds = 0.3 / 0.7 * np.exp(2.0 * evidence)
    positive = odds / (1 + odds)
    return np.column_stack([1 - positive, positive]), labels


def lines(
    events: int, positives: float = 0.3, seed: int = 2, *, segment: bool = False, jitter_ms: int = 0
) -> list[bytes | None]:
    """One event a second, in a random order within `jitter_ms`."""
    rng = np.random.default_rng(seed)
    posteriors, _ = scores(events, positives, seed)
    records: list[bytes | None] = []
    for number, (negative, positive) in enumerate(posteriors.tolist()):
        late = int(rng.integers(0, jitter_ms + 1))
        event = {
            "stream": "s",
            "timestamp": START_MS + number * SECOND_MS - late,
            "posteriors": [negative, positive],
        }
        if segment:
            event["segment"] = {"country": "BE" if number % 3 else "FR"}
        records.append(json.dumps(event).encode())
    return records
