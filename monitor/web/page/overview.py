"""All streams on one screen: how many have moved or are not watched, and what each is like, the worst first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from monitor.observers import Snapshot, Track
from monitor.pages import seconds
from monitor.web.page.alarms import open_alarms_in_words
from monitor.web.page.choice import ALL, HOUR, LASTING, SHOWN, SORTED, Choice
from monitor.web.page.timeline import Range, strip

USUAL_WINDOWS = 100
"""The range that is shown where none is chosen holds at least so many windows of the stream in the middle."""
LOST = 300.0
"""Seconds: newest events that are older than this are worth a word."""

Standing = Literal["moved", "not watched", "calm"]
STANDINGS: Mapping[Standing, str] = {
    "moved": "Moved, or in alarm",
    "not watched": "Not watched",
    "calm": "Nothing has moved",
}
"""The worst first."""


@dataclass(frozen=True, slots=True)
class Line:
    """One stream."""

    stream: str
    standing: Standing
    alarm: bool
    track: Track | None
    """None before its first window."""
    why: str
    since: int | None

    @property
    def newest(self) -> int:
        """When its newest window ended; 0 before the first."""
        return 0 if self.track is None else self.track.latest.key.end

    @property
    def gravity(self) -> tuple[bool, int, int]:
        """What has an alarm goes before what has none; then by verdict, and what has lasted."""
        rank = 0 if self.track is None else self.track.latest.verdict.rank
        return (not self.alarm, -rank, self.since or self.newest)


def overview(snapshot: Snapshot, now: float, choice: Choice) -> Mapping[str, Any]:
    """What the template of the page of all streams shows."""
    lines = [_line(snapshot, name, now) for name in snapshot.facts]
    counts = {standing: sum(line.standing == standing for line in lines) for standing in STANDINGS}
    named, over = _range(lines, choice)
    found = sorted((line for line in lines if choice.search.casefold() in line.stream.casefold()), key=_order(choice))
    groups = [
        (standing, heading, [(line, _chart(line, over)) for line in found if line.standing == standing])
        for standing, heading in STANDINGS.items()
        if choice.show in ("all", standing)
    ]
    return {
        "choice": choice,
        "counts": counts,
        "of": len(lines),
        "alarms": sum(line.alarm for line in lines),
        "groups": [group for group in groups if group[2]],
        "ticks": over.ticks if over else [],
        "legend": sorted(
            {reading.verdict for line in lines if line.track for reading in line.track.readings[-USUAL_WINDOWS:]},
            key=lambda verdict: verdict.rank,
        ),
        "ranges": [(name, name) for name in (*LASTING, ALL)],
        "chosen_range": named,
        "shows": [(name, f"{name} {of}") for name, of in zip(SHOWN, (len(lines), *counts.values()), strict=True)],
        "sorts": [(name, name) for name in SORTED],
        "moved": counts["moved"],
    }


def _line(snapshot: Snapshot, stream: str, now: float) -> Line:
    tracks = snapshot.tracks.get(stream, {})
    track = tracks.get("")
    alarms = open_alarms_in_words(tracks)
    alarm = bool(alarms) or (track is not None and track.alarm.alarm)
    unwatched = _unwatched(snapshot, stream, track, now)
    if unwatched or track is None:
        return Line(stream, "not watched", alarm, track, unwatched, None)
    reasons = "; ".join(track.latest.reasons)
    if alarms:
        more = f", and {len(alarms) - 1} more" if len(alarms) > 1 else ""
        of = f"{alarms[0].segment}: " if alarms[0].segment else ""
        return Line(stream, "moved", alarm, track, f"{of}{alarms[0].words}{more}", alarms[0].since)
    if track.latest.verdict.moved:
        return Line(stream, "moved", alarm, track, reasons, _since(track))
    if alarm:
        flags = track.alarm.flags
        words = f"{track.alarm.moved} of the last {len(flags)} windows moved, and the newest is calm"
        return Line(stream, "moved", alarm, track, words, _since(track))
    return Line(stream, "calm", alarm, track, reasons, None)


def _unwatched(snapshot: Snapshot, stream: str, track: Track | None, now: float) -> str:
    """Why nothing is known of how the stream is now; empty where it is."""
    if stream in snapshot.flow.unpublished:
        return "several members of the group get its events"
    if track is None:
        return "waiting for its first window"
    if track.stale(now):
        return f"no window for {seconds(now - track.assessed_at)}"
    return "; ".join(track.latest.reasons) if track.latest.verdict.silent else ""


def _since(track: Track) -> int:
    """When the first began of the last windows that have all moved, but for single ones in between."""
    since = track.latest.key.start
    calm = 0
    for reading in reversed(track.readings):
        calm = 0 if reading.verdict.moved else calm + 1
        if calm > 1:
            break
        since = reading.key.start if not calm else since
    return since


def _order(choice: Choice) -> Any:
    return {
        "worst first": lambda line: (line.gravity, line.stream),
        "name": lambda line: line.stream,
        "newest": lambda line: (-line.newest, line.stream),
    }[choice.sort]


def _range(lines: Sequence[Line], choice: Choice) -> tuple[str, Range | None]:
    """That of all strips, with its name: until the newest window of all, so that a stream that stopped is seen to."""
    tracks = [line.track for line in lines if line.track is not None]
    if not tracks:
        return choice.last, None
    end = max(track.latest.key.end for track in tracks)
    usual = USUAL_WINDOWS * median(track.latest.key.end - track.latest.key.start for track in tracks)
    earliest = min(track.readings[0].key.start for track in tracks)
    name = choice.last or next((name for name, hours in LASTING.items() if hours * HOUR >= usual), ALL)
    start = earliest if name == ALL else end - LASTING[name] * HOUR
    return name, Range(max(start, earliest), end)


def _chart(line: Line, over: Range | None) -> Any:
    return None if line.track is None or over is None else strip(line.track.readings, over)
