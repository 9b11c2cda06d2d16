"""The panels of a stream's page, and of the page of one of its windows. Each is a function and a template of its name.

A function makes what its template shows from the windows that are chosen, or None where there is nothing to show; what
it puts into `values` the script shows under the pointer. Those that every kind of stream has stand here and in
`templates/panels`; `classifier.py` and `regressor.py` have those of their kinds, with templates in folders of these
names, and say which panels stand on a page, in which order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from monitor.kinds import AnswerT_co, AnyReading
from monitor.pages import distribution, moment, number, p_value, percent, span
from monitor.web.page import charts
from monitor.web.page.alarms import open_alarms_in_words
from monitor.web.page.card import Card, within
from monitor.web.page.timeline import Range, strip

MOST_CHANGES = 6
MOST_FEATURES = 10
MOST_DRAWN = 9
"""Distributions that are seen at once: more are folded away."""
RECENT = 15
LEAST_WRONG, MOST_WRONG = 0.001, 0.2
"""Shares of what is wrong with the data at which colour begins, and is strongest."""
QUALITY: Mapping[str, Callable[[AnyReading], float]] = {
    "rejected": lambda reading: reading.quality.rejected,
    "missing": lambda reading: reading.quality.missing,
    "out of range": lambda reading: reading.quality.outside_range,
    "new categories": lambda reading: reading.quality.new_categories,
    "constant features": lambda reading: len(reading.quality.constant) / max(len(reading.features), 1),
}
"""A share each: of records; of values; of numbers, beyond those of the hold-out; of other values, unknown to it; of
features, with one value in all events of the window."""

Shown = Mapping[str, Any]
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
        **card.addresses,
    }
    for panel in present.values():
        values |= panel.get("values", {})
    return {"card": card, "facts": card.facts, "panels": present, "ticks": card.bins.ticks, "script": values}


def alarms(card: Card[Any]) -> Shown | None:
    """Those that are open, of the stream and its segments: the one that began first comes first."""
    tracks = card.tracks if not card.choice.segment else {card.choice.segment: card.track}
    found = open_alarms_in_words(tracks) if card.current else []
    return {"opened": found} if found else None


def headline(card: Card[Any]) -> Shown:
    """The verdict, why, what to do, and where the stream stands now."""
    changes = card.track.changes.found if card.current else ()
    return {
        "latest": card.latest,
        "track": card.track,
        "current": card.current,
        "stale": card.now - card.track.assessed_at if card.current and card.track.stale(card.now) else None,
        "past": card.track.past if card.current else None,
        "opened": alarms(card) is not None,
        "changes": changes[-1].series[:MOST_CHANGES] if changes else (),
    }


def verdicts(card: Card[Any]) -> Shown:
    """The verdicts over time, and how often each was given."""
    counted = Counter(reading.verdict for reading in card.readings).most_common()
    return {"chart": charts.strip(card.bins), "windows": len(card.readings), "counted": counted}


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
    lost = sum(reading.late + reading.rejected for reading in card.readings)
    return {"latest": card.latest, "lost": lost, "chart": charts.flow(card.bins)}


def quality(card: Card[Any]) -> Shown:
    """What is plainly wrong with the data: now, at most, and over time."""
    latest, bins = card.latest, card.bins
    shares = {name: [share(reading) for reading in card.readings] for name, share in QUALITY.items()}
    wrong = [name for name, over_time in shares.items() if any(over_time)]
    worst = [np.array([max(map(QUALITY[name], group)) for group in bins.groups]) for name in wrong]
    levels = [charts.heat_level(over_time, LEAST_WRONG, MOST_WRONG) for over_time in worst]
    over = [reading.volume for reading in card.readings if reading.volume is not None]
    several = card.choice.window is None and len(bins.groups) > 1
    return {
        "heads": ("share of", "last window", "most in the windows shown") if several else ("share of", "this window"),
        "rows": [
            (name, *map(percent, (over_time[-1], max(over_time)) if several else over_time[-1:]))
            for name, over_time in shares.items()
        ],
        "wrong": wrong,
        "chart": charts.heated(bins, levels, f"Data quality over {len(bins.readings)} windows", "quality")
        if levels and several
        else None,
        "levels": range(1, charts.HEAT_LEVELS + 1),
        "features": _wrong_features(latest),
        "alarms": [(name, moment(alarm.since)) for name, alarm in card.track.data_faults.items()]
        if card.current
        else (),
        "volume": None if latest.volume is None else (latest.volume, min(over), max(over)),
        "values": {"quality": wrong, "wrong": [[round(float(share), 4) for share in row] for row in worst]},
    }


def _wrong_features(latest: AnyReading) -> list[tuple[str, str]]:
    """Each that has values which no hold-out event had, or one value only, and what is wrong with it."""
    said = [
        (name, f"{percent(share)} {words}")
        for name, found in latest.quality.features.items()
        for share, words in (
            (found.outside_range, "of its values lie outside the hold-out's range"),
            (found.new_categories, "of its values are categories that the hold-out does not have"),
        )
        if share
    ]
    return [*said, *((name, "has the same value in all events") for name in latest.quality.constant)]


def counts(card: Card[Any]) -> Shown:
    """What became of the events of one window, and who made it out of what."""
    latest = card.latest
    counted = {
        "used": latest.events,
        "late": latest.late,
        "rejected": latest.rejected,
        "left out by sampling": latest.sampled_out,
        "labelled": latest.labelled,
    }
    return {
        "facts": [(name, number(count)) for name, count in counted.items()],
        "gaps": latest.gaps,
        "partitions": latest.partitions,
    }


def inputs(card: Card[Any]) -> Shown | None:
    """Every input of one window: how far it moved, how, and its distribution; the furthest first."""
    latest = card.latest
    if not latest.features:
        return None
    known = card.track.sketches(latest.key.id)
    sketches = known.features if known else {}
    moved = {feature.name: feature for feature in latest.moved}
    order = sorted(range(len(latest.features)), key=lambda at: -latest.effects[at])
    rows = [
        (
            latest.features[at],
            f"{latest.effects[at]:.3f}",
            p_value(float(latest.p_values[at])),
            moved[latest.features[at]].explanation if latest.features[at] in moved else "",
        )
        for at in order
    ]
    drawn = {row[0]: distribution(sketches[row[0]]) for row in rows if row[0] in sketches}
    return {"rows": rows, "moved": len(moved), "drawn": list(drawn.items()), "most": MOST_DRAWN}


def scores(card: Card[Any]) -> Shown | None:
    """How the scores of one window were distributed, or a regressor's predictions."""
    known = card.track.sketches(card.latest.key.id)
    if known is None or not known.scores:
        return None
    return {"drawn": [(name, distribution(sketch)) for name, sketch in known.scores.items()], "most": MOST_DRAWN}


