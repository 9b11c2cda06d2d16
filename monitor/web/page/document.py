"""The page itself: what stands where."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from connectors.protocols import NEVER
from monitor.labels.outcomes import OutcomeResult
from monitor.observers.history import Flow, Snapshot, StreamFacts, Track
from monitor.observers.window_record import Reading
from monitor.version import __version__
from monitor.web.page import charts, regression
from monitor.web.page.charts import Bins
from monitor.web.page.words import moment, number, percent, seconds, span, text

MOST_CLASSES = 6
MOST_STREAMS = 12
"""Shown in full on one page; of more, each has a line and a page of its own."""
RECENT = 15
OUTCOMES = 5

ICON = (
    "<link rel=icon href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
    "%3Crect width='32' height='32' rx='7' fill='%232b6cb0'/%3E%3Cpath d='M4 21c5 0 5-9 9-9s4 5 8 5 4-7 7-7' "
    "fill='none' stroke='white' stroke-width='3' stroke-linecap='round'/%3E%3C/svg%3E\">"
)


def document(snapshot: Snapshot, now: float, stream: str = "") -> str:
    """The whole page, or that of one stream."""
    shown = [stream] if stream else list(snapshot.facts)
    full = shown if len(shown) <= MOST_STREAMS else []
    parts = [
        _overview(snapshot, now) if len(snapshot.facts) > 1 and not stream else "",
        *(_stream(snapshot.facts[one], snapshot.tracks.get(one, {}), snapshot, now) for one in full),
        _loop(snapshot.flow, snapshot.started, now),
    ]
    title = _title(snapshot, shown)
    clock = moment(int(now * 1e6), "%H:%M:%S")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{text(title)}</title>{ICON}'
        '<link rel="stylesheet" href="/assets/style.css"><script defer src="/assets/live.js"></script></head><body>'
        '<header><a class="name" href="/">Shiftwatch</a>'
        f'<span id="live" class="live" role="status">as of {clock} UTC</span></header>'
        f'<main id="main">{"".join(parts)}</main>'
        f'<footer>Shiftwatch {text(__version__)} · <a href="/metrics">metrics</a> · '
        '<a href="/api/streams">API</a> · <a href="/api/openapi.json">its description</a></footer>'
        '<div id="tip" role="status" hidden></div></body></html>'
    )


def _title(snapshot: Snapshot, shown: Sequence[str]) -> str:
    """What a browser's tab says: how many streams have moved."""
    latest = [tracks[""].latest.verdict for one in shown if "" in (tracks := snapshot.tracks.get(one, {}))]
    moved = sum(verdict.moved for verdict in latest)
    return f"({moved}) Shiftwatch" if moved else "Shiftwatch"


def _overview(snapshot: Snapshot, now: float) -> str:
    """One line for each stream."""
    lines = []
    for name in snapshot.facts:
        track = snapshot.tracks.get(name, {}).get("")
        graph = charts.strip(Bins(track.readings)) if track else ""
        stale = ' <em class="stale">stale</em>' if track and track.stale(now) else ""
        lines.append(
            f'<li><a href="/streams/{text(name)}">{text(name)}</a>{_badge(track)}{stale}<div>{graph}</div></li>'
        )
    return f'<section class="card"><h2>Streams</h2><ul class="overview">{"".join(lines)}</ul></section>'


def _stream(facts: StreamFacts, tracks: Mapping[str, Track], snapshot: Snapshot, now: float) -> str:
    name, track = facts.stream, tracks.get("")
    if track is None:
        return (
            f'<section class="card"><h2>{text(name)}</h2>{_badge(None)}'
            f'<p class="muted">{_plan(facts)}; {_reference(facts)}</p></section>'
        )
    bins, latest = Bins(track.readings), track.latest
    values = _values(bins, _shown_classes(facts, bins.readings))
    return (
        f'<section class="card" id="s-{text(name)}" data-stream="{text(name)}" aria-label="Stream {text(name)}">'
        f"{_headline(facts, track, now)}"
        f'<figure class="wide"><figcaption>Verdicts <span>of the last {number(len(track.readings))} windows</span>'
        f"</figcaption>{charts.strip(bins)}{charts.ticks(bins)}{_legend(track.readings)}</figure>"
        f"{regression.chart(facts, bins) or _classes(facts, bins)}{_features(bins, latest)}"
        f"{_trust(latest)}{_outcomes(snapshot.outcomes.get(name, ()))}{_events(bins, latest)}"
        f"{_segments(tracks, track)}{_recent(track.readings)}"
        f'<script type="application/json" class="values">{values}</script></section>'
    )


