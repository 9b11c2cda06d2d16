"""From what people have to scores and class numbers. Names of classes are guessed once, here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import UNLABELLED, Labels, Matrix, Vector
from monitor.errors import InputError
from monitor.events import likely_scores, sum_tolerance, whole_number
from monitor.limits import LARGEST_MARGIN
from monitor.windows import Columns, is_frame, is_missing


@dataclass(frozen=True, slots=True, eq=False)
class ReadScores:
    """A column of scores for each class."""

    matrix: Matrix
    classes: tuple[str, ...]
    positive: str | None


def read_scores(
    given: Any, labels: Sequence[Any], classes: Iterable[Any] | None, positive: str | None, *, margins: bool
) -> ReadScores:
    """Scores of any form, and whose they are: by `classes`, else by the names of a data frame, else the sorted labels.

    A vector is that of `positive`, else of the second of `classes`, else of the class whose name says it.
    """
    columns = Columns.of(given, "posteriors") if is_frame(given) else None
    scores = np.asarray(given if columns is None else np.column_stack(columns.values), dtype=np.float64)
    said = None if classes is None else tuple(classes)
    if scores.ndim == 1 or scores.shape[1:] == (1,):
        return _of_vector(scores.ravel(), labels, said, positive, margins=margins)
    matrix = checked_margins(scores) if margins else checked_posteriors(scores)
    names = class_names(labels, said if columns is None or said is not None else columns.names, matrix.shape[1])
    if positive is not None and positive not in names:
        raise InputError(f"positive: want one of the classes {list(names)}, got {positive!r}")
    return ReadScores(matrix, names, positive or (positive_by_name(names) if len(names) == 2 else None))


def _of_vector(
    scores: Vector, labels: Sequence[Any], classes: tuple[Any, ...] | None, positive: str | None, *, margins: bool
) -> ReadScores:
    seen = len({str(label) for label in labels if not is_missing(label)})
    if classes is None and seen > 2:
        raise InputError(f"posteriors: one number for each event is of two classes; want a column for each of {seen}")
    names = class_names(labels, classes, 2)
    meant = positive or (positive_by_name(names) if classes is None else names[1])
    if meant is None:
        raise InputError(
            f"posteriors: is one number for each event that of {names[0]} or of {names[1]}? Say "
            f"positive={names[0]!r} or positive={names[1]!r}"
        )
    if meant not in names:
        raise InputError(f"positive: want one of the classes {list(names)}, got {positive!r}")
    if classes is None and meant == names[0]:
        names = names[::-1]
    if margins and meant == names[0]:
        raise InputError(f"margins: one number is the second class's; want {meant} as the second of the classes")
    columns = [s if name == meant else (-s if margins else 1.0 - s) for name in names for s in (scores,)]
    matrix = np.column_stack(columns)
    return ReadScores(checked_margins(matrix) if margins else checked_posteriors(matrix), names, meant)


def checked_margins(values: ArrayLike, least: int = 2, first_row: int = 0) -> Matrix:
    """Margins as a matrix of numbers, one column for each class."""
    matrix = _of_classes(values, least)
    bad = ~(np.abs(matrix) <= LARGEST_MARGIN).all(axis=1)
    if bad.any():
        problem = f"are NaN, infinite or beyond {LARGEST_MARGIN:.0e}"
        raise InputError(f"margins: {int(bad.sum())} rows {problem}, the first is row {first_row + int(bad.argmax())}")
    return matrix


def checked_posteriors(values: ArrayLike, least: int = 2, first_row: int = 0) -> Matrix:
    """Posteriors as a matrix that sums to one per row."""
    matrix = _of_classes(values, least)
    sums = matrix.sum(axis=1)
    near = sum_tolerance(matrix.shape[1])
    for problem, bad in (
        ("are NaN or infinite", ~np.isfinite(sums)),
        ("are negative", np.isfinite(sums) & (matrix < 0).any(axis=1)),
        (f"do not sum to 1 within {near:.4g}", np.isfinite(sums) & (np.abs(sums - 1) > near)),
    ):
        if bad.any():
            row, hint = first_row + int(bad.argmax()), likely_scores(matrix[int(bad.argmax())])
            raise InputError(f"posteriors: {int(bad.sum())} rows {problem}, the first is row {row}{hint}")
    return np.asarray(matrix / sums[:, None])


def _of_classes(values: ArrayLike, least: int) -> Matrix:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(f"posteriors: want shape (events, classes) with at least two classes, got {matrix.shape}")
    if matrix.shape[0] < least:
        raise InputError(f"posteriors: want at least {least} events, got {matrix.shape[0]}")
    return matrix


def class_names(labels: Sequence[Any], classes: Iterable[Any] | None, columns: int) -> tuple[str, ...]:
    """The classes in posterior order: as given, else the sorted labels, which is what scikit-learn's models use."""
    if classes is not None:
        names = tuple(label_text(name) for name in classes)
        if len(names) != columns:
            raise InputError(f"classes: want one for each of the {columns} columns of the posteriors, got {len(names)}")
        if len(set(names)) != len(names):
            raise InputError(f"classes: want distinct names, got {names}")
        return names
    seen = {label for label in labels if not is_missing(label)}
    if len(seen) == columns:
        return tuple(label_text(name) for name in sorted(seen))
    if len(seen) > 1 and all(isinstance(label, int) and 0 <= label < columns for label in seen):
        return tuple(str(number) for number in range(columns))
    raise InputError(
        f"labels: {len(seen)} different ones for {columns} columns of posteriors; "
        "want labelled events of every class, or `classes` to say which column is which"
    )


