"""What the two stages of a job cost where a million events a second come from many partitions, in one process.

    python -m tests.bench.fan_in [--quick] [--report FILE]

Each partition brings in a batch what it has in 200 ms, as on Flink. Of the first stage as many tasks run side by side
as one likes; the second is one task for each stream: what it takes bounds how much one stream can bring. Three seconds
of a stream are simulated, in windows of two minutes, so that none closes. State is what a checkpoint holds then, and
however long the window lasts: beyond twice `max_events` rows are let go and counted.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from monitor import Reference
from monitor.assessment import Tallying
from monitor.events import Decoder
from monitor.ports import Progress, RawBatch
from monitor.service import PartMaker, PartMerger
from monitor.service.publishing import Watched
from monitor.windows import TimePlan
from tests.bench.options import options
from tests.bench.tables import markdown

START_US = 1_763_456_400_000_000
SECOND = 1_000_000
RATE = 1_000_000
"""Events a second."""
BATCHES = 5
"""Of a partition, in a second."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A stream, and how it comes."""

    partitions: int
    classes: int
    features: int
    most: int


SHAPES = (
    Shape(8, 2, 1, 1_000_000),
    Shape(100, 2, 1, 1_000_000),
    Shape(1_000, 2, 1, 1_000_000),
    Shape(1_000, 2, 1, 100_000),
    Shape(1_000, 10, 10, 100_000),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of some events."""

    events: int
    first: float
    """Processor seconds."""
    second: float
    sent: int
    """Bytes from the first stage to the second."""
    state: int
    """Bytes of the second."""

    def row(self, shape: Shape) -> list[str]:
        """As the table shows it."""
        million = self.events / 1e6
        figures = [f"{self.first / million:.1f}", f"{self.second / million:.2f}"]
        return [
            f"{shape.partitions:,}", f"{shape.classes} classes, {shape.features} features", f"{shape.most:,}",
            *figures, f"{self.sent / self.events:.0f}", f"{self.state / 1e6:.0f} MB",
        ]  # fmt: skip


def measured(shape: Shape, rate: int, seconds: int) -> Cost:
    """Both stages, batch by batch."""
    watched = {"s": stream(shape)}
    maker = PartMaker(watched, lambda: Decoder([watched["s"].reference.schema]))
    merger = PartMerger(watched, 10.0)
    parts: dict[str, bytes] = {}
    known: dict[str, bytes] = {}
    progress: dict[str, Progress] = {}
    events = sent = 0
    spent = [0.0, 0.0]
    for batch in batches(shape, rate, seconds):
        began = time.process_time()
        made = maker.take(batch, progress.get(batch.partition), (START_US + seconds * SECOND))
        between = time.process_time()
        merger.take("s", made.parts["s"], parts, known, events / rate)
        spent = [spent[0] + between - began, spent[1] + time.process_time() - between]
        assert not made.dead_letters
        progress[batch.partition] = made.progress
        events, sent = events + len(batch.records), sent + len(made.parts["s"])
    state = sum(map(len, parts.values())) + sum(map(len, known.values()))
    return Cost(events, *spent, sent, state)


def stream(shape: Shape) -> Watched:
    """Windows that stay open."""
    posteriors, inputs, labels = drawn(shape, 4_000)
    names = [f"f{number}" for number in range(shape.features)]
    reference = Reference.fit(posteriors, labels, inputs, feature_names=names, stream="s")
    plan = TimePlan(120 * SECOND, 120 * SECOND, 2 * SECOND, shape.most, tally=Tallying(reference))
    return Watched(reference, plan)


def drawn(shape: Shape, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Posteriors, inputs and labels."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % shape.classes
    posteriors = rng.dirichlet(np.ones(shape.classes), count) + 2 * np.eye(shape.classes)[labels]
    return posteriors / 3, rng.normal(size=(count, shape.features)) + 0.1 * labels[:, None], labels


def batches(shape: Shape, rate: int, seconds: int) -> Iterator[RawBatch]:
    """Of all partitions, turn by turn; each partition has the same events at the same time."""
    size = rate // shape.partitions // BATCHES
    posteriors, inputs, _ = drawn(shape, size)
    tails = [
        f'"posteriors":{row},"features":{values}}}'.replace(" ", "")
        for row, values in zip(posteriors.round(4).tolist(), inputs.round(4).tolist(), strict=True)
    ]
    step = SECOND // BATCHES / size
    for turn in range(seconds * BATCHES):
        begin = START_US + turn * SECOND // BATCHES
        records = [
            f'{{"stream":"s","timestamp":{(begin + number * step) / 1_000:.3f},{tail}'.encode()
            for number, tail in enumerate(tails)
        ]
        offsets = np.arange(turn * size, (turn + 1) * size)
        for partition in range(shape.partitions):
            yield RawBatch(f"events-{partition}", records, offsets, (turn + 1) * size)


def main() -> None:
    """Print the table."""
    given = options(__doc__).parse_args()
    rate, seconds = (100_000, 1) if given.quick else (RATE, 3)
    columns = [
        "partitions", "stream", "max_events", "first stage, processor seconds a million", "second",
        "bytes an event between them", "state",
    ]  # fmt: skip
    table = markdown(columns, [measured(shape, rate, seconds).row(shape) for shape in SHAPES])
    print(table)
    if given.report is not None:
        given.report.write_text("\n".join(["# fan_in", "", str(__doc__).strip(), "", table]), encoding="utf-8")


if __name__ == "__main__":
    main()
