"""The whole page: which of all that is known stands on it."""

from collections import Counter
from dataclasses import replace

from monitor.observers import Flow, Snapshot
from monitor.pages import number, seconds
from monitor.version import __version__
from monitor.web.page.choice import EVERYTHING, Choice
from monitor.web.page.overview import overview
from monitor.web.page.stream import stream
from monitor.web.templates import render

MOST_REASONS = 5


def document(snapshot: Snapshot, now: float, choice: Choice = EVERYTHING) -> str:
    """The page that is asked for. A single stream needs no overview."""
    if not choice.stream and len(snapshot.facts) == 1:
        choice = replace(choice, stream=next(iter(snapshot.facts)))
    if not choice.stream:
        template, values = "overview.html", overview(snapshot, now, choice)
    else:
        template, values = "stream.html" if choice.window is None else "window.html", stream(snapshot, now, choice)
    return render(
        template,
        version=__version__,
        now=int(now * 1e6),
        flow=_flow(snapshot.flow, snapshot.started, now),
        unpublished=sorted(snapshot.flow.unpublished),
        in_parts=sorted(snapshot.flow.spread - snapshot.flow.unpublished),
        rejected=_rejected(snapshot.flow),
        **values,
    )


def _rejected(flow: Flow) -> list[tuple[str, int]]:
    """The most frequent reasons, over all streams."""
    counts = Counter[str]()
    for (_, reason), count in flow.rejected.items():
        counts[reason] += count
    return [(reason, count) for reason, count in counts.most_common(MOST_REASONS) if count]


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
    if flow.newest_event is None:
        return "none yet"
    return f"{seconds(max(0.0, now - flow.newest_event / 1e6))} ago"
