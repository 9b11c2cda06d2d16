"""Where the time goes on the hot paths, and how far each is from what the machine could do at best.

    python -m tests.bench.profiles [--quick] [--report FILE]

Every path is timed without a profiler, then run once under cProfile; the tables show its functions by their own time
(cProfile makes calls of small Python functions look dearer than they are, and calls into C as dear as they are). The
limits are measured in the same run: copying memory, multiplying matrices, cosines, sorting, and the bare decode.
"""

import cProfile
import pstats
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from monitor.arrays import Matrix
from monitor.assessment.classifier import assess
from monitor.events.decoding import Decoder
from monitor.priors import em, maps
from monitor.reference.classifier import Reference
from monitor.service.memory import keep_freed_memory
from monitor.tolerances import LIKELIHOOD_GAP
from tests.bench import ingest, worlds
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown
from tests.bench.timing import Work, interleaved

SHOWN = 12
FEATURES, CLASSES = 10, 3
BLOCK = 100_000
"""Values at a time: they stay in the cache, as those of the feature maps do."""


class Ingest:
    """JSON lines to closed windows: ten classes and ten features, as lists."""

    limit = "parsing: msgspec's typed decode of the same lines, one by one from the same file"

    def __init__(self, events: int, folder: Path) -> None:
        self.name = f"ingest of {events:,} events"
        case = ingest.Case(10, FEATURES, "list")
        path = case.write(events, folder)
        bare, decoder = case.bare(), Decoder([case.schema])
        self.work: Work = lambda: ingest.windows(path, decoder, ingest.PLAN)
        self.least: Work = lambda: ingest.bare_file(path, bare)


class Assessment:
    """One window against a reference of 10,000 rows."""

    limit = "sorting: NumPy sorts every feature once"

    def __init__(self, events: int) -> None:
        self.name = f"assessment of {events:,} events, {FEATURES} features, {CLASSES} classes"
        reference = worlds.reference(10_000, FEATURES, CLASSES)
        window = worlds.window(events, FEATURES, CLASSES)
        columns = worlds.scored(events, FEATURES, CLASSES, 2)[1].T.copy()
        self.work: Work = lambda: assess(window, reference)
        self.least: Work = lambda: np.sort(columns, axis=1)


class Likelihood:
    """EM on the posteriors of ten classes, to the gap that an assessment asks for."""

    def __init__(self, events: int) -> None:
        self.name = f"EM on {events:,} events, 10 classes"
        posteriors, _, _ = worlds.scored(events, FEATURES, 10, 4)
        source, row = np.full(10, 0.1), np.ones(events)
        self.work: Work = lambda: em.maximum_likelihood(posteriors, source, tolerance=LIKELIHOOD_GAP)
        iterations = em.maximum_likelihood(posteriors, source, tolerance=LIKELIHOOD_GAP).iterations
        self.limit = f"memory: {iterations} iterations, each two products of the posteriors with a vector"
        self.least: Work = lambda: [(posteriors @ source, row @ posteriors) for _ in range(iterations)]


class Build:
    """Everything that a reference holds."""

    limit = "cosines: NumPy's, as many as there are random features in all statistics"

    def __init__(self, rows: int) -> None:
        self.name = f"reference of {rows:,} events"
        posteriors, x, labels = worlds.scored(rows, FEATURES, CLASSES, 1)
        self.work: Work = lambda: Reference.fit(posteriors, labels, x)
        blocks, angles = cosines(self.work) // BLOCK, np.random.default_rng(5).normal(size=BLOCK)
        self.least: Work = lambda: [np.cos(angles) for _ in range(blocks)]


def cosines(work: Work) -> int:
    """How many random features a piece of work computes."""
    count, original = 0, maps.fourier

    def counting(*arguments: Any) -> Matrix:
        nonlocal count
        found = original(*arguments)
        count += found.size
        return found

    with patch.object(maps, "fourier", counting):
        work()
    return count


def machine(megabytes: int) -> list[tuple[str, str]]:
    """What one core can do at best, in blocks like ours and in blocks that no cache holds."""
    big = np.ones(megabytes * 125_000)
    target, angles = np.empty_like(big), np.random.default_rng(6).normal(size=BLOCK)
    square = np.random.default_rng(7).normal(size=(1_000, 1_000))
    tall, row = big.reshape(-1, 10), np.ones(10)
    works: dict[str, Work] = {
        "copying": lambda: np.copyto(target, big),
        "product": lambda: tall @ row,
        "square": lambda: square @ square,
        "cosines": lambda: np.cos(angles),
    }
    best = {name: spent.best for name, spent in interleaved(works, 7).items()}
    return [
        (f"copying {megabytes} MB, read and written", f"{2 * big.nbytes / best['copying'] / 1e9:.1f} GB/s"),
        (f"reading {megabytes} MB in a product with a vector of ten", f"{big.nbytes / best['product'] / 1e9:.1f} GB/s"),
        ("a product of matrices of 1,000 by 1,000", f"{2e9 / best['square'] / 1e9:.1f} GFLOP/s"),
        (f"cosines of {BLOCK:,} values", f"{BLOCK / best['cosines'] / 1e6:.0f} M/s"),
    ]


def hottest(work: Work) -> list[tuple[str, int, str, str]]:
    """The functions with the most time of their own: where, calls, share of the time, share with what they call."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    found: Mapping[tuple[str, int, str], tuple[int, int, float, float, Any]] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in found.values())
    ranked = sorted(found.items(), key=lambda item: -item[1][2])[:SHOWN]
    return [
        (_place(*where), calls, f"{own / total:.1%}", f"{whole / total:.1%}")
        for where, (_, calls, own, whole, _) in ranked
    ]


def _place(file: str, line: int, function: str) -> str:
    """A function by module; nothing of the machine's folders."""
    inside = re.search(r"(?:site-packages|python3\.\d+)/(.*)|((?:monitor|connectors|tests)/.*)", file)
    name = f"{inside[1] or inside[2]}:{line} {function}" if inside else function
    return f"`{re.sub(' at 0x[0-9a-f]+', '', name)}`"


def main() -> None:
    given = options(__doc__, REPORTS / "profiles.md").parse_args()
    keep_freed_memory()  # as the service does
    scale = 10 if given.quick else 1
    rows, details = [], []
    with tempfile.TemporaryDirectory() as folder:
        for path in (
            Ingest(100_000 // scale, Path(folder)),
            Assessment(100_000 // scale),
            Likelihood(1_000_000 // scale),
            Build(10_000 // scale),
        ):
            rounds = 1 if isinstance(path, Build) else 5
            spent = interleaved({"work": path.work, "least": path.least}, rounds)
            work, least = spent["work"], spent["least"]
            functions = hottest(path.work)
            times = [f"{1e3 * one.best:,.0f}" for one in (work, least)]
            largest = ", ".join(f"{place} {own}" for place, _, own, _ in functions[:3])
            rows.append([path.name, times[0], path.limit, times[1], work.ratio(least), largest])
            details.append((path.name, functions))
            print(rows[-1], flush=True)
    columns = ["path", "ms", "its limit", "ms of the limit alone", "path / limit (lowest and highest)", "largest costs"]
    parts = [
        f"# Where the time goes\n\n{__doc__.partition('.')[2].strip()}\n",
        markdown(columns, rows),
        "## What one core of this machine can do\n",
        markdown(["", ""], machine(40 if given.quick else 400)),
    ]
    for name, functions in details:
        parts += [f"## {name}\n", markdown(["function", "calls", "own time", "with what it calls"], functions)]
    text = "\n".join(parts)
    given.report.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
