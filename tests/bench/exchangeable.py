"""What blocks cost where windows do not differ by nature: the worlds of the verdict study, with blocks and without.

    python -m tests.bench.exchangeable --report tests/bench/reports/exchangeable.md

Each reference of twenty windows of 1,000 independent events is built twice from the same events, once cut into twenty
blocks. Both judge the same windows. On such data a reference with blocks should fall back to the test without.
"""

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from monitor.arrays import Labels, Matrix
from monitor.assessment import assess
from monitor.reference import Reference
from monitor.reference.blocks import cut
from monitor.shifts import prepare
from monitor.windows import Window
from tests.bench import tables
from tests.bench.options import REPORTS, options
from tests.bench.verdicts import CLASSES, KINDS, SEED, SHIFTS
from tests.bench.verdicts_worlds import World, window, world

EVENTS, BLOCKS = 1_000, 20
REFERENCES = 3
"""Of each world."""
WINDOWS = 10
"""Of each shift, against each reference;"""
CALM = 50
"""and so many without one."""
LEVEL = (0.005, 0.015)
LOST = 0.02
MOST_BUILD, MOST_WINDOW = 1.3, 1.0
"""Times the build without blocks, and milliseconds more a window."""


@dataclass(slots=True)
class Side:
    """References of one kind: how often they were right, and what they took."""

    right: Counter[str] = field(default_factory=Counter)
    build: list[float] = field(default_factory=list)
    assessing: list[float] = field(default_factory=list)


def references(made: World, rng: np.random.Generator) -> tuple[Reference, Reference, tuple[float, float]]:
    """Without blocks, with them, and the seconds that each took."""
    labels = rng.choice(made.classes, size=EVENTS * BLOCKS, p=made.priors)
    features = made.outside(made.inside(labels, rng), labels, rng)
    began = time.process_time()
    plain = _built(made, labels, features, blocks=False)
    between = time.process_time()
    blocked = _built(made, labels, features, blocks=True)
    return plain, blocked, (between - began, time.process_time() - between)


def _built(made: World, labels: Labels, features: Matrix, *, blocks: bool) -> Reference:
    return Reference.reduce(
        made.schema(),
        made.posteriors(features),
        labels,
        features,
        seed=0,
        blocks=cut(EVENTS, labels.size) if blocks else None,
    )


def judge(side: Side, shift: str, seen: Window, reference: Reference) -> None:
    """One window."""
    began = time.process_time()
    found = assess(seen, reference)
    side.assessing.append(time.process_time() - began)
    side.right[shift] += found.verdict is SHIFTS[shift]


def study(quick: bool) -> tuple[Side, Side, Counter[str]]:
    """Everything: without blocks, with blocks, and the number of windows by shift."""
    sides, windows = (Side(), Side()), Counter[str]()
    for kind in KINDS[:1] if quick else KINDS:
        for classes in CLASSES[:1] if quick else CLASSES:
            made = world(kind, classes, [SEED, 19])
            for number in range(1 if quick else REFERENCES):
                rng = np.random.default_rng([SEED, 19, KINDS.index(kind), classes, number])
                *both, seconds = references(made, rng)
                prepare.cache_clear()
                for side, reference, took in zip(sides, both, seconds, strict=True):
                    side.build.append(took)
                    assess(window(made, "none", EVENTS, rng), reference)  # what is prepared once
                for shift in SHIFTS:
                    for _ in range(CALM if shift == "none" and not quick else WINDOWS):
                        seen = window(made, shift, EVENTS, rng)
                        windows[shift] += 1
                        for side, reference in zip(sides, both, strict=True):
                            judge(side, shift, seen, reference)
    return *sides, windows


def report(plain: Side, blocked: Side, windows: Counter[str], command: str) -> str:
    """The page."""
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for shift, number in windows.items():
        shares[shift] = [side.right[shift] / number for side in (plain, blocked)]
    false = 1 - shares["none"][1]
    lost = {shift: before - after for shift, (before, after) in shares.items() if shift != "none"}
    worst = max(lost, key=lambda shift: lost[shift])
    build = float(np.sum(blocked.build) / np.sum(plain.build))
    more = 1_000 * float(np.median(np.subtract(blocked.assessing, plain.assessing)))
    claims = [
        (f"level: {LEVEL[0]:.1%} to {LEVEL[1]:.1%} of calm windows", LEVEL[0] <= false <= LEVEL[1], f"{false:.2%}"),
        (f"power: at most {LOST:.0%} lost", lost[worst] <= LOST, f"{lost[worst]:.1%} ({worst})"),
        (f"build: at most {MOST_BUILD} x", build <= MOST_BUILD, f"{build:.2f} x"),
        (f"a window: at most {MOST_WINDOW:.0f} ms more", more <= MOST_WINDOW, f"{more:.2f} ms"),
    ]
    return "\n".join(
        [
            "# Blocks where windows do not differ by nature",
            "",
            f"Made by `{command}`.",
            "",
            (__doc__ or "").split("\n\n", 2)[2].strip(),
            "",
            tables.claims(claims),
            tables.markdown(
                ["shift", "windows", "right without blocks", "right with blocks"],
                [(s, f"{n}", *(f"{share:.1%}" for share in shares[s])) for s, n in windows.items()],
            ),
        ]
    )


def main() -> None:
    """Do it."""
    given = options(__doc__, REPORTS / "exchangeable.md").parse_args()
    with threadpool_limits(1):
        text = report(*study(given.quick), "python -m tests.bench.exchangeable")
    print(text)
    if not given.quick:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
