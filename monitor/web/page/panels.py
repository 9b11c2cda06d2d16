"""The panels of a stream's card. Each is a function here and a template of the same name in `templates/panels`.

A function makes what its template shows from the stream's windows, or None where there is nothing to show. To add a
panel, write the two and put the function where it belongs in `PANELS`.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from monitor.labels import OutcomeResult
from monitor.observers.history import StreamFacts, Track
from monitor.observers.window_record import Reading
from monitor.web.page import charts
from monitor.web.page.charts import Bins
from monitor.web.words import moment, number, p_value, percent, span

MOST_CLASSES = 6
MOST_FEATURES = 10
RECENT = 15
OUTCOMES = 5

Shown = Mapping[str, Any] | None


@dataclass(frozen=True)
class Card:
    """All that is known of a stream that has had a window."""

    facts: StreamFacts
    tracks: Mapping[str, Track]
    outcomes: Sequence[OutcomeResult]
    now: float

    @property
    def track(self) -> Track:
        """That of the whole stream."""
        return self.tracks[""]

    @property
    def latest(self) -> Reading:
        """Its newest window."""
        return self.track.latest

    @cached_property
    def bins(self) -> Bins:
        """Its windows as all charts show them."""
        return Bins(self.track.readings)

    def panels(self) -> dict[str, Mapping[str, Any]]:
        """What each template is to show, in the order of the page."""
        shown = ((panel.__name__, panel(self)) for panel in PANELS)
        return {name: values for name, values in shown if values is not None}

    def values(self) -> Mapping[str, Any]:
        """What the script shows under the pointer: for each bin its time, verdict, events, shares, effects."""
        bins = self.bins
        newest = [group[-1] for group in bins.groups]
        rows = charts.heat_rows(bins)
        return {
            "time": [span(group[0].key.start, group[-1].key.end) for group in bins.groups],
            "verdict": [reading.verdict.facts.headline for reading in bins.worst],
            "events": [reading.events for reading in newest],
            "lost": [reading.late + reading.rejected for reading in newest],
            "class": {str(at): _rounded(bins, at) for at in shown_classes(self.facts, bins.readings)},
            "names": bins.readings[-1].classes,
            "errors": [None if np.isnan(error) else float(f"{error:.4g}") for error in bins.errors("error")],
            "features": [bins.features[row] for row in rows],
            "effects": [[round(float(effect), 3) for effect in bins.effects[row]] for row in rows],
        }


def headline(card: Card) -> Shown:
    """The verdict, why, what to do, and where the stream stands now."""
    latest = card.latest
    return {
        "latest": latest,
        "track": card.track,
        "stale": card.now - card.track.assessed_at if card.track.stale(card.now) else None,
        "factors": list(zip(latest.classes, latest.multipliers, strict=False))[:MOST_CLASSES],
        "changes": card.track.changes[-1].changes[:MOST_CLASSES] if card.track.changes else (),
        "shown": [] if latest.relation is not None else shown_classes(card.facts, [latest]),
    }


def verdicts(card: Card) -> Shown:
    """The verdicts over time, and how often each was given."""
    counted = Counter(reading.verdict for reading in card.track.readings).most_common()
    return {"chart": charts.strip(card.bins), "windows": len(card.track.readings), "counted": counted}


def classes(card: Card) -> Shown:
    """How much of each class over time."""
    if not card.facts.classes:
        return None
    shown = shown_classes(card.facts, card.bins.readings)
    return {
        "charts": {card.facts.classes[at]: charts.prevalence(card.bins, at) for at in shown},
        "truth": any(reading.realised is not None for reading in card.bins.readings),
    }


def error(card: Card) -> Shown:
    """The error of a regressor's predictions over time."""
    if card.facts.relation is None:
        return None
    chart = charts.error(card.bins, card.facts.relation.error)
    return {"chart": chart, "corrected": chart is not None and "truth" in {mark.style for mark in chart.marks}}