def _badge(track: Track | None) -> str:
    if track is None:
        return '<span class="badge"><i aria-hidden="true">…</i> Waiting for the first window</span>'
    verdict = track.latest.verdict
    mark, headline = verdict.facts.mark, verdict.facts.headline
    return f'<span class="badge"><i class="v-{verdict}" aria-hidden="true">{mark}</i> {headline}</span>'


def _headline(facts: StreamFacts, track: Track, now: float) -> str:
    latest = track.latest
    stale = ""
    if track.stale(now):
        ago = seconds(now - track.assessed_at)
        stale = f'<p class="stale">No window for {ago}: what stands here may no longer be so.</p>'
    reasons = "".join(f"<li>{text(reason[:1].upper() + reason[1:])}</li>" for reason in latest.reasons)
    correction = regression.correction(latest)
    if latest.apply and latest.relation is None:
        factors = zip(latest.classes, latest.multipliers, strict=True)
        told = ", ".join(f"{text(name)} x {number(factor)}" for name, factor in list(factors)[:MOST_CLASSES])
        correction = f"<b>The scores are to be corrected:</b> {told}."
    elif latest.verdict.moved and latest.relation is None:
        correction = f"<b>The scores are not to be corrected:</b> {text(latest.why)}."
    return (
        f'<div class="head"><div class="what"><h2>{text(facts.stream)}</h2>'
        f"{_badge(track)}{stale}"
        f'<ul class="reasons">{reasons}</ul>{_series(track)}'
        f'<p class="advice">{text(latest.verdict.facts.advice)} {correction}</p>'
        f'<p class="muted">{number(latest.events)} events, {span(latest.key.start, latest.key.end)} · '
        f"{_plan(facts)} · {_reference(facts)}</p></div>"
        f'<div class="shares">{regression.figures(latest) or _shares(facts, latest)}</div></div>'
    )


def _series(track: Track) -> str:
    """What the last windows say together."""
    told, seen = [], track.series
    if seen is not None and seen.alarm:
        told.append(f"<b>Alarm:</b> {seen.flagged} of the last {seen.judged} windows moved.")
    if track.changes:
        newest = track.changes[-1]
        told.append(
            f"Level changed about {moment(newest.key.end)} UTC: {text(', '.join(newest.changes[:MOST_CLASSES]))} "
            f'<span class="kind">{text(newest.detector)}</span>'
        )
    return f'<p class="series">{"<br>".join(told)}</p>' if told else ""


def _shares(facts: StreamFacts, latest: Reading) -> str:
    rows = []
    for at in _shown_classes(facts, [latest]):
        low, high = latest.lower[at], latest.upper[at]
        interval = f"{percent(low)} to {percent(high)}" if high - low < 1 else "no interval"
        truth = "" if latest.realised is None else f", {percent(latest.realised[at])} of the labelled"
        rows.append(
            f'<div class="share"><span class="class">{text(latest.classes[at])}</span>'
            f'<span class="big">{percent(latest.priors[at])}</span>'
            f"{charts.share_bar(latest.priors[at], low, high, latest.source_priors[at])}"
            f'<span class="muted">{interval}; reference {percent(latest.source_priors[at])}{truth}</span></div>'
        )
    more = len(latest.classes) - len(rows)
    if more and len(latest.classes) > 2:
        rows.append(f'<p class="muted">and {more} more classes</p>')
    return "".join(rows)


def _shown_classes(facts: StreamFacts, readings: Sequence[Reading]) -> list[int]:
    """The positive one of two; of many those that moved most."""
    classes = facts.classes
    if len(classes) == 2:
        return [classes.index(facts.positive) if facts.positive in classes else 1]
    moved = [
        max(abs(one.priors[at] - one.source_priors[at]) for one in readings if one.priors) for at in range(len(classes))
    ]
    return sorted(sorted(range(len(classes)), key=lambda at: -moved[at])[:MOST_CLASSES])


def _classes(facts: StreamFacts, bins: Bins) -> str:
    shown = _shown_classes(facts, bins.readings)
    truth = any(one.realised is not None for one in bins.readings)
    figures = "".join(
        f"<figure><figcaption>{text(facts.classes[at])}</figcaption>"
        f'<div class="framed">{charts.prevalence(bins, at)}</div>{charts.ticks(bins)}</figure>'
        for at in shown
    )
    keys = [("line", "estimate"), ("band", "interval"), ("source", "reference")]
    keys += [("truth", "truth, from labels")] if truth else []
    legend = "".join(f'<li><i class="k-{key}"></i>{words}</li>' for key, words in keys)
    return (
        f'<h3>How much of each class</h3><ul class="legend">{legend}</ul>'
        f'<div class="grid n{min(3, len(shown))}">{figures}</div>'
    )


