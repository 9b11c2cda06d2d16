"""Chapter 7 of Caelen's thesis: Algorithm 3, its priors' errors beside Tables 7.2, 7.3, 7.7 and 7.9."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import counting, em
from monitor.priors.by_counting import confusion
from tests.bench.tables import claims, markdown
from tests.bench.trees_data import from_folder

BETAS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
METHODS = ("source", "base", "em", "em-stop", "acc-qp", "cde")
MAX_ROWS = 3_000  # of one data set, so that no single one takes most of the time
FOREST_LOOPS = 3  # at most: a forest of 200 trees takes a hundred times what the logistic model takes

# Tables 7.2 (source), 7.3 (em, em-stop, base), 7.7 (acc-qp, over 22 data sets) and 7.9 (cde, over 11 binary ones).
PRINTED = {
    "logistic": {
        "source": (0.22732, 0.13337, 0.07989, 0.04752, 0.02811, 0.01561, 0.00805, 0.00311, 0.00081),
        "base": (0.08904, 0.05177, 0.03146, 0.01895, 0.01122, 0.00616, 0.00312, 0.00123, 0.00030),
        "em": (0.07731, 0.05242, 0.04309, 0.03720, 0.03056, 0.02747, 0.02639, 0.02334, 0.02299),
        "em-stop": (0.02451, 0.01553, 0.01225, 0.01136, 0.00904, 0.00704, 0.00684, 0.00571, 0.00563),
        "acc-qp": (0.08148, 0.03848, 0.04630, 0.04979, 0.04751, 0.04917, 0.02037, 0.04805, 0.01960),
        "cde": (0.09565, 0.07492, 0.02956, 0.02387, 0.02272, 0.02224, 0.02202, 0.02207, 0.02194),
    },
    "random forest": {
        "source": (0.22732, 0.13337, 0.07989, 0.04752, 0.02811, 0.01561, 0.00805, 0.00311, 0.00081),
        "base": (0.08969, 0.05158, 0.03168, 0.01903, 0.01121, 0.00617, 0.00312, 0.00122, 0.00030),
        "em": (0.01344, 0.00866, 0.00588, 0.00441, 0.00351, 0.00317, 0.00275, 0.00235, 0.00215),
        "em-stop": (0.02376, 0.01072, 0.00587, 0.00385, 0.00264, 0.00210, 0.00179, 0.00164, 0.00156),
        "acc-qp": (0.05566, 0.06136, 0.03639, 0.02310, 0.01428, 0.04607, 0.01650, 0.01631, 0.01532),
        "cde": (0.08924, 0.04361, 0.02509, 0.01547, 0.00993, 0.00659, 0.00507, 0.00405, 0.00332),
    },
}

DataSet = tuple[str, Matrix, Labels]


def data_sets(folder: Path | None, quick: bool) -> Iterator[DataSet]:
    """scikit-learn's, and whatever numeric tables the folder holds (a third of them were among the paper's 25)."""
    loads = (load_iris, load_wine) if quick else (load_digits, load_iris, load_wine)
    for load in loads:
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    if folder is not None and not quick:
        yield from from_folder(folder, skip={"iris", "wine", "weather"})


def thinned(labels: Labels, beta: float, rng: np.random.Generator) -> Labels:
    """Algorithm 4, with its forgotten line: the rows that stay; of some classes only a share beta, rounded up."""
    classes = np.unique(labels)
    chosen = rng.choice(classes, rng.integers(1, classes.size), replace=False)
    kept = []
    for y in classes:
        rows = np.flatnonzero(labels == y)
        kept.append(rng.choice(rows, int(np.ceil(rows.size * beta)), replace=False) if y in chosen else rows)
    return np.concatenate(kept)


def logistic(train: Matrix, labels: Labels) -> tuple[ClassifierMixin, Matrix]:
    """The model, and its posteriors by five-fold cross-validation for the confusion matrix."""
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    folds = max(2, min(5, int(np.bincount(labels).min())))
    return model.fit(train, labels), cross_val_predict(model, train, labels, cv=folds, method="predict_proba")


def forest(train: Matrix, labels: Labels) -> tuple[ClassifierMixin, Matrix]:
    """200 trees; the confusion matrix from the rows that each tree did not see, where the paper cross-validates."""
    model = RandomForestClassifier(200, oob_score=True, random_state=0).fit(train, labels)
    return model, np.nan_to_num(model.oob_decision_function_, nan=1.0 / model.n_classes_)


def errors(
    x: Matrix, y: Labels, beta: float, model: Callable[..., tuple[ClassifierMixin, Matrix]], seed: int
) -> Vector:
    """One loop of Algorithm 3: sums of squared errors of the priors, nan where a method does not apply."""
    rng = np.random.default_rng([seed, int(100 * beta)])
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)
    rows = thinned(train_y, beta, rng)
    train, train_y = train[rows], train_y[rows]
    classes = np.bincount(y).size
    if np.bincount(train_y, minlength=classes).min() < 2:
        return np.full(len(METHODS), np.nan)
    fitted, unseen = model(train, train_y)
    g, source = fitted.predict_proba(test), np.bincount(train_y) / train_y.size
    said = {
        "source": source,
        "base": counting.counts(g) / test_y.size,
        "em": em.sld(g, source).priors,
        "em-stop": em.stopped(g, source, fitted.predict_proba(train), train_y).priors,
        "acc-qp": counting.adjusted_qp(confusion(unseen, train_y), counting.counts(g)).priors,
    }
    if classes == 2:
        said["cde"] = counting.cde_iterate(g[:, 1], source[1]).priors
    true = np.bincount(test_y, minlength=classes) / test_y.size
    return np.array([np.sum((said[m] - true) ** 2) if m in said else np.nan for m in METHODS])


def study(folder: Path | None, loops: int, quick: bool) -> tuple[list[str], dict[str, np.ndarray]]:
    """Names, and by model (data sets, betas, methods): means over the loops."""
    models = {"logistic": (logistic, loops)}
    if not quick:
        models["random forest"] = (forest, min(loops, FOREST_LOOPS))
    names: list[str] = []
    found: dict[str, list[np.ndarray]] = {name: [] for name in models}
    for name, x, y in data_sets(folder, quick):
        rows = np.random.default_rng(0).permutation(y.size)[:MAX_ROWS]
        x_, y_ = x[rows], np.unique(y[rows], return_inverse=True)[1]
        names.append(name)
        for kind, (model, times) in models.items():
            cells = [[errors(x_, y_, beta, model, seed) for seed in range(times)] for beta in BETAS]
            found[kind].append(_mean(np.array(cells), axis=1))
        print(name, x_.shape, found["logistic"][-1][0].round(3), flush=True)
    return names, {kind: np.array(tables) for kind, tables in found.items()}


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Over what is there; nan where nothing is."""
    there = np.isfinite(values)
    return np.where(there.any(axis=axis), np.nansum(values, axis=axis) / np.maximum(there.sum(axis=axis), 1), np.nan)


