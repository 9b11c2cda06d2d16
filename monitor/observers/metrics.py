"""What Prometheus sees: the catalogue, filled from one frozen snapshot of what happened.

Each scrape reads the snapshot of its moment, so that its values belong together, and nothing is kept here that could
go stale: what is no longer in the snapshot, or is too old, is not exported.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from prometheus_client.core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.samples import Exemplar

from monitor.events import Reason
from monitor.kinds import AnyReading, Sample
from monitor.labels import LabelCounts, OutcomeResult
from monitor.observers.history import History
from monitor.observers.metric_catalogue import BY_NAME, CATALOGUE, OUTCOME_SCORES, Spec, metric_of_test
from monitor.observers.snapshot import BucketCounts, Caps, Flow, Snapshot, StreamFacts, Track
from monitor.ports import NEVER
from monitor.version import __version__
from monitor.windows import faults

EXEMPLAR_LENGTH = 120  # OpenMetrics allows 128 characters for the names and values of an exemplar's labels

LATE = (Reason.LATE, Reason.LATE_AFTER_IDLE)


def registry(history: History, expires: Callable[[], float | None] = lambda: None) -> CollectorRegistry:
    """A registry of our own, with the catalogue and this process's use of memory and time.

    `expires` says when the certificate of whoever is asked does, if there is one.
    """
    own = CollectorRegistry()
    own.register(_FromHistory(history, expires))
    ProcessCollector(namespace="shiftwatch", registry=own)
    return own


def families(snapshot: Snapshot, now: float, expires: float | None = None) -> list[Metric]:
    """Every metric of the catalogue that has a value; `now` is the wall clock in seconds."""
    filled = _Filled()
    for facts in snapshot.facts.values():
        _stream(filled, facts, snapshot)
        _labels(filled, facts, snapshot)
        tracks = snapshot.tracks.get(facts.stream, {})
        whole = tracks.get("")
        if whole is None:
            continue
        _last_window(filled, facts, whole)
        if not whole.stale(now):
            filled.add_all((facts.stream,), whole.latest.answer.stream_metrics(snapshot.caps.classes))
        for track in tracks.values():
            # A segment that the stream's last window does not hold has no present values.
            if not track.stale(now) and track.latest.key.end >= whole.latest.key.end:
                _window(filled, facts, track.latest, snapshot.caps)
                _alarm(filled, track)
            if track.changes.detector:
                filled.add("change_points", (facts.stream, track.latest.key.segment), track.changes.count)
    _flow(filled, snapshot.flow, now)
    if expires is not None:
        filled.add("certificate_expires_timestamp_seconds", (), expires)
    filled.add("start_timestamp_seconds", (), snapshot.started)
    filled.add("build", (__version__,), 1)
    return filled.families()


class _FromHistory(Collector):
    """The catalogue as prometheus_client wants to collect it."""

    def __init__(self, history: History, expires: Callable[[], float | None]) -> None:
        self._history = history
        self._expires = expires

    def collect(self) -> Iterable[Metric]:
        return families(self._history.snapshot, self._history.now(), self._expires())

    def describe(self) -> Iterable[Metric]:
        return [_empty(spec) for spec in CATALOGUE]


class _Filled:
    """The families under construction; a name or a label that the catalogue does not have is a mistake."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}

    def add(self, name: str, values: Iterable[str], value: float, window: str = "") -> None:
        """One sample; `window` becomes its exemplar."""
        spec = BY_NAME[name]
        labels = dict(zip(spec.labels, values, strict=True))
        self._family(spec).add_sample(spec.full_name, labels, value, exemplar=_exemplar(window, 1.0))

    def add_all(self, of: tuple[str, ...], samples: Iterable[Sample]) -> None:
        """Samples of a kind of stream; `of` are the labels that say whose they are."""
        for name, labels, value in samples:
            self.add(name, (*of, *labels), value if isinstance(value, int) else _short(value))

    def histogram(self, name: str, values: Iterable[str], histogram: BucketCounts) -> None:
        """All samples of a histogram."""
        spec = BY_NAME[name]
        labels = dict(zip(spec.labels, values, strict=True))
        family, name = self._family(spec), spec.full_name
        counts = np.cumsum(histogram.counts).tolist()
        window, value = histogram.last or ("", 0.0)
        placed = False
        for bound, count in zip((*histogram.bounds, float("inf")), counts, strict=True):
            here = not placed and value <= bound
            placed = placed or here
            text = "+Inf" if bound == float("inf") else f"{bound:g}"
            exemplar = _exemplar(window, value) if here else None
            family.add_sample(f"{name}_bucket", {**labels, "le": text}, count, exemplar=exemplar)
        family.add_sample(f"{name}_count", labels, counts[-1])
        family.add_sample(f"{name}_sum", labels, histogram.total)

    def families(self) -> list[Metric]:
        """The families that have samples, in the order of the catalogue."""
        return [self._families[spec.name] for spec in CATALOGUE if spec.name in self._families]

    def _family(self, spec: Spec) -> Metric:
        if spec.name not in self._families:
            self._families[spec.name] = _empty(spec)
        return self._families[spec.name]