def _features(bins: Bins, latest: Reading) -> str:
    rows = charts.heat_rows(bins)
    if not rows:
        return ""
    hidden = len(bins.features) - len(rows)
    moved = "".join(
        f"<li><b>{text(one.name)}</b>{text(one.explanation.removeprefix(one.name))} "
        f'<span class="kind">{text(one.kind)}</span></li>'
        for one in sorted(latest.moved, key=lambda one: -one.effect)[:10]
    )
    now = f'<ul class="moved">{moved}</ul>' if moved else '<p class="muted">None moved in the last window.</p>'
    scale = "".join(f'<i class="k-h{level}"></i>' for level in range(1, charts.HEAT_LEVELS + 1))
    title = "Inputs, beyond what the class mix explains" if latest.relation is None else "Inputs and predictions"
    most = f" · the {len(rows)} that moved most of {len(bins.features)}" if hidden else ""
    return (
        f"<h3>{title}</h3>"
        f'<p class="muted legend">a little {scale} a lot{most}</p>'
        f'<div class="heatmap">{charts.heat(bins, rows)}<span></span>{charts.ticks(bins)}</div>{now}'
    )


def _trust(latest: Reading) -> str:
    """Can the numbers be believed: how the estimate was reached, what others say, and every test."""
    tests = _table(
        "Tests of the window",
        ("test", "p", "effect", "floor", ""),
        [
            (
                name.replace("-", " "),
                "" if test.p_value is None else _p(test.p_value),
                f"{test.effect + 0.0:.3f}".replace("-0.000", "0.000"),
                f"{test.floor:.3g}",
                "moved" if test.significant else "",
            )
            for name, test in latest.tests.items()
        ],
    )
    if latest.relation is not None:
        return f"<h3>Trust</h3>{tests}"
    told = latest.reported
    converged = (
        f"converged in {number(told.iterations)} iteration{'' if told.iterations == 1 else 's'}, gap {told.gap:.1g}"
        if told.converged
        else f"<b>not converged</b>: {text(told.stop_reason)}"
    )
    at = _leading(latest)
    others = _table(
        f"Share of {latest.classes[at]} by each estimator",
        ("estimator", "share", "converged"),
        [(one.method, percent(one.priors[at]), "yes" if one.converged else "no") for one in latest.estimates],
    )
    return f'<h3>Trust</h3><p>{text(told.method)}: {converged}.</p><div class="pair">{tests}{others}</div>'


def _outcomes(outcomes: Sequence[OutcomeResult]) -> str:
    """What labels said afterwards."""
    if not outcomes:
        return ""
    last = outcomes[-1]
    doubt = "" if last.trusted else f'<p class="stale">{text(last.doubt[:1].upper() + last.doubt[1:])}.</p>'
    rows = [
        (
            moment(one.ends),
            f"{number(one.labels.joined)} of {number(one.events)}",
            "" if one.coverage is None else f"{sum(each.covered for each in one.classes.values())}/{len(one.classes)}",
            _largest_error(one),
            "" if one.brier is None else f"{one.brier.before:.4f}",
            "" if one.brier is None or not one.applied else f"{one.brier.after:.4f}",
        )
        for one in reversed(outcomes[-OUTCOMES:])
    ]
    heads = ("window ends", "labelled", "intervals that held", "largest error", "Brier", "corrected")
    return f"<h3>What labels said afterwards</h3>{doubt}{_table('The last windows whose labels came', heads, rows)}"


def _largest_error(one: OutcomeResult) -> str:
    if not one.classes:
        return ""
    name, worst = max(one.classes.items(), key=lambda item: abs(item[1].error))
    return f"{name} {worst.error:+.3f}"


def _leading(one: Reading) -> int:
    """The class whose share moved most."""
    return max(range(len(one.classes)), key=lambda at: abs(one.priors[at] - one.source_priors[at]))


def _p(value: float) -> str:
    return "< 1e-6" if value < 1e-6 else f"{value:.2g}"


def _events(bins: Bins, latest: Reading) -> str:
    lost = sum(one.late + one.rejected for one in bins.readings)
    sampled = f", {number(latest.sampled_out)} left out by sampling" if latest.sampled_out else ""
    return (
        f"<h3>Events</h3><p>{number(latest.events)} in the last window: {number(latest.late)} late, "
        f"{number(latest.rejected)} rejected{sampled}. {number(lost)} late or rejected in all windows shown. "
        f"Assessed in {seconds(latest.seconds)}.</p>"
        f'<figure><div class="framed">{charts.flow(bins)}</div>{charts.ticks(bins)}'
        '<ul class="legend"><li><i class="k-used"></i>used</li><li><i class="k-lost"></i>late or rejected</li></ul>'
        "</figure>"
    )


