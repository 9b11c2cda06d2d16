"""The panels of a classifier's stream: how much of each class, by whom estimated, and what labels said."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from monitor.arrays import Flags
from monitor.kinds import ClassMixAnswer, Reading
from monitor.labels import OutcomeResult
from monitor.observers import StreamFacts
from monitor.pages.plots import DrawnPath, Frame
from monitor.pages.words import moment, number, percent
from monitor.tolerances import HARMED
from monitor.web.page import panels
from monitor.web.page.charts import Bins, Chart, Floats, runs
from monitor.web.page.panels import Card, Panel, Shown

MOST_CLASSES = 6
MOST_MEASURES = 2
"""Drawn over time: the others have a line in the table."""
OUTCOMES = 5

ClassifierCard = Card[ClassMixAnswer]


def headline(card: ClassifierCard) -> Shown:
    """The headline, with the shares of the classes and what posteriors are multiplied by."""
    latest = card.latest
    return {
        **panels.headline(card),
        "factors": list(zip(latest.answer.classes, latest.answer.multipliers, strict=True))[:MOST_CLASSES],
        "shown": shown_classes(card.facts, [latest]),
    }


def classes(card: ClassifierCard) -> Shown:
    """How much of each class over time."""
    names, bins = card.latest.answer.classes, card.bins
    numbers = shown_classes(card.facts, bins.readings)
    return {
        "charts": {names[at]: prevalence(bins, at) for at in numbers},
        "truth": any(reading.answer.realised is not None for reading in bins.readings),
        "smoothed": any(reading.answer.smoothed is not None for reading in bins.readings),
        "values": {"names": names, "class": {str(at): _rounded(bins, at) for at in numbers}},
    }


def trust(card: ClassifierCard) -> Shown:
    """Can the numbers be believed: how the estimate was reached, what others say, and every test."""
    answer = card.latest.answer
    estimators = [
        (estimate.method, percent(estimate.priors[answer.leading]), "yes" if estimate.converged else "no")
        for estimate in answer.estimates
    ]
    leading = answer.classes[answer.leading]
    return {
        **panels.trust(card),
        "answer": answer,
        "estimate": answer.reported,
        "leading": leading,
        "estimators": estimators,
        "harmed": HARMED,
    }


def performance(card: ClassifierCard) -> Shown | None:
    """How good the model is: estimated for each window, and by labels where they have come."""
    bins, latest = card.bins, card.latest.answer
    performances = [reading.answer.performance for reading in bins.readings if reading.answer.performance]
    realised = next((each.performance for each in reversed(card.outcomes) if each.performance), {})
    names = list(performances[-1] if performances else realised)
    if not names:
        return None
    rows = []
    for name in names:
        figure, known = latest.performance.get(name), realised.get(name)
        rows.append(
            (
                name.replace("_", " "),
                "" if figure is None else _with_interval(figure.value, figure.lower, figure.upper),
                "" if known is None else _with_interval(known.realised, known.lower, known.upper),
            )
        )
    charts = {name: measured(bins, card.outcomes, name) for name in names[:MOST_MEASURES]}
    return {
        "charts": {name.replace("_", " "): chart for name, chart in charts.items() if chart is not None},
        "withheld": latest.withheld,
        "rows": rows,
        "values": {"measure": {name: _figures(bins, name) for name in charts}},
    }


def outcomes(card: ClassifierCard) -> Shown | None:
    """What labels said afterwards."""
    if not card.outcomes:
        return None
    return {"last": card.outcomes[-1], "rows": [_outcome(outcome) for outcome in reversed(card.outcomes[-OUTCOMES:])]}


def segments(card: ClassifierCard) -> Shown | None:
    """The segments, with the share of the class that moved most in the whole stream."""
    at = card.latest.answer.leading

    def share(answer: ClassMixAnswer) -> str:
        mix = answer.smoothed or answer
        return f"{percent(mix.priors[at])} ({percent(mix.lower[at])} to {percent(mix.upper[at])})"

    return panels.segments_by(card, f"{card.latest.answer.classes[at]}, now", share)


PANELS: tuple[Panel, ...] = (
    headline,
    panels.verdicts,
    classes,
    panels.features,
    trust,
    performance,
    outcomes,
    panels.events,
    segments,
    panels.recent,
)


def shown_classes(facts: StreamFacts, readings: Sequence[Reading[ClassMixAnswer]]) -> list[int]:
    """The positive one of two; of many those that moved most."""
    names = facts.model.classes
    if len(names) == 2:
        positive = getattr(facts.model, "positive", None)
        return [names.index(positive) if positive in names else 1]
    moved = np.max(
        [np.abs(np.subtract(reading.answer.priors, reading.answer.source_priors)) for reading in readings], axis=0
    )
    return sorted(np.argsort(-moved, kind="stable")[:MOST_CLASSES].tolist())


def prevalence(bins: Bins, class_number: int) -> Chart:
    """The share of one class over time, with its interval, the reference's share, and the truth where labels tell."""
    latest: ClassMixAnswer = bins.readings[-1].answer
    priors, lower, upper = (_series(bins, part, class_number) for part in ("priors", "lower", "upper"))
    claimed = (upper - lower) < 1
    level = bins.means(lambda answer: _smoothed(answer, class_number))
    source = latest.source_priors[class_number]
    truths = dict(_truths(bins, class_number))
    drawn = [*priors, *level[np.isfinite(level)], source, *lower[claimed], *upper[claimed], *truths.values()]
    low, high = _range(drawn)
    frame = bins.frame(low=low, high=high)
    marks = [
        DrawnPath("source", frame.level(source)),
        *(DrawnPath("smoothed", frame.line(bins.middles[run], level[run])) for run in runs(np.isfinite(level))),
        *_banded(bins, frame, priors, (lower, upper), claimed=claimed, truths=truths),
    ]
    name = latest.classes[class_number]
    now = priors[-1] if latest.smoothed is None else latest.smoothed.priors[class_number]
    label = f"Share of {name} over {len(bins.readings)} windows, now {percent(now)}, reference {percent(source)}"
    return Chart(label, "chart", f"class:{class_number}", tuple(marks), top=percent(high), bottom=percent(low))