def _empty(spec: Spec) -> Metric:
    unit = "seconds" if spec.name.endswith("_seconds") else "ratio" if spec.name.endswith("_ratio") else ""
    return Metric(f"shiftwatch_{spec.name}", spec.help, spec.kind, unit)


def _exemplar(window: str, value: float) -> Exemplar | None:
    return Exemplar({"window": window}, value) if 0 < len(window) <= EXEMPLAR_LENGTH else None


def _stream(filled: _Filled, facts: StreamFacts, snapshot: Snapshot) -> None:
    """What is there from the start, with every label set, so that the first increase is seen as one."""
    stream = facts.stream
    for verdict in facts.verdicts:
        outcome = (stream, str(verdict))
        filled.add("windows", outcome, snapshot.windows.get(outcome, 0), snapshot.last_window.get(outcome, ""))
    flow = snapshot.flow
    filled.add("events", (stream,), flow.events.get(stream, 0))
    for reason in Reason:
        if reason in LATE:
            filled.add("late_events", (stream, reason), flow.late.get((stream, str(reason)), 0))
        else:
            filled.add("rejected", (stream, reason), flow.rejected.get((stream, str(reason)), 0))
    filled.add("stream_spread", (stream,), float(stream in flow.unpublished))
    filled.add("windows_refused", (stream,), flow.windows_refused.get(stream, 0))
    filled.add("series_dropped", (stream,), snapshot.dropped.get(stream, 0))
    filled.add("segments_capped_windows", (stream,), snapshot.capped.get(stream, 0))
    filled.histogram("assessment_duration_seconds", (stream,), snapshot.assessing[stream])
    if stream in snapshot.iterations:
        filled.histogram("estimate_iterations", (stream,), snapshot.iterations[stream])
    filled.add("watching_since_timestamp_seconds", (stream,), snapshot.started)
    if stream in flow.waiting_since:
        filled.add("waiting_since_timestamp_seconds", (stream,), flow.waiting_since[stream])
    filled.add("reference", (stream, facts.reference, facts.model.estimator), 1)
    filled.add("reference_events", (stream,), facts.reference_events)
    if facts.reference_written is not None:
        filled.add("reference_file_timestamp_seconds", (stream,), facts.reference_written)
    filled.add_all((stream,), facts.model.metrics(snapshot.caps.classes))
    if facts.window_seconds is not None:
        filled.add("window_length_seconds", (stream,), facts.window_seconds)


