"""The page of a stream over time, and that of one of its windows."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.exceptions import HTTPException

from monitor.observers import Snapshot, Track
from monitor.web.page import classifier, panels, regressor
from monitor.web.page.card import Card, within
from monitor.web.page.choice import ALL, LASTING, Choice

PANELS = {"classifier": classifier.PANELS, "regressor": regressor.PANELS}
"""By kind of stream."""
WINDOW_PANELS = {"classifier": classifier.WINDOW_PANELS, "regressor": regressor.WINDOW_PANELS}


def stream(snapshot: Snapshot, now: float, choice: Choice) -> Mapping[str, Any]:
    """What the template of either page shows; HTTPException where there is nothing of what is asked for."""
    facts, tracks = snapshot.facts.get(choice.stream), snapshot.tracks.get(choice.stream, {})
    if facts is None:
        raise HTTPException(404, f"there is no stream {choice.stream!r}")
    track = tracks.get(choice.segment)
    if choice.segment and track is None:
        raise HTTPException(404, f"stream {choice.stream!r} has no segment {choice.segment!r}")
    common = {"choice": choice, "facts": facts, "moved": int(track is not None and track.latest.verdict.moved)}
    readings = within(track.readings, choice) if track else ()
    if choice.window is not None and (not readings or readings[-1].key.end != choice.window):
        raise HTTPException(404, f"stream {choice.stream!r} has no window that ended then, or has it no more")
    if track is None or not readings:
        return {**common, "track": track, "ranges": [], "stream": None}
    card = Card[Any](facts, tracks, now, choice)
    made = (PANELS, panels.COMMON) if choice.window is None else (WINDOW_PANELS, panels.COMMON_OF_WINDOWS)
    return {
        **common,
        "track": track,
        "ranges": _ranges(track, choice),
        "stream": panels.shown(card, made[0].get(facts.kind, made[1])),
        **_beside(track.readings, len(readings), choice),
    }


def _ranges(track: Track, choice: Choice) -> Sequence[tuple[str, str, bool]]:
    """Names, addresses, and whether it is the one: those that are shorter than what is known."""
    lasting = track.latest.key.end - track.readings[0].key.start
    shorter = [name for name, hours in LASTING.items() if hours * 3_600_000_000 < lasting]
    ours = choice.last or ("" if choice.since or choice.until else ALL)
    return [(name, choice.link(last=name, since=None, until=None), name == ours) for name in [*shorter, ALL]]


def _beside(readings: Sequence[Any], upto: int, choice: Choice) -> Mapping[str, Any]:
    """The addresses of the windows before and after the one that is chosen."""
    if choice.window is None:
        return {}
    before = choice.link(window=readings[upto - 2].key.end) if upto > 1 else ""
    after = choice.link(window=readings[upto].key.end) if upto < len(readings) else ""
    return {"before": before, "after": after}
