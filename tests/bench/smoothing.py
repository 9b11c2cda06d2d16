"""The class mix now, by all windows so far, against what each window says by itself.

    python -m tests.bench.smoothing [--quick] [--report FILE]

Windows of 100 events know a share to `NOISE`, one standard error (s.e.). What they say is the share with normal noise,
but for the last table, whose windows are assessed as the service does it. Errors are root mean squares in the windows
named, as a share of the window's own; coverage is how often the interval holds the share.

No rule is at most 1.05 times as wrong in the first window after a jump of any size, and half as wrong in calm: one that
halves the error in calm believes one window little, and so a jump of three standard errors, which chance brings once in
400 windows, half. The third table bounds what any rule can do (`smoothing_bound`). How often jumps are held to come
(`JUMPS`) trades one for the other: the fourth table. The error of a small hold-out is the same in all windows, and
nothing averages it out.

Intervals have the same limit: one that holds the first window after a jump of any size in .95, or .93, has in calm at
least .85, or .77, of the width of the window's own (Pratt 1961: 2 (z F(z) + f(z)) standard errors, with F(z) = .95 or
.93). The fifth table has what some would hold. Those that are published are of the level alone, as the feed and what
labels have taught correct only towards a mix that has moved by more than its interval.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from unittest.mock import patch

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.assessment import assess
from monitor.priors import smoothing
from monitor.priors.smoothing import Levels
from monitor.reference.classifier import Reference
from monitor.state import StatePlan, WindowSeen, concerns_of
from monitor.tolerances import JUMPS, LEVEL_REACH, NORMAL_95
from monitor.windows import Window, WindowKey, WindowSummary
from tests.bench import tables
from tests.bench.options import options
from tests.bench.smoothing_bound import bounds
from tests.service import streams

EVENTS = 100
NOISE = 0.05
WINDOWS, SHIFT, AFTER = 160, 100, 5
"""Windows in all, the first that is shifted, and how many are looked at after a jump."""

SUMMARY = """\
Wanted are an error of at most half of the window's own in calm and slow drift, of at most 1.05 of it after a jump, and
coverage of .93 to .98. Segments with their stream have all three. A stream alone has the first (.51 in a drift by 4
s.e.) and, over five windows, the second. It has neither the second in the first window after a jump of 2 s.e. and more,
nor the third after most jumps and in walks of .3 s.e. and more: a window cannot tell such a step from chance. No rule
has the first and the second in the first window after a jump (the third table), and an interval that has the third
there is hardly narrower than the window's own (the fifth)."""

Course = tuple[Callable[[np.random.Generator, int], Matrix], slice]
"""The shares, (windows, series), by a generator and how many series; and the windows that are looked at."""

CALM, DRIFT, JUMP = slice(40, None), slice(SHIFT, SHIFT + 50), slice(SHIFT, SHIFT + AFTER)


def _drift(size: float) -> Course:
    path = 0.3 + size * NOISE * np.clip((np.arange(WINDOWS) - SHIFT + 1) / 50, 0, 1)[:, None]
    return (lambda _, series: np.repeat(path, series, axis=1)), DRIFT


def _jump(size: float) -> Course:
    path = 0.3 + size * NOISE * (np.arange(WINDOWS) >= SHIFT)[:, None]
    return (lambda _, series: np.repeat(path, series, axis=1)), JUMP


def _walk(size: float) -> Course:
    return (lambda rng, series: 0.3 + size * NOISE * np.cumsum(rng.normal(size=(WINDOWS, series)), axis=0)), CALM


COURSES: dict[str, Course] = {
    "calm": (lambda _, series: np.full((WINDOWS, series), 0.3), CALM),
    **{f"drift by {size} s.e. over 50 windows": _drift(size) for size in (1, 2, 4)},
    **{f"walk of {size:g} s.e.".replace("0.", "."): _walk(size) for size in (0.1, 0.3, 1, 3)},
    "each window another mix, by 3 s.e.": (
        lambda rng, series: 0.3 + 3 * NOISE * rng.normal(size=(WINDOWS, series)),
        CALM,
    ),
    **{f"jump of {size} s.e.": _jump(size) for size in (1, 2, 3, 4, 6, 10)},
}
JUMPED = [name for name in COURSES if name.startswith("jump")]
FIRST = slice(SHIFT, SHIFT + 1)


def small_windows(course: Course, series: int, seed: int) -> tuple[Matrix, Matrix, slice]:
    """What windows say, the shares, and which windows to look at."""
    rng = np.random.default_rng(seed)
    truth = course[0](rng, series)
    return truth + NOISE * rng.normal(size=truth.shape), truth, course[1]


def followed(x: Matrix, variance: float, movement: Matrix | None = None) -> tuple[Matrix, Matrix]:
    """The level after each window and its standard deviation; `movement` is the whole stream's since the one before."""
    noise = np.full(x.shape[1], variance * EVENTS)
    levels = Levels.of(x[0], noise, EVENTS, following=movement is not None)
    found = [levels.estimate]
    for number in range(1, len(x)):
        moved = None if movement is None else np.broadcast_to(movement[number], x.shape[1:])
        levels = levels.ahead(1, moved).plus(x[number], noise, EVENTS)
        found.append(levels.estimate)
    means, variances = (np.array(each) for each in zip(*found, strict=True))
    return means, np.sqrt(variances)


