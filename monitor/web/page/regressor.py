"""The panels of a regressor's stream: the error of the predictions, and the labels."""

import numpy as np

from monitor.kinds import RelationAnswer
from monitor.pages import DrawnPath, number
from monitor.web.page import panels
from monitor.web.page.card import Card
from monitor.web.page.charts import Bins, Chart, runs
from monitor.web.page.panels import Panel, Shown

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
    panels.features,
    segments,
    panels.events,
    panels.trust,
    panels.recent,
)

WINDOW_PANELS: tuple[Panel, ...] = panels.COMMON_OF_WINDOWS
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
