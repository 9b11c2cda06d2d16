"""What a person should know before a reference is believed: found while it was built, kept with it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from monitor.arrays import Labels, Matrix
from monitor.ports.schema import StreamSchema
from monitor.quality import log_losses
from monitor.reference.class_order import fitting_columns
from monitor.tolerances import SORTED_BY_CLASS, WORSE_THAN_SHARES

Cause = Literal["classes-exchanged", "decisions", "worse-than-class-shares", "sorted-by-class", "one-block", "features"]


@dataclass(frozen=True, slots=True)
class ReferenceWarning:
    """One thing to look at; `Reference.warnings` has them all."""

    cause: Cause
    text: str


def of_scores(scores: Matrix, labels: Labels, schema: StreamSchema) -> list[ReferenceWarning]:
    """All that the uncalibrated scores give reason for."""
    given = [exchanged_classes(scores, labels, schema)]
    if not schema.margins:
        given.append(decisions(scores) or worse_than_class_shares(scores, labels))
    return [warning for warning in given if warning is not None]


def exchanged_classes(scores: Matrix, labels: Labels, schema: StreamSchema) -> ReferenceWarning | None:
    """A warning that names the order of columns that would fit, where another one than theirs does."""
    classes = schema.classes
    columns = fitting_columns(scores, labels, margins=schema.margins)
    moved = [c for c, column in enumerate(columns) if column != c]
    if not moved:
        return None
    fitting = [classes[columns.index(k)] for k in range(len(classes))]
    pairs = ", ".join(f"the column of {classes[columns[c]]} fits {classes[c]}" for c in moved)
    if schema.margins:
        text = f"the margins look exchanged: {pairs}. The order that fits is {', '.join(fitting)}"
        return ReferenceWarning("classes-exchanged", text)
    text = (
        f"the columns of the posteriors look exchanged: {pairs}. As named, the log loss is "
        f"{_loss(scores, labels):.3g}; with the columns as {', '.join(fitting)} it is "
        f"{_loss(scores[:, list(columns)], labels):.3g}; always saying the class shares gives "
        f"{_entropy(labels, len(classes)):.3g}"
    )
    return ReferenceWarning("classes-exchanged", text)


def decisions(posteriors: Matrix) -> ReferenceWarning | None:
    """A warning where every score is 0 or 1."""
    if not np.isin(posteriors, (0.0, 1.0)).all():
        return None
    text = (
        "every score is 0 or 1: these are decisions and no probabilities, of which little can be learnt; "
        "send what `predict_proba` says"
    )
    return ReferenceWarning("decisions", text)


def worse_than_class_shares(posteriors: Matrix, labels: Labels) -> ReferenceWarning | None:
    """A warning where the class shares alone predict better than what the model says, beyond chance."""
    losses = log_losses(posteriors, labels)
    entropy = _entropy(labels, posteriors.shape[1])
    if losses.mean() - entropy <= WORSE_THAN_SHARES * losses.std() / np.sqrt(losses.size):
        return None
    text = (
        f"as it comes, the model says less than always saying the class shares: log loss {losses.mean():.3g} against "
        f"{entropy:.3g}. Calibration mends posteriors that are too bold; it does not mend rows or columns that do not "
        "belong together"
    )
    return ReferenceWarning("worse-than-class-shares", text)


def sorted_by_class(counts: Matrix) -> ReferenceWarning | None:
    """A warning where blocks of the hold-out, one a row of class counts, have hardly more than one class each."""
    mixed = 1.0 - ((counts / counts.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    within = float(np.average(mixed, weights=counts.sum(axis=1)))
    totals = counts.sum(axis=0)
    if within >= SORTED_BY_CLASS * (1.0 - float(((totals / totals.sum()) ** 2).sum())):
        return None
    text = (
        "most blocks have hardly more than one class: the rows look sorted by label, not by time. Any class mix then "
        "counts as usual, and no move of it is seen; give rows as they came, or their times"
    )
    return ReferenceWarning("sorted-by-class", text)


def one_block(length: str) -> ReferenceWarning:
    """The warning where the hold-out is not longer than a block."""
    text = (
        f"the hold-out makes no two blocks of {length}: how windows differ by nature is guessed from shorter stretches "
        "of it, or where it has too few events not known at all; want shorter blocks, or a longer hold-out"
    )
    return ReferenceWarning("one-block", text)


def _loss(posteriors: Matrix, labels: Labels) -> float:
    return float(log_losses(posteriors, labels).mean())


def _entropy(labels: Labels, classes: int) -> float:
    """The log loss of the class shares."""
    shares = np.bincount(labels, minlength=classes) / labels.size
    return float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum())