def _smoothed(answer: ClassMixAnswer, class_number: int) -> float | None:
    return None if answer.smoothed is None else answer.smoothed.priors[class_number]


def measured(bins: Bins, outcomes: Sequence[OutcomeResult], measure: str) -> Chart | None:
    """One measure over time as it was estimated, with its interval, and what it was where labels have come."""
    known = _figures(bins, measure)
    values, lower, upper = np.array([each or (np.nan,) * 3 for each in known]).T
    there = np.isfinite(values)
    ends = np.array([group[-1].key.end for group in bins.groups])
    realised = {
        int(np.searchsorted(ends, each.ends)): each.performance[measure].realised
        for each in outcomes
        if measure in each.performance and bins.readings[0].key.end <= each.ends <= ends[-1]
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


def _figures(bins: Bins, measure: str) -> list[tuple[float, float, float] | None]:
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


def _with_interval(value: float, lower: float, upper: float) -> str:
    return f"{value:.3f} ({lower:.3f} to {upper:.3f})"


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


def _rounded(bins: Bins, class_number: int) -> list[list[float]]:
    """Share, lower and upper end of each bin."""
    parts = (_series(bins, part, class_number) for part in ("priors", "lower", "upper"))
    return [[round(float(share), 4) for share in shares] for shares in zip(*parts, strict=True)]


def _outcome(outcome: OutcomeResult) -> tuple[str, ...]:
    """A row of their table."""
    held = sum(share.covered for share in outcome.classes.values())
    return (
        moment(outcome.ends),
        f"{number(outcome.labels.joined)} of {number(outcome.events)}",
        "" if outcome.coverage is None else f"{held}/{len(outcome.classes)}",
        _largest_error(outcome),
        "" if outcome.brier is None else f"{outcome.brier.before:.4f}",
        "" if outcome.brier is None or not outcome.applied else f"{outcome.brier.after:.4f}",
    )


def _largest_error(outcome: OutcomeResult) -> str:
    if not outcome.classes:
        return ""
    name, worst = max(outcome.classes.items(), key=lambda item: abs(item[1].error))
    return f"{name} {worst.error:+.3f}"
