"""The preflight report as one page that needs nothing else: no script, no font, no network."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from monitor.pages import DrawnPath, Frame
from monitor.web.templates import render

CLASSES_DRAWN = 8
"""Classes with curves of their own; the JSON has all."""
WIDTH, HEIGHT = 242, 186
TICKS = 5

CALIBRATION = {
    "expected_calibration_error": "expected calibration error",
    "log_loss": "log loss (nats)",
    "brier": "Brier score",
    "brier_calibration": "of which calibration",
    "brier_refinement": "of which refinement",
    "brier_within_bins": "of which inside their ten bins",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A small drawing with both axes, which start at 0."""

    title: str
    x_label: str
    y_label: str
    frame: Frame
    marks: tuple[DrawnPath, ...]

    @property
    def ticks(self) -> list[tuple[str, str, str, str]]:
        """Coordinate and number of each tick: those of x, and those of y."""
        parts = [at / (TICKS - 1) for at in range(TICKS)]
        xs, ys = ([part * end for part in parts] for end in (self.frame.right, self.frame.high))
        return [(self.frame.x(x), f"{x:.4g}", self.frame.y(y), f"{y:.3g}") for x, y in zip(xs, ys, strict=True)]


def page(report: Mapping[str, Any]) -> str:
    """The report as HTML."""
    drawn = report["classes"][:CLASSES_DRAWN]
    return render(
        "preflight.html",
        report=report,
        left_out=len(report["classes"]) - len(drawn),
        drawn=len(drawn),
        windows=_windows(report),
        reliability=[_reliability(name, report["reliability"][name]) for name in drawn],
        scores=[_scores(name, report["scores"][name]) for name in drawn],
        simulated=_simulated(report["simulated"], drawn),
        calibration=_calibration(report["calibration"]),
    )


def _windows(report: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table: each class, and what each size of window asks of the reference."""
    windows = report["windows"]
    rows = [
        [
            name,
            f"{report['source_priors'][name]:.2%}",
            f"{report['class_events'][name]:,.0f}",
            *(f"{window['interval_width'][name]:.2%}" for window in windows),
        ]
        for name in report["classes"]
    ]
    enough = [
        f"{window['reference_per_window']:.3g} x" + ("" if window["reference_is_enough"] else " (too small)")
        for window in windows
    ]
    rarest = min(report["source_priors"], key=report["source_priors"].get)
    rises = [window["rise_seen"] for window in windows]
    named = [f"share of {rarest} that is named in 95 of 100 windows", "", "", *map(_rise, rises)]
    bounds = ["says nothing" if window["error_bound"] is None else f"{window['error_bound']:.2f}" for window in windows]
    heads = ["class", "prevalence", "events held out", *(f"{window['events']:,} events" for window in windows)]
    return heads, [
        *rows,
        *([] if None in rises else [named]),
        ["reference per window", "", "", *enough],
        ["largest distance from the true mix (Theorem 1, 95 %)", "", "", *bounds],
    ]


def _rise(share: float | None) -> str:
    return "none" if share is None or share >= 1 else f"{share:.2%}"


def _reliability(name: str, curves: Mapping[str, Any]) -> Figure:
    frame = Frame(WIDTH, HEIGHT)
    marks = [DrawnPath("diagonal", frame.diagonal())]
    for when, style in (("before", "b"), ("after", "a")):
        if when not in curves:  # margins are no posteriors before they are calibrated
            continue
        points = curves[when]["said"], curves[when]["came_true"]
        marks += [DrawnPath(f"line {style}", frame.line(*points)), DrawnPath(f"dots {style}", frame.dots(*points))]
    return Figure(name, "posterior", f"share that is {name}", frame, tuple(marks))


def _scores(name: str, scores: Mapping[str, Any]) -> Figure:
    top = math.ceil(max(*scores["own"], *scores["others"], 0.04) * 25) / 25  # quarters of it are short numbers
    frame = Frame(WIDTH, HEIGHT, high=top)
    marks = [
        DrawnPath(f"area {style}", frame.steps(scores["edges"], scores[whose]))
        for whose, style in (("others", "b"), ("own", "a"))
    ]
    return Figure(name, "calibrated posterior", "share of events", frame, tuple(marks))


def _simulated(simulated: Mapping[str, Any] | None, drawn: Sequence[str]) -> Mapping[str, Any] | None:
    """Figures of estimates against the truth, and the table of errors."""
    if not simulated:
        return None
    frame, figures = Frame(WIDTH, HEIGHT), []
    for at, name in enumerate(drawn):
        dots = frame.dots(*([row[at] for row in simulated[which]] for which in ("true", "estimated")))
        marks = (DrawnPath("diagonal", frame.diagonal()), DrawnPath("dots faint a", dots))
        figures.append(Figure(name, "true prevalence", "estimated", frame, marks))
    rows = [[name, f"{error:.3%}"] for name, error in simulated["mean_absolute_error"].items()]
    return {"figures": figures, "rows": rows, "windows": simulated["windows"], "events": simulated["events"]}


def _calibration(calibration: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table."""
    return [
        [words, *(f"{calibration[when][key]:.4f}" if calibration[when] else "" for when in ("before", "after"))]
        for key, words in CALIBRATION.items()
    ]
