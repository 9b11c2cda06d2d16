"""Real data sets whose rows are exchanged at random, so that nothing shifts but what the bench shifts; and models."""

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor.arrays import Labels, Matrix

MODELS: Mapping[str, Callable[[], Any]] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "naive Bayes": GaussianNB,
    "forest": lambda: RandomForestClassifier(40, min_samples_leaf=3, random_state=0, n_jobs=1),
    "boosting": lambda: HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=0),
}
TRAINED, HELD_OUT, WINDOW = 4_000, 2_000, 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A data set split at random, scored by a model that was trained on a quarter of it."""

    hold_out: Matrix
    labels: Labels
    pool: Matrix
    """Scores of the rows that windows are drawn from, and"""
    truth: Labels


def _digits(_: Path) -> tuple[Matrix, Labels]:
    data = load_digits()
    return data.data, data.target


def _even_digits(_: Path) -> tuple[Matrix, Labels]:
    data = load_digits()
    return data.data, data.target % 2


def _phoneme(folder: Path) -> tuple[Matrix, Labels]:
    return _numbers(folder / "phoneme.csv", 0)


def _weather(folder: Path) -> tuple[Matrix, Labels]:
    return _numbers(folder / "weather.csv", 1)


def _abalone(folder: Path) -> tuple[Matrix, Labels]:
    rows = [line.split(",") for line in (folder / "abalone.csv").read_text(encoding="utf-8").split()]
    inputs = np.array([[row[0] == "M", row[0] == "F", *map(float, row[1:-1])] for row in rows], dtype=np.float64)
    return inputs, np.digitize([int(row[-1]) for row in rows], [9, 11])


def _numbers(path: Path, heads: int) -> tuple[Matrix, Labels]:
    table = np.loadtxt(path, delimiter=",", skiprows=heads)
    return table[:, :-1], table[:, -1].astype(np.int64)


def _air(folder: Path) -> tuple[Matrix, Labels]:
    inputs, labels = [], []
    with (folder / "streams" / "pm25.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["pm2.5"] != "NA":
                inputs.append([float(row[name]) for name in ("month", "hour", "DEWP", "TEMP", "PRES", "Iws")])
                labels.append(int(float(row["pm2.5"]) > 75))
    return np.array(inputs), np.array(labels)


DATA: Mapping[str, Callable[[Path], tuple[Matrix, Labels]]] = {
    "digits, even or odd": _even_digits,
    "digits": _digits,
    "phoneme": _phoneme,
    "weather": _weather,
    "abalone": _abalone,
    "PM2.5": _air,
}


def unit(name: str, model: str, folder: Path, seed: int) -> Unit:
    """One split of a data set."""
    inputs, labels = DATA[name](folder)
    order = np.random.default_rng(seed).permutation(labels.size)
    inputs, labels = inputs[order], labels[order]
    trained, held = min(labels.size // 4, TRAINED), min(labels.size // 4, HELD_OUT)
    fitted = MODELS[model]().fit(inputs[:trained], labels[:trained])
    scores = fitted.predict_proba(inputs[trained : trained + held + 8 * WINDOW])
    truth = labels[trained : trained + held + 8 * WINDOW]
    return Unit(scores[:held], truth[:held], scores[held:], truth[held:])


def windows(one: Unit, shifted: bool, many: int, seed: int) -> Iterator[tuple[Matrix, Labels]]:
    """Windows without a shift, or each under a class mix of its own."""
    rng = np.random.default_rng((seed, shifted))
    classes = one.hold_out.shape[1]
    members = [np.flatnonzero(one.truth == y) for y in range(classes)]
    size = min(WINDOW, one.truth.size // 2)
    for _ in range(many):
        if not shifted:
            rows = rng.choice(one.truth.size, size, replace=False)
        else:
            mix = 0.7 * rng.dirichlet(np.full(classes, 2.0)) + 0.3 * np.bincount(one.truth) / one.truth.size
            counts = rng.multinomial(size, mix)
            rows = np.concatenate(
                [rng.choice(rows, min(n, rows.size), replace=False) for rows, n in zip(members, counts, strict=True)]
            )
        yield one.pool[rows], one.truth[rows]