POSITIVE = frozenset({"true", "t", "yes", "y", "positive", "pos"})
NEGATIVE = frozenset({"0", "-1", "false", "f", "no", "n", "negative", "neg"})


def positive_by_name(names: tuple[str, ...]) -> str | None:
    """Which of two classes a bare score is the probability of, where their names say it: 1 beside 0, yes, true."""
    for name, other in (names, names[::-1]):
        says_yes = name.lower() in POSITIVE and other.lower() not in POSITIVE
        if says_yes or (other.lower() in NEGATIVE and name.lower() not in NEGATIVE):
            return name
    return None


def class_numbers(labels: Sequence[Any], names: tuple[str, ...], first_row: int = 0) -> Labels:
    """Each label's class number. Labels are class names; whole numbers that are not names are class numbers.

    An error counts rows from `first_row` on.
    """
    numbers = {name: number for number, name in enumerate(names)}
    for number, name in enumerate(names):
        if (whole := whole_number(name)) is not None:
            numbers.setdefault(whole, number)
    missing = [row for row, label in enumerate(labels) if is_missing(label) or str(label) == ""]
    if missing:
        row = first_row + missing[0]
        raise InputError(f"labels: {len(missing)} are missing, the first in row {row}; a reference needs all")
    seen = set(labels)
    if all(isinstance(label, int) for label in seen) and not {str(label) for label in seen} <= numbers.keys():
        numbers = {str(number): number for number in range(len(names))}
        if UNLABELLED in seen:
            raise InputError(f"labels: {sum(label == UNLABELLED for label in labels)} are missing ({UNLABELLED})")
    unseen = sorted({label_text(label) for label in seen} - numbers.keys())
    if unseen:
        raise InputError(f"labels: {unseen[:5]} are not among the classes {list(names)}")
    lookup = {label: numbers[label_text(label)] for label in seen}
    return np.fromiter((lookup[label] for label in labels), dtype=np.int64, count=len(labels))


def label_text(label: Any) -> str:
    """A class's name: 1 for 1 and for 1.0, as whole numbers come where a column once had missing values."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def out_of_line(**tables: Any) -> list[str]:
    """A sentence about each table whose rows have the index (of pandas) of the first one's in another order."""
    named = [(what, table.index) for what, table in tables.items() if hasattr(getattr(table, "index", None), "equals")]
    return [
        f"{named[0][0]} and {what} have the same index in another order: rows are taken as they stand, one by one"
        for what, index in named[1:]
        if not index.equals(named[0][1]) and set(index.tolist()) == set(named[0][1].tolist())
    ]


def plain_list(values: Any) -> list[Any]:
    """A one-dimensional column as Python values."""
    series = values.to_numpy() if hasattr(values, "to_numpy") else values
    column = series if isinstance(series, np.ndarray) else np.asarray(series, dtype=object)
    if column.ndim != 1:
        raise InputError(f"labels: want one per event, got shape {column.shape}")
    return list(column.tolist())
