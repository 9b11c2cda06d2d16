"""Alarms with a budget: false alarms that come, and windows until a shift is noticed, beside other detectors.

    python -m tests.bench.alarms [--quick] [--state FILE] [--report FILE]

In full it takes half an hour of one processor; with `--state` it goes on where it was cut short.

Scores are those of windows without a change: x_t = sqrt(rho) g + sqrt(1 - rho) e_t, standard normal, with g the error
of the reference, drawn once for each series; rho = 0 is a reference without error, rho = .5 windows as large as theirs.
At c = 3,300 windows between false alarms all detectors see the same scores. Those beside the e-detector: an alarm at
two of three windows beyond 2.576 (either side), and River's ADWIN, Page-Hinkley and KSWIN with their defaults.
A thousand series correlate by .8, in their windows and in the error of their references.

Young references are looked at by the size of their error: at rates by g, weighted by its density, the expected number
over all references comes out without the chance that a thousand series share. It adds up to at most what is allowed
whatever the windows, if evidence of no change is what it is held to be.

The last two tables are of windows of 100 events that are assessed as the service does it, with references of their own:
the same assessments, shown to the concern with the budget. Detection is told of the share that moves, by so many
standard errors of a window; the budget is that of the whole stream, of which this share has a quarter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import msgspec
import numpy as np
from river import drift

from monitor.arrays import Matrix, Vector
from monitor.assessment import assess
from monitor.reference.classifier import Reference
from monitor.shifts.evidence import SeriesEvidence
from monitor.state import AlarmEvent, Budget, EvidenceState, StatePlan, WindowSeen
from monitor.state.budget import QUALITY_PART
from monitor.state.evidence import evidence
from monitor.windows import Window, WindowKey, WindowSummary
from tests.bench import tables
from tests.bench.kept import Kept
from tests.bench.options import options
from tests.service import streams

BUDGET = 3_300
"""Windows between false alarms at least, on average: the figure of two windows of three at 1 %."""
CALM = 100
"""Windows before the shift."""
SHIFTS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
PATIENCE = 3_000
EVENTS, BEFORE = 100, 30
"""Of assessed windows: their events, and how many come before the shift."""

Shape = Callable[[Vector], Vector]
SHAPES: dict[str, Shape] = {
    "sudden": np.ones_like,
    "linear over 50 windows": lambda t: np.minimum((t + 1) / 50, 1.0),
    "periodic, 24 windows": lambda t: np.maximum(np.sin(2 * np.pi * t / 24), 0.0),
}


def scores(series: int, windows: int, shared: float, seed: int) -> Matrix:
    """(windows, series) without a change."""
    rng = np.random.default_rng(seed)
    reference = np.sqrt(shared) * rng.normal(size=series)
    return reference + np.sqrt(1 - shared) * rng.normal(size=(windows, series))


def alarms(x: Iterable[Vector], shared: float, threshold: float = BUDGET) -> Iterator[Vector]:
    """Window by window: which series the e-detector raises. Both directions of each have half of the budget."""
    evidence = None
    for row in x:
        both = np.concatenate([row, -row])
        evidence = evidence or SeriesEvidence.none(both.size)
        evidence = evidence.plus(both, shared, np.ones(both.size, dtype=bool))
        raised = evidence.log_total >= np.log(2 * threshold)
        evidence.logs[raised] = SeriesEvidence.none(1).logs[0]
        yield raised[: row.size] | raised[row.size :]


def first(raised: Iterator[Vector], series: int) -> Vector:
    """The number of the first alarm of each series, from 1; infinite where there is none."""
    found = np.full(series, np.inf)
    for number, here in enumerate(raised, start=1):
        found[here & np.isinf(found)] = number
        if np.isfinite(found).all():
            break
    return found


def two_of_three(x: Matrix) -> Iterator[Vector]:
    """Two of the last three windows beyond the level of 1 %."""
    flags = np.abs(x) > 2.576
    for number in range(len(x)):
        yield flags[max(0, number - 2) : number + 1].sum(axis=0) >= 2


def river(make: Callable[[], drift.ADWIN], x: Matrix) -> Iterator[Vector]:
    """A detector of River on each series."""
    detectors = [make() for _ in range(x.shape[1])]
    for row in x:
        for detector, value in zip(detectors, row.tolist(), strict=True):
            detector.update(value)
        yield np.array([detector.drift_detected for detector in detectors])


def detectors(shared: float) -> dict[str, Callable[[Matrix], Iterator[Vector]]]:
    """By name."""
    return {
        "e-detector": lambda x: alarms(x, shared),
        "2 of 3": two_of_three,
        "ADWIN": lambda x: river(drift.ADWIN, x),
        "Page-Hinkley": lambda x: river(drift.PageHinkley, x),
        "KSWIN": lambda x: river(lambda: drift.KSWIN(seed=0), x),
    }


def delays(kept: Kept, series: int, slow: int, shared: float) -> str:
    """Windows from the shift to the alarm, on average; those that never notice count as so many windows."""
    rows = []
    for shape, form in SHAPES.items():
        for name, detector in detectors(shared).items():
            some = series if name in ("e-detector", "2 of 3") else slow
            measured = partial(_delays, form, detector, some, shared)
            cells = kept.answer(("delays", shape, name, some, shared), measured)
            rows.append((shape, name, *(f"{after:.1f}" if after < PATIENCE / 2 else "-" for after in cells)))
    return tables.markdown(("shift", "detector", *(f"{shift:g} s.e." for shift in SHIFTS)), rows)


def _delays(form: Shape, detector: Callable[[Matrix], Iterator[Vector]], series: int, shared: float) -> list[float]:
    """By size of the shift."""
    cells = []
    for shift in SHIFTS:
        x = scores(series, CALM + PATIENCE, shared, seed=int(100 * shift))
        x[CALM:] += shift * form(np.arange(PATIENCE, dtype=float))[:, None]
        found = first(detector(x), series) - CALM
        cells.append(float(np.minimum(found[found > 0], PATIENCE).mean()))
    return cells


def false_alarms(kept: Kept, windows: int) -> str:
    """Those that came, as a share of those allowed: of one series, and of a thousand that share their budget."""
    rows = []
    for shared in (0.0, 0.1, 0.5, 0.9):
        mean, worst = kept.answer(("of one series", windows, shared), partial(_of_one, windows, shared))
        rows.append((f"{shared:g}", "e-detector", "1", "mean of 20 references", f"{mean:.2f}"))
        rows.append((f"{shared:g}", "e-detector", "1", "the worst of 20", f"{worst:.2f}"))
    for shared, references in ((0.0, 1), (0.1, 1), (0.1, 10), (0.5, 1), (0.5, 10)):
        measured = partial(_of_a_thousand, windows, shared, references)
        share = kept.answer(("of a thousand series", windows, shared, references), measured)
        whose = "one reference" if references == 1 else f"{references} references"
        rows.append((f"{shared:g}", "e-detector", "1,000 that correlate by .8", whose, f"{share:.2f}"))
    for name, detector in list(detectors(0.0).items())[2:]:
        measured = partial(_of_a_peer, windows // 10, detector)
        rows.append(("0", name, "1", "mean of 20", f"{kept.answer(('of a peer', windows, name), measured):.2f}"))
    columns = ("rho", "detector", "series", "whose", "false alarms, as a share of those allowed")
    return tables.markdown(columns, rows)


def _of_one(windows: int, shared: float) -> tuple[float, float]:
    """Of 20 references: on average, and of the worst."""
    x = scores(20, windows, shared, seed=1)
    counts = np.sum(list(alarms(x, shared)), axis=0) / windows * BUDGET
    return float(counts.mean()), float(counts.max())


def _of_a_thousand(windows: int, shared: float, references: int) -> float:
    """A thousand series that share one alarm in 33 windows, so that enough come to be counted."""
    threshold, each, count = 1_000 * BUDGET / 100, windows // references, 0
    for seed in range(references):
        rng = np.random.default_rng((2, seed))
        count += sum(int(here.sum()) for here in alarms(_alike(rng, each, shared), shared, threshold))
    return count / windows * BUDGET / 100


def _alike(rng: np.random.Generator, windows: int, shared: float) -> Iterator[Vector]:
    """Windows of a thousand series that correlate by .8."""
    reference = np.sqrt(0.8) * rng.normal() + np.sqrt(0.2) * rng.normal(size=1_000)
    for _ in range(windows):
        own = np.sqrt(0.8) * rng.normal() + np.sqrt(0.2) * rng.normal(size=1_000)
        yield np.sqrt(shared) * reference + np.sqrt(1 - shared) * own


YOUNG = 6_000
"""Windows after a reference was built."""


def young(kept: Kept, windows: int, each: int) -> str:
    """Alarms in the first windows of a reference, expected over all references, as a share of those allowed."""
    rows = kept.answer(("young", windows, each), partial(_young, windows, each))
    heads = (
        "rho",
        "windows between false alarms",
        f"first {windows:,} windows",
        "their first half",
        "their second half",
    )
    return tables.markdown((*heads, "without error", "error of 2"), rows)


def _young(windows: int, each: int) -> list[list[str]]:
    rng, sizes = np.random.default_rng(5), np.arange(0, 5.01, 0.25)
    density = np.exp(-(sizes**2) / 2) / np.sqrt(2 * np.pi) * 0.25 * np.where(sizes == 0, 1, 2)
    error, rows = np.repeat(sizes, each), []
    for shared in (0.1, 0.5):
        for threshold in (BUDGET, 10 * BUDGET):
            own = (np.sqrt(1 - shared) * rng.normal(size=error.size) for _ in range(windows))
            counts = np.zeros((2, error.size))
            for number, here in enumerate(alarms((np.sqrt(shared) * error + e for e in own), shared, threshold)):
                counts[2 * number // windows] += here
            early, late = 2 * threshold / windows * counts.reshape(2, sizes.size, each).mean(axis=2)
            shares = [(density @ part) for part in ((early + late) / 2, early, late)]
            shares += [((early + late) / 2)[sizes == size].item() for size in (0, 2)]
            rows.append([f"{shared:g}", f"{threshold:,}", *(f"{share:.2f}" for share in shares)])
    return rows


def _of_a_peer(windows: int, detector: Callable[[Matrix], Iterator[Vector]]) -> float:
    return float(np.mean(list(detector(scores(20, windows, 0.0, seed=4))))) * BUDGET


def reference_of(hold_out: int, prior: float, seed: int) -> Reference:
    """Of scores of two classes."""
    posteriors, labels = streams.scores(hold_out, prior, seed=seed)
    return Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s")


_reference_of = lru_cache(maxsize=20)(reference_of)


def assessed(mixes: Sequence[float], reference: Reference, seed: int) -> Iterator[WindowSeen]:
    """Windows with these shares."""
    for number, share in enumerate(mixes):
        posteriors, _ = streams.scores(EVENTS, share, seed=100_000 * seed + number)
        window = replace(Window.of(posteriors), key=WindowKey("s", "", number * 60, number * 60 + 60))
        yield WindowSeen(assess(window, reference), WindowSummary.of(window, 2), 0.0)


def raised(course: Iterable[WindowSeen], reference: Reference, rate: float) -> Iterator[tuple[int, str]]:
    """The number of the window and the series of each alarm, with a budget of so many a window for all series."""
    concern, state = evidence(StatePlan(budget=Budget.of(rate / (1 - QUALITY_PART))), reference), EvidenceState()
    assert concern is not None
    for number, seen in enumerate(course):
        advanced = concern.advance(state, seen)
        state = advanced.state
        for message in advanced.messages:
            event = msgspec.json.decode(message.value, type=AlarmEvent)
            if event.state == "raised":
                yield number, event.series


CASES = ((20_000, 0.3, 10), (20_000, 0.05, 1), (500, 0.3, 1))
"""Hold-out, share, and how many times as many windows."""


def assessed_false_alarms(kept: Kept, windows: int, references: int) -> str:
    """Calm windows that were assessed, by budget."""
    rows = []
    for hold_out, prior, times in CASES:
        each = windows * times
        counts = np.array(
            [
                kept.answer(("assessed", hold_out, prior, each, seed), partial(_came_of, hold_out, prior, each, seed))
                for seed in range(1, references + 1)
            ]
        )
        for once_in, came in zip(ONCE_IN, counts.T, strict=True):
            total = each * references
            shown = (f"{total:,}", f"one in {once_in:,}", f"{total / once_in:.0f}", str(came.sum()))
            rows.append((f"{hold_out:,}", f"{prior:g}", *shown, f"{each / once_in:.0f}", str(came.max())))
    columns = ("hold-out", "share", "windows", "budget", "allowed", "came", "allowed by reference", "of the worst")
    return tables.markdown(columns, rows)


ONCE_IN = (100, 1_000)


def _came_of(hold_out: int, prior: float, windows: int, seed: int) -> list[int]:
    """How many alarms one reference's calm windows raise, by budget."""
    reference = reference_of(hold_out, prior, seed)
    course = list(assessed([prior] * windows, reference, seed))
    return [len(list(raised(course, reference, 1 / once_in))) for once_in in ONCE_IN]


