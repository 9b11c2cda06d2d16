"""One split of Algorithm 3 of Caelen's thesis, at all intensities of shift: priors and predictions of every method."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import calibration
from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import bayes, counting, em
from monitor.priors.by_counting import confusion

BETAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
QUANTIFIERS = (
    "source", "base", "em", "em-stop", "acc", "acc-qp", "cde", "cde refitted", "em, calibrated", "pacc",
)  # fmt: skip
CLASSIFIERS = ("base", "em", "em-stop", "acc-qp", "cde", "em, calibrated", "oracle-bayes", "oracle")
COUNTS = ("loops of em-stop", "singular", "outside of [0, 1]")
COLUMNS = (
    *(f"{name}, priors" for name in QUANTIFIERS), *(f"{name}, F1 macro" for name in CLASSIFIERS),
    *(f"{name}, F1 weighted" for name in CLASSIFIERS), *COUNTS, "source error per class",
)  # fmt: skip
KINDS = ("logistic", "softmax", "random forest")
TREES = 200
MAX_ROWS = 2_000  # of one data set, half of them for training: no single one takes most of the time
CDE_REFITS = 10
LEAST = 2  # rows of each class after thinning: with one row there is nothing to cross-validate


@dataclass(frozen=True, slots=True)
class Fitted:
    """A model of the thinned training rows."""

    model: ClassifierMixin
    unseen: Matrix
    """Posteriors of the training rows by models that did not see them."""


def logistic(kind: str, x: Matrix, y: Labels) -> Fitted:
    """Posteriors of the training rows by five-fold cross-validation."""
    model = unfitted(kind, int(y.max()) + 1)
    folds = max(2, min(5, int(np.bincount(y).min())))
    return Fitted(model.fit(x, y), cross_val_predict(model, x, y, cv=folds, method="predict_proba"))


def forest(x: Matrix, y: Labels) -> Fitted:
    """Posteriors from the trees that did not see a row, where the thesis cross-validates."""
    model = RandomForestClassifier(TREES, oob_score=True, random_state=0).fit(x, y)
    return Fitted(model, np.nan_to_num(model.oob_decision_function_, nan=1.0 / model.n_classes_))


def unfitted(kind: str, classes: int) -> ClassifierMixin:
    """scikit-learn's defaults: those of 2019, as in the thesis, are one logistic model a class; today's are softmax."""
    if kind == "random forest":
        return RandomForestClassifier(TREES, random_state=0)
    if kind == "softmax":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    each = LogisticRegression(solver="liblinear")
    return make_pipeline(StandardScaler(), each if classes == 2 else OneVsRestClassifier(each))


def thinned(labels: Labels, beta: float, rng: np.random.Generator) -> Labels:
    """Algorithm 4, with its forgotten line: the rows that stay; of some classes only a share beta, rounded up."""
    classes = np.unique(labels)
    chosen = rng.choice(classes, rng.integers(1, classes.size), replace=False)
    kept = []
    for y in classes:
        rows = np.flatnonzero(labels == y)
        kept.append(rng.choice(rows, int(np.ceil(rows.size * beta)), replace=False) if y in chosen else rows)
    return np.concatenate(kept)


def split(x: Matrix, y: Labels, kind: str, seed: int) -> Vector:
    """(intensities, columns) in one row: nan where a method does not apply."""
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)
    oracle = unfitted(kind, int(y.max()) + 1).fit(train, train_y).predict(test)
    rows = []
    for beta in BETAS:
        kept = thinned(train_y, beta, np.random.default_rng([seed, int(100 * beta)]))
        if np.bincount(train_y[kept]).min() < LEAST:
            rows.append(np.full(len(COLUMNS), np.nan))
            continue
        rows.append(_intensity(kind, (train[kept], train_y[kept]), (test, test_y), oracle))
    return np.ravel(rows)


def _intensity(kind: str, train: tuple[Matrix, Labels], test: tuple[Matrix, Labels], oracle: Labels) -> Vector:
    x, y = train
    fitted = forest(x, y) if kind == "random forest" else logistic(kind, x, y)
    g, classes = fitted.model.predict_proba(test[0]), int(y.max()) + 1
    source, true = (np.bincount(labels, minlength=classes) / labels.size for labels in (y, test[1]))
    stopped = em.stopped(g, source, fitted.model.predict_proba(x), y)
    tally, said = confusion(fitted.unseen, y), counting.predictions(g).sum(axis=0)
    bent = calibration.fit(np.maximum(fitted.unseen, 1e-9), y, "bias-corrected-temperature")(np.maximum(g, 1e-9))
    priors: dict[str, Vector] = {
        "source": source,
        "base": said / said.sum(),
        "em": em.sld(g, source).priors,
        "em-stop": stopped.priors,
        "acc": counting.adjusted(tally, said).priors,
        "acc-qp": counting.adjusted_qp(tally, said).priors,
        "em, calibrated": em.maximum_likelihood(bent, source).priors,
        "pacc": counting.adjusted(soft_confusion(fitted.unseen, y), g.sum(axis=0)).priors,
    }
    if classes == 2:
        priors["cde"] = counting.cde_iterate(g[:, 1], float(source[1])).priors
        if kind != "random forest":
            *_, last = refits(lambda w: unfitted(kind, 2).fit(x, y, logisticregression__sample_weight=w), y, test[0])
            priors["cde refitted"] = np.array([1 - last, last])
    errors = [float(np.sum((priors[name] - true) ** 2)) if name in priors else np.nan for name in QUANTIFIERS]
    predicted = {name: bayes.correct(g, source, priors[name]).argmax(axis=1) for name in CLASSIFIERS if name in priors}
    predicted |= {
        "base": g.argmax(axis=1),
        "em, calibrated": bayes.correct(bent, source, priors["em, calibrated"]).argmax(axis=1),
        "oracle-bayes": bayes.correct(g, source, true).argmax(axis=1),
        "oracle": oracle,
    }
    scores = [
        f1_score(test[1], predicted[name], average=average) if name in predicted else np.nan
        for average in ("macro", "weighted")
        for name in CLASSIFIERS
    ]
    counts = [stopped.iterations, *failures(tally, said), errors[0] / classes]
    return np.array([*errors, *scores, *counts], dtype=np.float64)


def soft_confusion(posteriors: Matrix, labels: Labels) -> Matrix:
    """Sums of the posteriors of each true class."""
    return np.array([posteriors[labels == y].sum(axis=0) for y in range(posteriors.shape[1])])


def failures(tally: Matrix, said: Vector) -> tuple[float, float]:
    """Table 7.6: whether the system of ACC is singular, or else its solution no distribution."""
    rates = (tally / tally.sum(axis=1, keepdims=True)).T
    if np.linalg.matrix_rank(rates) < rates.shape[0]:
        return 1.0, 0.0
    raw = np.linalg.solve(rates, said / said.sum())
    return 0.0, float(raw.min() < -1e-12 or raw.max() > 1 + 1e-12)


def refits(refit: Callable[[Vector], ClassifierMixin], y: Labels, test: Matrix) -> Iterator[float]:
    """Algorithm 2 as printed: the share of positives after each cost-sensitive fit; cost_FP is odds over odds."""
    odds, share = float(np.mean(y) / (1 - np.mean(y))), -1.0
    cost = 1.0
    for _ in range(CDE_REFITS + 1):
        before, share = share, float(np.mean(refit(np.where(y == 1, 1.0, cost)).predict(test)))
        yield share
        if share == before or not 0 < share < 1:
            return
        cost = odds / (share / (1 - share))
