"""From what people have to columns of numbers: class names, labels, and feature columns of any kind.

Everything that guesses lives here, and guesses once: the schema that comes out is what every later event is held
to. A category becomes its number in the schema's list; one past the end stands for a value outside the list; a
missing value is NaN whatever the kind.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import UNLABELLED, Labels, Matrix, Vector
from monitor.errors import InputError
from monitor.events.schema import Feature
from monitor.limits import CATEGORIES_KEPT
from monitor.tolerances import POSTERIOR_SUM


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


def plain_list(values: ArrayLike) -> list[Any]:
    """A one-dimensional column as Python values."""
    column = values if isinstance(values, np.ndarray) else np.asarray(values, dtype=object)
    if column.ndim != 1:
        raise InputError(f"labels: want one per event, got shape {column.shape}")
    return list(column.tolist())


def describe_features(table: Any, names: Iterable[str] | None) -> tuple[Feature, ...]:
    """The name and kind of each column of a matrix or data frame."""
    columns = feature_columns(table)
    given = names if names is not None else getattr(table, "columns", None)
    listed = tuple(str(n) for n in given) if given is not None else tuple(f"x{j}" for j in range(len(columns)))
    if len(listed) != len(columns) or len(set(listed)) != len(listed):
        raise InputError(f"feature_names: want {len(columns)} distinct names, got {listed}")
    return tuple(describe(name, column) for name, column in zip(listed, columns, strict=True))


def feature_columns(table: Any) -> list[Any]:
    """The columns of a matrix, a list of rows, or a data frame."""
    if hasattr(table, "columns") and hasattr(table, "iloc"):
        return [np.asarray(table.iloc[:, j]) for j in range(table.shape[1])]
    matrix = table if isinstance(table, np.ndarray) else np.asarray(table, dtype=object)
    if matrix.ndim != 2:
        raise InputError(f"features: want shape (events, features), got {matrix.shape}")
    return [matrix[:, j] for j in range(matrix.shape[1])]


def describe(name: str, column: Any) -> Feature:
    """A column of numbers, of true and false, or of names; the most frequent names are its categories."""
    if np.asarray(column).dtype.kind in "fiu":
        return Feature(name)
    if np.asarray(column).dtype.kind == "b":
        return Feature(name, "boolean", BOOLEAN)
    present = [value for value in column if not is_missing(value)]
    if all(isinstance(value, bool | np.bool_) for value in present) and present:
        return Feature(name, "boolean", BOOLEAN)
    if not any(isinstance(value, str) for value in present):
        return Feature(name)
    counts: dict[str, int] = {}
    for value in present:
        counts[str(value)] = counts.get(str(value), 0) + 1
    frequent = sorted(counts, key=lambda category: (-counts[category], category))[:CATEGORIES_KEPT]
    return Feature(name, "category", tuple(sorted(frequent)))


BOOLEAN = ("false", "true")


def encode(column: Any, feature: Feature) -> Vector:
    """One feature's column as numbers."""
    if np.asarray(column).dtype.kind in "fiub":
        return np.asarray(column, dtype=np.float64)
    if feature.kind != "category":
        try:
            return np.array([np.nan if is_missing(v) else float(v) for v in column], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"feature {feature.name}: want numbers, got {error}") from error
    codes = {category: float(code) for code, category in enumerate(feature.categories)}
    unseen = float(len(feature.categories))
    return np.array([np.nan if is_missing(v) else codes.get(str(v), unseen) for v in column], dtype=np.float64)


def encode_table(table: Any, features: tuple[Feature, ...]) -> Matrix:
    """All features of a table as one matrix, in the order of the schema."""
    columns = feature_columns(table)
    if len(columns) != len(features):
        raise InputError(f"features: want {len(features)} columns, got {len(columns)}")
    return np.column_stack([encode(column, feature) for column, feature in zip(columns, features, strict=True)])


def is_missing(value: Any) -> bool:
    """None and NaN, which alone differs from itself."""
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124
