"""The preflight report as one page that needs nothing else: no script, no font, no network."""

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from monitor.reference.plots import Plot

CLASSES_DRAWN = 8
"""Classes with curves of their own; the JSON has all."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2330; --soft: #5d6778; --paper: #f6f7f9; --card: #fff; --rule: #dfe3ea;
  --a: #2563c9; --b: #d9731a; --good: #1a7f4b; --mind: #a86a00; --bad: #c0322b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf2; --soft: #9aa5b8; --paper: #12161d; --card: #1a2029;
  --rule: #2d3542; --a: #6ea8ff; --b: #ffa55c; --good: #4fce8c; --mind: #f0b648; --bad: #ff7b72; } }
* { box-sizing: border-box; } body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; } main { max-width: 1060px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 25px; margin: 0; } h2 { font-size: 17px; margin: 34px 0 4px; } p { margin: 4px 0 10px; }
.soft, .note { color: var(--soft); } .note { max-width: 75ch; }
.advice { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 12px; margin-top: 18px; }
.advice div, figure, .tablebox { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; }
.advice div { padding: 12px 14px; border-left-width: 5px; } .advice p { margin: 2px 0 0; font-size: 14px; }
.advice .good { border-left-color: var(--good); } .advice .mind { border-left-color: var(--mind); }
.advice .bad { border-left-color: var(--bad); } .advice small { text-transform: uppercase; letter-spacing: .05em;
  font-size: 11px; font-weight: 600; } .good small { color: var(--good); } .mind small { color: var(--mind); }
.bad small { color: var(--bad); }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr)); gap: 12px; }
figure { margin: 0; padding: 10px; } figcaption { font-weight: 600; font-size: 14px; }
svg { width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 9.5px; } svg .axis { font-size: 10.5px; }
.grid { stroke: var(--rule); } .diagonal { stroke: var(--soft); stroke-dasharray: 4 4; }
.line { fill: none; stroke-width: 1.8; } .line.a { stroke: var(--a); } .line.b { stroke: var(--b); }
.dot.a { fill: var(--a); } .dot.b { fill: var(--b); } .faint { fill-opacity: .6; }
.area { fill-opacity: .28; stroke-width: 1.3; } .area.a { fill: var(--a); stroke: var(--a); }
.area.b { fill: var(--b); stroke: var(--b); } .key { font-size: 13px; } .key i { display: inline-block; width: 11px;
  height: 11px; border-radius: 3px; margin: 0 5px 0 12px; }
.key i.a { background: var(--a); } .key i.b { background: var(--b); }
.tablebox { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 14px; }
th, td { text-align: right; padding: 6px 12px; border-bottom: 1px solid var(--rule); white-space: nowrap;
  font-variant-numeric: tabular-nums; } th:first-child, td:first-child { text-align: left; }
tr:last-child td { border-bottom: 0; } th { color: var(--soft); font-weight: 600; }
"""


