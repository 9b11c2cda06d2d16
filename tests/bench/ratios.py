"""The ratios that guard speed: the hot paths against a bare loop over the same data, in the same run.

    python -m tests.bench.ratios [--report FILE] [--check]

With `--check` nothing is written: the run fails if a ratio is beyond the report's by more than noise. A ratio that
looks worse is measured once more before it counts.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from connectors.worlds import Form
from monitor.assessment.classifier import assess
from tests.bench import growth, ingest
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown, tables
from tests.bench.timing import Spent, Work, interleaved
from tests.bench.window import FEATURES, reference, stably_sorted, window

NOISE = 0.3
"""Best over best of some interleaved rounds repeats within a tenth on a quiet machine, and a quarter on a busy one."""
ROUNDS = 7
COLUMNS = ("what", "against", "ratio", "lowest to highest round")
HEAD = """# What guards speed

Made by `python -m tests.bench.ratios`. Processor time of a hot path over that of a bare loop on the same data in
the same run, the best of {rounds} interleaved rounds. `.ci/run` measures them again, and fails where one is more than
{noise:.0%} worse.

"""

Measure = Callable[[int], Iterator[tuple[str, str, Spent, Spent]]]
"""Some ratios: what, against what, and the rounds of either."""


def of_windows(rounds: int) -> Iterator[tuple[str, str, Spent, Spent]]:
    """Small windows against calls that cost what a call costs, large ones against a stable sort of the same columns.

    NumPy's own sort is ten times as fast on some processors as on others, which would say nothing of us.
    """
    known, narrow, few = reference(FEATURES), reference(1), np.ones(10)
    large = window(100_000, FEATURES)
    works: dict[str, Work] = {
        "2,000 sums of ten numbers": lambda: [few.sum() for _ in range(2_000)],
        "stable sort, 10,000": lambda: stably_sorted(stable),
        "stable sort, 100,000": lambda: stably_sorted(large),
        "200 events x 10, with JSON": lambda: assess(tiny, known).to_json(),
        "1,000 events x 10, with JSON": lambda: assess(small, known).to_json(),
        "200 events x 1, with JSON": lambda: assess(least, narrow).to_json(),
        "1,000 events x 1, with JSON": lambda: assess(slim, narrow).to_json(),
        "10,000 events x 10": lambda: assess(stable, known),
        "10,000 events x 10, one input moved": lambda: assess(moved, known),
        "10,000 events x 10, an unknown class": lambda: assess(strange, known),
        "100,000 events x 10": lambda: assess(large, known),
    }
    tiny, small, stable = (window(events, FEATURES) for events in (200, 1_000, 10_000))
    least, slim = window(200, 1), window(1_000, 1)
    moved, strange = window(10_000, FEATURES, 0.2), window(10_000, FEATURES, unknown=0.05)
    for work in works.values():
        work()
    spent = interleaved(works, rounds)
    calls, *_ = bares = list(works)[:3]
    for name in list(works)[3:]:
        bare = calls if "JSON" in name else f"stable sort, {name.split()[0]}"
        assert bare in bares
        yield f"assess: {name}", bare, spent[name], spent[bare]


def of_streams(rounds: int) -> Iterator[tuple[str, str, Spent, Spent]]:
    """Many streams in one partition against one, with the same events."""
    works = {str(streams): growth.ingested(50_000, growth.tumbling(10**9), streams) for streams in (1, 1_000)}
    spent = interleaved(works, rounds)
    yield "ingest: 1,000 streams in one partition", "one stream", spent["1000"], spent["1"]


def of_lines(rounds: int) -> Iterator[tuple[str, str, Spent, Spent]]:
    """Lines of a file to closed windows against their bare typed decode."""
    forms: tuple[Form, ...] = ("list", "object")
    for form in forms:
        with tempfile.TemporaryDirectory() as folder:
            spent, _ = ingest.measure(ingest.Case(2, 10, form), 20_000, rounds, Path(folder))
        yield f"ingest: lines to windows, 2 classes x 10, {form}", "bare decode", spent["windows"], spent["bare"]


MEASURES: tuple[Measure, ...] = (of_windows, of_streams, of_lines)


def beyond(found: Mapping[str, float], kept: Mapping[str, float]) -> dict[str, str]:
    """What is worse than it was by more than noise, in words; what the report does not know is new, and no worse."""
    return {
        name: f"{name}: {ratio:.2f}, {kept[name]:.2f} in the last report"
        for name, ratio in found.items()
        if name in kept and ratio > (1 + NOISE) * kept[name]
    }


def checked(kept: Mapping[str, float], rounds: int) -> list[str]:
    """What is worse than the report says, twice."""
    worse: list[str] = []
    for measure in MEASURES:
        first = beyond(_ratios(measure, rounds), kept)
        if first:
            worse += beyond(_ratios(measure, 2 * rounds), {name: kept[name] for name in first}).values()
    return worse


def _ratios(measure: Measure, rounds: int) -> dict[str, float]:
    return {what: own.best / bare.best for what, _, own, bare in measure(rounds)}


def read(report: Path) -> dict[str, float]:
    """The ratios of a report."""
    (table,) = tables(report.read_text(encoding="utf-8"))
    return {row[0]: float(row[2].replace(",", "")) for row in table.rows}


def main() -> int:
    parser = options(__doc__, REPORTS / "ratios.md")
    parser.add_argument("--check", action="store_true", help="fail where a ratio is worse than in the report")
    given = parser.parse_args()
    rounds = 3 if given.quick else ROUNDS
    if given.check:
        worse = checked(read(given.report), rounds)
        print("\n".join(worse) or "no ratio is worse than in the last report")
        return len(worse) > 0
    rows = []
    for measure in MEASURES:
        for what, bare, own, against in measure(rounds):
            low, high = (pick(np.divide(own.seconds, against.seconds)) for pick in (np.min, np.max))
            rows.append((what, bare, f"{own.best / against.best:.2f}", f"{low:.2f} to {high:.2f}"))
    text = HEAD.format(rounds=rounds, noise=NOISE) + markdown(COLUMNS, rows)
    print(text)
    given.report.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
