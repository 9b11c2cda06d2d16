"""Data for the tree experiments: Breiman's generators and tables out of a folder."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

DIMENSIONS = 20


def ringnorm(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Class 1 is N(0, 4 I), class 2 is N(a, I) with a = 2 / sqrt(20) everywhere (Breiman 1996)."""
    y = random.integers(0, 2, rows)
    a = 2 / np.sqrt(DIMENSIONS)
    X = random.normal(size=(rows, DIMENSIONS))
    return np.where(y[:, None] == 0, 2 * X, X + a), y


def threenorm(random: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Class 1 is N(a, I) or N(-a, I), class 2 is N((a, -a, a, ...), I), a = 2 / sqrt(20) (Breiman 1996)."""
    y = random.integers(0, 2, rows)
    a = 2 / np.sqrt(DIMENSIONS)
    signs = np.where(random.random(rows) < 0.5, 1.0, -1.0)[:, None]
    alternating = np.where(np.arange(DIMENSIONS) % 2 == 0, 1.0, -1.0)
    return random.normal(size=(rows, DIMENSIONS)) + a * np.where(y[:, None] == 0, signs, alternating), y


def from_folder(folder: Path, skip: set[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Every CSV whose numeric columns come before a class column; abalone's classes are thirds of its rings."""
    for path in sorted(folder.glob("*.csv")):
        if path.stem not in skip:
            with path.open(newline="") as file:
                rows = [row for row in csv.reader(file) if row]
            rows = rows if _numbers(rows[0][-2:-1]) else rows[1:]
            numeric = [j for j in range(len(rows[0]) - 1) if _numbers([row[j] for row in rows])]
            features = np.array([[float(row[j]) for j in numeric] for row in rows])
            target = np.array([row[-1] for row in rows])
            if path.stem == "abalone":
                rings = target.astype(float)
                labels = np.digitize(rings, np.quantile(rings, [1 / 3, 2 / 3]))
            else:
                labels = np.unique(target, return_inverse=True)[1]
            frequent = np.bincount(labels)[labels] >= 10  # five folds need a few of each class
            yield path.stem, features[frequent], labels[frequent]


def _numbers(cells: list[str]) -> bool:
    try:
        return bool(np.isfinite([float(cell) for cell in cells]).all())
    except ValueError:
        return False
