"""Writes the dashboards and the Grafana-managed alerts: `python deploy/grafana/build.py`.

A test checks that what is committed is what this writes, that every metric is one of the catalogue, and that every
expression returns data on a real Prometheus that scrapes a real service.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from monitor.assessment.verdict import Verdict

HERE = Path(__file__).parent
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF_STREAM = 'stream="$stream",segment=~"$segment"'
# One number for each verdict, for panels that colour by value.
CODE = " or ".join(
    f'(max by (stream) (shiftwatch_verdict{{segment="",verdict="{verdict}"}}) == 1) * 0 + {verdict.rank}'
    for verdict in Verdict
)


@dataclass(frozen=True)
class Panel:
    """One panel; queries are pairs of expression and legend."""

    title: str
    queries: Sequence[tuple[str, str]]
    description: str
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    least: float | None = 0
    instant: bool = False


OVERVIEW = [
    Panel(
        "Verdicts now",
        [(CODE, "{{stream}}")],
        "The verdict of each stream's last window.",
        kind="stat",
        width=24,
        height=5,
        instant=True,
    ),
    Panel("Verdicts over time", [(CODE, "{{stream}}")], "One row a stream.", kind="state-timeline", width=24),
    Panel(
        "Furthest from its reference",
        [
            (
                'max by (stream, class) (abs(shiftwatch_prevalence_ratio{segment=""} '
                "- on (stream, class) group_left max by (stream, class) (shiftwatch_source_prior_ratio)))",
                "{{stream}} {{class}}",
            )
        ],
        "How far each class's share is from the reference's.",
        unit="percentunit",
    ),
    Panel(
        "Inputs that moved",
        [('max by (stream) (shiftwatch_features_moved{segment=""})', "{{stream}}")],
        "Features that moved beyond what the class mix explains.",
    ),
    Panel(
        "Windows an hour",
        [("sum by (stream, verdict) (increase(shiftwatch_windows_total[1h])) > 0", "{{stream}} {{verdict}}")],
        "Closed windows of the last hour, by verdict.",
    ),
    Panel(
        "Time since the last window",
        [("time() - max by (stream) (shiftwatch_last_window_assessed_timestamp_seconds)", "{{stream}}")],
        "Grows while nothing is assessed.",
        unit="s",
    ),
]

STREAM = [
    Panel(
        "Verdict",
        [(f"shiftwatch_verdict{{{OF_STREAM}}} == 1", "{{verdict}}")],
        "The verdict of each window.",
        kind="state-timeline",
        width=24,
        height=6,
    ),
    Panel(
        "Prevalence",
        [
            (f"shiftwatch_prevalence_ratio{{{OF_STREAM}}}", "{{class}}"),
            (f"shiftwatch_smoothed_ratio{{{OF_STREAM}}}", "{{class}} smoothed"),
            (f"shiftwatch_prevalence_lower_ratio{{{OF_STREAM}}}", "{{class}} lower"),
            (f"shiftwatch_prevalence_upper_ratio{{{OF_STREAM}}}", "{{class}} upper"),
            ('shiftwatch_source_prior_ratio{stream="$stream"}', "{{class}} reference"),
        ],
        "The share of each class by each window with its interval, by all windows so far, and the reference's share.",
        unit="percentunit",
        width=24,
        height=10,
    ),
    Panel(
        "Truth, from labels",
        [(f"shiftwatch_realised_ratio{{{OF_STREAM}}}", "{{class}}")],
        "Shares among the labelled events, where there are any.",
        unit="percentunit",
    ),
    Panel(
        "Estimators",
        [('shiftwatch_estimator_ratio{stream="$stream"}', "{{class}} {{estimator}}")],
        "Every estimator's answer; far apart, none is to be trusted.",
        unit="percentunit",
    ),
    Panel(
        "Inputs that moved most",
        [(f"topk(15, shiftwatch_feature_effect{{{OF_STREAM}}})", "{{feature}}")],
        "How far each moved beyond what the class mix explains, 0 to 1.",
    ),
    Panel(
        "Features tested and moved",
        [
            (f"shiftwatch_features_tested{{{OF_STREAM}}}", "tested"),
            (f"shiftwatch_features_moved{{{OF_STREAM}}}", "moved"),
        ],
        "How many.",
    ),
    Panel(
        "P-values",
        [
            (f"shiftwatch_prior_shift_p_value{{{OF_STREAM}}}", "class mix"),
            (f"shiftwatch_label_shift_fit_p_value{{{OF_STREAM}}}", "left unexplained"),
            (f"shiftwatch_unknown_mass_p_value{{{OF_STREAM}}}", "unknown mass"),
            (f"min(shiftwatch_feature_p_value{{{OF_STREAM}}})", "features"),
        ],
        "Below the level chance is ruled out; the effect has to be above its floor as well.",
    ),
    Panel(
        "Effects over their floors",
        [
            (
                f"shiftwatch_prior_shift_effect{{{OF_STREAM}}} / shiftwatch_prior_shift_floor{{{OF_STREAM}}}",
                "class mix",
            ),
            (
                f"shiftwatch_label_shift_fit_effect{{{OF_STREAM}}} / shiftwatch_label_shift_fit_floor{{{OF_STREAM}}}",
                "left unexplained",
            ),
            (
                f"shiftwatch_unknown_mass_effect{{{OF_STREAM}}} / shiftwatch_unknown_mass_floor{{{OF_STREAM}}}",
                "unknown mass",
            ),
        ],
        "From 1 on an effect counts, if it is significant.",
    ),
    Panel(
        "Multipliers",
        [(f"shiftwatch_multiplier_ratio{{{OF_STREAM}}}", "{{class}}")],
        "What the recalibration multiplies posteriors by; 1 where none is to be applied.",
    ),
    Panel(
        "Trust",
        [
            (f"shiftwatch_disagreement_effect{{{OF_STREAM}}}", "disagreement"),
            (f"shiftwatch_estimate_converged{{{OF_STREAM}}}", "converged"),
            (f"shiftwatch_recalibration_applied{{{OF_STREAM}}}", "recalibration applied"),
        ],
        "Whether the estimate converged, and how far unbiased estimators are apart.",
    ),
    Panel(
        "How good the model is",
        [
            (f"shiftwatch_estimated_performance{{{OF_STREAM}}}", "{{measure}}"),
            (f"shiftwatch_estimated_performance_lower{{{OF_STREAM}}}", "{{measure}} lower"),
            (f"shiftwatch_estimated_performance_upper{{{OF_STREAM}}}", "{{measure}} upper"),
            (f"shiftwatch_realised_performance{{{OF_STREAM}}}", "{{measure}} by labels"),
        ],
        "Estimated without labels, with the interval; and by the labels of the last window that has them.",
        width=24,
        height=10,
    ),
    Panel(
        "Events of a window",
        [
            (f"shiftwatch_window_events{{{OF_STREAM}}}", "used"),
            (f"shiftwatch_window_labelled_events{{{OF_STREAM}}}", "labelled"),
        ],
        "What the last window was judged by.",
    ),
    Panel(
        "Iterations",
        [
            (
                "histogram_quantile(0.95, sum by (le) "
                '(rate(shiftwatch_estimate_iterations_bucket{stream="$stream"}[1h])))',
                "95 % of windows need at most",
            )
        ],
        "Of the reported estimate.",
    ),
]

OPERATIONS = [
    Panel(
        "Up",
        [('up{job="shiftwatch"}', "{{instance}}")],
        "Whether Prometheus can scrape it.",
        kind="stat",
        width=6,
        height=5,
        instant=True,
    ),
    Panel(
        "Version",
        [("shiftwatch_build_info", "{{version}}")],
        "What runs.",
        kind="stat",
        width=6,
        height=5,
        instant=True,
    ),
    Panel(
        "Running for",
        [("time() - shiftwatch_start_timestamp_seconds", "{{instance}}")],
        "Since the last start.",
        unit="s",
        kind="stat",
        width=6,
        height=5,
        instant=True,
    ),
    Panel(
        "References",
        [("shiftwatch_reference_info", "{{stream}} {{version}}")],
        "Which version each stream is compared with.",
        kind="stat",
        width=6,
        height=5,
        instant=True,
    ),
    Panel(
        "Events a second",
        [("sum by (stream) (rate(shiftwatch_events_total[$__rate_interval]))", "{{stream}}")],
        "Scored events taken in.",
    ),
    Panel(
        "Rejected a second",
        [("sum by (stream, reason) (rate(shiftwatch_rejected_total[$__rate_interval]))", "{{stream}} {{reason}}")],
        "By reason.",
    ),
    Panel(
        "Late a second",
        [("sum by (stream, reason) (rate(shiftwatch_late_events_total[$__rate_interval]))", "{{stream}} {{reason}}")],
        "Events whose window had been closed.",
    ),
    Panel(
        "Records a second",
        [("sum by (partition) (rate(shiftwatch_records_total[$__rate_interval]))", "{{partition}}")],
        "Read from the source.",
    ),
    Panel(
        "Lag",
        [
            ("sum by (topic) (shiftwatch_lag_records)", "{{topic}} not read"),
            ("sum by (topic) (shiftwatch_commit_lag_records)", "{{topic}} not committed"),
        ],
        "Records behind the end of the topic.",
    ),
    Panel(
        "Positions",
        [("sum by (topic, partition) (shiftwatch_position_offset)", "{{partition}}")],
        "The next record of each partition; a flat line has stalled or is idle.",
    ),
    Panel(
        "Behind now",
        [("max by (partition) (shiftwatch_watermark_delay_seconds)", "{{partition}}")],
        "Now minus the newest event time.",
        unit="s",
    ),
    Panel(
        "Events in open windows",
        [("sum by (instance) (shiftwatch_waiting_events)", "{{instance}}")],
        "What memory goes into.",
    ),
    Panel(
        "Partitions",
        [
            ("sum(shiftwatch_partitions_assigned)", "assigned"),
            ("sum(shiftwatch_partitions_idle)", "idle"),
            ("sum(shiftwatch_partitions_held)", "held"),
        ],
        "Read, no longer waited for, waiting for slower ones.",
    ),
    Panel(
        "Not reading",
        [
            ("shiftwatch_unassigned_seconds", "{{instance}} outside the group"),
            ("shiftwatch_stalled_seconds", "{{instance}} records wait unread"),
        ],
        "The process ends itself at assignment_timeout and stall_timeout.",
        unit="s",
    ),
    Panel(
        "Windows that lack events",
        [
            ("max by (stream) (shiftwatch_stream_spread)", "{{stream}} comes to several members"),
            ('1 - min by (stream) (shiftwatch_window_complete{segment=""})', "{{stream}} last window incomplete"),
            ("sum by (stream) (increase(shiftwatch_windows_refused_total[1h]))", "{{stream}} not published, an hour"),
        ],
        "Windows of a stream that comes to several members are not published; incomplete ones recommend nothing.",
    ),
    Panel(
        "Time to assess a window",
        [
            (
                "histogram_quantile(0.95, sum by (le, stream) "
                "(rate(shiftwatch_assessment_duration_seconds_bucket[10m])))",
                "{{stream}} 95 %",
            ),
            (
                "sum by (stream) (rate(shiftwatch_assessment_duration_seconds_sum[10m])) "
                "/ sum by (stream) (rate(shiftwatch_assessment_duration_seconds_count[10m]))",
                "{{stream}} mean",
            ),
        ],
        "Exemplars carry the window's id.",
        unit="s",
    ),
    Panel(
        "Time to commit",
        [
            (
                "histogram_quantile(0.95, sum by (le) (rate(shiftwatch_commit_duration_seconds_bucket[10m])))",
                "95 %",
            )
        ],
        "Results and positions, published together.",
        unit="s",
    ),
    Panel(
        "Turbulence an hour",
        [
            ("sum(increase(shiftwatch_rebalances_total[1h]))", "rebalances"),
            ("sum(increase(shiftwatch_reassignments_total[1h]))", "reassignments"),
            ("sum(increase(shiftwatch_commits_refused_total[1h]))", "commits refused"),
            ("sum(increase(shiftwatch_transactions_aborted_total[1h]))", "transactions given up"),
            ("sum(increase(shiftwatch_fetch_errors_total[1h]))", "requests made again"),
            ("sum(increase(shiftwatch_partitions_lost_total[1h]))", "partitions lost"),
            ("sum(increase(shiftwatch_records_skipped_total[1h]))", "records deleted unread"),
            ("sum(changes(shiftwatch_start_timestamp_seconds[1h]))", "restarts"),
        ],
        "What makes work be done twice.",
    ),
    Panel(
        "Memory",
        [("shiftwatch_process_resident_memory_bytes", "{{instance}}")],
        "Resident.",
        unit="bytes",
    ),
    Panel(
        "Processor",
        [("rate(shiftwatch_process_cpu_seconds_total[$__rate_interval])", "{{instance}}")],
        "Cores in use.",
    ),
    Panel(
        "Scrape",
        [('scrape_duration_seconds{job="shiftwatch"}', "{{instance}}")],
        "How long a scrape takes.",
        unit="s",
    ),
    Panel(
        "Series",
        [
            ('scrape_samples_scraped{job="shiftwatch"}', "{{instance}}"),
            ("sum(increase(shiftwatch_series_dropped_total[1h]))", "dropped by the cap, an hour"),
        ],
        "How many each scrape brings.",
    ),
]

DASHBOARDS = {
    "overview": ("Shiftwatch: overview", OVERVIEW, ()),
    "stream": ("Shiftwatch: one stream", STREAM, ("stream", "segment")),
    "operations": ("Shiftwatch: operations", OPERATIONS, ()),
}


def dashboard(name: str) -> dict[str, Any]:
    """One dashboard as Grafana imports it."""
    title, panels, variables = DASHBOARDS[name]
    return {
        "uid": f"shiftwatch-{name}",
        "title": title,
        "tags": ["shiftwatch"],
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "schemaVersion": 39,
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "links": [
            {"type": "dashboards", "tags": ["shiftwatch"], "title": "Shiftwatch", "asDropdown": False, "keepTime": True}
        ],
        "templating": {"list": [_datasource(), *(_variable(one) for one in variables)]},
        "panels": _placed(panels),
    }


def alerts() -> dict[str, Any]:
    """The alert rules of Prometheus as rules that Grafana evaluates itself."""
    rules = yaml.safe_load((HERE.parent / "prometheus" / "shiftwatch.rules.yml").read_text(encoding="utf-8"))
    groups = [
        {
            "orgId": 1,
            "name": group["name"],
            "folder": "Shiftwatch",
            "interval": "1m",
            "rules": [_alert(rule) for rule in group["rules"]],
        }
        for group in rules["groups"]
    ]
    return {"apiVersion": 1, "groups": groups}


def _alert(rule: dict[str, Any]) -> dict[str, Any]:
    # Every series that the expression returns is an alert, whatever its value: it is made 1 and compared with 0.
    query = {
        "refId": "A",
        "relativeTimeRange": {"from": 3600, "to": 0},
        "datasourceUid": "prometheus",
        "model": {"refId": "A", "expr": f"({rule['expr'].strip()}) * 0 + 1", "instant": True},
    }
    condition = {
        "refId": "B",
        "datasourceUid": "__expr__",
        "model": {
            "refId": "B",
            "type": "threshold",
            "expression": "A",
            "conditions": [{"evaluator": {"type": "gt", "params": [0]}}],
        },
    }
    # Prometheus' templates write {{ $labels.x }} as Grafana's do; the value is that of the query there.
    annotations = {key: text.replace("$value", "$values.A.Value") for key, text in rule["annotations"].items()}
    return {
        "uid": rule["alert"].lower(),
        "title": rule["alert"],
        "condition": "B",
        "data": [query, condition],
        "noDataState": "OK",
        "execErrState": "Error",
        "for": rule.get("for", "0s"),
        "labels": rule["labels"],
        "annotations": annotations,
    }


def _placed(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    placed, x, y, tallest = [], 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        if x + panel.width > 24:
            x, y, tallest = 0, y + tallest, 0
        placed.append(_panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": panel.height}))
        x, tallest = x + panel.width, max(tallest, panel.height)
    return placed


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    if panel.kind == "timeseries":
        defaults["custom"] = {"fillOpacity": 0, "lineWidth": 1, "showPoints": "never"}
        defaults |= {} if panel.least is None else {"min": panel.least}
    if panel.queries[0][0] == CODE:
        options = {
            str(verdict.rank): {"text": str(verdict), "color": verdict.facts.colour, "index": verdict.rank}
            for verdict in Verdict
        }
        defaults["mappings"] = [{"type": "value", "options": options}]
    shown = {"legend": {"displayMode": "table", "placement": "right", "calcs": ["lastNotNull"]}}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": shown if panel.kind == "timeseries" else {"textMode": "value_and_name"},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": DATASOURCE,
                "expr": expression,
                "legendFormat": legend,
                "instant": panel.instant,
                "range": not panel.instant,
            }
            for at, (expression, legend) in enumerate(panel.queries)
        ],
    }


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}


def _variable(name: str) -> dict[str, Any]:
    metric = "shiftwatch_windows_total" if name == "stream" else 'shiftwatch_window_events{stream="$stream"}'
    variable = {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": f"label_values({metric}, {name})", "refId": name},
        "definition": f"label_values({metric}, {name})",
        "refresh": 2,
        "sort": 1,
    }
    if name == "segment":
        # The whole stream has an empty segment, which is not among a label's values: "All" stands for it.
        whole = {"label": "Segment (All: the whole stream)", "includeAll": True, "allValue": "()"}
        variable |= {**whole, "current": {"text": "All", "value": "$__all"}}
    return variable


def written() -> dict[Path, str]:
    """Every file with its content."""
    files = {HERE / "dashboards" / f"{name}.json": json.dumps(dashboard(name), indent=2) + "\n" for name in DASHBOARDS}
    note = "# Written by deploy/grafana/build.py from deploy/prometheus/shiftwatch.rules.yml.\n"
    text = yaml.safe_dump(alerts(), sort_keys=False, width=160)
    return files | {HERE / "provisioning" / "alerting" / "shiftwatch.yml": note + text}


if __name__ == "__main__":
    for path, content in written().items():
        path.write_text(content, encoding="utf-8")
