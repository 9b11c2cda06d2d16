"""What the page shows of a regression stream in place of classes: the error of the predictions, and the labels."""

from collections.abc import Sequence

import numpy as np

from monitor.observers.history import StreamFacts
from monitor.observers.window_record import Reading, RelationReading
from monitor.web.page.charts import WIDE, Bins, plot, runs, ticks
from monitor.web.page.words import number, text


def figures(latest: Reading) -> str:
    """The numbers beside the headline."""
    found = latest.relation
    if found is None:
        return ""
    now = "no labels" if found.error is None else number(found.error)
    corrected = "" if found.corrected_error is None else f"; {number(found.corrected_error)} with the relation of now"
    return (
        '<div class="share"><span class="class">error of the predictions</span>'
        f'<span class="big">{now}</span><span class="muted">reference {number(found.reference_error)}{corrected}</span>'
        f'</div><div class="share"><span class="class">labels</span><span class="big">{number(found.labels)}</span>'
        f'<span class="muted">{_judged(found)}</span></div>'
    )


def correction(latest: Reading) -> str:
    """What is to be done about the predictions."""
    found = latest.relation
    if found is None or not found.description:
        return ""
    if latest.apply:
        return f"<b>The predictions are to be corrected:</b> {text(found.description)}."
    return f"<b>The predictions are not to be corrected:</b> {text(latest.why)}."


def chart(facts: StreamFacts, bins: Bins) -> str:
    """The error over time, with the reference's."""
    if facts.relation is None:
        return ""
    errors, after = _errors(bins, "error"), _errors(bins, "corrected_error")
    if np.isnan(errors).all():
        return '<h3>Error of the predictions</h3><p class="muted">No labels in the windows shown.</p>'
    known = [*errors[~np.isnan(errors)], *after[~np.isnan(after)], facts.relation.error]
    top = 1.08 * float(max(known))

    def y(error: float) -> str:
        return f"{(1 - error / top) * 100:.1f}"

    parts = [f'<path class="source" d="M0 {y(facts.relation.error)}H{WIDE}"/>']
    for run in runs(~np.isnan(errors)):
        line = "L".join(f"{bins.middle(at):.1f} {y(errors[at])}" for at in run)
        parts.append(f'<path class="line" d="M{line}{"h0" if len(run) == 1 else ""}"/>')
    dots = "".join(f"M{bins.middle(int(at)):.1f} {y(after[at])}h0" for at in np.flatnonzero(~np.isnan(after)))
    parts += [f'<path class="truth" d="{dots}"/>'] if dots else []
    label = f"Error of the predictions over {len(bins.readings)} windows, reference {number(facts.relation.error)}"
    axis = f'<div class="y"><span>{number(top)}</span><span>0</span></div>'
    keys = [("line", "error"), ("source", "reference")] + ([("truth", "corrected")] if dots else [])
    legend = "".join(f'<li><i class="k-{key}"></i>{words}</li>' for key, words in keys)
    drawn = plot(label, 100, "".join(parts), "chart", "error")
    return (
        f'<h3>Error of the predictions</h3><ul class="legend">{legend}</ul>'
        f'<figure><div class="framed">{axis}{drawn}</div>{ticks(bins)}</figure>'
    )


def values(bins: Bins) -> list[float | None]:
    """The error of each bin, for the script."""
    return [None if np.isnan(one) else float(f"{one:.4g}") for one in _errors(bins, "error")]


def segment(latest: Reading) -> str:
    """A segment in one cell."""
    found = latest.relation
    return "no labels" if found is None or found.error is None else number(found.error)


def _judged(found: RelationReading) -> str:
    return "enough to judge the relation" if found.tested else f"{found.wanted} are wanted to judge the relation"


def _errors(bins: Bins, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The mean of each bin; NaN where no window has one."""
    return np.array([_mean([getattr(one.relation, name, None) for one in group]) for group in bins.groups])


def _mean(errors: Sequence[float | None]) -> float:
    known = [one for one in errors if one is not None]
    return float(np.mean(known)) if known else float("nan")