def _labels(filled: _Filled, facts: StreamFacts, snapshot: Snapshot) -> None:
    """What is known of late labels, in streams that await any."""
    stream, waiting = facts.stream, snapshot.flow.label_flow.get(facts.stream)
    if waiting is not None:
        filled.add("labels", (stream,), snapshot.flow.labels.get(stream, 0))
        filled.add("labels_evicted_windows", (stream,), waiting.evicted_windows)
        filled.add("labels_thinned", (stream,), waiting.thinned_labels)
        filled.add("labels_waiting_windows", (stream,), waiting.windows)
        filled.add("labels_waiting_events", (stream,), waiting.events)
        filled.add("labels_stored", (stream,), waiting.labels)
    tracks = snapshot.tracks.get(stream, {})
    if "" not in tracks or not tracks[""].outcomes:
        return
    whole = tracks[""].outcomes[-1]
    filled.add("outcomes", (stream,), snapshot.outcome_count.get(stream, 0), whole.window)
    for reason in LabelCounts.__struct_fields__:
        filled.add("outcome_labels", (stream, reason), snapshot.outcome_labels.get((stream, reason), 0))
    for track in tracks.values():
        # A segment that the last such window did not hold has no present values.
        if track.outcomes and track.outcomes[-1].ends >= whole.ends:
            _outcome(filled, facts, track.outcomes[-1], snapshot.caps)


def _outcome(filled: _Filled, facts: StreamFacts, last: OutcomeResult, caps: Caps) -> None:
    """Of a window, or of a segment of it."""
    of = (last.stream, last.segment)
    filled.add("outcome_window_end_timestamp_seconds", of, last.ends / 1e6)
    filled.add_all(of, last.samples())
    for name in facts.model.classes[: caps.classes]:
        if name in last.classes:
            share = last.classes[name]
            filled.add("outcome_realised_ratio", (*of, name), _short(share.realised))
            filled.add("outcome_error_ratio", (*of, name), _short(share.error))
            filled.add("outcome_covered", (*of, name), float(share.covered))
    for measure, performed in last.performance.items():
        filled.add("realised_performance", (*of, measure), _short(performed.realised))
        filled.add("realised_performance_lower", (*of, measure), _short(performed.lower))
        filled.add("realised_performance_upper", (*of, measure), _short(performed.upper))
    for measure in OUTCOME_SCORES:
        score = getattr(last, measure)
        if score is not None:
            filled.add(f"outcome_{measure}_before", of, _short(score.before))
            filled.add(f"outcome_{measure}_after", of, _short(score.after))


def _last_window(filled: _Filled, facts: StreamFacts, track: Track) -> None:
    """What stays when the last window has gone stale: when that was."""
    key = track.latest.key
    filled.add("last_window_end_timestamp_seconds", (facts.stream,), key.end / 1e6)
    filled.add("last_window_assessed_timestamp_seconds", (facts.stream,), track.assessed_at)
    if facts.window_seconds is None:
        filled.add("window_length_seconds", (facts.stream,), (key.end - key.start) / 1e6)


def _window(filled: _Filled, facts: StreamFacts, reading: AnyReading, caps: Caps) -> None:
    of = (reading.key.stream, reading.key.segment)
    for verdict in facts.verdicts:
        filled.add("verdict", (*of, str(verdict)), float(reading.verdict == verdict))
        if reading.recent is not None:
            filled.add("recent_verdict", (*of, str(verdict)), float(reading.recent == verdict))
    filled.add("window_events", of, reading.events)
    filled.add("window_complete", of, float(not faults(reading.gaps)))
    filled.add("window_labelled_events", of, reading.labelled)
    filled.add("recalibration_applied", of, float(reading.apply))
    filled.add_all(of, _quality(reading))
    filled.add_all(of, reading.answer.metrics(caps.classes))
    _tests(filled, of, reading)
    _features(filled, of, reading, caps)


def _quality(reading: AnyReading) -> Iterator[Sample]:
    """What is plainly wrong with the data."""
    quality = reading.quality
    yield "rejected_records_ratio", (), quality.rejected
    yield "missing_values_ratio", (), quality.missing
    yield "outside_range_ratio", (), quality.outside_range
    yield "new_categories_ratio", (), quality.new_categories
    yield "constant_features", (), len(quality.constant)
    if reading.volume is not None:
        yield "volume_ratio", (), reading.volume


def _alarm(filled: _Filled, track: Track) -> None:
    of = (track.latest.key.stream, track.latest.key.segment)
    filled.add("alarm", of, float(track.alarm.alarm))
    filled.add("open_alarms", of, len(track.gathered))
    filled.add("performance_alarms", of, len(track.beyond_limits))
    filled.add("quality_alarms", of, len(track.data_faults))
    filled.add("alarm_windows", of, track.alarm.moved)
    if track.alarm.since:
        filled.add("reference_left_timestamp_seconds", of, track.alarm.since / 1e6)


