"""Every metric that is exported: its name, its unit, what it means, and by what it is told apart.

Dashboards, alert rules and the table in deploy/METRICS.md are checked against this page. A name that ends in a unit
is in that unit; counters get `_total` on the wire.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram", "info"]

WINDOW = ("stream", "segment")
MEASURED = (*WINDOW, "measure")


@dataclass(frozen=True, slots=True)
class Spec:
    """The name, type, labels and meaning of one metric."""

    name: str
    """Without the prefix `shiftwatch_` and without `_total`."""
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """The name in queries; a histogram's series add `_bucket`, `_sum` and `_count`."""
        return f"shiftwatch_{self.name}" + {"counter": "_total", "info": "_info"}.get(self.kind, "")

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series."""
        name = self.full_name
        return (f"{name}_bucket", f"{name}_sum", f"{name}_count") if self.kind == "histogram" else (name,)


TESTS = {
    "prior-shift": "Likelihood-ratio test of the class mix",
    "label-shift-fit": "Test of what the best class mix leaves unexplained",
    "class-mix": "Test of the class mix that unmoved inputs show",
    "class-share": "The class whose share changed by the largest factor beyond chance",
    "features": "The feature that moved most",
    "mapped-fit": "Test of what is left after moved inputs are mapped back",
    "unknown-mass": "Test for events where no class was",
    "soft-deficit": "Test for mass that soft matching misses",
    "disagreement": "Disagreement of the unbiased estimators",
    "concept": "Test of a classifier's labels against its scores, whatever the class mix",
    "relation": "Test of a regression stream's relation between inputs and labels",
    "error": "The predictions' errors of a regression stream",
    "prediction": "The predictions of a regression stream",
}
"""The tests of a whole window, by their names in an assessment; their metrics begin with them."""


def metric_of_test(test: str, part: str) -> str:
    """The name of the metric of one part of a test."""
    return f"{test.replace('-', '_')}_{part}"


def _tests() -> list[Spec]:
    parts = {
        "statistic": "statistic",
        "p_value": "p-value",
        "effect": "effect size",
        "floor": "smallest effect size that counts",
        "level": "p-value below which chance is ruled out",
        "significant": "1 if beyond chance and beyond the floor",
    }
    return [
        Spec(metric_of_test(test, part), "gauge", f"{what}: {meaning}.", WINDOW)
        for test, what in TESTS.items()
        for part, meaning in parts.items()
    ]


OUTCOME_SCORES = {
    "brier": "Brier score of the posteriors as scored",
    "log_loss": "Log loss of the posteriors as scored",
    "calibration_error": "Calibration part of that Brier score, over ten bins",
    "refinement_error": "Refinement part of that Brier score, over ten bins",
    "expected_calibration_error": "How far a posterior is from how often it comes true, on average",
    "normalised_absolute_error": "Error of the reference's class mix, 0 best and 1 worst",
}
"""What labels say of a window, by the field of its outcome: each before the correction and after it."""


def _outcome_scores() -> list[Spec]:
    after = dict.fromkeys(OUTCOME_SCORES, "The same after the correction.")
    after["normalised_absolute_error"] = "The same of the estimated class mix."
    return [
        Spec(f"outcome_{name}_{when}", "gauge", said, WINDOW)
        for name, meaning in OUTCOME_SCORES.items()
        for when, said in (("before", f"{meaning}."), ("after", after[name]))
    ]


def _correction_errors() -> list[Spec]:
    parts = {
        "before": "Root mean square of label minus prediction, where a correction was published.",
        "after": "The same after the correction.",
        "difference": "The second minus the first: below 0 the correction helped.",
        "difference_lower": "Lower end of the interval of that.",
        "difference_upper": "Upper end of the interval of that.",
    }
    return [Spec(f"outcome_prediction_error_{part}", "gauge", meaning, WINDOW) for part, meaning in parts.items()]


CATALOGUE: tuple[Spec, ...] = (
    # The last window of a stream, or of one of its segments.
    Spec("verdict", "gauge", "1 for the verdict of the last window, 0 for the others.", (*WINDOW, "verdict")),
    Spec("recent_verdict", "gauge", "The same against the windows before it, where known.", (*WINDOW, "verdict")),
    Spec(
        "reference_left_timestamp_seconds",
        "gauge",
        "Since when windows are not as in the reference, while windows before them are known too.",
        WINDOW,
    ),
    Spec("prevalence_ratio", "gauge", "Estimated share of a class in the last window.", (*WINDOW, "class")),
    Spec("prevalence_lower_ratio", "gauge", "Lower end of the interval of that share.", (*WINDOW, "class")),
    Spec("prevalence_upper_ratio", "gauge", "Upper end of the interval of that share.", (*WINDOW, "class")),
    Spec("smoothed_ratio", "gauge", "Estimated share of a class now, by all windows so far.", (*WINDOW, "class")),
    Spec("smoothed_lower_ratio", "gauge", "Lower end of the interval of that share.", (*WINDOW, "class")),
    Spec("smoothed_upper_ratio", "gauge", "Upper end of the interval of that share.", (*WINDOW, "class")),
    Spec("realised_ratio", "gauge", "Share of a class among the labelled events, if any.", (*WINDOW, "class")),
    Spec("multiplier_ratio", "gauge", "What the recalibration multiplies posteriors by.", (*WINDOW, "class")),
    Spec("recalibration_applied", "gauge", "1 if the recalibration is to be applied.", WINDOW),
    Spec("estimator_ratio", "gauge", "Share of a class by every estimator.", ("stream", "estimator", "class")),
    Spec(
        "expert_weight_ratio",
        "gauge",
        "Weight in the pool of labels, by expert.",
        ("stream", "estimator"),
    ),
    Spec("estimator_converged", "gauge", "1 if the estimator converged.", ("stream", "estimator")),
    Spec("estimate_converged", "gauge", "1 if the reported estimate converged.", WINDOW),
    Spec("estimate_gap", "gauge", "Certified bound on what the reported estimate's objective falls short by.", WINDOW),
    Spec("harm_score", "gauge", "How likely the model is worse than on its hold-out; above 2 it likely is.", WINDOW),
    Spec("estimated_performance", "gauge", "How good the model is, estimated without labels.", MEASURED),
    Spec("estimated_performance_lower", "gauge", "Lower end of the interval of that.", MEASURED),
    Spec("estimated_performance_upper", "gauge", "Upper end of the interval of that.", MEASURED),
    Spec("alarm", "gauge", "1 while so many of the last windows moved as `alarm` in the configuration says.", WINDOW),
    Spec(
        "open_alarms",
        "gauge",
        "Alarms on how events are distributed that windows have raised together, within the budget of `false`.",
        WINDOW,
    ),
    Spec("performance_alarms", "gauge", "Measures that have been beyond their limit in enough windows.", WINDOW),
    Spec("quality_alarms", "gauge", "Kinds of faulty data that there are more of than before, by the budget.", WINDOW),
    Spec("alarm_windows", "gauge", "How many of the last windows moved, of those that `alarm` looks at.", WINDOW),
    Spec("window_events", "gauge", "Events that the last window was judged by.", WINDOW),
    Spec(
        "window_complete",
        "gauge",
        "1 if the last window had all of its events, or a uniform sample.",
        WINDOW,
    ),
    Spec("window_labelled_events", "gauge", "Those among them that were labelled.", WINDOW),
    Spec("rejected_records_ratio", "gauge", "Share of the last window's records that were rejected.", WINDOW),
    Spec("missing_values_ratio", "gauge", "Share of its feature values that were missing.", WINDOW),
    Spec("outside_range_ratio", "gauge", "Share of its numbers beyond all of the reference's.", WINDOW),
    Spec("new_categories_ratio", "gauge", "Share of its other values that the reference does not know.", WINDOW),
    Spec("constant_features", "gauge", "Features with one value only, where the reference has many.", WINDOW),
    Spec("volume_ratio", "gauge", "Its events beside those of the same hour of earlier days, where known.", WINDOW),
    Spec("features_tested", "gauge", "Features tested in the last window.", WINDOW),
    Spec("features_moved", "gauge", "Features that moved beyond what the class mix explains.", WINDOW),
    Spec("feature_effect", "gauge", "How far a feature moved beyond what the mix explains.", (*WINDOW, "feature")),
    Spec("feature_p_value", "gauge", "P-value of its shift, corrected across features.", (*WINDOW, "feature")),
    *_tests(),
    # The same of a regression stream.
    Spec("evidence_labels", "gauge", "Labels that the relation was judged by.", WINDOW),
    Spec("evidence_labels_wanted", "gauge", "Labels that it takes to judge the relation.", WINDOW),
    Spec("prediction_error", "gauge", "Root mean square of label minus prediction.", WINDOW),
    Spec("prediction_error_corrected", "gauge", "The same after the correction, where something changed.", WINDOW),
    # The last window whose labels have come, of a stream or of one of its segments.
    Spec("outcome_window_end_timestamp_seconds", "gauge", "Event time at which that window ended.", WINDOW),
    Spec("outcome_realised_ratio", "gauge", "Share of a class among its labelled events.", (*WINDOW, "class")),
    Spec("outcome_error_ratio", "gauge", "Estimated share minus that share.", (*WINDOW, "class")),
    Spec("outcome_covered", "gauge", "1 if the interval held the truth.", (*WINDOW, "class")),
    *_outcome_scores(),
    Spec("realised_performance", "gauge", "How good the model was by its labels.", (*WINDOW, "measure")),
    Spec("realised_performance_lower", "gauge", "Lower end of the interval of that.", (*WINDOW, "measure")),
    Spec("realised_performance_upper", "gauge", "Upper end of the interval of that.", (*WINDOW, "measure")),
    Spec("realised_performance_reference", "gauge", "The same on a regressor's hold-out.", (*WINDOW, "measure")),
    *_correction_errors(),
    Spec("estimates_trusted", "gauge", "0 while labels show that the estimates are off.", WINDOW),
    # Since when and until when.
    Spec("last_window_end_timestamp_seconds", "gauge", "Event time at which the last window ended.", ("stream",)),
    Spec("last_window_assessed_timestamp_seconds", "gauge", "When the last window was assessed.", ("stream",)),
    Spec(
        "waiting_since_timestamp_seconds",
        "gauge",
        "When the first event came since the last window: a window is waited for. Absent while no event has come.",
        ("stream",),
    ),
    Spec("watching_since_timestamp_seconds", "gauge", "When this process began to watch the stream.", ("stream",)),
    Spec("window_length_seconds", "gauge", "Length of the stream's windows, or of its last count window.", ("stream",)),
    # Totals since the start of the process.
    Spec("windows", "counter", "Windows of whole streams, by verdict.", ("stream", "verdict")),
    Spec("change_points", "counter", "Changes of level over the windows, where `changes` is configured.", WINDOW),
    Spec("events", "counter", "Scored events taken in.", ("stream",)),
    Spec("rejected", "counter", "Records and events rejected; no stream where it is not known.", ("stream", "reason")),
    Spec("late_events", "counter", "Events that came after their window had closed.", ("stream", "reason")),
    Spec("labels", "counter", "Labels of earlier events taken in.", ("stream",)),
    Spec("outcomes", "counter", "Windows whose labels have come, or are not waited for any longer.", ("stream",)),
    Spec("outcome_labels", "counter", "What became of their events and labels, by reason.", ("stream", "reason")),
    Spec("labels_evicted_windows", "counter", "Windows whose events made room on disk for others.", ("stream",)),
    Spec("labels_thinned", "counter", "Labels that made room on disk for others.", ("stream",)),
    Spec("labels_waiting_windows", "gauge", "Windows that wait for labels.", ("stream",)),
    Spec("labels_waiting_events", "gauge", "Their events on disk.", ("stream",)),
    Spec("labels_stored", "gauge", "Labels on disk.", ("stream",)),
    Spec("stream_spread", "gauge", "1 while windows are not published, as other members get events, too.", ("stream",)),
    Spec("windows_refused", "counter", "Windows not published: other members have events of them.", ("stream",)),
    Spec("series_dropped", "counter", "Series left out by the cap on features and classes.", ("stream",)),
    Spec("segments_capped_windows", "counter", "Windows with more segments than `max_segments`.", ("stream",)),
    Spec("assessment_duration_seconds", "histogram", "Time to assess a window.", ("stream",)),
    Spec("estimate_iterations", "histogram", "Iterations of the reported estimate.", ("stream",)),
    # The loop and its source.
    Spec("records", "counter", "Records read.", ("partition",)),
    Spec("watermark_delay_seconds", "gauge", "Now minus the newest event time.", ("partition",)),
    Spec("position_offset", "gauge", "The next record to read.", ("topic", "partition")),
    Spec("lag_records", "gauge", "Records not read yet.", ("topic", "partition")),
    Spec("commit_lag_records", "gauge", "Records that a restart would read.", ("topic", "partition")),
    Spec("partitions_assigned", "gauge", "Partitions that are read."),
    Spec("partitions_idle", "gauge", "Partitions that windows no longer wait for."),
    Spec("partitions_held", "gauge", "Partitions that wait for slower ones."),
    Spec("waiting_events", "gauge", "Events in open windows."),
    Spec("assessing_windows", "gauge", "Windows that are being assessed beside the loop."),
    Spec("reassignments", "counter", "How often partitions came or went."),
    Spec("commits_refused", "counter", "Commits that the group refused; their work is done again."),
    Spec("commit_duration_seconds", "histogram", "Time to publish and commit."),
    Spec("transactions_committed", "counter", "Transactions that published what they held."),
    Spec("transactions_aborted", "counter", "Transactions that were given up; their work is done again."),
    Spec("rebalances", "counter", "Rebalances of the source's group."),
    Spec("outage_seconds", "gauge", "For how long source or sink have not answered; 0 while they do."),
    Spec("unassigned_seconds", "gauge", "For how long the group has not settled with this process in it."),
    Spec("stalled_seconds", "gauge", "For how long records have waited in some partition without being read."),
    Spec("fetch_errors", "counter", "Requests for records that failed and were made again."),
    Spec("partitions_lost", "counter", "Partitions taken away because the group gave this process up."),
    Spec("records_skipped", "counter", "Records deleted before they were read; 1 for a gap in a log that rotates."),
    Spec("posts", "counter", "Posts to a source by HTTP: accepted, or why they were refused.", ("reason",)),
    Spec("post_log_bytes", "gauge", "Size of the log that posts are kept in."),
    Spec("post_log_limit_bytes", "gauge", "Its largest size: beyond it posts are refused."),
    Spec("last_turn_timestamp_seconds", "gauge", "When the loop last turned, or published a window."),
    Spec("last_commit_timestamp_seconds", "gauge", "When it last committed."),
    Spec("start_timestamp_seconds", "gauge", "When this process started."),
    # What runs here.
    Spec("certificate_expires_timestamp_seconds", "gauge", "When the certificate of [server] expires, if it has one."),
    Spec("connector_certificate_expires_timestamp_seconds", "gauge", "When the first of [source] and [sink] does."),
    Spec("build", "info", "The software.", ("version",)),
    Spec("reference", "info", "The reference of a stream.", ("stream", "version", "estimator")),
    Spec("reference_events", "gauge", "Labelled events that the reference was made from.", ("stream",)),
    Spec("reference_file_timestamp_seconds", "gauge", "When the file of the reference was written.", ("stream",)),
    Spec("source_prior_ratio", "gauge", "Share of a class in the reference.", ("stream", "class")),
    Spec("reference_prediction_error", "gauge", "Root mean square of label minus prediction there.", ("stream",)),
)

BY_NAME = {spec.name: spec for spec in CATALOGUE}


def table() -> str:
    """The catalogue as a Markdown table."""
    lines = ["| metric | kind | labels | meaning |", "| --- | --- | --- | --- |"]
    for spec in CATALOGUE:
        labels = ", ".join(spec.labels) or "-"
        lines.append(f"| `{spec.full_name}` | {spec.kind} | {labels} | {spec.help} |")
    return "\n".join(lines) + "\n"
