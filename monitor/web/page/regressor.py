"""The panels of a regressor's stream: the error of the predictions, and the labels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from monitor.kinds import RelationAnswer
from monitor.labels import RegressionOutcome
from monitor.limits import SKETCHES_REMEMBERED
from monitor.pages import DrawnPath, moment, number
from monitor.web.page import panels
from monitor.web.page.card import Card
from monitor.web.page.charts import Bins, Chart, runs
from monitor.web.page.panels import Panel, Shown

OUTCOMES = 5
MEASURES = {"rmse": "root mean square", "mae": "mean size", "bias": "mean"}
"""Of an outcome, and how the page calls them."""
FINDINGS = {
    "helped": "helped",
    "harmed": "made predictions worse",
    "not-told-apart": "labels cannot tell",
    "too-few-labels": "too few labels to tell",
    "not-recommended": "",
}
"""What labels say of a correction; nothing where none was recommended."""

RegressorCard = Card[RelationAnswer]


def error(card: RegressorCard) -> Shown:
    """The error of the predictions over time."""
    errors = card.bins.means(lambda answer: answer.error)
    chart = error_chart(card.bins, card.latest.answer.reference_error)
    return {
        "chart": chart,
        "corrected": chart is not None and "truth" in {mark.style for mark in chart.marks},
        "values": {"errors": [None if np.isnan(value) else float(f"{value:.4g}") for value in errors]},
    }


def predictions(card: RegressorCard) -> Shown | None:
    """How the predictions were distributed over time, beside those of the hold-out."""
    known = {each.key.id: card.track.sketches(each.key.id) for each in card.readings[-SKETCHES_REMEMBERED:]}
    sketches = {name: next(iter(each.scores.values())) for name, each in known.items() if each and each.scores}
    if not sketches:
        return None
    quantiles = {name: _quantiles(sketch.edges, sketch.counts) for name, sketch in sketches.items()}
    spreads = [_mean_of([quantiles.get(reading.key.id) for reading in group]) for group in card.bins.groups]
    newest = list(sketches.values())[-1]
    return _spread("predictions", card.bins, spreads, _quantiles(newest.edges, newest.reference)[1])


def residuals(card: RegressorCard) -> Shown | None:
    """Label minus prediction over time, where labels tell."""
    spreads = [_mean_of([reading.answer.residuals for reading in group]) for group in card.bins.groups]
    return _spread("label minus prediction", card.bins, spreads, 0.0) if any(spreads) else None


def outcomes(card: RegressorCard) -> Shown | None:
    """What labels said afterwards: the errors of the predictions, and what corrections made of them."""
    found = [outcome for outcome in card.outcomes if isinstance(outcome, RegressionOutcome)]
    if not found:
        return None
    errors = _realised(card.bins, found)
    return {
        "chart": _realised_chart(card.bins, errors, card.latest.answer.reference_error),
        "last": found[-1],
        "measures": list(MEASURES.values()),
        "rows": [_outcome(outcome) for outcome in found[: -OUTCOMES - 1 : -1]],
        "holdout": _holdout(found),
        "values": {"measure": {"rmse": [errors.get(at) for at in range(len(card.bins.groups))]}},
    }


def segments(card: RegressorCard) -> Shown | None:
    """The segments, with the error of their predictions."""
    return panels.segments_by(
        card, "error", lambda answer: "no labels" if answer.error is None else number(answer.error)
    )


PANELS: tuple[Panel, ...] = (
    panels.headline,
    panels.alarms,
    panels.verdicts,
    error,
    residuals,
    outcomes,
    predictions,
    panels.features,
    segments,
    panels.events,
    panels.quality,
    panels.trust,
    panels.recent,
)

WINDOW_PANELS: tuple[Panel, ...] = (
    panels.headline,
    outcomes,
    panels.inputs,
    panels.scores,
    panels.counts,
    panels.quality,
    panels.trust,
)
"""Of the page of one window."""


def error_chart(bins: Bins, reference: float) -> Chart | None:
    """The error of a regressor's predictions over time, with the reference's; None where no label tells."""
    errors, corrected = bins.means(lambda answer: answer.error), bins.means(lambda answer: answer.corrected_error)
    plain, known = ~np.isnan(errors), ~np.isnan(corrected)
    if not plain.any():
        return None
    top = 1.08 * float(max([*errors[plain], *corrected[known], reference]))
    frame, xs = bins.frame(high=top), bins.middles
    marks = [DrawnPath("source", frame.level(reference))]
    marks += [DrawnPath("line", frame.line(xs[run], errors[run])) for run in runs(plain)]
    if known.any():
        marks.append(DrawnPath("truth", frame.dots(xs[known], corrected[known])))
    label = f"Error of the predictions over {len(bins.readings)} windows, reference {number(reference)}"
    return Chart(label, "chart", "error", tuple(marks), top=number(top), bottom="0")


Errors = Mapping[int, tuple[float, float, float]]
"""By bin: the error, and its interval."""


def _realised(bins: Bins, found: Sequence[RegressionOutcome]) -> Errors:
    """The root mean square errors by labels: the mean of a bin's windows, and their outermost bounds."""
    by_bin: dict[int, list[tuple[float, float, float]]] = {}
    for outcome in found:
        at, error = bins.at(outcome.ends), outcome.performance.get("rmse")
        if at is not None and error is not None:
            by_bin.setdefault(at, []).append((error.realised, error.lower, error.upper))
    together = {at: zip(*errors, strict=True) for at, errors in by_bin.items()}
    return {
        at: (_rounded(np.mean(values)), _rounded(min(lower)), _rounded(max(upper)))
        for at, (values, lower, upper) in together.items()
    }


