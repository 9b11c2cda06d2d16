"""From what people have to posteriors and class numbers. Names of classes are guessed once, here."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import UNLABELLED, Labels, Matrix
from monitor.errors import InputError
from monitor.tolerances import POSTERIOR_SUM
from monitor.windows import Columns, is_frame, is_missing


def unnamed_posteriors(posteriors: Any) -> tuple[Any, tuple[str, ...] | None]:
    """Posteriors as an array, and the names of their columns if they come as a data frame that has names."""
    if not is_frame(posteriors):
        return posteriors, None
    columns = Columns.of(posteriors, "posteriors")
    return np.column_stack(columns.values), columns.names


def checked_posteriors(values: ArrayLike, least: int = 2) -> Matrix:
    """Posteriors as a matrix that sums to one per row; a vector is the second of two classes' posterior."""
    given = np.asarray(values, dtype=np.float64)
    matrix = np.column_stack([1.0 - given, given]) if given.ndim == 1 else given
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(f"posteriors: want shape (events, classes) with at least two classes, got {given.shape}")
    if matrix.shape[0] < least:
        raise InputError(f"posteriors: want at least {least} events, got {matrix.shape[0]}")
    sums = matrix.sum(axis=1)
    for problem, bad in (
        ("are NaN or infinite", ~np.isfinite(sums)),
        ("are negative", np.isfinite(sums) & (matrix < 0).any(axis=1)),
        (f"do not sum to 1 within {POSTERIOR_SUM}", np.isfinite(sums) & (np.abs(sums - 1) > POSTERIOR_SUM)),
    ):
        if bad.any():
            raise InputError(f"posteriors: {int(bad.sum())} rows {problem}, the first is row {int(bad.argmax())}")
    return np.asarray(matrix / sums[:, None])


def class_names(labels: Sequence[Any], classes: Iterable[Any] | None, columns: int) -> tuple[str, ...]:
    """The classes in posterior order: as given, else the sorted labels, which is what scikit-learn's models use."""
    if classes is not None:
        names = tuple(str(name) for name in classes)
        if len(names) != columns:
            raise InputError(f"classes: want one for each of the {columns} columns of the posteriors, got {len(names)}")
        if len(set(names)) != len(names):
            raise InputError(f"classes: want distinct names, got {names}")
        return names
    seen = {label for label in labels if not is_missing(label)}
    if len(seen) == columns:
        return tuple(str(name) for name in sorted(seen))
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


def class_numbers(labels: Sequence[Any], names: tuple[str, ...]) -> Labels:
    """Each label's class number. Labels are class names; whole numbers that are not names are class numbers."""
    numbers = {name: number for number, name in enumerate(names)}
    missing = [row for row, label in enumerate(labels) if is_missing(label) or str(label) == ""]
    if missing:
        raise InputError(f"labels: {len(missing)} are missing, the first in row {missing[0]}; a reference needs all")
    seen = set(labels)
    if all(isinstance(label, int) for label in seen) and not {str(label) for label in seen} <= numbers.keys():
        numbers = {str(number): number for number in range(len(names))}
        if UNLABELLED in seen:
            raise InputError(f"labels: {sum(label == UNLABELLED for label in labels)} are missing ({UNLABELLED})")
    unseen = sorted({str(label) for label in seen} - numbers.keys())
    if unseen:
        raise InputError(f"labels: {unseen[:5]} are not among the classes {list(names)}")
    lookup = {label: numbers[str(label)] for label in seen}
    return np.fromiter((lookup[label] for label in labels), dtype=np.int64, count=len(labels))


def plain_list(values: Any) -> list[Any]:
    """A one-dimensional column as Python values."""
    series = values.to_numpy() if hasattr(values, "to_numpy") else values
    column = series if isinstance(series, np.ndarray) else np.asarray(series, dtype=object)
    if column.ndim != 1:
        raise InputError(f"labels: want one per event, got shape {column.shape}")
    return list(column.tolist())
