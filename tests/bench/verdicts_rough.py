"""How often is the verdict right on columns that are mostly zero, on atoms and rare classes, and with small hold-outs?

    python -m tests.bench.verdicts_rough --state cells.jsonl [--seconds 300]

Three kinds of worlds beside those of `verdicts`: `zeros` (half of the numbers are 0 for most events, and long-tailed
amounts with two decimals for the others), `atoms` (half of the numbers take six values) and `rare` (the last class is
3 % of the events). Hold-outs of 300 to 50,000 events. Each world has a hold-out and a model of its own. What is done
stands in the state file, and is not done again.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from scipy.stats import binom

from monitor.assessment.classifier import assess
from monitor.reference.classifier import Reference
from monitor.reference.preflight import measure, rise_seen
from monitor.tolerances import VERDICT_LEVEL
from tests.bench.options import REPORTS, options
from tests.bench.verdicts import SHIFTS
from tests.bench.verdicts_worlds import World, held_out_rows, reference, window, world

SEED = 20261119
KINDS = ("zeros", "atoms", "rare")
CLASSES = (2, 3)
SIZES = {300: 100, 1_000: 100, 3_000: 300, 10_000: 1_000, 50_000: 5_000}
"""Events of a window, by those of the hold-out."""
WORLDS = 5
WINDOWS = {"none": 40, "prior": 12, "doubled": 12, "linear": 12, "unit": 12}
"""Of each shift in each world."""
EXPECTED = {**SHIFTS, "doubled": SHIFTS["prior"], "unit": SHIFTS["linear"]}
SHIFTS_OF = {
    "zeros": ("none", "prior", "linear", "unit"),
    "atoms": ("none", "prior", "linear", "unit"),
    "rare": ("none", "prior", "doubled", "linear"),
}
TITLES = ("Calibrated", "Classes can be told apart", "Every class has enough events", "Largest safe window")
"""What the preflight has to call good of a hold-out."""


class Cell(msgspec.Struct, frozen=True):
    """What `assess` said of the windows of one world."""

    kind: str
    classes: int
    held_out: int
    number: int
    good: bool
    """By the preflight."""
    doubling_seen: bool
    """Whether by the preflight a rare class that has doubled is named in 95 of 100 of these windows."""
    said: dict[str, dict[str, int]]
    """By shift."""

    def good_for(self, shift: str) -> bool:
        """Whether the preflight lets one expect the right verdict."""
        return self.good and (shift != "doubled" or self.doubling_seen)


def units() -> Iterator[tuple[str, int, int, int]]:
    """Everything in one world of each kind before anything in the next."""
    for number in range(WORLDS):
        for kind in KINDS:
            for classes in CLASSES:
                for held_out in SIZES:
                    yield kind, classes, held_out, number


def cell(kind: str, classes: int, held_out: int, number: int) -> Cell:
    """Assess the windows of one world against one hold-out."""
    made = world(kind, classes, [SEED, number])
    rng = np.random.default_rng([SEED, KINDS.index(kind), classes, held_out, number])
    known = reference(made, held_out, rng)
    said = {
        shift: Counter(
            assess(window(made, shift, SIZES[held_out], rng), known).verdict.value for _ in range(WINDOWS[shift])
        )
        for shift in SHIFTS_OF[kind]
    }
    good = _is_good(made, known, held_out, np.random.default_rng([SEED, held_out, number]))
    seen = rise_seen(known, SIZES[held_out]) <= 2 * float(known.source_priors.min())
    return Cell(kind, classes, held_out, number, good, seen, {shift: dict(counts) for shift, counts in said.items()})


def _is_good(made: World, known: Reference, held_out: int, rng: np.random.Generator) -> bool:
    """Whether the preflight finds nothing to mind of other events like these."""
    posteriors, labels, _ = held_out_rows(made, held_out, rng)
    advice = {each["title"]: each["verdict"] for each in measure(known, posteriors, labels)["advice"]}
    return all(advice.get(title) == "good" for title in TITLES)


def study(state: Path, seconds: float) -> list[Cell]:
    """Do what the state file does not hold yet, for so many seconds of CPU."""
    cells = [msgspec.json.decode(line, type=Cell) for line in state.read_bytes().splitlines()] if state.exists() else []
    done = {(one.kind, one.classes, one.held_out, one.number) for one in cells}
    with state.open("ab") as file:
        for unit in units():
            if time.process_time() > seconds:
                break
            if unit not in done:
                cells.append(cell(*unit))
                file.write(msgspec.json.encode(cells[-1]) + b"\n")
                file.flush()
    return cells


def report(cells: list[Cell]) -> list[str]:
    """The table as Markdown."""
    shifts = list(WINDOWS)
    lines = [
        "# Verdicts on rough columns and small hold-outs",
        "",
        "Made by `python -m tests.bench.verdicts_rough --state FILE`. Right verdicts of all windows. A hold-out is",
        "good where the preflight says so: calibrated, classes apart, enough of each, windows of 1,000 events safe.",
        "`unit` is a column times 100, `doubled` the rare class twice as often, which is good where the preflight says",
        "that such a rise is named in 95 of 100 of these windows. In bold: calm cells with more alarms than a binomial",
        f"at {VERDICT_LEVEL:.0%} has in 99 of 100, cells below 95 % whose hold-outs are all good.",
        "",
        "| world | classes | hold-out | window | good | " + " | ".join(shifts) + " |",
        "|---" * (5 + len(shifts)) + "|",
    ]
    for kind in KINDS:
        for classes in CLASSES:
            for held_out, size in SIZES.items():
                rows = [x for x in cells if (x.kind, x.classes, x.held_out) == (kind, classes, held_out)]
                good = sum(x.good for x in rows)
                told = " | ".join(_told(rows, shift) for shift in shifts)
                lines.append(f"| {kind} | {classes} | {held_out:,} | {size:,} | {good}/{len(rows)} | {told} |")
    alarms, calm = _wrong(cells, "none")
    low, high = (int(binom.ppf(q, calm, VERDICT_LEVEL)) for q in (0.01, 0.99))
    lines += ["", f"All calm windows: {alarms} alarms of {calm:,} (a binomial at 1 %: {low} to {high})."]
    for shift in shifts[1:]:
        wrong, windows = _wrong([x for x in cells if x.good_for(shift)], shift)
        lines.append(f"`{shift}` where the preflight calls it good: {windows - wrong} of {windows:,} right.")
    lines += ["", "What was said in place of what happened:", ""]
    for shift in shifts:
        for kind in KINDS:
            counts: Counter[str] = Counter()
            for x in cells:
                if x.kind == kind:
                    counts.update(x.said.get(shift, {}))
            del counts[EXPECTED[shift].value]
            if counts:
                lines.append(f"- {kind}, {shift}: " + ", ".join(f"{name} {n}" for name, n in counts.most_common()))
    return lines


def _wrong(cells: list[Cell], shift: str) -> tuple[int, int]:
    said = [x.said[shift] for x in cells if shift in x.said]
    windows = sum(sum(one.values()) for one in said)
    return windows - sum(one.get(EXPECTED[shift].value, 0) for one in said), windows


def _told(cells: list[Cell], shift: str) -> str:
    wrong, windows = _wrong(cells, shift)
    if not windows:
        return ""
    good = all(x.good_for(shift) for x in cells)
    too_many = wrong > binom.ppf(0.99, windows, VERDICT_LEVEL) if shift == "none" else good and wrong > 0.05 * windows
    return f"**{windows - wrong}/{windows}**" if too_many else f"{windows - wrong}/{windows}"


def main() -> None:
    """Go on with the study, and write the report of what is done."""
    parser = options(__doc__, REPORTS / "verdicts_rough.md")
    parser.add_argument("--state", type=Path, help="JSON lines: the worlds that are done")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU, after which no world is begun")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cells = study(given.state or Path(folder) / "cells.jsonl", 8.0 if given.quick else given.seconds)
    lines = report(cells)
    print("\n".join(lines))
    given.report.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
