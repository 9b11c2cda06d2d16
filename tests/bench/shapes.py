"""What it costs to read events from records of another shape, and from tables, beside our own shape in the same run.

python -m tests.bench.shapes [--events 50000] [--rounds 9]
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from connectors.jsonl import JsonlSource
from connectors.table import TableSource
from monitor.events import Decoder, EventMapping
from monitor.ports import Source
from monitor.ports.schema import Feature, StreamSchema
from monitor.service.memory import keep_freed_memory
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown
from tests.bench.timing import interleaved

CLASSES = ("a", "b", "c")
INPUTS = tuple(f"x{number}" for number in range(10))
SCHEMA = StreamSchema("s", CLASSES, tuple(Feature(name) for name in INPUTS))
LATER = 2**60  # no event lies in the future
HEAD = """# Events from records of another shape, and from tables

Made by `python -m tests.bench.shapes --events {events} --rounds {rounds}`.

{events:,} events of 3 classes and 10 features, from a file to checked columns. Nanoseconds of processor time an event,
the best round of each; the ratio is to our own shape in the same rounds (lowest and highest).

"""

Event = Mapping[str, Any]


def event(row: int, scores: list[float], inputs: list[float]) -> dict[str, Any]:
    """In our own shape."""
    return {
        "stream": "s",
        "timestamp": str(np.datetime64(1_795_003_200_000_000 + row * 1_000, "us")) + "Z",
        "posteriors": dict(zip(CLASSES, scores, strict=True)),
        "features": dict(zip(INPUTS, inputs, strict=True)),
    }


def flat(own: Event) -> Event:
    """A field for each class and each feature."""
    return {"at": own["timestamp"]} | {f"p_{name}": p for name, p in own["posteriors"].items()} | own["features"]


def nested(own: Event) -> Event:
    """Objects in objects."""
    return {
        "meta": {"at": own["timestamp"]},
        "out": {"scores": list(own["posteriors"].values())},
        "in": own["features"],
    }


def text(own: Event) -> Event:
    """The answer as a text of JSON."""
    return {"meta": {"at": own["timestamp"]}, "response": json.dumps({"p": own["posteriors"]}), "in": own["features"]}


FLAT = EventMapping(
    stream="",
    timestamp="at",
    posteriors={name: f"p_{name}" for name in CLASSES},
    features={name: name for name in INPUTS},
)
NESTED = EventMapping(stream="", timestamp="meta.at", posteriors="out.scores", features="in")
TEXT = EventMapping(stream="", timestamp="meta.at", posteriors="response|json.p", features="in")
SHAPES: Mapping[str, tuple[EventMapping, Callable[[Event], Event]]] = {
    "our own": (EventMapping(), lambda own: own),
    "a field a class and a feature": (FLAT, flat),
    "objects in objects": (NESTED, nested),
    "a text of JSON inside": (TEXT, text),
}


def read(source: Source, decoder: Decoder) -> None:
    """All of it, to columns; nothing is kept."""
    source.start(None)
    while not source.finished:
        for batch in source.poll(0.0):
            assert not decoder.decode(batch, LATER).rejected


def main() -> None:
    parser = options(__doc__, REPORTS / "shapes.md")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    if given.quick:
        given.events, given.rounds = 10_000, 3
    keep_freed_memory()
    rng = np.random.default_rng(0)
    scores, inputs = rng.dirichlet([1, 1, 1], given.events).round(6), rng.normal(size=(given.events, 10)).round(4)
    events = [event(row, scores[row].tolist(), inputs[row].tolist()) for row in range(given.events)]
    with tempfile.TemporaryDirectory() as folder:
        works: dict[str, Callable[[], None]] = {}
        for number, (name, (mapping, shaped)) in enumerate(SHAPES.items()):
            path = Path(folder) / f"{number}.jsonl"
            path.write_text("".join(json.dumps(shaped(own)) + "\n" for own in events))
            decoder = Decoder([SCHEMA], mapping=mapping)
            works[f"JSON lines, {name}"] = lambda path=path, decoder=decoder: read(JsonlSource(path), decoder)
        table = Path(folder) / "t.parquet"
        rows = [{**own, "timestamp": np.datetime64(own["timestamp"][:-1], "us").item()} for own in events]
        zoned = pa.timestamp("us", "UTC")
        whole = pa.Table.from_pylist(rows)
        parquet.write_table(whole.set_column(1, "timestamp", whole["timestamp"].cast(zoned)), table)
        works["Parquet, our own"] = lambda: read(TableSource(table), Decoder([SCHEMA]))
        spent = interleaved(works, given.rounds)
    own = spent["JSON lines, our own"]
    figures = [(name, f"{each.best / given.events * 1e9:.0f}", each.ratio(own)) for name, each in spent.items()]
    page = HEAD.format(events=given.events, rounds=given.rounds) + markdown(("records", "ns", "ratio"), figures)
    print(page)
    given.report.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
