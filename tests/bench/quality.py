"""Alarms on data quality: those that come without a fault, and windows until a fault is told of.

    python -m tests.bench.quality [--quick] [--report FILE]

The concern of the service is shown windows whose shares are drawn: of rejected records or missing values, the other
series being 0. A budget of one false alarm of the series in 1,000 windows; windows of five minutes. What the guarantee
asks for, that windows of the same hour are interchangeable, holds in all calm worlds but the last three: they are what
it does not hold for. Faults are told of at the budget of sixty streams that share one false alarm in 30 days, after a
month of calm windows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import msgspec
import numpy as np

from monitor.arrays import Flags, Labels, Vector
from monitor.assessment import Assessment, DataQuality
from monitor.state import AlarmEvent, Budget, QualityState, StatePlan, WindowSeen
from monitor.state.budget import QUALITY_PART
from monitor.state.data_quality import SERIES, data_quality
from monitor.windows import WindowKey
from tests.bench import tables
from tests.bench.options import options
from tests.service import streams
from tests.state.windows import seen

MINUTE = 60_000_000
DAY = 1_440 * MINUTE
ONCE_IN = 1_000
STREAMS, MONTH = 60, 30
"""Streams that share one false alarm in so many days."""
RECORDS = 1_000

Draw = Callable[[np.random.Generator, int], Vector]
"""Shares of so many windows."""


def spread(rng: np.random.Generator, level: Vector | float, windows: int, events: float = 2_500) -> Vector:
    """Shares of this level that differ as those of so many events do, and half as much again where it is .02."""
    level = np.broadcast_to(np.asarray(level, dtype=float), windows)
    return np.where(level > 0, rng.beta(np.maximum(level, 1e-9) * events, (1 - level) * events), 0.0)


def wandering(rng: np.random.Generator, windows: int) -> Vector:
    """The level of each hour is drawn anew, by a third up or down."""
    hours = np.exp(0.3 * rng.normal(size=windows // 12 + 1))
    return spread(rng, 0.02 * np.repeat(hours, 12)[:windows], windows)


CALM: dict[str, Draw] = {
    "none at all": lambda _, windows: np.zeros(windows),
    "one record in 50,000": lambda rng, windows: rng.binomial(RECORDS, 1 / 50_000, windows) / RECORDS,
    ".003, twice the variance of chance": lambda rng, windows: (
        rng.binomial(RECORDS, rng.gamma(3, 0.001, windows)) / RECORDS
    ),
    ".02 of values": lambda rng, windows: spread(rng, 0.02, windows),
    ".1 at night, else .02": lambda rng, windows: spread(rng, np.where(hour(windows) < 6, 0.1, 0.02), windows),
    "spells: each hour another level": wandering,
    "weekends .022, else .02": lambda rng, windows: spread(rng, np.where(weekend(windows), 0.022, 0.02), windows),
    "weekends .03, else .02": lambda rng, windows: spread(rng, np.where(weekend(windows), 0.03, 0.02), windows),
}
FAULTS: dict[str, tuple[float, float]] = {
    "rejects from 0 to .01": (0.0, 0.01),
    "rejects from 0 to .05": (0.0, 0.05),
    "missing values from .02 to .03": (0.02, 0.03),
    "missing values from .02 to .04": (0.02, 0.04),
}


def hour(windows: int) -> Labels:
    """Of the day, of windows of five minutes."""
    return np.arange(windows) // 12 % 24


def weekend(windows: int) -> Flags:
    """Whether a window is of one."""
    return np.arange(windows) // 288 % 7 >= 5


def raised(shares: Sequence[float], minutes: int, threshold: float) -> list[int]:
    """The windows with which the concern raises an alarm; a false one in so many windows is allowed."""
    concern, state = data_quality(StatePlan(budget=budget(threshold)), streams.reference()), QualityState()
    assert concern is not None
    calm, found = seen(1), list[int]()
    assert isinstance(calm.assessment, Assessment)
    for number, share in enumerate(shares):
        key = WindowKey("s", "", number * minutes * MINUTE, (number + 1) * minutes * MINUTE)
        assessment = replace(calm.assessment, key=key, quality=DataQuality(rejected=share))
        advanced = concern.advance(state, WindowSeen(assessment, replace(calm.window, key=key), 0.0))
        state = advanced.state
        events = (msgspec.json.decode(message.value, type=AlarmEvent) for message in advanced.messages)
        found += [number for event in events if event.state == "raised"]
    return found


def budget(threshold: float) -> Budget:
    """That gives each series one false alarm in so many windows."""
    return Budget.of(len(SERIES) / threshold / QUALITY_PART)


def false_alarms(windows: int) -> str:
    """In calm worlds, and in such as the guarantee is not for."""
    rows = []
    for number, (name, draw) in enumerate(CALM.items()):
        came = len(raised(draw(np.random.default_rng(number), windows).tolist(), 5, ONCE_IN))
        rows.append((name, f"{windows:,}", f"{windows / ONCE_IN:.0f}", str(came)))
    return tables.markdown(("share", "windows", "allowed", "came"), rows)


def delays(courses: int) -> str:
    """Windows until a fault is told of."""
    rows = []
    for minutes, history in ((5, 7), (5, 30), (60, 7), (60, 30)):
        a_day = 1_440 // minutes
        threshold = STREAMS * MONTH * a_day * len(SERIES) / QUALITY_PART
        for name, (before, after) in FAULTS.items():
            found = []
            for seed in range(courses):
                rng, calm, faulty = np.random.default_rng(seed), history * a_day, 3 * a_day
                levels = np.repeat([before, after], [calm, faulty])
                alarms = raised(spread(rng, levels, calm + faulty).tolist(), minutes, threshold)
                found.append(next((at - calm + 1 for at in alarms if at >= calm), faulty))
            shown = f"{median(found):.0f}"
            rows.append((f"{minutes} min", f"{history} d", name, shown, f"{median(found) * minutes / 60:.1f} h"))
    return tables.markdown(("windows", "calm before", "fault", "windows until told", "time"), rows)


def main() -> None:
    """All tables."""
    given = options(__doc__).parse_args()
    quick = given.quick
    text = "\n".join(
        [
            "# Alarms on data quality",
            "",
            "Made by `python -m tests.bench.quality --report tests/bench/reports/quality.md`, whose docstring says",
            "what is compared.",
            "",
            "## False alarms at one in 1,000 windows",
            "",
            false_alarms(5_000 if quick else 100_000),
            "## Until a fault is told of, at one false alarm of sixty streams in 30 days",
            "",
            delays(2 if quick else 9),
        ]
    )
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