def segments_by(card: Card[AnswerT_co], heading: str, cell: Callable[[AnswerT_co], str]) -> Shown | None:
    """The segments over time, those that moved most first; the last column is the kind's own."""
    if card.choice.segment or len(card.tracks) < 2:
        return None
    until = card.latest.key.end
    seen = {
        name: readings
        for name, track in card.tracks.items()
        if name and (readings := within(track.readings, replace(card.choice, until=until)))
    }
    if not seen:
        return None
    # Of segments fewer windows are remembered than of the whole: those before are not drawn as if there had been none.
    over = Range(max(card.readings[0].key.start, min(readings[0].key.start for readings in seen.values())), until)
    rows = [
        (
            card.choice.link(segment=name),
            name,
            readings[-1],
            strip(readings, over),
            cell(readings[-1].answer),
            readings[-1].key.end >= over.end,
        )
        for name, readings in seen.items()
    ]
    rows.sort(key=lambda row: (not row[5], -row[2].verdict.rank, -_furthest(row[2]), row[1]))
    return {"heading": heading, "rows": rows, "ticks": over.ticks}


def _furthest(reading: AnyReading) -> float:
    return float(reading.effects.max(initial=0.0))


def recent(card: Card[Any]) -> Shown:
    """The last windows in words."""
    rows = [
        (card.choice.link(window=reading.key.end), span(reading.key.start, reading.key.end), reading)
        for reading in reversed(card.readings[-RECENT:])
    ]
    return {"rows": rows}


COMMON: tuple[Panel, ...] = (headline, alarms, verdicts, features, events, quality, trust, recent)
"""The panels of a kind that has none of its own."""
COMMON_OF_WINDOWS: tuple[Panel, ...] = (headline, inputs, scores, counts, quality, trust)