def _rounded(value: Any) -> float:
    return float(f"{value:.4g}")


def _realised_chart(bins: Bins, errors: Errors, reference: float) -> Chart | None:
    """The error by labels over time with its interval, and that of the hold-out; None where too few labels tell."""
    if not errors:
        return None
    value, lower, upper = np.array([errors.get(at, (np.nan,) * 3) for at in range(len(bins.groups))]).T
    there = np.isfinite(value)
    top = 1.08 * float(max([*upper[there], reference]))
    frame, xs = bins.frame(high=top), bins.middles
    marks = [DrawnPath("source", frame.level(reference))]
    marks += [DrawnPath("band", frame.band(xs[run], lower[run], upper[run])) for run in runs(there)]
    marks += [DrawnPath("line", frame.line(xs[run], value[run])) for run in runs(there)]
    marks.append(DrawnPath("now", frame.dots(xs[there], value[there])))
    label = f"Error by labels of {len(errors)} windows, last {number(value[there][-1])}, hold-out {number(reference)}"
    return Chart(label, "chart", "measure:rmse", tuple(marks), top=number(top), bottom="0")


def _outcome(outcome: RegressionOutcome) -> tuple[str, ...]:
    """A row of their table."""
    errors = [outcome.performance.get(name) for name in MEASURES]
    return (
        moment(outcome.ends),
        f"{number(outcome.labels.joined)} of {number(outcome.events)}",
        *("" if each is None else _with_interval(each.realised, each.lower, each.upper) for each in errors),
        FINDINGS[outcome.correction.finding],
    )


def _holdout(found: Sequence[RegressionOutcome]) -> tuple[str, ...] | None:
    """The same of the hold-out events, as the last outcome that says anything has it."""
    known = next((outcome.performance for outcome in reversed(found) if outcome.performance), {})
    usual = [known[name].reference if name in known else None for name in MEASURES]
    if all(value is None for value in usual):
        return None
    return ("hold-out", "", *("" if value is None else number(value) for value in usual), "")


def _with_interval(value: float, lower: float, upper: float) -> str:
    return f"{number(value)} ({number(lower)} to {number(upper)})" if upper > lower else number(value)


Spread = tuple[float, float, float]
"""The 10 %, 50 % and 90 % quantiles."""


def _quantiles(edges: Sequence[float], cells: Sequence[float]) -> Spread:
    """Of a sketch: what lies below and above all edges is taken to lie on them."""
    below = np.cumsum(cells)[: len(edges)] / max(float(np.sum(cells)), 1e-12)
    low, middle, high = np.interp([0.1, 0.5, 0.9], below, edges).tolist()
    return low, middle, high


def _mean_of(spreads: Iterable[Spread | None]) -> Spread | None:
    known = [spread for spread in spreads if spread is not None]
    if not known:
        return None
    low, middle, high = np.mean(known, axis=0).tolist()
    return low, middle, high


def _spread(name: str, bins: Bins, spreads: Sequence[Spread | None], usual: float) -> Shown:
    """The middle of something over time, with what eight of ten lie in, and where it usually lies."""
    low, middle, high = np.array([spread or (np.nan,) * 3 for spread in spreads]).T
    there = np.isfinite(middle)
    ends = [float(np.min([*low[there], usual])), float(np.max([*high[there], usual]))]
    margin = max(0.08 * (ends[1] - ends[0]), 1e-9)
    frame, xs = bins.frame(low=ends[0] - margin, high=ends[1] + margin), bins.middles
    marks = [DrawnPath("source", frame.level(usual))]
    marks += [DrawnPath("band", frame.band(xs[run], low[run], high[run])) for run in runs(there)]
    marks += [DrawnPath("line", frame.line(xs[run], middle[run])) for run in runs(there)]
    label = f"{name} over {len(bins.readings)} windows, the middle now {number(middle[there][-1])}"
    chart = Chart(
        label, "chart", f"spread:{name}", tuple(marks), top=number(ends[1] + margin), bottom=number(ends[0] - margin)
    )
    rounded = [None if spread is None else [float(f"{value:.4g}") for value in spread] for spread in spreads]
    return {"chart": chart, "values": {f"spread:{name}": rounded}}