Told = tuple[Matrix, Matrix, Matrix]
"""A share for each window, and the ends of its interval."""
Tell = Callable[[Matrix, Matrix, Matrix], Told]
"""By what the windows say, the level after each and its standard deviation."""


@cache
def known(name: str, series: int, often: float) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """What the windows of a course say, the shares, and the levels with their deviations if jumps come so often."""
    x, truth, _ = small_windows(COURSES[name], series, seed=1)
    with patch.object(smoothing, "_LOG_JUMPS", np.log([1 - often, often])):
        return x, truth, *followed(x, NOISE**2)


def level_alone(_: Matrix, means: Matrix, deviations: Matrix) -> Told:
    """As it is published."""
    return means, means - LEVEL_REACH * deviations, means + LEVEL_REACH * deviations


def reaching(x: Matrix, means: Matrix, deviations: Matrix) -> Told:
    """With what the window says, give or take its standard error, where that lies beyond the interval of the level."""
    _, lower, upper = level_alone(x, means, deviations)
    return means, np.where(x < lower, x - NOISE, lower), np.where(x > upper, x + NOISE, upper)


def both(x: Matrix, means: Matrix, deviations: Matrix) -> Told:
    """All that is within 1.5 errors of the level or of the window."""
    return (
        means,
        np.minimum(means - 1.5 * deviations, x - 1.5 * NOISE),
        np.maximum(means + 1.5 * deviations, x + 1.5 * NOISE),
    )


def within(errors: float) -> Tell:
    """At most so many standard errors from what the window says (limited translation, Efron and Morris 1971)."""

    def told(x: Matrix, means: Matrix, deviations: Matrix) -> Told:
        return np.clip(means, x - errors * NOISE, x + errors * NOISE), *level_alone(x, means, deviations)[1:]

    return told


def figures(
    name: str, series: int, *, first: bool = False, tell: Tell = level_alone, often: float = JUMPS
) -> tuple[str, str, str]:
    """Error and width of the interval as shares of the window's own, and between them its coverage."""
    x, truth, means, deviations = known(name, series, often)
    part = FIRST if first else COURSES[name][1]
    now, lower, upper = (ends[part] for ends in tell(x, means, deviations))
    error = np.sqrt(((now - truth[part]) ** 2).mean()) / NOISE
    held = ((lower <= truth[part]) & (truth[part] <= upper)).mean()
    return f"{error:.2f}", f"{held:.3f}", f"{(upper - lower).mean() / (2 * NORMAL_95 * NOISE):.2f}"


def alone(series: int) -> str:
    """A stream by itself."""
    rows = [(name, *figures(name, series)) for name in COURSES]
    rows += [(f"{name}, the first window alone", *figures(name, series, first=True)) for name in JUMPED]
    return tables.markdown(("course", f"error (after jumps: {AFTER} windows)", "coverage", "width"), rows)


