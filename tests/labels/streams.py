"""Scored events and their labels, some time later: what a service with a feedback loop sends."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.service.streams import SECOND_MS, START_MS, scores

Record = tuple[int, bytes]
"""When it is sent (milliseconds), and what."""


def country(number: int) -> str:
    """Of the event of this number."""
    return ["BE", "FR", "BE", "NL", "LU"][number % 5]


@dataclass(frozen=True)
class Feedback:
    """One event a second; what becomes of their labels."""

    events: int = 400
    positives: float = 0.3
    delay: int = 30
    """Seconds until a label comes, at most."""
    missing: float = 0.1
    duplicate: float = 0.05
    contradicting: float = 0.05
    stranger: float = 0.05
    """Labels of events that never were."""
    copies: float = 0.1
    """Labels that come as copies of the event, with its own timestamp."""
    seed: int = 3
    segments: bool = False
    """Whether events say of which country they are."""
    turned_from: int | None = None
    """The event from which on labels are of the other class."""
    records: list[Record] = field(default_factory=list, compare=False)
    truth: dict[str, int] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        posteriors, labels = scores(self.events, self.positives, self.seed)
        if self.turned_from is not None:
            labels[self.turned_from :] = 1 - labels[self.turned_from :]
        for number, (row, label) in enumerate(zip(posteriors.tolist(), labels.tolist(), strict=True)):
            sent = START_MS + number * SECOND_MS
            name = f"e{number}"
            event: dict[str, Any] = {"stream": "s", "id": name, "timestamp": sent, "posteriors": row}
            if self.segments:
                event["segment"] = {"country": country(number)}
            self.records.append((sent, json.dumps(event).encode()))
            if rng.random() < self.missing:
                continue
            came = sent + int(rng.integers(1, self.delay + 1)) * SECOND_MS
            word = ["no", "yes"][label]
            if rng.random() < self.copies:
                self.records.append((came, json.dumps({**event, "label": word}).encode()))
            else:
                self.records.append((came, told(name, word, came)))
            self.truth[name] = label
            if rng.random() < self.duplicate:
                self.records.append((came + 500, told(name, word, came + 500)))
            if rng.random() < self.contradicting:
                self.records.append((came + 700, told(name, ["yes", "no"][label], came + 700)))
                self.truth[name] = 1 - label
            if rng.random() < self.stranger:
                self.records.append((came, told(f"never{number}", word, came)))
        self.records.sort(key=lambda record: record[0])

    @property
    def together(self) -> dict[str, list[bytes | None]]:
        """Events and labels in one partition."""
        return {"p": [record for _, record in self.records]}

    @property
    def apart(self) -> dict[str, list[bytes | None]]:
        """Events in one partition, plain labels in another."""
        whole = [record for _, record in self.records]
        return {
            "events": [record for record in whole if b"posteriors" in record],
            "labels": [record for record in whole if b"posteriors" not in record],
        }


def told(name: str, label: str, when: int) -> bytes:
    """A label event."""
    return json.dumps({"stream": "s", "id": name, "timestamp": when, "label": label}).encode()
