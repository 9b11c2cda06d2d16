"""How the cost grows with everything that can grow: exponents of processor time and of memory, and what they should be.

    python -m tests.bench.growth [--quick] [--report FILE]

Each quantity is doubled or more several times with the others held fixed. The exponent is the slope on two logarithmic
axes: 1 is proportional, 0 does not depend. "All" is fitted to all sizes, "end" to the last three, where fixed costs
hide less; the end is what is judged. Memory is the highest of what Python and NumPy allocated during the
work (tracemalloc), measured in a run of its own.
"""

import gc
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.assessment.classifier import assess
from monitor.events.decoding import Decoder
from monitor.ports import RawBatch
from monitor.priors import em
from monitor.windows.assembly import Windowing
from monitor.windows.batch import StreamRows
from monitor.windows.by_time import TimePlan
from tests.bench import worlds
from tests.bench.options import REPORTS, options
from tests.bench.pictures import pyplot
from tests.bench.tables import exponent, markdown
from tests.bench.timing import Spent, Work, interleaved

LATER = 2**60  # no event lies in the future
SLACK = 0.2
"""An end exponent above its bound by more than this is called too fast: caches and fixed costs bend the line so far."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One quantity that grows."""

    what: str
    sizes: tuple[int, ...]
    work: Callable[[int], Work]
    time: float
    """The exponent that the end of the line may have, and that of memory; with the reason."""
    memory: float
    why: str


@dataclass(frozen=True, slots=True)
class Grown:
    """What was found."""

    growth: Growth
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]
    bytes: tuple[int, ...]

    def row(self) -> list[str]:
        """As the table shows it."""
        growth, (low, *_, high) = self.growth, self.sizes
        cells = [growth.what, f"{low:,} to {high:,}", f"{1e3 * self.seconds[-1]:,.1f}"]
        for costs, bound in ((self.seconds, growth.time), (self.bytes, growth.memory)):
            end = exponent(self.sizes[-3:], costs[-3:])
            judged = "" if end <= bound + SLACK else " **too fast**"
            cells += [_plain(exponent(self.sizes, costs)), _plain(end) + judged, f"{bound:g}"]
        return [*cells[:3], *cells[3:6], f"{self.bytes[-1] / 1e6:,.1f}", *cells[6:], growth.why]


HEAD = (
    "what grows", "from, to", "ms at the end", "time: all", "end", "at most",
    "MB at the end", "memory: all", "end", "at most", "why this bound",
)  # fmt: skip


def _plain(slope: float) -> str:
    """Two decimals, and no minus before a zero."""
    return f"{round(slope, 2) + 0.0:.2f}"


def assessed(rows: int = 10_000, features: int = 10, classes: int = 3, known: int = 10_000) -> Work:
    """Assessing one window."""
    window, reference = worlds.window(rows, features, classes), worlds.reference(known, features, classes)
    return lambda: assess(window, reference)


def fitted(events: int = 100_000, classes: int = 5) -> Work:
    """Maximum likelihood alone."""
    posteriors, _, _ = worlds.scored(events, 10, classes, 4)
    source = np.full(classes, 1 / classes)
    return lambda: em.maximum_likelihood(posteriors, source)


def ingested(events: int, plan: TimePlan, streams: int = 1, step_ms: int = 1) -> Work:
    """From records to closed windows, which are dropped."""
    batches = list(worlds.batches(events, streams, step_ms))
    names = ["bench"] if streams == 1 else [f"stream-{number}" for number in range(streams)]
    decoder = Decoder([worlds.schema(0, 2, name) for name in names])
    return lambda: _through(batches, decoder, Windowing(dict.fromkeys(names, plan)))


def _through(batches: Iterable[RawBatch], decoder: Decoder, windowing: Windowing) -> None:
    for batch in batches:
        decoded = decoder.decode(batch, LATER)
        assert not decoded.rejected
        rows = [StreamRows(one.streams, one.rows, batch.offsets[one.index]) for one in decoded.together]
        windowing.add(batch.partition, batch.next_offset, rows)
        for _ in windowing.close([batch.partition]):
            pass
        windowing.checkpoint()


def tumbling(size_ms: int, lateness_ms: int = 0) -> TimePlan:
    """Windows one after the other."""
    return TimePlan(size_ms * 1000, size_ms * 1000, lateness_ms * 1000, 10**7)