def features(card: Card) -> Shown:
    """Which inputs moved, when and how."""
    rows = charts.heat_rows(card.bins)
    if not rows:
        return None
    return {
        "names": [card.bins.features[row] for row in rows],
        "of": len(card.bins.features),
        "chart": charts.heat(card.bins, rows),
        "levels": range(1, charts.HEAT_LEVELS + 1),
        "moved": sorted(card.latest.moved, key=lambda feature: -feature.effect)[:MOST_FEATURES],
        "regressor": card.latest.relation is not None,
    }


def trust(card: Card) -> Shown:
    """Can the numbers be believed: how the estimate was reached, what others say, and every test."""
    latest = card.latest
    tests = [
        (
            name.replace("-", " "),
            "" if test.p_value is None else p_value(test.p_value),
            f"{test.effect + 0.0:.3f}".replace("-0.000", "0.000"),
            f"{test.floor:.3g}",
            "moved" if test.significant else "",
        )
        for name, test in latest.tests.items()
    ]
    if latest.relation is not None:
        return {"tests": tests, "estimate": None}
    at = _leading(latest)
    estimators = [
        (estimate.method, percent(estimate.priors[at]), "yes" if estimate.converged else "no")
        for estimate in latest.estimates
    ]
    return {"tests": tests, "estimate": latest.reported, "leading": latest.classes[at], "estimators": estimators}


def outcomes(card: Card) -> Shown:
    """What labels said afterwards."""
    if not card.outcomes:
        return None
    return {"last": card.outcomes[-1], "rows": [_outcome(outcome) for outcome in reversed(card.outcomes[-OUTCOMES:])]}


def events(card: Card) -> Shown:
    """How many events there were, and what was lost of them."""
    lost = sum(reading.late + reading.rejected for reading in card.track.readings)
    return {"latest": card.latest, "lost": lost, "chart": charts.flow(card.bins)}


def segments(card: Card) -> Shown:
    """Those that the newest window holds."""
    whole = card.latest
    present = {name: track for name, track in card.tracks.items() if name and track.latest.key.end >= whole.key.end}
    if not present:
        return None
    at = None if whole.relation is not None else _leading(whole)
    rows = [
        (name, track.latest.verdict.facts.headline, number(track.latest.events), _segment(track.latest, at))
        for name, track in sorted(present.items())
    ]
    return {"last": "error" if at is None else whole.classes[at], "rows": rows}


def recent(card: Card) -> Shown:
    """The last windows in words."""
    rows = [
        (
            span(reading.key.start, reading.key.end),
            number(reading.events),
            reading.verdict.facts.headline,
            "; ".join(reading.reasons),
        )
        for reading in reversed(card.track.readings[-RECENT:])
    ]
    return {"rows": rows}


PANELS: tuple[Callable[[Card], Shown], ...] = (
    headline,
    verdicts,
    classes,
    error,
    features,
    trust,
    outcomes,
    events,
    segments,
    recent,
)


def shown_classes(facts: StreamFacts, readings: Sequence[Reading]) -> list[int]:
    """The positive one of two; of many those that moved most."""
    names = facts.classes
    if len(names) == 2:
        return [names.index(facts.positive) if facts.positive in names else 1]
    moved = [
        max(abs(reading.priors[at] - reading.source_priors[at]) for reading in readings if reading.priors)
        for at in range(len(names))
    ]
    return sorted(sorted(range(len(names)), key=lambda at: -moved[at])[:MOST_CLASSES])


def _leading(reading: Reading) -> int:
    """The class whose share moved most."""
    return max(range(len(reading.classes)), key=lambda at: abs(reading.priors[at] - reading.source_priors[at]))


def _rounded(bins: Bins, class_number: int) -> list[list[float]]:
    """Share, lower and upper end of each bin."""
    parts = (bins.series(part, class_number) for part in ("priors", "lower", "upper"))
    return [[round(float(share), 4) for share in shares] for shares in zip(*parts, strict=True)]


def _outcome(outcome: OutcomeResult) -> tuple[Any, ...]:
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


def _segment(reading: Reading, at: int | None) -> str:
    """In one cell: the share of a class, or the error of a regressor's predictions."""
    if at is not None:
        return f"{percent(reading.priors[at])} ({percent(reading.lower[at])} to {percent(reading.upper[at])})"
    relation = reading.relation
    return "no labels" if relation is None or relation.error is None else number(relation.error)
