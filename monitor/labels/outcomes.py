"""How the estimate of a window, or of a segment of it, fared once its labels had come. Pure.

Notation: p the estimate with its interval, q the share of a class among the m labelled of n events, s the interval's
standard error (its half width over 1.96).

The labels are a sample, so q differs from the window's own mix by chance: with variance q (1 - q) (1/m - 1/n) when m
of n events are drawn without replacement. An interval covers the truth if |q - p| is within 1.96 standard errors of
both together; with every event labelled that is the interval itself.
"""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from monitor import quality
from monitor.arrays import UNLABELLED, Labels, Matrix, Vector
from monitor.assessment import message as result
from monitor.labels.counting import counted, within
from monitor.labels.joining import LabelledRows, among, joined, strangers
from monitor.labels.learning import Settled
from monitor.labels.numbering import found_in, stateless_in
from monitor.labels.outcome_message import SCHEMA_ID, OutcomeResult, Performed, Realised, Score
from monitor.labels.outcome_rules import Outcome, OutcomeRules, Settlement
from monitor.labels.published_window import PublishedEstimate, PublishedSegment, what_waits
from monitor.labels.rows import Columns, unpacked
from monitor.labels.selection import chosen_by, weighted
from monitor.labels.values import NO_COPIES, Found, Stateless, Waiting
from monitor.performance import realised, scores_of
from monitor.recalibration import pooled_rows, reweighted
from monitor.tolerances import NORMAL_95
from monitor.version import __version__


def settlement(one: Waiting, joined: Found, classes: Sequence[str]) -> Settlement:
    """What can be learned from a window by labels that are there; `classes` are those that their numbers stand for."""
    said = msgspec.json.decode(one.told, type=PublishedEstimate)
    joined = joined if tuple(classes) == said.classes else found_in(joined, classes, said.classes)
    columns = {} if one.rows is None else unpacked(one.rows)[0]
    own = _own(columns, len(said.classes), joined)
    return Settlement(
        stream=one.stream,
        start=one.start,
        end=one.end,
        reference=said.reference,
        learned_from=Settled(
            window=one.window,
            posteriors=columns.get("posteriors", np.empty((0, len(said.classes)))),
            labels=np.where(own.labelled, own.values, UNLABELLED).astype(np.int64),
            experts=said.pool,
        ),
    )


def outcome(
    one: Waiting, joined: Found, copies: Stateless, unknown: int, classes: Sequence[str] | None = None
) -> Outcome:
    """What the labels show. `trusted` is left to whoever remembers earlier outcomes.

    `classes` are those that the labels' numbers stand for, where they are not the window's own.
    """
    said = msgspec.json.decode(one.told, type=PublishedEstimate)
    if classes is not None and tuple(classes) != said.classes:
        joined, copies = found_in(joined, classes, said.classes), stateless_in(copies, classes, said.classes)
    columns, ids = ({}, None) if one.rows is None else unpacked(one.rows)
    whole = PublishedSegment("", one.window, one.events, said)
    return _outcome(one, whole, columns, joined, copies=strangers(copies, ids), unknown=unknown)


def of_segments(one: Waiting, joined: Found, classes: Sequence[str]) -> Iterator[Outcome]:
    """The same of each segment of the window that was watched apart, by the labels of its own events.

    Copies of events that the window does not hold, and labels of no event, are in no segment.
    """
    said = msgspec.json.decode(one.told, type=PublishedEstimate)
    if not said.segments:
        return
    joined = joined if tuple(classes) == said.classes else found_in(joined, classes, said.classes)
    columns = {} if one.rows is None else unpacked(one.rows)[0]
    for place, segment in enumerate(said.segments):
        rows = np.flatnonzero(columns["segments"] == place) if columns else np.empty(0, dtype=np.int64)
        own = {name: column[rows] for name, column in columns.items()}
        yield _outcome(one, segment, own, among(joined, rows))


def _outcome(
    one: Waiting,
    part: PublishedSegment,
    columns: Columns,
    joined: Found,
    *,
    copies: Stateless = NO_COPIES,
    unknown: int = 0,
) -> Outcome:
    """Of the whole window or of a segment, which have these rows and copies."""
    said, events = part.estimate, part.events
    own = _own(columns, len(said.classes), joined)
    posteriors, labels = _together(columns, own, copies, len(said.classes))
    scores = _scores(posteriors, labels, said)
    by_class = chosen_by(columns["posteriors"], own.labelled) if columns else None
    chosen = None if by_class is None else columns["posteriors"][:, by_class]
    weights = None if chosen is None else weighted(chosen, own.labelled, len(copies.ids))
    shares = _classes(labels, max(events, labels.size), said)
    found_out = OutcomeResult(
        schema=SCHEMA_ID,
        stream=one.stream,
        segment=part.name,
        window=part.window,
        start=result.rfc3339(one.start),
        end=result.rfc3339(one.end),
        verdict=said.verdict,
        events=events,
        kept=one.rows is not None,
        labels=counted(own, events, len(copies.ids), unknown),
        selective=by_class is not None,
        classes=shares,
        coverage=float(np.mean([each.covered for each in shares.values()])) if shares else None,
        applied=said.applied or bool(said.pool),
        brier=scores.get("brier"),
        log_loss=scores.get("log_loss"),
        trusted=True,
        doubt="",
        versions=result.Versions(__version__, said.reference),
        labels_within=within(one, own, joined, own.values),
        performance=_performed(posteriors, labels, max(events, labels.size), said, weights),
        normalised_absolute_error=_mix_error(labels, said),
        calibration_error=scores.get("calibration_error"),
        refinement_error=scores.get("refinement_error"),
        expected_calibration_error=scores.get("expected_calibration_error"),
    )
    return Outcome(found_out, posteriors, labels, said.experts)


