"""How the predictions of a window, or of a segment of it, fared once its labels had come, and what the correction that
was published for it made of their errors. Pure.

Errors, and when too few labels tell: `monitor.performance.regression_errors`. Labels that were chosen by prediction are
found as those of a classifier are that were chosen by score (`selection`), by the ranks of the predictions: their own
values may have heavy tails.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from monitor.arrays import Flags, Labels, Vector
from monitor.assessment import message as result
from monitor.labels.counting import counted, within
from monitor.labels.joining import LabelledRows, among, joined, strangers
from monitor.labels.outcome_rules import Outcome, OutcomeRules
from monitor.labels.published_predictions import PublishedPredictions, PublishedRegression, what_waits
from monitor.labels.regression_outcome_message import (
    SCHEMA_ID,
    CorrectionOutcome,
    Finding,
    PredictionError,
    RegressionOutcome,
)
from monitor.labels.rows import Columns, unpacked
from monitor.labels.selection import chosen_by, weighted
from monitor.labels.values import NO_COPIES, Found, Stateless, Waiting
from monitor.performance import PREDICTION_ERRORS, MeasureValue, enough_labels, gain, prediction_errors
from monitor.tolerances import FEWEST_LABELS, LARGEST_NUMBER
from monitor.version import __version__

NOBODY: Labels = np.empty(0, dtype=np.int64)
NO_LABELS = Found(NOBODY, np.empty(0), NOBODY, NOBODY)


def outcomes(one: Waiting, found: Found, copies: Stateless, unknown: int, classes: Sequence[str]) -> Iterator[Outcome]:
    """What the labels show of the whole window, and then of each segment that was watched apart.

    Copies of events that the window does not hold, and labels of no event, are in no segment. A stream that has
    `classes` is a classifier's by now: its labels are class numbers, and say nothing of predictions.
    """
    told = msgspec.json.decode(one.told, type=PublishedRegression)
    found, copies = (NO_LABELS, NO_COPIES) if classes else (found, copies)
    columns, ids = ({}, None) if one.rows is None else unpacked(one.rows)
    ours = _usable(strangers(copies, ids))
    yield Outcome(_outcome(one, told, told.whole, columns, found, copies=ours, unknown=unknown))
    for place, segment in enumerate(told.segments):
        rows = np.flatnonzero(columns["segments"] == place) if columns else NOBODY
        its = {name: column[rows] for name, column in columns.items()}
        if "apart" in its:
            its["corrected"] = its["apart"]
        yield Outcome(_outcome(one, told, segment, its, among(found, rows)))


def _outcome(
    one: Waiting,
    told: PublishedRegression,
    said: PublishedPredictions,
    columns: Columns,
    found: Found,
    *,
    copies: Stateless = NO_COPIES,
    unknown: int = 0,
) -> RegressionOutcome:
    """Of the whole window or of a segment, which have these rows and copies."""
    own = _own(columns, found)
    known = own.labelled
    predictions = columns.get("predictions", np.empty(0))
    chosen = chosen_by(_ranks(predictions)[:, None], known) is not None
    weights = weighted(predictions, known, len(copies.ids)) if chosen else None
    labels = np.concatenate([own.values[known], copies.values])
    answers = np.concatenate([predictions[known], copies.answers.ravel()])
    measured = prediction_errors(labels, answers, max(said.events, labels.size), weights)
    return RegressionOutcome(
        schema=SCHEMA_ID,
        stream=one.stream,
        segment=said.segment,
        window=said.window,
        start=result.rfc3339(one.start),
        end=result.rfc3339(one.end),
        verdict=said.verdict,
        events=said.events,
        kept=one.rows is not None,
        labels=counted(own, said.events, len(copies.ids), unknown),
        selective=chosen,
        classes={},
        coverage=None,
        applied=said.recommended,
        brier=None,
        log_loss=None,
        trusted=True,
        doubt="",
        versions=result.Versions(__version__, said.reference),
        labels_within=within(one, own, found, np.zeros(own.values.size)),
        performance={
            name: PredictionError(
                realised=value.value,
                lower=value.lower,
                upper=value.upper,
                estimated=None,
                reference=told.errors.get(name),
            )
            for name, value in measured.items()
        },
        withheld=_withheld(labels.size, said.events, measured),
        correction=_correction(said, columns, own, None if weights is None else weights[: int(known.sum())]),
    )


def _ranks(values: Vector) -> Vector:
    """From 1 on; equal values have the mean of theirs. (That of scipy.stats takes a second to load.)"""
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2)[place])


def _own(columns: Columns, found: Found) -> LabelledRows:
    """The window's own rows and their labels. A label of which no error can be computed counts as none."""
    if not columns:
        return LabelledRows(np.empty(0), 0, 0, 0)
    own = joined(columns.get("targets", np.full(columns["times"].size, np.nan)), columns["times"], found)
    usable = (np.abs(own.values) < LARGEST_NUMBER) & (np.abs(columns["predictions"]) < LARGEST_NUMBER)
    return replace(own, values=np.where(usable, own.values, np.nan))


def _usable(copies: Stateless) -> Stateless:
    """Those of which an error can be computed."""
    numbers = np.column_stack([copies.values, copies.answers])
    usable: Flags = np.asarray((np.abs(numbers) < LARGEST_NUMBER).all(axis=1))
    ids = [name for name, use in zip(copies.ids, usable.tolist(), strict=True) if use]
    return Stateless(ids, copies.values[usable], copies.answers[usable])


def _withheld(labels: int, events: int, measured: Mapping[str, MeasureValue]) -> str:
    if not enough_labels(labels, events):
        return f"{labels:,} labels of {events:,} events: {FEWEST_LABELS} are needed"
    if len(measured) < len(PREDICTION_ERRORS):
        return "all labels are as far from their predictions: they do not tell how far the others are"
    return ""


def _correction(
    said: PublishedPredictions, columns: Columns, own: LabelledRows, weights: Vector | None
) -> CorrectionOutcome:
    """What the labels say of the published correction."""
    known = own.labelled
    labels = int(known.sum())
    if not said.recommended:
        return CorrectionOutcome("not-recommended", f"nothing was recommended: {said.reason}", labels)
    if not enough_labels(labels, said.events):
        few = f"{labels:,} labels of its events do not tell what it did, {FEWEST_LABELS} are needed"
        return CorrectionOutcome("too-few-labels", f"a correction was recommended; {few}", labels)
    after = gain(own.values[known], columns["predictions"][known], columns["corrected"][known], said.events, weights)
    if after is None:
        return CorrectionOutcome("not-told-apart", "all labels show the same change of their errors", labels)
    change = after.difference
    finding, words = _finding(change)
    figures = f"error {after.corrected:.3g} with it, {after.without:.3g} without"
    interval = f"difference {change.value:+.3g}, {change.lower:+.3g} to {change.upper:+.3g}"
    return CorrectionOutcome(
        finding=finding,
        reason=f"{words}: {figures} ({interval}; {labels:,} labels)",
        labels=labels,
        error_without=after.without,
        error_with=after.corrected,
        difference=change.value,
        lower=change.lower,
        upper=change.upper,
    )


def _finding(change: MeasureValue) -> tuple[Finding, str]:
    if change.upper < 0:
        return "helped", "the correction helped"
    if change.lower > 0:
        return "harmed", "the correction made predictions worse"
    return "not-told-apart", "labels do not tell whether the correction helped"


REGRESSION_OUTCOMES = OutcomeRules(result=RegressionOutcome, waits=what_waits, outcomes=outcomes)
"""Those of a regressor's stream. Its labels teach by way of the windows' evidence."""
