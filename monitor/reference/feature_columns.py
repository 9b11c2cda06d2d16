"""Feature columns of any kind: what each of them is, and how its values become numbers.

Everything that guesses about features lives here, and guesses once: the features that come out are what every later
event is held to. A category becomes its number in the feature's list; one past the end stands for a value outside the
list; a missing value is NaN whatever the kind.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.errors import InputError
from monitor.limits import CATEGORIES_KEPT
from monitor.ports.schema import Feature, FeatureKind, category_text
from monitor.windows import Column, Columns, is_missing

BOOLEAN = ("false", "true")

MISSING_MARKS = frozenset({"NA", "N/A", "n/a", "#N/A", "<NA>", "NULL", "null", "None", "NaN", "nan"})
"""What programs write for a missing value. Among names it may be one (Namibia), among numbers it is none."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """What the caller says of features, by name, beyond what their values say."""

    category: tuple[str, ...] = ()
    number: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def of(self, name: str) -> FeatureKind | None:
        """What a feature is said to be; None where nothing is said."""
        return "category" if name in self.category else "number" if name in self.number else None

    def check(self, names: Iterable[str]) -> None:
        """Every name is one of these, and said once."""
        known, said = list(names), [*self.category, *self.number, *self.ignore]
        if unknown := sorted(set(said) - set(known)):
            raise InputError(f"category, number, ignore: no feature is named {unknown}; there are {known}")
        if twice := sorted(name for name, times in Counter(said).items() if times > 1):
            raise InputError(f"category, number, ignore: {twice} are said more than once")


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Described features and their values."""

    features: tuple[Feature, ...]
    values: Matrix
    columns: tuple[Column, ...]
    """As they came."""


def read_features(table: Any, names: Iterable[str] | None, kinds: Kinds) -> FeatureTable:
    """The features of a matrix, a list of rows or a data frame: what they are, and their values as a matrix."""
    columns = Columns.of(table, "features")
    width = len(columns.values)
    listed = tuple(names) if names is not None else columns.names or tuple(f"x{j}" for j in range(width))
    if len(listed) != width or len(set(listed)) != width:
        raise InputError(f"feature_names: want {width} distinct names, got {listed}")
    kinds.check(listed)
    kept = [(name, column) for name, column in zip(listed, columns.values, strict=True) if name not in kinds.ignore]
    if not kept:
        raise InputError("features: none is left; want at least one, or no features at all")
    features = tuple(describe(name, column, kinds.of(name)) for name, column in kept)
    encoded = [encode(column, feature) for (_, column), feature in zip(kept, features, strict=True)]
    return FeatureTable(features, np.column_stack(encoded), tuple(column for _, column in kept))


def describe(name: str, column: Column, kind: FeatureKind | None = None) -> Feature:
    """A column of numbers, of true and false, or of names; the most frequent names are its categories."""
    kind = kind or kind_of(column)
    if kind == "number":
        return Feature(name)
    if kind == "boolean":
        return Feature(name, "boolean", BOOLEAN)
    return Feature(name, "category", most_frequent(Counter(texts_of(column))))


def kind_of(column: Column) -> FeatureKind:
    """The kind of a feature, by the values themselves."""
    if column.dtype.kind in "fiu":
        return "number"
    if column.dtype.kind == "b":
        return "boolean"
    return "boolean" if any(isinstance(value, bool) for value in column) else "category"


def most_frequent(counts: Counter[str | None]) -> tuple[str, ...]:
    """The categories that are told apart."""
    seen = [name for name in counts if name is not None]
    frequent = sorted(seen, key=lambda name: (-counts[name], name))[:CATEGORIES_KEPT]
    return tuple(sorted(frequent))


def texts_of(column: Column) -> list[str | None]:
    """Each value as the name of a category; None where it is missing."""
    return [None if is_missing(value) or value == "" else category_text(value) for value in column.tolist()]


def encode(column: Column, feature: Feature, first_row: int = 0) -> Vector:
    """One feature's column as numbers. An error names the row, counted from 1 at the start of what is being read."""
    if feature.kind == "category":
        codes: dict[str | None, float] = {name: float(code) for code, name in enumerate(feature.categories)}
        codes[None] = np.nan
        return np.array([codes.get(text, float(len(feature.categories))) for text in texts_of(column)])
    if column.dtype.kind != "O":
        return np.asarray(column, dtype=np.float64)
    truth = {"true": 1.0, "false": 0.0} if feature.kind == "boolean" else {}
    numbers = np.full(column.size, np.nan)
    for row, value in enumerate(column.tolist()):
        if not is_missing(value):
            numbers[row] = _number(value, truth, feature, first_row + row + 1)
    return numbers


def guessed(texts: Sequence[str | None]) -> Column:
    """A column of a file that knows nothing but text, as what it says: numbers, true and false, or names.

    A zero in front of other digits is part of a name: numbers are not written so, codes are.
    """
    as_text = np.array([*texts], dtype=object)
    marked = [None if text in MISSING_MARKS else text for text in texts]
    present = [text for text in marked if text is not None]
    if present and {text.lower() for text in present} <= set(BOOLEAN):
        return np.array([None if text is None else text.lower() == "true" for text in marked], dtype=object)
    if any(text[:1] == "0" and text[1:2].isdigit() for text in present):
        return as_text
    try:
        return np.array([np.nan if text is None else float(text) for text in marked])
    except ValueError:
        return as_text


def _number(value: Any, truth: dict[str, float], feature: Feature, row: int) -> float:
    if isinstance(value, str) and value in MISSING_MARKS:
        return np.nan
    try:
        return truth[value.lower()] if isinstance(value, str) and value.lower() in truth else float(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"feature {feature.name}: want numbers, got {value!r} in row {row:,}") from error
