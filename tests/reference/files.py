"""The same labelled events as .jsonl and .csv."""

import csv
import json
from pathlib import Path

from tests.reference.worlds import CLASSES, world


def write_jsonl(path: Path, rows: int = 200, seed: int = 0, **changes) -> Path:
    """One scored event a line; `changes` maps a row number (as "row7") to fields that replace its own."""
    posteriors, labels, features = world(rows, seed)
    with path.open("w") as file:
        for i in range(rows):
            event = {
                "stream": "fraud-v3",
                "posteriors": dict(zip(CLASSES, posteriors[i].tolist(), strict=True)),
                "features": {
                    "a": features[i, 0],
                    "b": None if i % 10 == 0 else features[i, 1],
                    "country": "BENL"[i % 2 * 2 :][:2],
                },
                "label": CLASSES[labels[i]],
            }
            file.write(json.dumps(event | changes.get(f"row{i}", {})) + "\n")
    return path


def write_csv(path: Path, rows: int = 200, seed: int = 0) -> Path:
    """The same events as a table."""
    posteriors, labels, features = world(rows, seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["label", *(f"posteriors.{c}" for c in CLASSES), "a", "b", "features.country"])
        for i in range(rows):
            b = "" if i % 10 == 0 else features[i, 1]
            writer.writerow([CLASSES[labels[i]], *posteriors[i].tolist(), features[i, 0], b, "BENL"[i % 2 * 2 :][:2]])
    return path
