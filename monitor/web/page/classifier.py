"""The panels of a classifier's stream: how much of each class, by whom estimated, and what labels said."""

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.kinds import ClassMixAnswer, Reading
from monitor.labels import OutcomeResult, Realised
from monitor.pages import moment, number, percent
from monitor.tolerances import HARMED
from monitor.web.page import panels
from monitor.web.page.card import Card
from monitor.web.page.class_charts import MIX_ERROR, figures, measured, prevalence, rounded, scored
from monitor.web.page.panels import Panel, Shown

MOST_CLASSES = 6
MOST_MEASURES = 2
"""Drawn over time: the others have a line in the table."""
OUTCOMES = 5
SCORES = {
    MIX_ERROR: "class mix",
    "brier": "Brier",
    "calibration_error": "of which calibration",
    "refinement_error": "of which refinement",
    "expected_calibration_error": "expected calibration error",
}
"""Of an outcome, and how the page calls them."""
DRAWN_SCORES = {"brier": "Brier score", MIX_ERROR: "class mix, normalised absolute error"}
"""Over time."""

ClassifierCard = Card[ClassMixAnswer]


def headline(card: ClassifierCard) -> Shown:
    """The headline, with the shares of the classes and what posteriors are multiplied by."""
    latest = card.latest
    factors = list(zip(latest.answer.classes, latest.answer.multipliers, strict=True))
    chosen = shown_classes(card, [latest])
    return {
        **panels.headline(card),
        "factors": factors if len(factors) <= MOST_CLASSES else [factors[at] for at in chosen],
        "others": max(len(factors) - MOST_CLASSES, 0),
        "shown": chosen,
    }


def classes(card: ClassifierCard) -> Shown:
    """How much of each class over time: of some, and in a table of all."""
    names, bins = card.latest.answer.classes, card.bins
    numbers = shown_classes(card, bins.readings)
    truths = [(bins.at(outcome.ends), outcome.classes) for outcome in card.outcomes if outcome.classes]
    return {
        "charts": {names[at]: prevalence(bins, at, truths) for at in numbers},
        "every": every_class(card) if len(names) > max(2, len(numbers)) else [],
        "truth": bool(truths) or any(reading.answer.realised is not None for reading in bins.readings),
        "smoothed": any(reading.answer.smoothed is not None for reading in bins.readings),
        "values": {"names": names, "class": {str(at): rounded(bins, at) for at in numbers}},
    }


def shares(card: ClassifierCard) -> Shown:
    """How much of each class there was in one window."""
    return {"every": every_class(card)}


def every_class(card: ClassifierCard) -> list[tuple[str, ...]]:
    """Each with the address of its chart, its share, interval and reference: those that moved most first."""
    answer = card.latest.answer
    moved = np.abs(np.subtract(answer.priors, answer.source_priors))
    order = np.argsort(-moved, kind="stable").tolist()
    later = card.outcomes[-1].classes if card.outcomes and card.outcomes[-1].ends == card.latest.key.end else {}
    return [
        (
            card.choice.link(named=answer.classes[at], window=None),
            answer.classes[at],
            percent(answer.priors[at]),
            _interval(answer.lower[at], answer.upper[at]),
            percent(answer.source_priors[at]),
            _realised(answer, at, later),
        )
        for at in ([_positive(card), 1 - _positive(card)] if len(order) == 2 else order)
    ]


def _realised(answer: ClassMixAnswer, at: int, later: Mapping[str, Realised]) -> str:
    """What labels say: those that came later before those that came along."""
    if answer.classes[at] in later:
        return percent(later[answer.classes[at]].realised)
    return "" if answer.realised is None else percent(answer.realised[at])


def _interval(lower: float, upper: float) -> str:
    return f"{percent(lower)} to {percent(upper)}" if upper - lower < 1 else "no interval"


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


def measures(card: ClassifierCard) -> Shown | None:
    """How good the model is: estimated for the newest window, and by labels where they have come."""
    latest = card.latest.answer
    realised = next((each.performance for each in reversed(card.outcomes) if each.performance), {})
    names = measured_names(card)
    rows = []
    for name in names:
        figure, known = latest.performance.get(name), realised.get(name)
        if figure is None and known is None:
            continue
        rows.append(
            (
                name.replace("_", " "),
                "" if figure is None else _with_interval(figure.value, figure.lower, figure.upper),
                "" if known is None else _with_interval(known.realised, known.lower, known.upper),
            )
        )
    return {"rows": rows, "withheld": latest.withheld} if names else None


def performance(card: ClassifierCard) -> Shown | None:
    """How good the model is over time, and in a table."""
    table = measures(card)
    if table is None:
        return None
    names = measured_names(card)[:MOST_MEASURES]
    drawn = {name: measured(card.bins, card.outcomes, name) for name in names}
    return {
        **table,
        "charts": {name.replace("_", " "): chart for name, chart in drawn.items() if chart is not None},
        "values": {"measure": {name: figures(card.bins, name) for name in names}},
    }


