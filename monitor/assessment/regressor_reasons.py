"""A regression stream's verdict in words, with the numbers that a person on call needs to act."""

from collections.abc import Mapping

from monitor.assessment.message import rfc3339
from monitor.assessment.reasons import moved_sentences, p_text
from monitor.assessment.regressor_evidence import RelationFound
from monitor.assessment.verdict import Verdict
from monitor.ports.schema import PREDICTION
from monitor.regression import Note, RelationStatus
from monitor.shifts import Explanation, Move
from monitor.tolerances import ERROR_GROWTH, ERROR_LABELS, MINIMUM_EVENTS


def reasons(
    verdict: Verdict,
    moved: tuple[Move, ...],
    explained: Mapping[int, Explanation],
    found: RelationFound,
    *,
    inputs: tuple[str, ...],
    events: int,
    unusable: int,
) -> tuple[str, ...]:
    """The sentences, most important first."""
    labels = label_sentence(found)
    if verdict is Verdict.INSUFFICIENT_DATA:
        spoilt = f"; {unusable:,} more had no usable prediction" if unusable else ""
        return (f"{events:,} usable events, {MINIMUM_EVENTS} are needed{spoilt}", labels)
    if verdict is Verdict.STABLE:
        least = min(min(move.adjusted_p, move.missing_adjusted_p) for move in moved)
        what = "the predictions and every input agree" if len(moved) > 1 else "the predictions agree"
        return (f"{what} with the reference (smallest corrected p {p_text(least)})", labels)
    sentences = moved_sentences(moved, explained)
    if verdict is Verdict.UNEXPLAINED:
        return (labels, "no input has moved: look at the model that is deployed, and at how labels are joined")
    if verdict is Verdict.COVARIATE_SHIFT:
        alone = [move.name for move in moved if move.moved] == [PREDICTION.name] and len(moved) > 1
        hint = ("no input moved by itself: look at the model that is deployed",) if alone else ()
        return (*sentences, *hint, labels)
    against, p = ", ".join(inputs), p_text(found.p_value)
    since = "" if found.since is None else f", since {rfc3339(found.since)}"
    changed = f"{found.test.description} (the label against {against}; {found.labels:,} labels, p {p}{since})"
    recent = (
        ()
        if found.helps or found.only_noise
        else ("not corrected yet: the labels do not agree with one another on what changed",)
    )
    return (changed, *_error_sentence(found), *_remarks(found), *recent, *sentences)


def label_sentence(found: RelationFound) -> str:
    """What the labels say where they do not speak of a change."""
    if found.test.status is RelationStatus.CONSTANT_TARGET:
        return f"all of the {found.labels:,} labels are equal: they carry no relation"
    if not found.labels:
        return f"no labels: whether the relation still holds cannot be told ({found.wanted} are wanted)"
    if not found.tested:
        return f"{found.labels:,} of {found.wanted} labels: too few yet to tell whether the relation still holds"
    errors, p = found.errors, p_text(found.p_value)
    if errors.grown:
        return f"{_error_grew(found)} ({found.labels:,} labels, p {_p_text(errors.p_value)}): {_why(found)}"
    beside = f"(p {p}, error {errors.error:.3g}, reference {errors.usual:.3g})"
    if not found.borne_out:
        return f"{found.labels:,} labels: a changed relation is not borne out by the errors of the predictions {beside}"
    return f"{found.labels:,} labels agree with the relation {beside}"


def _why(found: RelationFound) -> str:
    """What labels can say of the cause of errors that have grown."""
    errors = found.errors
    if found.borne_out:
        return f"the labels agree with the relation (p {p_text(found.p_value)})"
    if errors.alike_error is None:
        return (
            "the model may be wrong where inputs have moved to, or the relation has changed: too few labels have "
            f"inputs like the hold-out's to tell (worth {errors.alike or 0.0:.0f}, {ERROR_LABELS} are needed)"
        )
    alike = f"among labels with inputs like the hold-out's it is {errors.alike_error:.3g}"
    if errors.alike_error > ERROR_GROWTH * errors.usual:
        return f"{alike}, which may be chance: more labels would tell whether the relation has changed"
    return f"{alike}, so that the model is wrong where inputs have moved to"


def _p_text(p_value: float | None) -> str:
    return "unknown" if p_value is None else p_text(p_value)


def _remarks(found: RelationFound) -> tuple[str, ...]:
    """What a reader of the new parameters has to know."""
    if found.adaptation is None:
        return ()
    vague = () if found.adaptation.unique else ("the labels leave some parameters open: these are the reference's",)
    return (*vague, *(_NOTES[note] for note in found.adaptation.notes if note in _NOTES))


_NOTES = {
    Note.COLLINEAR_INPUTS: "the inputs of the labelled events do not vary in every direction",
    Note.EMPTY_COMPONENT: "one of the relation's components has no label: its parameters are the reference's",
    Note.NOT_CONVERGED: "the adapted parameters have not converged",
}


def _error_sentence(found: RelationFound) -> tuple[str, ...]:
    if found.errors.error is None or found.corrected_error is None:
        return ()
    after = f", {found.corrected_error:.3g} after correction" if found.helps else ""
    return (f"{_error_grew(found)}{after}",)


def _error_grew(found: RelationFound) -> str:
    errors = found.errors
    went = "grew" if errors.error is not None and errors.error > errors.usual else "went"
    return f"the error of the predictions {went} from {errors.usual:.3g} to {errors.error:.3g}"
