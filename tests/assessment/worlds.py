"""A small world with known shifts, and references that are made in a second."""

from functools import cache
from unittest.mock import patch

import numpy as np

from monitor.ports.schema import Feature, StreamSchema
from monitor.priors import ESTIMATORS
from monitor.reference.classifier import Reference
from monitor.windows.window import Window
from tests.estimators import QUICK

PRIORS = np.array([0.5, 0.3, 0.2])
CENTRES = np.array([[0.0, 0, 0, 0], [2.0, 0, 1, -1], [0, 2.0, -1, 1]])


def features(labels, rng):
    """Four numbers, normal about the class's centre."""
    return CENTRES[labels] + rng.normal(size=(labels.size, CENTRES.shape[1]))


def posteriors(x):
    """Bayes' rule."""
    logs = np.log(PRIORS) - ((np.nan_to_num(x)[:, None, :4] - CENTRES) ** 2).sum(axis=2) / 2
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def draw(rows, seed, priors=PRIORS):
    """Features and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=rows, p=priors)
    return features(labels, rng), labels


def window(rows=3000, seed=1, priors=PRIORS, change=None):
    """A window; `change` alters the features before they are scored."""
    x, _ = draw(rows, seed, priors)
    if change is not None:
        change(x)
    return Window.of(posteriors(x), x)


def cheaply(schema, g, labels, x, blocks=None):
    """A reference with the cheap estimators only."""
    with patch.dict(ESTIMATORS, QUICK, clear=True):
        return Reference.reduce(schema, g, labels, x, seed=0, calibration="temperature", blocks=blocks)


@cache
def reference():
    """The world's reference: 20,000 rows."""
    x, labels = draw(20_000, 0)
    schema = StreamSchema("world", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
    return cheaply(schema, posteriors(x), labels, x)


@cache
def plain_reference():
    """The same without features."""
    x, labels = draw(20_000, 0)
    return cheaply(StreamSchema("world", ("a", "b", "c")), posteriors(x), labels, None)


@cache
def mixed_reference():
    """Three numbers of which one is constant, a category and a boolean."""
    x, labels = draw(5_000, 0)
    schema = StreamSchema(
        "mixed",
        ("a", "b", "c"),
        (
            Feature("x0"),
            Feature("x1"),
            Feature("constant"),
            Feature("colour", "category", ("blue", "green", "red")),
            Feature("new", "boolean", ("false", "true")),
        ),
    )
    return cheaply(schema, posteriors(x), labels, mixed(x, 0))


def mixed(x, seed):
    """The mixed reference's columns from the numbers."""
    rng = np.random.default_rng(seed)
    colour, new = rng.integers(0, 3, len(x)), rng.random(len(x)) < 0.3
    return np.column_stack([x[:, :2], np.full(len(x), 7.0), colour, new])