def report(folder: Path | None, loops: int, quick: bool) -> str:
    """Tables and statements as Markdown."""
    names, found = study(folder, loops, quick)
    parts = [
        "## Chapter 7: squared error of the priors, ours (paper)\n",
        f"{len(names)} data sets ({', '.join(names)}) where the paper has 25; splits of each: {loops} (100;\n"
        f"for forests {min(loops, FOREST_LOOPS)}). source: shares in the thinned training set; cde: two classes.\n",
    ]
    for kind, tables in found.items():
        mean = _mean(tables, axis=0)
        rows = [
            [f"{beta:.1f}", *(_beside(mean[b, m], PRINTED[kind][method][b]) for m, method in enumerate(METHODS))]
            for b, beta in enumerate(BETAS)
        ]
        parts += [f"### {kind.capitalize()}\n", markdown(["beta", *METHODS], rows), statements(kind, tables)]
    return "\n".join(parts)


def _beside(ours: float, paper: float) -> str:
    return f"{ours:.4f} ({paper:.4f})" if np.isfinite(ours) else f"- ({paper:.4f})"


def statements(kind: str, tables: np.ndarray) -> str:
    """What section 7.2 says of this model."""
    source, base, plain, stop, qp, _ = _mean(tables, axis=0).T
    binary = tables[np.isfinite(tables[:, 0, -1])]
    said = [
        (
            "The harder the shift, the larger the error of doing nothing",
            bool((np.diff(source) < 0).all()),
            f"{source[0]:.3f} to {source[-1]:.4f}",
        ),
        (
            "At .9 base beats em and em-stop",
            bool(base[-1] < min(plain[-1], stop[-1])),
            f"{base[-1]:.4f}; {plain[-1]:.4f}, {stop[-1]:.4f}",
        ),
        (
            "acc-qp is never the best of em-stop, base, acc-qp",
            bool((qp > np.minimum(stop, base)).all()),
            f"at .1 {qp[0]:.4f}, em-stop {stop[0]:.4f}",
        ),
    ]
    if kind == "logistic":
        said.append(
            (
                "em-stop beats em at every beta",
                bool((stop < plain).all()),
                f"at .1 {stop[0]:.4f} against {plain[0]:.4f}",
            )
        )
        said.append(
            (
                "em-stop beats base up to .5",
                bool((stop[:5] < base[:5]).all()),
                f"at .5 {stop[4]:.4f} against {base[4]:.4f}",
            )
        )
    else:
        said.append(
            (
                "em beats em-stop at .1 and .2",
                bool((plain[:2] < stop[:2]).all()),
                f"{plain[0]:.4f} against {stop[0]:.4f}",
            )
        )
        said.append(
            (
                "em-stop beats em from .3 on",
                bool((stop[2:] < plain[2:]).all()),
                f"at .9 {stop[-1]:.4f} against {plain[-1]:.4f}",
            )
        )
    if binary.size:
        _, _, _, stop, _, cde = _mean(binary, axis=0).T
        figures = f"at .1 {cde[0]:.4f} against {stop[0]:.4f} on {len(binary)} data sets"
        said.append(("cde loses to em-stop at every beta", bool((cde > stop).all()), figures))
    return claims(said)
