"""Volume: why no alarm on it has a part of the budget, and how the rules of Prometheus do that tell of it.

    python -m tests.bench.volume [--quick] [--report FILE]

Events of ten minutes, by chance around a level that follows the hour; .6 of them at weekends. Each day has a level of
its own, by a tenth up or down, and each hour by a twentieth. On holidays, ten a year, a stream has half of its events.

What the budget would ask for are ranks (`monitor/shifts/conformal.py`): of a value among those before it, where a value
is the distance of logarithms from the median of the same hour of seven days. Once each hour is such a value, once the
median of a day. The budget is that of sixty streams that share one false alarm in 30 days.

The rules (deploy/prometheus/shiftwatch.volume.rules.yml) hold the events of an hour against the same hour one week and
two weeks before: fewer than a part of the smaller, or more than a multiple of the larger, for half an hour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from monitor.arrays import Flags, Vector
from monitor.shifts import conformal
from monitor.state.budget import QUALITY_PART
from monitor.state.data_quality import SERIES
from tests.bench import tables
from tests.bench.options import options

HOUR, DAY, WEEK = 6, 144, 1_008
"""Bins of ten minutes."""
PATIENCE = 4
"""Looks at which the rule has to hold, for it to hold for half an hour."""
FEWEST = 100
STREAMS, MONTH = 60, 30
LIMITS = ((0.7, 1.4), (0.6, 1.7), (0.5, 2.0))
"""What is too few, and too many; the second pair is that of the rules."""


@dataclass(frozen=True)
class World:
    """How much a stream's volume differs when nothing is wrong."""

    name: str
    days: float = 0.1
    """By so much from day to day."""
    growth: float = 0.0
    """By so much a week."""
    holidays: float = 0.0
    """A year."""

    def events(self, rng: np.random.Generator, days: int) -> Vector:
        """Of each ten minutes."""
        day = np.arange(days)
        level = np.where(day % 7 >= 5, 0.6, 1.0) * np.exp(self.growth * day / 7 + self.days * rng.normal(size=days))
        level = level * np.where(rng.random(days) < self.holidays / 365, 0.5, 1.0)
        hours = np.exp(0.05 * rng.normal(size=(days, 24)))
        shape = 170 * (1.2 + np.sin(np.arange(DAY) / DAY * 2 * np.pi))
        return rng.poisson(level[:, None] * shape * np.repeat(hours, HOUR, axis=1)).ravel().astype(float)


WEEKENDS, HOLIDAYS = World("weekends"), World("weekends and holidays", holidays=10)
WORLDS = (
    World("weekends, days differ by .05", 0.05),
    WEEKENDS,
    World("weekends, days differ by .2", 0.2),
    World("weekends, grows by 5 % a week", growth=0.05),
    HOLIDAYS,
)


def distances(events: Vector) -> Vector:
    """(days, hours): of each hour, from the median of the same hour of the seven days before it."""
    hours = events.reshape(-1, 24, HOUR).sum(axis=2)
    usual = np.array([np.median(hours[at - 7 : at], axis=0) for at in range(7, len(hours))])
    return np.asarray(np.abs(np.log(np.maximum(hours[7:], 1) / usual)))


def told(values: Sequence[float], strata: Sequence[int], threshold: float) -> list[int]:
    """Where the sums pass the threshold, after which they begin anew."""
    past, sums, found = dict[int, dict[int, int]](), conformal.NOTHING_BET, list[int]()
    for number, (value, stratum) in enumerate(zip(values, strata, strict=True)):
        known, step = past.setdefault(stratum, {}), conformal.step_of(value)
        sums = conformal.plus(sums, conformal.rank(known, step))
        known[step] = known.get(step, 0) + 1
        if sum(sums) / len(sums) >= threshold:
            found.append(number)
            sums = conformal.NOTHING_BET
    return found


def by_ranks(days: int) -> str:
    """False alarms of ranks, at a threshold that is low enough to see any."""
    rows = []
    for world in (WEEKENDS, HOLIDAYS):
        values = distances(world.events(np.random.default_rng(1), days))
        series = {
            "each hour": (values.ravel().tolist(), list(range(24)) * len(values)),
            "each day": (np.median(values, axis=1).tolist(), [0] * len(values)),
        }
        for name, (found, strata) in series.items():
            came = len(told(found, strata, 100))
            rows.append((world.name, name, f"{len(found):,}", f"{len(found) / 100:.0f}", str(came)))
    return tables.markdown(("world", "a value", "values", "allowed", "came"), rows)