NOTICED = ((0.5, 1_000), (1.0, 300), (2.0, 60), (3.0, 40))
"""Shifts, and after how many windows nobody waits any longer."""
PROTOTYPE = (55, 17, 5.7, 3.1)
"""What a prototype took on independent scores, which no reference's error was in."""
BESIDE_PROTOTYPE = (
    "The prototype saw independent scores, which no reference's error is in: that of 200,000 events is next to none",
    "beside that of windows of 100. With 20,000 it has to be ruled out first, which takes long where a shift is small.",
    "A share that rises from .3 is somewhat harder to be sure of than one that falls, as its counts are skewed.",
)


def assessed_delays(kept: Kept, courses: int) -> str:
    """Windows from the shift of a share to its alarm, at one false alarm of this share in 3,300 windows."""
    rows = []
    for hold_out in (200_000, 20_000):
        for (shift, patience), wanted in zip(NOTICED, PROTOTYPE, strict=True):
            ways = [
                np.array(
                    [
                        kept.answer(
                            ("noticed", hold_out, way * shift, patience, seed),
                            partial(_noticed, hold_out, way * shift, patience, seed),
                        )
                        for seed in range(1, courses + 1)
                    ]
                )
                for way in (1, -1)
            ]
            both = np.concatenate(ways)
            rows.append(
                (
                    f"{hold_out:,}",
                    f"{shift:g} s.e.",
                    *(f"{found.mean():.1f}" for found in (*ways, both)),
                    f"{both.std() / np.sqrt(both.size):.1f}",
                    f"{np.median(both):.0f}",
                    f"{wanted:g}",
                )
            )
    columns = ("hold-out", "shift", "rises", "falls", "both", "standard error", "median", "prototype")
    return tables.markdown(columns, rows)


