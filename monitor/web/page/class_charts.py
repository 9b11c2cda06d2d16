"""The charts of a classifier's stream: shares of classes, and measures of the model, beside what labels said later."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from monitor.arrays import Flags
from monitor.kinds import ClassMixAnswer
from monitor.labels import OutcomeResult, Realised
from monitor.pages import DrawnPath, Frame, number, percent
from monitor.web.page.charts import Bins, Chart, Floats, runs

RARE = 0.1
"""A class that is rarer than this is drawn from 0 up: what looks like a lot then is a lot."""

MIX_ERROR = "normalised_absolute_error"
"""The class mix is estimated whether the scores are to be corrected or not."""

Truths = Sequence[tuple[int | None, Mapping[str, Realised]]]
"""By bin: what labels that came later say of each class."""


def prevalence(bins: Bins, class_number: int, later: Truths = ()) -> Chart:
    """The share of one class over time, with its interval, the reference's share, and the truth where labels tell."""
    latest: ClassMixAnswer = bins.readings[-1].answer
    name = latest.classes[class_number]
    priors, lower, upper = (_series(bins, part, class_number) for part in ("priors", "lower", "upper"))
    claimed = (upper - lower) < 1
    level = bins.means(lambda answer: _smoothed(answer, class_number))
    source = latest.source_priors[class_number]
    truths = dict(_truths(bins, class_number))
    truths |= {at: classes[name].realised for at, classes in later if at is not None}
    drawn = [*priors, *level[np.isfinite(level)], source, *lower[claimed], *upper[claimed], *truths.values()]
    low, high = _range(drawn)
    low = 0.0 if max(source, float(np.median(priors))) < RARE else low
    frame = bins.frame(low=low, high=high)
    marks = [
        DrawnPath("source", frame.level(source)),
        *(DrawnPath("smoothed", frame.line(bins.middles[run], level[run])) for run in runs(np.isfinite(level))),
        *_banded(bins, frame, priors, (lower, upper), claimed=claimed, truths=truths),
    ]
    now = priors[-1] if latest.smoothed is None else latest.smoothed.priors[class_number]
    label = f"Share of {name} over {len(bins.readings)} windows, now {percent(now)}, reference {percent(source)}"
    return Chart(label, "chart", f"class:{class_number}", tuple(marks), top=percent(high), bottom=percent(low))


def _smoothed(answer: ClassMixAnswer, class_number: int) -> float | None:
    return None if answer.smoothed is None else answer.smoothed.priors[class_number]


def measured(bins: Bins, outcomes: Sequence[OutcomeResult], measure: str) -> Chart | None:
    """One measure over time as it was estimated, with its interval, and what it was where labels have come."""
    known = figures(bins, measure)
    values, lower, upper = np.array([each or (np.nan,) * 3 for each in known]).T
    there = np.isfinite(values)
    realised = {
        at: each.performance[measure].realised
        for each in outcomes
        if measure in each.performance and (at := bins.at(each.ends)) is not None
    }
    if not (there.any() or realised):
        return None
    low, high = _range([*lower[there], *upper[there], *realised.values()], most=max(1.0, *upper[there], 0.0))
    frame = bins.frame(low=low, high=high)
    marks = _banded(bins, frame, values, (lower, upper), claimed=there, truths=realised)
    now = number(values[there][-1]) if there.any() else "not said"
    label = f"{measure} over {len(bins.readings)} windows, now {now}"
    return Chart(label, "chart", f"measure:{measure}", tuple(marks), top=number(high), bottom=number(low))


def _banded(
    bins: Bins,
    frame: Frame,
    values: Floats,
    band: tuple[Floats, Floats],
    *,
    claimed: Flags,
    truths: Mapping[int, float],
) -> list[DrawnPath]:
    """A line with its band where an interval is claimed, dots for what is known, and where it stands now."""
    xs, there = bins.middles, np.isfinite(values)
    marks = [DrawnPath("band", frame.band(xs[run], *(edge[run] for edge in band))) for run in runs(claimed)]
    marks += [DrawnPath("line", frame.line(xs[run], values[run])) for run in runs(there)]
    if truths:
        marks.append(DrawnPath("truth", frame.dots((xs[at] for at in truths), truths.values())))
    return [*marks, DrawnPath("now", frame.dots(xs[there][-1:], values[there][-1:]))]


def scored(bins: Bins, outcomes: Sequence[OutcomeResult], name: str) -> Chart | None:
    """An error by labels that came later, as it was and as it would have been with what was estimated."""
    known = [
        (at, score, each.applied or name == MIX_ERROR)
        for each in outcomes
        if (score := getattr(each, name)) and (at := bins.at(each.ends)) is not None
    ]
    if not known:
        return None
    places, errors = np.array([at for at, *_ in known]), np.array([score.before for _, score, _ in known])
    after = {at: score.after for at, score, used in known if used}
    high = 1.08 * float(max([*errors, *after.values(), 1e-9]))
    frame, xs = bins.frame(high=high), bins.middles
    marks = [DrawnPath("line", frame.line(xs[places], errors)), DrawnPath("now", frame.dots(xs[places], errors))]
    if after:
        marks.append(DrawnPath("truth", frame.dots((xs[at] for at in after), after.values())))
    label = f"Error by labels of {len(known)} windows, last {number(errors[-1])}"
    return Chart(label, "chart", f"outcome:{name}", tuple(marks), top=number(high), bottom="0")


def figures(bins: Bins, measure: str) -> list[tuple[float, float, float] | None]:
    """Of each bin: the mean of the estimates and their outermost bounds; None where none was made."""
    groups = [[reading.answer.performance.get(measure) for reading in group] for group in bins.groups]
    known = [[figure for figure in group if figure is not None] for group in groups]
    return [
        (
            round(float(np.mean([figure.value for figure in group])), 4),
            round(min(figure.lower for figure in group), 4),
            round(max(figure.upper for figure in group), 4),
        )
        if group
        else None
        for group in known
    ]


def _series(bins: Bins, name: str, class_number: int) -> Floats:
    """One of priors, lower, upper for a class: a bin's mean, or its outermost bound."""
    values = [[getattr(reading.answer, name)[class_number] for reading in group] for group in bins.groups]
    if name == "priors":
        return np.array([np.mean(group) for group in values])
    return np.array([min(group) if name == "lower" else max(group) for group in values])


def _truths(bins: Bins, class_number: int) -> Iterator[tuple[int, float]]:
    for at, group in enumerate(bins.groups):
        known = [
            (reading.answer.realised[class_number], reading.labelled)
            for reading in group
            if reading.answer.realised is not None
        ]
        weight = sum(labelled for _, labelled in known)
        if weight:
            yield at, sum(share * labelled for share, labelled in known) / weight


def _range(values: Sequence[float], most: float = 1.0) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    margin = max(0.08 * (high - low), 0.005)
    return max(0.0, low - margin), min(most, high + margin)


def rounded(bins: Bins, class_number: int) -> list[list[float]]:
    """Share, lower and upper end of each bin."""
    parts = (_series(bins, part, class_number) for part in ("priors", "lower", "upper"))
    return [[round(float(share), 4) for share in shares] for shares in zip(*parts, strict=True)]
