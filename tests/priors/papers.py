"""The papers' synthetic problems, for the tests of the estimators and for the reproduction of the papers."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from monitor.priors import ESTIMATORS
from monitor.windows import Window
from tests.priors.doubles import PlainReference


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


def contamination(
    seed: int, dimensions: int, noise: str, *, share: float, names: list[str], events: int = 10_000
) -> dict[str, float]:
    """Distance of the estimates from the true shares of five Gaussian classes when `share` of the events is noise."""
    rng = np.random.default_rng([seed, dimensions])
    centres = 6.0 * rng.normal(size=(5, dimensions)) / np.sqrt(dimensions / 2)
    truth = rng.dirichlet(np.ones(5))

    def draw(size: int, priors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        labels = rng.choice(5, size, p=priors)
        return centres[labels] + rng.normal(size=(size, dimensions)), labels

    x, labels = draw(events, np.full(5, 0.2))
    window, _ = draw(events, truth)
    strange = round(events * share / (1 - share))
    if noise == "background":
        outside = rng.uniform(x.min(axis=0), x.max(axis=0), size=(strange, dimensions))
    elif noise == "far":
        direction = rng.normal(size=dimensions)
        outside = 40.0 * direction / np.linalg.norm(direction) + rng.normal(size=(strange, dimensions))
    else:
        outside = centres.mean(axis=0) + rng.normal(size=(strange, dimensions))
    model = LogisticRegression(max_iter=500).fit(x, labels)
    mixed = np.vstack([window, outside])
    hold_out = PlainReference.of(model.predict_proba(x), labels, x, names=[n.removesuffix("-soft") for n in names])
    found = {}
    for name in names:
        estimate = ESTIMATORS[name](Window.of(model.predict_proba(mixed), mixed), hold_out)
        shares = estimate.priors * (1 - (estimate.deficit or 0.0))
        found[name] = float(np.linalg.norm(shares - truth * (1 - share)))
    return found