def page(report: Mapping[str, Any]) -> str:
    """The report as HTML."""
    name = report["stream"] or "this model"
    drawn = report["classes"][:CLASSES_DRAWN]
    left_out = len(report["classes"]) - len(drawn)
    note = f" The first {len(drawn)} classes; {left_out} more are in the JSON." if left_out else ""
    parts = [
        f"<h1>What can be trusted with {escape(name)}</h1>",
        f'<p class="soft">{report["events"]:,} labelled events, {len(report["classes"])} classes; '
        f"reference {escape(report['version'])}, estimator {escape(report['estimator'])}</p>",
        '<section class="advice">' + "".join(map(_advice, report["advice"])) + "</section>",
        "<h2>How sure a window can be</h2>",
        '<p class="note">Width of the 95 % interval of each class when nothing has shifted. Windows of more than a '
        "tenth of the reference share its sampling error and alarm too often.</p>",
        _windows(report),
        "<h2>Do posteriors come true?</h2>",
        '<p class="note">How often a class occurs among events with a given posterior. On the dashed line a posterior '
        f'means what it says.{note}</p><p class="key"><i class="b"></i>as the model says it<i class="a"></i>'
        "calibrated, out of sample</p>",
        _grid(_reliability(c, report["reliability"][c]) for c in drawn),
        "<h2>Can the classes be told apart?</h2>",
        '<p class="note">Calibrated posterior of a class, among its own events and among all others. The more they '
        f'overlap, the wider the intervals.{note}</p><p class="key"><i class="a"></i>its own events<i class="b"></i>'
        "all other events</p>",
        _grid(_scores(c, report["scores"][c]) for c in drawn),
        *_simulated(report, drawn, note),
        "<h2>Calibration in numbers</h2>",
        _calibration(report["calibration"]),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Preflight: {escape(name)}</title><style>{STYLE}</style></head><body><main>"
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def _advice(one: Mapping[str, str]) -> str:
    words = {"good": "good", "mind": "mind this", "bad": "problem"}
    return (
        f'<div class="{one["verdict"]}"><small>{words[one["verdict"]]}</small><br><b>{escape(one["title"])}</b>'
        f"<p>{escape(one['text'])}</p></div>"
    )


def _grid(figures: Any) -> str:
    return '<section class="plots">' + "".join(figures) + "</section>"


def _table(head: list[str], rows: list[list[str]]) -> str:
    heading = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="tablebox"><table><tr>{heading}</tr>{body}</table></div>'


def _windows(report: Mapping[str, Any]) -> str:
    windows = report["windows"]
    head = ["class", "prevalence", "events held out", *(f"{w['events']:,} events" for w in windows)]
    rows = [
        [
            name,
            f"{report['source_priors'][name]:.2%}",
            f"{report['class_events'][name]:,.0f}",
            *(f"{w['interval_width'][name]:.2%}" for w in windows),
        ]
        for name in report["classes"]
    ]
    enough = [
        f"{w['reference_per_window']:.3g} x" + ("" if w["reference_is_enough"] else " (too small)") for w in windows
    ]
    return _table(head, [*rows, ["reference per window", "", "", *enough]])


def _reliability(name: str, curves: Mapping[str, Any]) -> str:
    plot = Plot(name, "posterior", "share that is " + name)
    lines = [plot.line(curves[w]["said"], curves[w]["came_true"], s) for w, s in (("before", "b"), ("after", "a"))]
    return plot.draw(plot.diagonal(), *lines)


def _scores(name: str, scores: Mapping[str, Any]) -> str:
    top = math.ceil(max(*scores["own"], *scores["others"], 0.04) * 25) / 25  # quarters of it are short numbers
    plot = Plot(name, "calibrated posterior", "share of events", y_max=top)
    return plot.draw(
        plot.steps(scores["edges"], scores["others"], "b"), plot.steps(scores["edges"], scores["own"], "a")
    )


def _simulated(report: Mapping[str, Any], drawn: list[str], note: str) -> list[str]:
    simulated = report["simulated"]
    if not simulated:
        return []
    figures = []
    for c, name in enumerate(drawn):
        plot = Plot(name, "true prevalence", "estimated")
        xs, ys = [row[c] for row in simulated["true"]], [row[c] for row in simulated["estimated"]]
        figures.append(plot.draw(plot.diagonal(), plot.dots(xs, ys, "a")))
    weights = simulated["weights"]
    rows = [
        [name, f"{error:.3%}", f"{weights[name]:.2f}" if name in weights else ""]
        for name, error in sorted(simulated["mean_absolute_error"].items(), key=lambda item: item[1])
    ]
    return [
        "<h2>Does the estimate follow the truth?</h2>",
        f'<p class="note">{simulated["windows"]} windows of {simulated["events"]} events with shifted class mixes, '
        "drawn from these hold-out events and estimated with resampled references. auto is the weighted mean; its "
        f"error is measured with weights that never saw the window.{note}</p>",
        _grid(figures),
        "<p></p>",
        _table(["estimator", "mean absolute error", "weight in auto"], rows),
    ]


def _calibration(calibration: Mapping[str, Any]) -> str:
    names = {
        "expected_calibration_error": "expected calibration error",
        "log_loss": "log loss (nats)",
        "brier": "Brier score",
        "brier_calibration": "of which calibration",
        "brier_refinement": "of which refinement",
        "brier_within_bins": "of which inside their ten bins",
    }
    rows = [[said, *(f"{calibration[when][key]:.4f}" for when in ("before", "after"))] for key, said in names.items()]
    tried = ", ".join(f"{name} {loss:.4f}" for name, loss in calibration["log_loss_by_method"].items())
    return (
        _table(["", "as the model says it", calibration["method"]], rows)
        + f'<p class="note">Log losses: {escape(tried)}.</p>'
    )
