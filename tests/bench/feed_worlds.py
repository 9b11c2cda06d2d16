"""Worlds and models for the study of the feed: what a class looks like, what moves, and models that score it.

A class is two normal clouds in six correlated features, so that naive Bayes and forests are far from calibrated, as
they are in practice. A covariate shift is real: rows are drawn with weights that depend on one feature alone, and the
relation of label to features stays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor.arrays import Labels, Matrix, Vector
from monitor.shifts.trees import VersatileForestClassifier, VersatileTreeClassifier

FEATURES = 6
NAMES = tuple(f"x{j}" for j in range(FEATURES))
TILTS = (0.1, 0.25, 0.5, 1.0)
"""How far a real covariate shift moves the mean of x0, in its standard deviations."""
SHIFTS = ("none", "prior", *(f"covariate {tilt:g} sd" for tilt in TILTS), "concept", "unit", "unit declared")

MODELS: Mapping[str, Callable[[int], Any]] = {
    "logistic": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "naive Bayes": lambda seed: GaussianNB(),
    "forest": lambda seed: RandomForestClassifier(60, random_state=seed),
    "boosted trees": lambda seed: HistGradientBoostingClassifier(max_iter=60, random_state=seed),
    "network": lambda seed: make_pipeline(
        StandardScaler(), MLPClassifier((64, 64), max_iter=120, n_iter_no_change=120, random_state=seed)
    ),
    "versatile tree": lambda seed: VersatileTreeClassifier(max_depth=8, min_samples_leaf=20, random_state=seed),
    "versatile forest": lambda seed: VersatileForestClassifier(15, max_depth=9, random_state=seed),
}


@dataclass(frozen=True)
class World:
    """Where the classes lie."""

    centres: np.ndarray
    """By class and cloud."""
    mixing: Matrix
    priors: Vector

    @classmethod
    def made(cls, classes: int, seed: int) -> "World":
        """Some world."""
        rng = np.random.default_rng([20, classes, seed])
        centres = rng.normal(scale=1.1, size=(classes, 2, FEATURES))
        mixing = np.eye(FEATURES) + 0.45 * rng.normal(size=(FEATURES, FEATURES))
        priors = rng.dirichlet(np.full(classes, 8.0))
        return cls(centres, mixing, priors)

    def rows(self, count: int, rng: np.random.Generator, priors: Vector | None = None) -> tuple[Matrix, Labels]:
        """Features and labels at some class mix."""
        labels = rng.choice(self.priors.size, count, p=self.priors if priors is None else priors)
        centres = self.centres[labels, rng.integers(0, 2, count)]
        return (centres + rng.normal(size=(count, FEATURES))) @ self.mixing, labels

    def shifted(self, shift: str, count: int, rng: np.random.Generator) -> tuple[Matrix, Labels]:
        """Two windows' worth of rows after a shift; a class mix is drawn anew with every call."""
        if shift == "prior":
            return self.rows(count, rng, rng.dirichlet(np.ones(self.priors.size)))
        if shift.startswith("covariate"):
            return self._tilted(float(shift.split()[1]), count, rng)
        x, labels = self.rows(count, rng)
        if shift == "concept":
            # Half of the events of one class are called the next one, beyond a line.
            moved = (labels == 0) & (x[:, 1] > np.median(x[:, 1]))
            labels = np.where(moved, 1, labels)
        if shift.startswith("unit"):
            x[:, 0] = 2.54 * x[:, 0] + 1.0
        return x, labels

    def _tilted(self, by: float, count: int, rng: np.random.Generator) -> tuple[Matrix, Labels]:
        """Rows with weights that depend on x0 alone, so that its mean moves and p(y | x) does not."""
        x, labels = self.rows(12 * count, rng)
        z = (x[:, 0] - x[:, 0].mean()) / x[:, 0].std()
        low, high = 0.0, 10.0
        for _ in range(40):
            middle = (low + high) / 2
            weights = np.exp(middle * z - middle * z.max())
            low, high = (middle, high) if weights @ z < by * weights.sum() else (low, middle)
        taken = rng.choice(z.size, count, p=weights / weights.sum())
        return x[taken], labels[taken]
