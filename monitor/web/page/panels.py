"""The panels of a stream's card. Each is a function and a template of the same name.

A function makes what its template shows from the stream's windows, or None where there is nothing to show; what it puts
into `values` the script shows under the pointer. Those that every kind of stream has stand here and in
`templates/panels`; `classifier.py` and `regressor.py` have those of their kinds, with templates in folders of these
names, and say which panels stand on a card, in which order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic

from monitor.kinds import AnswerT_co, Reading
from monitor.labels import OutcomeResult
from monitor.observers import StreamFacts, Track
from monitor.pages.words import number, p_value, span
from monitor.web.page import charts
from monitor.web.page.charts import Bins

MOST_CHANGES = 6
MOST_FEATURES = 10
RECENT = 15

Shown = Mapping[str, Any]


@dataclass(frozen=True)
class Card(Generic[AnswerT_co]):
    """All that is known of a stream that has had a window."""

    facts: StreamFacts
    tracks: Mapping[str, Track]
    outcomes: Sequence[OutcomeResult]
    now: float

    @property
    def track(self) -> Track:
        """The track of the whole stream."""
        return self.tracks[""]

    @property
    def latest(self) -> Reading[AnswerT_co]:
        """What its newest window said."""
        return self.track.latest

    @cached_property
    def bins(self) -> Bins:
        """Its windows as all charts show them."""
        return Bins(self.track.readings)


Panel = Callable[[Card[Any]], Shown | None]


def shown(card: Card[Any], panels: Sequence[Panel]) -> Shown:
    """What the template of the card shows: what each panel's does, times under the charts, values for the script."""
    made = {panel.__name__: panel(card) for panel in panels}
    present = {name: panel for name, panel in made.items() if panel is not None}
    newest = [group[-1] for group in card.bins.groups]
    values = {
        "time": [span(group[0].key.start, group[-1].key.end) for group in card.bins.groups],
        "verdict": [reading.verdict.facts.headline for reading in card.bins.worst],
        "events": [reading.events for reading in newest],
        "lost": [reading.late + reading.rejected for reading in newest],
        "features": [],
    }
    for panel in present.values():
        values |= panel.get("values", {})
    return {"facts": card.facts, "panels": present, "ticks": card.bins.ticks, "script": values}


def headline(card: Card[Any]) -> Shown:
    """The verdict, why, what to do, and where the stream stands now."""
    return {
        "latest": card.latest,
        "track": card.track,
        "stale": card.now - card.track.assessed_at if card.track.stale(card.now) else None,
        "changes": card.track.changes.found[-1].series[:MOST_CHANGES] if card.track.changes.found else (),
    }


def verdicts(card: Card[Any]) -> Shown:
    """The verdicts over time, and how often each was given."""
    counted = Counter(reading.verdict for reading in card.track.readings).most_common()
    return {"chart": charts.strip(card.bins), "windows": len(card.track.readings), "counted": counted}


def features(card: Card[Any]) -> Shown | None:
    """Which inputs moved, when and how."""
    bins, rows = card.bins, charts.heat_rows(card.bins)
    if not rows:
        return None
    names = [bins.features[row] for row in rows]
    effects = [[round(float(effect), 3) for effect in bins.effects[row]] for row in rows]
    return {
        "names": names,
        "of": len(bins.features),
        "chart": charts.heat(bins, rows),
        "levels": range(1, charts.HEAT_LEVELS + 1),
        "moved": sorted(card.latest.moved, key=lambda feature: -feature.effect)[:MOST_FEATURES],
        "values": {"features": names, "effects": effects},
    }


def trust(card: Card[Any]) -> Shown:
    """Every test of the newest window, for its panel."""
    tests = [
        (
            name.replace("-", " "),
            "" if test.p_value is None else p_value(test.p_value),
            f"{test.effect + 0.0:.3f}".replace("-0.000", "0.000"),
            f"{test.floor:.3g}",
            "moved" if test.significant else "",
        )
        for name, test in card.latest.tests.items()
    ]
    return {"tests": tests}


def events(card: Card[Any]) -> Shown:
    """How many events there were, and what was lost of them."""
    lost = sum(reading.late + reading.rejected for reading in card.track.readings)
    return {"latest": card.latest, "lost": lost, "chart": charts.flow(card.bins)}


def segments_by(card: Card[AnswerT_co], heading: str, cell: Callable[[AnswerT_co], str]) -> Shown | None:
    """The segments that the newest window holds; the last column is the kind's own."""
    ends = card.latest.key.end
    latest = {name: track.latest for name, track in sorted(card.tracks.items()) if name}
    rows = [
        (name, reading.verdict.facts.headline, number(reading.events), cell(reading.answer))
        for name, reading in latest.items()
        if reading.key.end >= ends
    ]
    return {"heading": heading, "rows": rows} if rows else None


def recent(card: Card[Any]) -> Shown:
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


COMMON: tuple[Panel, ...] = (headline, verdicts, features, trust, events, recent)
"""The panels of a kind that has none of its own."""