def _own(columns: Columns, classes: int, found: Found) -> LabelledRows:
    """The window's own rows and their labels."""
    if not columns:
        return LabelledRows(np.empty(0), 0, 0, 0)
    known = np.full(columns["times"].size, np.nan)
    if "labels" in columns:
        known[columns["labels"] >= 0] = columns["labels"][columns["labels"] >= 0]
    assert found.values.size == 0 or found.values.max() < classes  # noqa: S101 - labels were decoded as class numbers
    return joined(known, columns["times"], found)


def _together(columns: Columns, own: LabelledRows, copies: Stateless, classes: int) -> tuple[Matrix, Labels]:
    """Posteriors and class numbers of all labelled events: the window's own and the stateless ones."""
    parts = [np.empty((0, classes))], [np.empty(0)]
    if own.labelled.any():
        parts[0].append(columns["posteriors"][own.labelled])
        parts[1].append(own.values[own.labelled])
    if copies.ids:
        parts[0].append(copies.answers)
        parts[1].append(copies.values)
    return np.concatenate(parts[0]), np.concatenate(parts[1]).astype(np.int64)


def _classes(labels: Labels, events: int, said: PublishedEstimate) -> dict[str, Realised]:
    if not labels.size:
        return {}
    known = np.bincount(labels, minlength=len(said.classes)) / labels.size
    covered = _covered(known, labels.size, events, said)
    return {
        name: Realised(
            estimate=said.estimate[y],
            lower=said.lower[y],
            upper=said.upper[y],
            realised=float(known[y]),
            error=said.estimate[y] - float(known[y]),
            covered=bool(covered[y]),
        )
        for y, name in enumerate(said.classes)
    }


def _covered(realised: Vector, labelled: int, events: int, said: PublishedEstimate) -> Vector:
    estimate, lower, upper = (np.array(values) for values in (said.estimate, said.lower, said.upper))
    half = np.where(realised > estimate, upper - estimate, estimate - lower)
    # A class that was never seen among m labels may well be there with 1/m: the variance is floored accordingly.
    share = np.clip(realised, 1 / (labelled + 2), 1 - 1 / (labelled + 2))
    sampling = share * (1 - share) * (1 / labelled - 1 / events)
    return np.asarray(np.abs(realised - estimate) <= np.sqrt(half**2 + NORMAL_95**2 * sampling))


def _scores(posteriors: Matrix, labels: Labels, said: PublishedEstimate) -> dict[str, Score]:
    """By measure; none without labels."""
    if not labels.size:
        return {}
    before = _as_posteriors(posteriors, said)
    corrected = reweighted(posteriors, said.calibration, said.multipliers) if said.applied else before
    corrected = pooled_rows(posteriors, said.pool) if said.pool else corrected
    worth = [_measures(scores, labels) for scores in (before, corrected)]
    return {name: Score(worth[0][name], worth[1][name]) for name in worth[0]}


def _measures(posteriors: Matrix, labels: Labels) -> dict[str, float]:
    parts = quality.brier_parts(posteriors, labels)
    return {
        "brier": parts.brier,
        "log_loss": quality.log_loss(posteriors, labels),
        "calibration_error": parts.calibration,
        "refinement_error": parts.refinement,
        "expected_calibration_error": quality.expected_calibration_error(posteriors, labels),
    }


def _mix_error(labels: Labels, said: PublishedEstimate) -> Score | None:
    if not labels.size or len(said.classes) < 2:
        return None
    realised = np.bincount(labels, minlength=len(said.classes)) / labels.size
    shares = (np.array(said.source_priors), np.array(said.estimate))
    return Score(*(quality.normalised_absolute_error(realised, share) for share in shares))


def _performed(
    posteriors: Matrix, labels: Labels, events: int, said: PublishedEstimate, weights: Vector | None
) -> dict[str, Performed]:
    scores = scores_of(posteriors, _as_posteriors(posteriors, said), said.decisions, said.positive)
    measures = said.decisions.measures(len(said.classes), said.positive)
    before = {
        name: result.FigurePart(figure.value, figure.lower, figure.upper) for name, figure in said.performance.items()
    }
    return {
        name: Performed(measured.value, measured.lower, measured.upper, before.get(name))
        for name, measured in realised(scores, labels, events, measures, weights).items()
    }


def _as_posteriors(scores: Matrix, said: PublishedEstimate) -> Matrix:
    """Margins calibrated; posteriors as they are."""
    known = said.calibration
    return known.rows(scores) if known is not None and known.scores == "margin" else scores


def _whole_and_parts(
    one: Waiting, joined: Found, copies: Stateless, unknown: int, classes: Sequence[str]
) -> Iterator[Outcome]:
    yield outcome(one, joined, copies, unknown, classes)
    yield from of_segments(one, joined, classes)


CLASS_OUTCOMES = OutcomeRules(result=OutcomeResult, waits=what_waits, outcomes=_whole_and_parts, settlement=settlement)
"""Those of a classifier's stream."""
