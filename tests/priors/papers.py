"""The papers' synthetic problems, for the tests of the estimators and for the reproduction of the papers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import ESTIMATORS
from monitor.windows.window import Window
from tests.priors.doubles import PlainReference

MIXED_CLASSES = 5
SPREAD = 6.0  # of the centres, for unit noise: classes that are easy to tell apart, as in the paper
FAR = 40.0


def one_dimension(seed: int, penalty: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Eq 3.16-3.17 with class 1 thinned from a quarter to 24 rows, and a logistic model of it."""
    rng = np.random.default_rng(seed)

    def draw(size: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.uniform(-2, 2, size)
        return x, np.clip(np.floor(x + rng.normal(0, 0.1, size)) + 2, 0, 3).astype(np.int64)

    x, y = draw(1000)
    keep = np.concatenate([np.flatnonzero(y != 1), np.flatnonzero(y == 1)[:24]])
    x, y = x[keep], y[keep]
    model = LogisticRegression(C=penalty, max_iter=5000).fit(x[:, None], y)
    window, _ = draw(1000)
    return model.predict_proba(x[:, None]), y, model.predict_proba(window[:, None]), np.bincount(y) / y.size


@dataclass(frozen=True)
class Contamination:
    """Contaminated label shift (dussap, section 4.2): five Gaussian classes, and events that belong to none of them."""

    model: LogisticRegression
    reference: PlainReference
    centres: Matrix
    source: Matrix
    source_labels: Labels
    window: Matrix
    truth: Vector
    generator: np.random.Generator

    @classmethod
    def draw(cls, seed: int, dimensions: int, events: int, names: Sequence[str]) -> "Contamination":
        rng = np.random.default_rng([seed, dimensions])
        centres = SPREAD * rng.normal(size=(MIXED_CLASSES, dimensions)) / np.sqrt(dimensions / 2)
        truth = rng.dirichlet(np.ones(MIXED_CLASSES))

        def sample(priors: Vector) -> tuple[Matrix, np.ndarray]:
            labels = rng.choice(MIXED_CLASSES, events, p=priors)
            return centres[labels] + rng.normal(size=(events, dimensions)), labels

        x, labels = sample(np.full(MIXED_CLASSES, 1 / MIXED_CLASSES))
        window, _ = sample(truth)
        model = LogisticRegression(max_iter=500).fit(x, labels)
        needed = [name.removesuffix("-soft") for name in names]
        return cls(
            model,
            PlainReference.of(model.predict_proba(x), labels, x, names=needed),
            centres,
            x,
            labels,
            window,
            truth,
            rng,
        )

    def noise(self, kind: str, events: int) -> Matrix:
        """Uniform over the range of the data, a class far from all others, or one in their middle."""
        dimensions = self.centres.shape[1]
        if kind == "background":
            return self.generator.uniform(self.source.min(axis=0), self.source.max(axis=0), size=(events, dimensions))
        middle = self.centres.mean(axis=0)
        if kind == "far":
            direction = self.generator.normal(size=dimensions)
            middle = FAR * direction / np.linalg.norm(direction)
        return middle + self.generator.normal(size=(events, dimensions))

    def errors(self, kind: str, share: float, names: Sequence[str]) -> dict[str, float]:
        """Distance of the estimates from the shares of the classes, the noise being the rest."""
        clean = self.window.shape[0]
        x = np.vstack([self.window, self.noise(kind, round(clean * share / (1 - share)))])
        window = Window.of(self.model.predict_proba(x), x)
        found = {}
        for name in names:
            estimate = ESTIMATORS[name](window, self.reference)
            shares = estimate.priors * (1 - (estimate.deficit or 0.0))
            found[name] = float(np.linalg.norm(shares - self.truth * (1 - share)))
        return found


def contamination(
    seed: int, dimensions: int, noise: str, *, share: float, names: list[str], events: int = 10_000
) -> dict[str, float]:
    """Distance of the estimates from the true shares of five Gaussian classes when `share` of the events is noise."""
    return Contamination.draw(seed, dimensions, events, names).errors(noise, share, names)