def _segments(tracks: Mapping[str, Track], whole: Track) -> str:
    present = {name: one for name, one in tracks.items() if name and one.latest.key.end >= whole.latest.key.end}
    if not present:
        return ""
    at = None if whole.latest.relation is not None else _leading(whole.latest)
    rows = [
        (
            name,
            one.latest.verdict.facts.headline,
            number(one.latest.events),
            regression.segment(one.latest) if at is None else _share(one.latest, at),
        )
        for name, one in sorted(present.items())
    ]
    caption = "Segments in the last window"
    last = "error" if at is None else whole.latest.classes[at]
    return _table(caption, ("segment", "verdict", "events", last), rows)


def _share(one: Reading, at: int) -> str:
    return f"{percent(one.priors[at])} ({percent(one.lower[at])} to {percent(one.upper[at])})"


def _recent(readings: Sequence[Reading]) -> str:
    rows = [
        (
            span(one.key.start, one.key.end),
            number(one.events),
            one.verdict.facts.headline,
            "; ".join(one.reasons),
        )
        for one in reversed(readings[-RECENT:])
    ]
    table = _table("The last windows", ("window", "events", "verdict", "why"), rows)
    name = f"recent-{text(readings[-1].key.stream)}"
    return f'<details id="{name}"><summary>The last windows in words</summary>{table}</details>'


def _loop(flow: Flow, started: float, now: float) -> str:
    """How the process itself is doing."""
    late = sum(flow.late.values())
    facts = [
        ("events taken in", number(sum(flow.events.values()))),
        ("in open windows", number(flow.waiting_events)),
        ("late", number(late)),
        ("rejected", number(sum(flow.rejected.values()))),
        ("partitions", f"{len(flow.partitions)}" + (f", {len(flow.idle)} idle" if flow.idle else "")),
        ("newest event", _behind(flow, now)),
        ("running for", seconds(now - started)),
    ]
    if flow.report is not None and flow.report.partitions:
        lags = [one.lag for one in flow.report.partitions if one.lag is not None]
        facts.insert(1, ("not read yet", number(sum(lags)) if lags else "unknown"))
    items = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts)
    reasons = sorted(flow.rejected.items(), key=lambda item: -item[1])[:5]
    why = ", ".join(f"{text(reason)} {number(count)}" for (_, reason), count in reasons if count)
    return (
        f'<section class="card" aria-label="Flow"><h2>Flow</h2><dl class="facts">{items}</dl>'
        + (f'<p class="muted">Rejected: {why}</p>' if why else "")
        + "</section>"
    )


def _behind(flow: Flow, now: float) -> str:
    newest = max((at for at in flow.event_time.values() if at > NEVER), default=None)
    if newest is None:
        return "none yet"
    return f"{seconds(max(0.0, now - newest / 1e6))} ago"


def _plan(facts: StreamFacts) -> str:
    if facts.window_count is not None:
        return f"windows of {number(facts.window_count)} events"
    return f"windows of {seconds(facts.window_seconds or 0)}"


def _reference(facts: StreamFacts) -> str:
    return f"reference {text(facts.reference[:8])}, {number(facts.reference_events)} labelled events"


def _legend(readings: Sequence[Reading]) -> str:
    counted = Counter(one.verdict for one in readings)
    items = "".join(
        f'<li><i class="v-{verdict}"></i>{text(verdict.facts.headline)} <span class="muted">{number(count)}</span></li>'
        for verdict, count in counted.most_common()
    )
    return f'<ul class="legend">{items}</ul>'


def _table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col">{text(one)}</th>' for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{text(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _values(bins: Bins, classes: Sequence[int]) -> str:
    """What the script shows under the pointer: for each bin its time, verdict, events, shares, features' effects."""
    last = [group[-1] for group in bins.groups]
    shares = {
        str(at): [
            [round(float(one), 4) for one in row]
            for row in zip(*(bins.series(part, at) for part in ("priors", "lower", "upper")), strict=True)
        ]
        for at in classes
    }
    rows = charts.heat_rows(bins)
    values = {
        "time": [span(group[0].key.start, group[-1].key.end) for group in bins.groups],
        "verdict": [one.verdict.facts.headline for one in bins.worst()],
        "events": [one.events for one in last],
        "lost": [one.late + one.rejected for one in last],
        "class": shares,
        "names": list(bins.readings[-1].classes),
        "errors": regression.values(bins),
        "features": [bins.features[row] for row in rows],
        "effects": [[round(float(effect), 3) for effect in bins.effects[row]] for row in rows],
    }
    return json.dumps(values, separators=(",", ":")).replace("<", "\\u003c")
