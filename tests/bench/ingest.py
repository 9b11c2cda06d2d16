"""How fast JSONL bytes become closed windows, against the bare typed decode of the same lines in the same run.

    python -m tests.bench.ingest [--events 100000] [--rounds 9]

The rounds of all steps are interleaved and each step's best one counts: what else the machine does then hits all alike.
"""

import gc
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from connectors.jsonl import JsonlSource
from connectors.synthetic import SyntheticOptions, write
from connectors.worlds import Form, Period, World
from monitor.events.decoding import Decoder
from monitor.ports import RawBatch
from monitor.ports.schema import StreamSchema
from monitor.service.memory import keep_freed_memory
from monitor.windows.assembly import Windowing
from monitor.windows.batch import StreamRows
from monitor.windows.by_time import TimePlan
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown
from tests.bench.timing import Spent, interleaved

STREAM = "demo"
LATER = 2**60  # no event lies in the future
PLAN = TimePlan(size=600_000_000, slide=600_000_000, lateness=30_000_000, most=1_000_000)  # 10,000 events a window
HOLD = TimePlan(size=10**15, slide=10**15, lateness=0, most=10**9)  # one window that holds everything

STEPS = ("bare", "bare from bytes", "columns", "windows")
RATIOS = ("bare / windows (lowest and highest round)", "bare from bytes / windows")
COLUMNS = ("classes", "features", "form", *STEPS, "events/s", *RATIOS, "bytes held / float64 columns")
HEAD = """# From JSONL bytes to closed windows

Made by `python -m tests.bench.ingest --events {events} --rounds {rounds}`.

Bare: msgspec decodes lines that lie ready in memory into a hand-written struct of exactly these fields.
Bare from bytes: the same for each line of the file as Python iterates over it.
Columns: file to checked columns. Windows: file to closed, ordered windows of 10,000 events.
All steps run with `keep_freed_memory`, as the service does. Other work on the machine costs the steps with large arrays
more than the bare decode. Nanoseconds of processor time an event on one core, the best round of each step.

"""


@dataclass(frozen=True)
class Case:
    """What the events look like."""

    classes: int
    features: int
    form: Form

    @property
    def world(self) -> World:
        names = tuple(f"class-{number}" for number in range(self.classes))
        axes = tuple(f"feature-{number}" for number in range(self.features or 4))
        return World(STREAM, names, (1 / self.classes,) * self.classes, axes)

    @property
    def schema(self) -> StreamSchema:
        return self.world.schema if self.features else StreamSchema(STREAM, self.world.classes)

    def write(self, events: int, folder: Path) -> Path:
        """A file of such events."""
        path = folder / "events.jsonl"
        periods = (Period("calm", events),)
        write(path, SyntheticOptions(self.world, periods, form=self.form, features=bool(self.features)))
        return path

    def bare(self) -> Callable[[bytes], Any]:
        """The typed decode that one would write by hand for exactly these events."""
        fields: list[tuple[str, Any]] = [("stream", str), ("id", str), ("timestamp", str)]
        fields.append(("posteriors", self._vector(self.world.classes, self.classes)))
        if self.features:
            fields.append(("features", self._vector(self.world.features, self.features)))
        return msgspec.json.Decoder(msgspec.defstruct("Event", fields, gc=False)).decode

    def _vector(self, names: tuple[str, ...], size: int) -> Any:
        if self.form == "list":
            return tuple.__class_getitem__((float,) * size)
        places = [f"x{number}" for number in range(size)]
        rename = dict(zip(places, names, strict=True))
        return msgspec.defstruct("Vector", [(place, float) for place in places], rename=rename, gc=False)


def read(path: Path) -> Iterator[RawBatch]:
    """The file as records."""
    source = JsonlSource(path)
    source.start(None)
    while not source.finished:
        yield from source.poll(0)


def each(batches: Iterable[Any], step: Callable[[Any], object]) -> None:
    """Do something with every batch, and keep nothing."""
    for batch in batches:
        step(batch)


def bare_file(path: Path, bare: Callable[[bytes], Any]) -> None:
    """What one would write by hand for a file; nothing is kept."""
    with path.open("rb", buffering=1 << 20) as file:
        for line in file:
            bare(line)


def windows(path: Path, decoder: Decoder, plan: TimePlan) -> Windowing:
    """The whole path, as the service walks it; the windows are closed and dropped."""
    source, windowing = JsonlSource(path), Windowing({STREAM: plan})
    source.start(None)
    while not source.finished:
        for batch in source.poll(0):
            decoded = decoder.decode(batch, LATER)
            rows = [StreamRows(one.streams, one.rows, batch.offsets[one.index]) for one in decoded.together]
            windowing.add(batch.partition, batch.next_offset, rows)
        for _ in windowing.close(source.partitions()):
            pass
    return windowing


def measure(case: Case, events: int, rounds: int, folder: Path) -> tuple[dict[str, Spent], float]:
    """Processor time by step; and bytes a buffered event over those of its columns."""
    path = case.write(events, folder)
    decoder, bare = Decoder([case.schema]), case.bare()
    ready = [list(batch.records) for batch in read(path)]
    steps: dict[str, Callable[[], object]] = {
        "bare": lambda: each(ready, lambda records: [bare(record) for record in records]),
        "bare from bytes": lambda: each([path], lambda file: bare_file(file, bare)),
        "columns": lambda: each(read(path), lambda batch: decoder.decode(batch, LATER)),
        "windows": lambda: windows(path, decoder, PLAN),
    }
    return interleaved(steps, rounds), held(path, decoder) / (events * 8 * (1 + case.classes + case.features))


def held(path: Path, decoder: Decoder) -> int:
    """Bytes that an open window holds with all events of the file in it."""
    decoder.decode(next(read(path)), LATER)  # whatever is made once has been made
    gc.collect()
    tracemalloc.start()
    windowing = windows(path, decoder, HOLD)
    gc.collect()
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert windowing.rows
    return now


def main() -> None:
    parser = options(__doc__, REPORTS / "ingest.md")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    if given.quick:
        given.events, given.rounds = 20_000, 3
    keep_freed_memory()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in (Case(c, f, form) for form in ("list", "object") for c in (2, 10) for f in (0, 10)):
            spent, memory = measure(case, given.events, given.rounds, Path(folder))
            whole = spent["windows"]
            times = [f"{spent[name].best / given.events * 1e9:.0f}" for name in STEPS]
            ratios = [spent[name].ratio(whole) for name in ("bare", "bare from bytes")]
            speed = f"{given.events / whole.best:,.0f}"
            rows.append([case.classes, case.features, case.form, *times, speed, *ratios, f"{memory:.2f}"])
    text = HEAD.format(events=given.events, rounds=given.rounds) + markdown(COLUMNS, rows)
    print(text)
    given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