def in_segments(series: int) -> str:
    """Twenty segments of a stream, with its movement and without; they differ by .05 in their shares."""
    rows = []
    for name in ("calm", "drift by 4 s.e. over 50 windows", "jump of 2 s.e.", "jump of 3 s.e.", "jump of 6 s.e."):
        squares = np.zeros(3)
        held = []
        for seed in range(max(series // 20, 1)):
            rng = np.random.default_rng(seed)
            truth = COURSES[name][0](rng, 20) + 0.05 * rng.normal(size=20)
            x, part = truth + NOISE * rng.normal(size=truth.shape), COURSES[name][1]
            whole, _ = followed(x.mean(axis=1, keepdims=True), NOISE**2 / 20)
            together, deviations = followed(x, NOISE**2, np.diff(whole, axis=0, prepend=whole[:1]))
            found = (together, followed(x, NOISE**2)[0], x)
            squares += [((each - truth)[part] ** 2).mean() for each in found]
            held.append((np.abs(together - truth) <= LEVEL_REACH * deviations)[part].mean())
        own = np.sqrt(squares / squares[2])
        rows.append((name, f"{own[1]:.2f}", f"{own[0]:.2f}", f"{np.mean(held):.3f}"))
    return tables.markdown(("course", "error alone", "error with its stream", "coverage"), rows)


def trade(series: int) -> str:
    """How often jumps are held to come, and how far from the window the level may be: the error in calm, and after the
    worst jump."""
    ways: list[tuple[float, str, Tell]] = [(often, "any", level_alone) for often in (0.02, 0.05, 0.1, 0.2, 0.4)]
    ways += [(JUMPS, f"{errors:g} s.e.", within(errors)) for errors in (1.2, 1.0, 0.8)]
    rows = []
    for often, far, tell in ways:
        calm = figures("calm", series, tell=tell, often=often)[0]
        worst = (
            max(figures(name, series, first=first, tell=tell, often=often)[0] for name in JUMPED)
            for first in (False, True)
        )
        rows.append((f"{often:.0%} of windows", far, calm, *worst))
    columns = ("jumps held to come in", "from the window at most", "error in calm")
    return tables.markdown((*columns, f"{AFTER} windows after the worst", "first"), rows)


INTERVALS: dict[str, Tell] = {
    "of the level alone, as published": level_alone,
    "and what the window says, +- 1 s.e., where it lies beyond": reaching,
    "all within 1.5 errors of the level or the window": both,
}


def wider(series: int) -> str:
    """What intervals would hold that allow for a jump in the last window."""
    rows = []
    for words, tell in INTERVALS.items():
        _, calm, width = figures("calm", series, tell=tell)
        worst = (min(figures(name, series, first=first, tell=tell)[1] for name in JUMPED) for first in (False, True))
        rows.append((words, width, calm, figures("walk of 1 s.e.", series, tell=tell)[1], *worst))
    columns = ("interval", "width in calm", "holds calm", "walk of 1 s.e.", f"{AFTER} windows after the worst jump")
    return tables.markdown((*columns, "first"), rows)


CALM_ERRORS = [0.3, 0.4, 0.45, 0.5, 0.6, 0.7]


def least() -> str:
    """What any rule has in the first window after the worst jump, by its error in calm."""
    rows = [(f"{calm:.2f}", f"{after:.2f}") for calm, after in zip(CALM_ERRORS, bounds(CALM_ERRORS), strict=True)]
    return tables.markdown(("error in calm at most", "in the first window after the worst jump at least"), rows)


MIXES: dict[str, Callable[[int], Vector]] = {
    "calm": lambda windows: np.full(windows, 0.3),
    "drift from .3 to .4": lambda windows: np.linspace(0.3, 0.4, windows),
    "jump from .3 to .5 in the middle": lambda windows: np.where(np.arange(windows) < windows // 2, 0.3, 0.5),
}
CASES = [(20_000, name) for name in MIXES] + [(2_000, "calm"), (500, "calm")]
SETTLED = 20
"""Assessed windows before the first that is looked at."""


def assessed(windows: int) -> str:
    """Windows of 100 events, assessed: of a reference as large as most, and of small ones."""
    rows = []
    for hold_out, name in CASES:
        found = np.concatenate([_course(hold_out, MIXES[name](windows), seed) for seed in range(1, 5)])
        errors, held = found[:, :2], found[:, 2:]
        own, now = np.sqrt((errors**2).mean(axis=0))
        shown = (f"{own:.4f}", f"{now:.4f}", f"{now / own:.2f}", *(f"{share:.3f}" for share in held.mean(axis=0)))
        rows.append((f"{hold_out:,}", name, *shown))
    columns = ("hold-out", "course", "error of the window", "smoothed", "ratio", "coverage of the window", "smoothed")
    return tables.markdown(columns, rows)


def _course(hold_out: int, mixes: Vector, seed: int) -> Matrix:
    """Of each window its own error and that of the smoothed share, and whether the intervals held."""
    reference = _reference(hold_out, seed)
    (concern,) = (one for one in concerns_of(StatePlan(), reference) if one.name == "smoothed")
    state, rows = concern.state(), []
    for number, share in enumerate(mixes.tolist()):
        posteriors, _ = streams.scores(EVENTS, share, seed=1_000 * seed + number)
        window = replace(Window.of(posteriors), key=WindowKey("s", "", number * 60, number * 60 + 60))
        seen = WindowSeen(assess(window, reference), WindowSummary.of(window, 2), 0.0)
        advanced = concern.advance(state, seen)
        state, smoothed, own = advanced.state, advanced.seen, seen.assessment.prevalence
        mix = smoothed.smoothed if isinstance(smoothed, WindowSeen) else None
        if number >= SETTLED and mix is not None:
            held = (own.lower[1] <= share <= own.upper[1], mix.lower[1] <= share <= mix.upper[1])
            rows.append((own.priors[1] - share, mix.priors[1] - share, *held))
    return np.array(rows, dtype=np.float64)


def _reference(hold_out: int, seed: int) -> Reference:
    posteriors, labels = streams.scores(hold_out, 0.3, seed=seed)
    return Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s")


def main() -> None:
    """All tables."""
    given = options(__doc__).parse_args()
    series = 100 if given.quick else 400
    text = "\n".join(
        [
            "# The class mix over windows",
            "",
            "Made by `python -m tests.bench.smoothing --report tests/bench/reports/smoothing.md`, whose docstring says",
            "what is compared.",
            "",
            SUMMARY,
            "",
            "## Windows of 100 events of one stream",
            "",
            alone(series),
            "## Twenty segments of 100 events each",
            "",
            in_segments(series),
            "## What no rule can beat, even where it knows the level before the window",
            "",
            least(),
            "## What the answer after jumps costs in calm",
            "",
            trade(series),
            "## What intervals that allow for a jump cost in calm",
            "",
            wider(series),
            "## Assessed windows of 100 events",
            "",
            assessed(30 if given.quick else 120),
        ]
    )
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
