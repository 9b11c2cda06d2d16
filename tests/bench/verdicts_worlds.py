"""Worlds with known shifts: where events come from, the model that scores them, and how either can change."""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from monitor.arrays import UNLABELLED, Labels, Matrix, Vector
from monitor.ports.schema import Feature, StreamSchema
from monitor.priors import ESTIMATORS
from monitor.reference.classifier import Reference
from monitor.windows.window import Window
from tests.estimators import QUICK

NUMBERS = 4
"""Numeric features of the mixed world; the others have six."""
RARE_RATE = 0.03
"""Of the last class of a rare world."""
ATOMS = np.array([0.1, 0.2, 0.35, 0.5, 0.8, 1.1])
"""All that numbers are in an atomic world: no multiples of a power of two."""
ROUGH = {"zeros", "atoms"}
"""Worlds whose first numbers have no density."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Where events come from, and the model that scores them."""

    kind: str
    priors: Vector
    centres: Matrix
    spreads: np.ndarray
    shares: Matrix
    """Of the categories, by class; without columns where there are none."""
    model: Pipeline | None

    @property
    def classes(self) -> int:
        return self.priors.size

    @property
    def numbers(self) -> int:
        return self.centres.shape[1]

    def schema(self) -> StreamSchema:
        """Numbers first, then the category and the boolean."""
        features = [Feature(f"x{j}") for j in range(self.numbers)]
        if self.shares.size:
            features += [
                Feature("channel", "category", tuple("abcd")),
                Feature("returning", "boolean", ("false", "true")),
            ]
        return StreamSchema("study", tuple(f"class {y}" for y in range(self.classes)), tuple(features))

    def inside(self, labels: Labels, rng: np.random.Generator, rotation: Matrix | None = None) -> Matrix:
        """Numbers before they are made long-tailed, each class about its own centre."""
        x = np.empty((labels.size, self.numbers))
        for y in range(self.classes):
            rows = np.flatnonzero(labels == y)
            z = rng.normal(size=(rows.size, self.numbers)) @ self.spreads[y].T
            if self.kind == "mixed":
                z += np.where(rng.random(rows.size) < 0.5, 1.0, -1.0)[:, None] * 0.8 * self.spreads[y][:, 0]
            x[rows] = self.centres[y] + (z if rotation is None else z @ rotation.T)
        return x

    def outside(self, inside: Matrix, labels: Labels, rng: np.random.Generator) -> Matrix:
        """The features as a model sees them; in the rough worlds the first half has no density."""
        if self.kind in ROUGH:
            x = inside.copy()
            half = inside[:, : self.numbers // 2]
            x[:, : self.numbers // 2] = (
                np.where(half > 1.0, np.round(np.exp(4 + half), 2), 0.0)
                if self.kind == "zeros"
                else ATOMS[np.clip(np.rint(half + 2.5), 0, ATOMS.size - 1).astype(np.int64)]
            )
            return x
        x = np.where(np.arange(self.numbers) % 2 == 0, np.exp(inside / 2), inside) if self.kind == "skewed" else inside
        if not self.shares.size:
            return x
        drawn = (rng.random(labels.size)[:, None] > np.cumsum(self.shares[labels], axis=1)).sum(axis=1)
        flag = rng.random(labels.size) < 0.2 + 0.6 * labels / max(self.classes - 1, 1)
        return np.column_stack([x, np.minimum(drawn, self.shares.shape[1] - 1), flag])

    def posteriors(self, features: Matrix) -> Matrix:
        """What the model says; for `gauss`, Bayes' rule."""
        if self.model is not None:
            return np.asarray(self.model.predict_proba(features))
        logs = np.empty((features.shape[0], self.classes))
        for y in range(self.classes):
            z = np.linalg.solve(self.spreads[y], (features - self.centres[y]).T)
            logs[:, y] = np.log(self.priors[y]) - (z**2).sum(axis=0) / 2 - np.linalg.slogdet(self.spreads[y])[1]
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def world(kind: str, classes: int, seed: list[int]) -> World:
    """A random world of this kind."""
    rng = np.random.default_rng([*seed, classes])
    numbers = NUMBERS if kind == "mixed" else 6
    spreads = np.stack([np.linalg.cholesky(np.cov(rng.normal(size=(numbers, 3 * numbers)))) for _ in range(classes)])
    priors = rng.dirichlet(np.full(classes, 8.0))
    if kind == "rare":
        priors = np.append(priors[:-1] / priors[:-1].sum() * (1 - RARE_RATE), RARE_RATE)
    made = World(
        kind=kind,
        priors=priors,
        centres=rng.normal(size=(classes, numbers)) * 1.2,
        spreads=spreads,
        shares=rng.dirichlet(np.full(4, 3.0), size=classes) if kind == "mixed" else np.zeros((0, 0)),
        model=None,
    )
    if kind == "gauss":
        return made
    labels = rng.choice(classes, size=5_000, p=made.priors)
    features = made.outside(made.inside(labels, rng), labels, rng)
    squares = [PolynomialFeatures(2, include_bias=False)] if kind == "mixed" else []
    model = make_pipeline(StandardScaler(), *squares, LogisticRegression(max_iter=200, tol=1e-3))
    model.fit(features, labels)
    return World(kind, made.priors, made.centres, spreads, made.shares, model)


def moved_priors(priors: Vector, rng: np.random.Generator) -> Vector:
    """Another class mix, with Cohen's w between 0.25 and 1."""
    while True:
        drawn = rng.dirichlet(priors * 12 + 0.5)
        if 0.25 <= np.sqrt(((drawn - priors) ** 2 / priors).sum()) <= 1.0:
            return np.asarray(drawn)


def window(made: World, shift: str, size: int, rng: np.random.Generator) -> Window:
    """A window with one kind of shift, scored by the world's model, with the labels that a monitor does not see."""
    priors = moved_priors(made.priors, rng) if shift in {"prior", "both"} else made.priors
    if shift == "doubled":
        priors = np.append(priors[:-1] * (1 - 2 * priors[-1]) / (1 - priors[-1]), 2 * priors[-1])
    labels = rng.choice(made.classes, size=size, p=priors)
    truth = labels.copy()
    rotation = None
    if shift == "rotated":
        # Two numbers at a time trade places: every number keeps its centre, and gets its neighbour's noise.
        angle = np.pi / 3
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        rotation = np.kron(np.eye(made.numbers // 2), turn)
    inside = made.inside(labels, rng, rotation)
    if shift == "unknown":
        newcomers = rng.random(size) < 0.05
        inside[newcomers] = _elsewhere(made) + rng.normal(size=(int(newcomers.sum()), made.numbers))
        truth[newcomers] = UNLABELLED
    features = made.outside(inside, labels, rng)
    column = int(rng.integers(made.numbers // 2 if made.kind in ROUGH else 0, made.numbers))
    values = features[:, column]
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    unit = (high - low) / 1.349
    if shift in {"linear", "both"}:
        features[:, column] = 1.2 * values + 0.4 * unit * rng.choice([-1.0, 1.0])
    if shift == "unit":
        features[:, 0] *= 100.0
    if shift == "monotone":
        z = (values - middle) / unit
        features[:, column] = middle + unit * np.where(z > 0, 1.8, 0.7) * z
    return Window.of(made.posteriors(features), features, truth)


def _elsewhere(made: World) -> Vector:
    """The same place for a world: the furthest from all classes of many that are 4 to 6 away from the centre."""
    rng = np.random.default_rng(7)
    places = rng.normal(size=(500, made.numbers))
    places *= (rng.uniform(4, 6, size=500) / np.linalg.norm(places, axis=1))[:, None]
    nearest = np.linalg.norm(places[:, None] - made.centres, axis=2).min(axis=1)
    return np.asarray(places[int(nearest.argmax())])


def held_out_rows(made: World, rows: int, rng: np.random.Generator) -> tuple[Matrix, Labels, Matrix]:
    """Labelled events, at least two of each class: posteriors, labels and features."""
    labels = rng.choice(made.classes, size=rows, p=made.priors)
    labels[: 2 * made.classes] = np.tile(np.arange(made.classes), 2)
    features = made.outside(made.inside(labels, rng), labels, rng)
    return made.posteriors(features), labels, features


def reference(made: World, rows: int, rng: np.random.Generator) -> Reference:
    """A reference with the cheap estimators only: nothing else is looked at here, and the rest takes minutes."""
    posteriors, labels, features = held_out_rows(made, rows, rng)
    with patch.dict(ESTIMATORS, QUICK, clear=True):
        return Reference.reduce(made.schema(), posteriors, labels, features, seed=0)