def all_of_them(quick: bool) -> list[Growth]:
    """Everything that can grow."""
    most = 1 if quick else 4
    events = 25_000 * most
    return [
        Growth(
            "assess: events of the window", (1_000, 4_000, 16_000, 64_000, 256_000)[: most + 1],
            lambda n: assessed(rows=n), 1, 1, "one pass and one sort",
        ),
        Growth(
            "assess: features", (4, 8, 16, 32, 64, 128)[: most + 2],
            lambda n: assessed(features=n), 1, 1, "each on its own; pairs are looked at for a bounded number",
        ),
        Growth(
            "assess: classes", (2, 4, 8, 16, 32)[: most + 1],
            lambda n: assessed(classes=n), 2, 1, "matrices of classes times classes",
        ),
        Growth(
            "assess: rows of the reference", (5_000, 10_000, 20_000, 40_000, 80_000)[: most + 1],
            lambda n: assessed(known=n), 1, 1, "sorted profiles are merged with the window",
        ),
        Growth(
            "reference: labelled events", (2_500, 5_000, 10_000, 20_000, 40_000)[: most + 1],
            lambda n: lambda: worlds.reference(n, 10, 3), 1, 1, "sorted once; samples are bounded",
        ),
        Growth(
            "EM: events", (10_000, 40_000, 160_000, 640_000)[: most + 1],
            lambda n: fitted(events=n), 1, 1, "a bounded number of passes",
        ),
        Growth(
            "EM: classes", (2, 4, 8, 16, 32, 64)[: most + 2],
            lambda n: fitted(events=25_000 * most, classes=n), 2, 1, "curvature is classes times classes",
        ),
        Growth(
            "ingest: events", (12_500, 25_000, 50_000, 100_000, 200_000)[: most + 1],
            lambda n: ingested(n, tumbling(10_000)), 1, 1, "columns; the records lie in memory",
        ),
        Growth(
            "ingest: streams, same events", (1, 10, 100, 1_000)[: most + 1],
            lambda n: ingested(events, tumbling(10**9), n), 0.1, 0.5, "read alike, they are decoded and kept together",
        ),
        Growth(
            "ingest: windows closed, same events", (10, 100, 1_000, 10_000)[: most + 1],
            lambda n: ingested(events, tumbling(events // n)), 1, 0.5, "merging and ordering each window",
        ),
        Growth(
            "ingest: windows in flight, same events and windows", (1, 10, 100, 1_000)[: most + 1],
            lambda n: ingested(events, tumbling(events // 1_000, lateness_ms=n * events // 1_000)), 0.5, 1,
            "an open window waits; it is only looked at",
        ),
        Growth(
            "ingest: windows that overlap at each instant", (1, 4, 16, 64)[: most + 1],
            lambda n: ingested(events, TimePlan(64 * 10**6, 64 * 10**6 // n, 0, 10**7)), 1, 1,
            "every event is in each of them",
        ),
    ]  # fmt: skip


def measured(growth: Growth, rounds: int) -> Grown:
    """Time and memory at every size; the sizes take turns."""
    works = {str(size): growth.work(size) for size in growth.sizes}
    for work in works.values():
        work()
    spent: dict[str, Spent] = interleaved(works, rounds)
    return Grown(
        growth,
        growth.sizes,
        tuple(spent[str(size)].best for size in growth.sizes),
        tuple(peak(works[str(size)]) for size in growth.sizes),
    )


def peak(work: Work) -> int:
    """The most bytes that were allocated at once."""
    gc.collect()
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def picture(found: Sequence[Grown], path: Path) -> None:
    """Time and memory against size, all on logarithmic axes, each line relative to its first point."""
    plt = pyplot()

    figure, grid = plt.subplots(3, -(-len(found) // 3), figsize=(14, 9), layout="constrained")
    for axis, one in zip(grid.flat, found, strict=False):
        axis.loglog(one.sizes, [1e3 * s for s in one.seconds], marker="o", label="ms")
        axis.loglog(one.sizes, [b / 1e6 for b in one.bytes], marker="s", label="MB")
        bound = [1e3 * one.seconds[-1] * (size / one.sizes[-1]) ** one.growth.time for size in one.sizes]
        axis.loglog(one.sizes, bound, color="grey", linestyle=":", label=f"exponent {one.growth.time:g}")
        axis.set_title(one.growth.what, fontsize=9)
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=90)


def main() -> None:
    given = options(__doc__, REPORTS / "growth.md").parse_args()
    found = []
    for growth in all_of_them(given.quick):
        found.append(measured(growth, 2 if given.quick else 3))
        print(growth.what, found[-1].row()[3:10], flush=True)
    table = markdown(HEAD, [one.row() for one in found])
    text = f"# How the cost grows\n\n{__doc__.partition('.')[2].strip()}\n\n{table}"
    picture(found, given.report.with_suffix(".png"))
    given.report.write_text(text + f"\n![growth]({given.report.stem}.png)\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