def days_by_ranks(courses: int) -> str:
    """Until it is told that a stream has half of its events, by one value a day and at the budget."""
    threshold, rows = STREAMS * MONTH * (len(SERIES) + 1) / QUALITY_PART, []
    for before in (90, 365):
        found = []
        for seed in range(courses):
            events = WEEKENDS.events(np.random.default_rng(seed), before + 37)
            calm = distances(events)
            halved = events.copy()
            halved[(before + 7) * DAY :] /= 2
            hours = halved.reshape(-1, 24, HOUR).sum(axis=2)[before + 7 :]
            usual = np.median(events.reshape(-1, 24, HOUR).sum(axis=2)[before : before + 7], axis=0)
            after = np.abs(np.log(np.maximum(hours, 1) / usual))
            values = np.median(np.concatenate([calm[:before], after]), axis=1).tolist()
            alarms = told(values, [0] * len(values), threshold)
            found.append(next((at - before + 1 for at in alarms if at >= before), 31))
        shown = median(found)
        rows.append((str(before), "more than 30" if shown > 30 else f"{shown:.0f}"))
    return tables.markdown(("days before", "days until it is told"), rows)


def by_rules(events: Vector, few: float, many: float) -> tuple[Flags, Flags]:
    """Where the rules fire, from the end of the second week on."""
    sums = np.concatenate([[0.0], np.cumsum(events)])
    hour = sums[HOUR:] - sums[:-HOUR]
    weeks = hour[WEEK:-WEEK], hour[: -2 * WEEK]
    low, high, now = np.minimum(*weeks), np.maximum(*weeks), hour[2 * WEEK :]
    return _lasting((now < few * low) & (low > FEWEST)), _lasting((now > many * high) & (high > FEWEST))


def _lasting(flags: Flags) -> Flags:
    """Those that have held at each of the last looks."""
    held = np.lib.stride_tricks.sliding_window_view(flags, PATIENCE).all(axis=1)
    return np.concatenate([np.zeros(PATIENCE - 1, dtype=bool), held])


def alarms_of_rules(courses: int) -> str:
    """Days with an alarm that no fault brings, and hours until one does."""
    rows = []
    for world in WORLDS:
        for few, many in LIMITS:
            days, calm = 182, list[int]()
            for seed in range(courses):
                fewer, more = by_rules(world.events(np.random.default_rng(seed), 14 + days), few, many)
                whole = (fewer | more)[: len(fewer) // DAY * DAY]
                calm.append(int(whole.reshape(-1, DAY).any(axis=1).sum()))
            delays = [hours_until(world, few, many, factor, courses) for factor in (0.5, 0.0, 2.0)]
            rate = f"{np.mean(calm) * 365 / days:.1f}"
            rows.append((world.name, f"{few:g}, {many:g}", rate, *delays))
    columns = ("world", "limits", "days with a false alarm, a stream and year", "half is lost", "all", "twice as many")
    return tables.markdown(columns, rows)


def hours_until(world: World, few: float, many: float, factor: float, courses: int) -> str:
    """From any hour of a third week on: the median, and how often within a day."""
    found = []
    for seed in range(courses):
        rng = np.random.default_rng((seed, 1))
        events, at = world.events(rng, 14 + 5), 2 * WEEK + int(rng.integers(HOUR, DAY))
        events[at:] = np.floor(events[at:] * factor)
        fires = by_rules(events, few, many)[factor > 1]
        looks = np.flatnonzero(fires[at - 2 * WEEK - HOUR + 1 :])
        found.append((looks[0] + 1) / HOUR if len(looks) else np.inf)
    hours = np.array(found)
    return f"{np.median(hours):.1f} h, {np.mean(hours <= 24):.0%}"


def main() -> None:
    """All tables."""
    given = options(__doc__).parse_args()
    quick = given.quick
    text = "\n".join(
        [
            "# Volume",
            "",
            "Made by `python -m tests.bench.volume --report tests/bench/reports/volume.md`, whose docstring says",
            "what is compared.",
            "",
            "## By ranks: false alarms at one in 100 values",
            "",
            by_ranks(400 if quick else 4_000),
            "## By ranks: days until half of the events are missed, at the budget of sixty streams",
            "",
            days_by_ranks(3 if quick else 20),
            "## By the rules of Prometheus: hours until they fire, and how often within a day",
            "",
            alarms_of_rules(5 if quick else 200),
        ]
    )
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