def measured_names(card: ClassifierCard) -> list[str]:
    """The measures that any of the windows has."""
    estimated = [reading.answer.performance for reading in card.readings if reading.answer.performance]
    realised = [outcome.performance for outcome in card.outcomes if outcome.performance]
    return list((estimated or realised or [{}])[-1])


def outcomes(card: ClassifierCard) -> Shown | None:
    """What labels said afterwards."""
    if not card.outcomes:
        return None
    shown = card.outcomes[: -OUTCOMES - 1 : -1]
    charts = {words: scored(card.bins, card.outcomes, name) for name, words in DRAWN_SCORES.items()}
    at = {bin_: outcome for outcome in card.outcomes if (bin_ := card.bins.at(outcome.ends)) is not None}
    return {
        "charts": {words: chart for words, chart in charts.items() if chart is not None},
        "values": {
            f"outcome:{name}": [_before_and_after(at.get(bin_), name) for bin_ in range(len(card.bins.groups))]
            for name in DRAWN_SCORES
        },
        "last": card.outcomes[-1],
        "rows": [_outcome(outcome) for outcome in shown],
        "measures": list(SCORES.values()),
        "scores": [_scores(outcome) for outcome in shown if outcome.brier is not None],
    }


def segments(card: ClassifierCard) -> Shown | None:
    """The segments, with the share of the class that moved most in the whole stream."""
    at = _positive(card) if len(card.latest.answer.classes) == 2 else card.latest.answer.leading

    def share(answer: ClassMixAnswer) -> str:
        mix = answer.smoothed or answer
        return f"{percent(mix.priors[at])} ({percent(mix.lower[at])} to {percent(mix.upper[at])})"

    return panels.segments_by(card, f"{card.latest.answer.classes[at]}, now", share)


PANELS: tuple[Panel, ...] = (
    headline,
    panels.alarms,
    panels.verdicts,
    classes,
    panels.features,
    performance,
    outcomes,
    segments,
    panels.events,
    panels.quality,
    trust,
    panels.recent,
)

WINDOW_PANELS: tuple[Panel, ...] = (
    headline,
    shares,
    panels.inputs,
    panels.scores,
    measures,
    outcomes,
    panels.counts,
    panels.quality,
    trust,
)
"""Of the page of one window."""


def shown_classes(card: ClassifierCard, readings: Sequence[Reading[ClassMixAnswer]]) -> list[int]:
    """The positive one of two; of many those that moved most. The one that is chosen goes first."""
    names = card.facts.model.classes
    named = [names.index(card.choice.named)] if card.choice.named in names else []
    if len(names) == 2:
        return named or [_positive(card)]
    moved = np.max(
        [np.abs(np.subtract(reading.answer.priors, reading.answer.source_priors)) for reading in readings], axis=0
    )
    most = sorted(np.argsort(-moved, kind="stable")[: MOST_CLASSES - len(named)].tolist())
    return [*named, *(number for number in most if number not in named)]


def _positive(card: ClassifierCard) -> int:
    """The number of the class that a stream of two is about: the rarer one where nobody has said."""
    answer, positive = card.latest.answer, getattr(card.facts.model, "positive", None)
    return answer.classes.index(positive) if positive in answer.classes else int(np.argmin(answer.source_priors))


def _outcome(outcome: OutcomeResult) -> tuple[str, ...]:
    """A row of their table."""
    held = sum(share.covered for share in outcome.classes.values())
    return (
        moment(outcome.ends),
        f"{number(outcome.labels.joined)} of {number(outcome.events)}",
        "" if outcome.coverage is None else f"{held}/{len(outcome.classes)}",
        _largest_error(outcome),
    )


def _scores(outcome: OutcomeResult) -> tuple[str, ...]:
    """A row of the table of errors."""
    cells = [moment(outcome.ends)]
    for name in SCORES:
        score = getattr(outcome, name)
        corrected = outcome.applied or name == MIX_ERROR
        after = f" \N{RIGHTWARDS ARROW} {score.after:.4f}" if score is not None and corrected else ""
        cells.append("" if score is None else f"{score.before:.4f}{after}")
    return tuple(cells)


def _with_interval(value: float, lower: float, upper: float) -> str:
    return f"{value:.3f} ({lower:.3f} to {upper:.3f})" if upper - lower > 5e-4 else f"{value:.3f}"


def _before_and_after(outcome: OutcomeResult | None, name: str) -> list[float | None] | None:
    score = getattr(outcome, name, None)
    if outcome is None or score is None:
        return None
    return [round(score.before, 4), round(score.after, 4) if outcome.applied or name == MIX_ERROR else None]


def _largest_error(outcome: OutcomeResult) -> str:
    if not outcome.classes:
        return ""
    name, worst = max(outcome.classes.items(), key=lambda item: abs(item[1].error))
    return f"{name} {worst.error:+.3f}"
