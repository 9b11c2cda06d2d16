"""What of a hold-out's columns a person should look at: strays among numbers, and what is probably no feature.

An identifier or a time among the features is a shift in every window. Nothing is left out because of it: a person is
told, and can say `category`, `number` or `ignore`.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.ports.schema import Feature
from monitor.reference.feature_columns import MISSING_MARKS, Kinds, texts_of
from monitor.windows import Column

MOSTLY = 0.5
"""A column of texts of which more than this share are numbers was meant to be one, or is a code."""
ROWS = 100
"""Of fewer nothing is said."""
NAMES_APART = 0.5
"""A category of which more than this share of the events has a name of its own is an identifier, a text or a time."""
COLLISIONS = 20.0
"""Whole numbers drawn at random would have met as often, where none are equal."""


def column_notices(columns: Iterable[Column], features: Iterable[Feature], kinds: Kinds) -> Iterator[str]:
    """At most one sentence about each column; of those whose kind was said only that they are probably no features."""
    for column, feature in zip(columns, features, strict=True):
        stray = stray_text(column, feature) if kinds.of(feature.name) is None else None
        if notice := stray or likely_identifier(column, feature):
            yield notice


def likely_identifier(column: Column, feature: Feature) -> str | None:
    """A sentence about a column that tells rows apart, or counts them."""
    what = None
    if feature.kind == "category":
        what = _names_apart([text for text in texts_of(column) if text is not None])
    elif feature.kind == "number" and column.dtype.kind == "f":
        what = _numbers_apart(column[np.isfinite(column)])
    return None if what is None else f"{feature.name} {what}: is it {_IDENTIFIER}"


def _names_apart(names: Sequence[str]) -> str | None:
    different = len(set(names))
    if len(names) < ROWS or different <= NAMES_APART * len(names):
        return None
    return f"has {different:,} different values in {len(names):,} events"


def _numbers_apart(values: Vector) -> str | None:
    if values.size < ROWS:
        return None
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return "goes one way from row to row, as times and counters do"
    whole = bool((values == np.rint(values)).all())
    if whole and values.size**2 / (2 * (np.ptp(values) + 1)) > COLLISIONS and np.unique(values).size == values.size:
        return "is another whole number in every event"
    return None


_IDENTIFIER = "a feature? If it is an identifier, a time or free text, leave it out (ignore)"


def likely_labels(features: tuple[Feature, ...], table: Matrix | None, labels: Labels, classes: int) -> list[str]:
    """A sentence about each column that says of every event what its label is."""
    if table is None or labels.size < ROWS:
        return []
    notices = []
    for feature, column in zip(features, table.T, strict=True):
        if np.unique(column[:ROWS]).size > classes or np.isnan(column).any():
            continue
        values, codes = np.unique(column, return_inverse=True)
        if values.size == classes and np.unique(codes * classes + labels).size == classes:
            notices.append(f"{feature.name} tells the label of every event: if it is the label, leave it out (ignore)")
    return notices


def stray_text(column: Column, feature: Feature) -> str | None:
    """The text that makes categories of a column of numbers, with its row."""
    if feature.kind != "category" or column.dtype.kind != "O":
        return None
    present = [(row, text) for row, text in enumerate(texts_of(column), start=1) if text is not None]
    strays = [(row, text) for row, text in present if text not in MISSING_MARKS and not _is_number(text)]
    if not strays or len(strays) > (1 - MOSTLY) * len(present):
        return None
    row, text = strays[0]
    return (
        f"{feature.name} is taken as a category, as {text!r} in row {row:,} is no number; "
        f"{len(present) - len(strays):,} of its {len(present):,} values are: say that it is a category, or mend the row"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