def standard_error(reference: Reference) -> float:
    """Of the share in a window in which nothing moved, as the window says it."""
    calm = next(assessed([0.3], reference, 0))
    prior, errors = reference.source_priors, calm.assessment.calm_errors
    return float(np.sqrt(prior * (1 - prior) * (1 / EVENTS + 1 / reference.events) + errors)[1])


def _noticed(hold_out: int, shift: float, patience: int, seed: int) -> int:
    reference, series = _reference_of(hold_out, 0.3, seed % 10), 4
    mixes = [0.3] * BEFORE + [0.3 + shift * standard_error(reference)] * patience
    alarms_of = raised(assessed(mixes, reference, seed), reference, series / (2 * BUDGET))
    name = f"share of yes {'rises' if shift > 0 else 'falls'}"
    after = (at - BEFORE + 1 for at, raised_name in alarms_of if raised_name == name and at >= BEFORE)
    return next(after, patience)


def main() -> None:
    """All tables."""
    parser = options(__doc__)
    parser.add_argument("--state", type=Path, help="a file of JSON lines: what it holds is not done again")
    given = parser.parse_args()
    quick, kept = given.quick, Kept(given.state)
    text = "\n".join(
        [
            "# Alarms with a budget",
            "",
            "Made by `python -m tests.bench.alarms --report tests/bench/reports/alarms.md`, whose docstring says what",
            "is compared.",
            "",
            "## Windows until a shift is noticed, at one false alarm in 3,300 windows",
            "",
            delays(kept, 40 if quick else 400, 4 if quick else 10, 0.0),
            "## The same where the windows share a tenth of their variance with the reference",
            "",
            delays(kept, 40 if quick else 400, 4 if quick else 10, 0.1),
            "## False alarms without a shift",
            "",
            false_alarms(kept, 1_000 if quick else 100_000),
            "## The same for young references",
            "",
            young(kept, 200 if quick else YOUNG, 4 if quick else 60),
            "## The same on assessed windows of 100 events",
            "",
            assessed_false_alarms(kept, 20 if quick else 1_000, 2 if quick else 10),
            "## Windows until a shift is noticed, on assessed windows",
            "",
            *BESIDE_PROTOTYPE,
            "",
            assessed_delays(kept, 2 if quick else 200),
        ]
    )
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
