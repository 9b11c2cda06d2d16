"""The whole page: which cards stand on it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from monitor.observers import Flow, Snapshot, Track
from monitor.pages.words import moment, number, seconds
from monitor.ports import NEVER
from monitor.version import __version__
from monitor.web.page import charts, classifier, regressor
from monitor.web.page.charts import Bins
from monitor.web.page.panels import COMMON, Card, shown
from monitor.web.templates import render

MOST_STREAMS = 12
"""Shown in full on one page; of more, each has a line and a page of its own."""
MOST_REASONS = 5

PANELS = {"classifier": classifier.PANELS, "regressor": regressor.PANELS}
"""By kind of stream."""


def document(snapshot: Snapshot, now: float, stream: str = "") -> str:
    """The whole page, or that of one stream."""
    names = [stream] if stream else list(snapshot.facts)
    return render(
        "status.html",
        version=__version__,
        now=int(now * 1e6),
        moved=_moved(snapshot, names),
        alarms=_alarms(snapshot, names),
        overview=_overview(snapshot, now) if len(snapshot.facts) > 1 and not stream else [],
        streams=[_stream(snapshot, name, now) for name in names] if len(names) <= MOST_STREAMS else [],
        flow=_flow(snapshot.flow, snapshot.started, now),
        unpublished=sorted(snapshot.flow.unpublished),
        in_parts=sorted(snapshot.flow.spread - snapshot.flow.unpublished),
        rejected=_rejected(snapshot.flow),
    )


def _rejected(flow: Flow) -> list[tuple[str, int]]:
    """The most frequent reasons, over all streams."""
    counts = Counter[str]()
    for (_, reason), count in flow.rejected.items():
        counts[reason] += count
    return [(reason, count) for reason, count in counts.most_common(MOST_REASONS) if count]


def _moved(snapshot: Snapshot, names: Sequence[str]) -> int:
    """What a browser's tab says: how many streams have moved."""
    tracks = (_whole(snapshot, name) for name in names)
    return sum(track is not None and track.latest.verdict.moved for track in tracks)


def _alarms(snapshot: Snapshot, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Those that are open, of all streams and their segments: the one that began first comes first."""
    found = sorted(
        (alarm.since, stream, segment, series, alarm)
        for stream in names
        for segment, track in snapshot.tracks.get(stream, {}).items()
        for series, alarm in track.open_alarms.items()
    )
    return [
        (stream, segment or "whole stream", series, moment(since), number(alarm.windows), number(alarm.size))
        for since, stream, segment, series, alarm in found
    ]


def _overview(snapshot: Snapshot, now: float) -> list[Mapping[str, Any]]:
    """One line for each stream."""
    tracks = {name: _whole(snapshot, name) for name in snapshot.facts}
    return [
        {
            "stream": name,
            "track": track,
            "chart": charts.strip(Bins(track.readings)) if track else None,
            "stale": track is not None and track.stale(now),
        }
        for name, track in tracks.items()
    ]


def _stream(snapshot: Snapshot, name: str, now: float) -> Mapping[str, Any]:
    """The card of a stream, with its panels."""
    facts = snapshot.facts[name]
    if _whole(snapshot, name) is None:
        return {"facts": facts, "panels": {}}
    card = Card[Any](facts, snapshot.tracks[name], snapshot.outcomes.get(name, ()), now)
    return shown(card, PANELS.get(facts.kind, COMMON))


def _whole(snapshot: Snapshot, stream: str) -> Track | None:
    return snapshot.tracks.get(stream, {}).get("")


def _flow(flow: Flow, started: float, now: float) -> list[tuple[str, str]]:
    """How the process itself is doing."""
    facts = [
        ("events taken in", number(sum(flow.events.values()))),
        ("in open windows", number(flow.waiting_events)),
        ("late", number(sum(flow.late.values()))),
        ("rejected", number(sum(flow.rejected.values()))),
        ("partitions", f"{len(flow.partitions)}" + (f", {len(flow.idle)} idle" if flow.idle else "")),
        ("newest event", _behind(flow, now)),
        ("running for", seconds(now - started)),
    ]
    if flow.report is not None and flow.report.partitions:
        lags = [partition.lag for partition in flow.report.partitions if partition.lag is not None]
        facts.insert(1, ("not read yet", number(sum(lags)) if lags else "unknown"))
    return facts


def _behind(flow: Flow, now: float) -> str:
    newest = max((at for at in flow.event_time.values() if at > NEVER), default=None)
    return "none yet" if newest is None else f"{seconds(max(0.0, now - newest / 1e6))} ago"