def _tests(filled: _Filled, of: tuple[str, str], reading: AnyReading) -> None:
    for name, test in reading.tests.items():
        parts = {
            "statistic": test.statistic,
            "p_value": test.p_value,
            "effect": test.effect,
            "floor": test.floor,
            "level": test.level,
            "significant": float(test.significant),
        }
        for part, value in parts.items():
            if value is not None:
                filled.add(metric_of_test(name, part), of, _short(value))


def _features(filled: _Filled, of: tuple[str, str], reading: AnyReading, caps: Caps) -> None:
    filled.add("features_tested", of, len(reading.features))
    filled.add("features_moved", of, len(reading.moved))
    most, _ = caps.of(reading)
    for number in reading.strongest(most):
        name = reading.features[number]
        filled.add("feature_effect", (*of, name), _short(reading.effects[number]))
        filled.add("feature_p_value", (*of, name), _short(reading.p_values[number]))


def _flow(filled: _Filled, flow: Flow, now: float) -> None:
    for partition, records in flow.records.items():
        filled.add("records", (partition,), records)
    for partition, newest in flow.event_time.items():
        if newest > NEVER:
            filled.add("watermark_delay_seconds", (partition,), round(now - newest / 1e6, 3))
    for (stream, reason), count in flow.rejected.items():
        if not stream:
            filled.add("rejected", (stream, reason), count)
    filled.add("partitions_assigned", (), len(flow.partitions))
    filled.add("partitions_idle", (), len(flow.idle))
    filled.add("partitions_held", (), len(flow.held))
    filled.add("waiting_events", (), flow.waiting_events)
    filled.add("assessing_windows", (), flow.assessing)
    filled.add("outage_seconds", (), 0.0 if flow.outage_since is None else round(now - flow.outage_since, 1))
    filled.add("reassignments", (), flow.reassignments)
    filled.add("commits_refused", (), flow.refused)
    filled.histogram("commit_duration_seconds", (), flow.commits)
    for name, moment in (("last_turn", flow.last_turn), ("last_commit", flow.last_commit)):
        if moment is not None:
            filled.add(f"{name}_timestamp_seconds", (), moment)
    _report(filled, flow)


def _report(filled: _Filled, flow: Flow) -> None:
    ends = [each.certificate_expires for each in (flow.report, flow.sink_report) if each is not None]
    if expires := [at for at in ends if at is not None]:
        filled.add("connector_certificate_expires_timestamp_seconds", (), min(expires))
    if flow.sink_report is not None:
        filled.add("transactions_committed", (), flow.sink_report.committed)
        filled.add("transactions_aborted", (), flow.sink_report.aborted)
    if flow.report is None:
        return
    filled.add("fetch_errors", (), flow.report.fetch_errors)
    filled.add("unassigned_seconds", (), round(flow.report.unassigned, 1))
    filled.add("stalled_seconds", (), round(flow.report.stalled, 1))
    filled.add("rebalances", (), flow.report.rebalances)
    filled.add("partitions_lost", (), flow.report.lost)
    filled.add("records_skipped", (), flow.report.skipped)
    if flow.report.intake is not None:
        for reason, posts in flow.report.intake.posts.items():
            filled.add("posts", (reason,), posts)
        filled.add("post_log_bytes", (), flow.report.intake.log_bytes)
        filled.add("post_log_limit_bytes", (), flow.report.intake.log_limit_bytes)
    for partition in flow.report.partitions:
        figures = {
            "position_offset": partition.position,
            "lag_records": partition.lag,
            "commit_lag_records": partition.commit_lag,
        }
        for name, value in figures.items():
            if value is not None:
                filled.add(name, (partition.topic, partition.partition), value)


def _short(value: Any) -> float:
    """Four digits: what a chart can show; it halves the size of a scrape."""
    return float(f"{float(value):.4g}")
