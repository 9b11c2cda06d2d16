"""The experiments of Al-Otaibi et al. (2015) section 4: six ways to place a tree's thresholds, under synthetic shifts.

    python -m tests.bench.trees [--data FOLDER] [--report FILE]

Five-fold cross-validation; the test fold is the deployment, shifted as Table 1 and eq 8 say; nothing of it is
labelled. Beside the paper's six methods run two of ours: the versatile model with the test corrected across attributes,
and the same told only what a monitor's explanations say (percentiles of whole columns, no window rows).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy.stats import friedmanchisquare, studentized_range
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold

from monitor.shifts import VersatileTreeClassifier, covariates
from tests.bench.options import options
from tests.bench.trees_data import from_folder, ringnorm, threenorm
from tests.bench.trees_extras import extras
from tests.bench.trees_report import write

METHODS = ("VM", "OM", "<a,b>", "KS+<a,b>", "Perc", "KS+Perc", "VM, Holm", "VM, told")
PAPERS = {
    "VM": "versatile",
    "OM": "original",
    "<a,b>": "linear",
    "KS+<a,b>": "ks-linear",
    "Perc": "percentile",
    "KS+Perc": "ks-percentile",
}
LINEAR = [(phi, gamma) for phi, gamma in product((0, 1, -1), (0, 1, -1)) if (phi, gamma) != (0, 0)]
SHIFTS = ("unshifted", "linear", "non-linear", "mixture")
MAX_ROWS = 4_000  # of one data set, so that no single one takes most of the time

Shift = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True)
class Results:
    """Mean accuracies, (data sets, methods), for each kind of shift."""

    data_sets: list[str]
    accuracies: dict[str, np.ndarray]


def linear(train: np.ndarray, phi: int, gamma: int) -> Shift:
    """Table 1: alpha = 2^phi, beta = (1 - 2^phi) mu + gamma sigma."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return lambda X: 2.0**phi * X + (1 - 2.0**phi) * mean + gamma * deviation


def cubic(train: np.ndarray) -> Shift:
    """Eq 8: the cube of the z-score, on the old scale (which keeps the mean of a symmetric attribute, not its SD)."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    safe = np.where(deviation > 0, deviation, 1.0)
    return lambda X: deviation * ((X - mean) / safe) ** 3 + mean


def mixture(train: np.ndarray, phi: int, gamma: int, seed: int) -> Shift:
    """A third of the attributes, drawn at random, as they were, a third shifted linearly, a third cubed."""
    kinds = np.random.default_rng(seed).permutation(train.shape[1]) % 3
    line, cube = linear(train, phi, gamma), cubic(train)
    return lambda X: np.where(kinds == 0, X, np.where(kinds == 1, line(X), cube(X)))


def contexts(train: np.ndarray, fold: int) -> Iterator[tuple[str, Shift]]:
    """Every deployment of one fold."""
    yield "unshifted", lambda X: X
    yield "non-linear", cubic(train)
    for phi, gamma in LINEAR:
        yield "linear", linear(train, phi, gamma)
        yield "mixture", mixture(train, phi, gamma, fold)


def adapted_accuracy(tree: VersatileTreeClassifier, method: str, X: np.ndarray, y: np.ndarray) -> float:
    """How often the tree is right on X, after adapting to X without labels."""
    if method in PAPERS:
        model = tree.adapt(X, strategy=PAPERS[method], correction="none")
    elif method == "VM, Holm":
        model = tree.adapt(X)
    else:
        memory = tree.training_
        pairs = zip(memory.names, memory.values, X.T, strict=True)
        model = tree.adapt_from({name: covariates.explain(seen, column, level=0.05) for name, seen, column in pairs})
    return float(np.mean(model.predict(X) == y))


def run_one(X: np.ndarray, y: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """Mean accuracy of each method under each kind of shift, by five-fold cross-validation."""
    found: dict[str, list[list[float]]] = {shift: [] for shift in SHIFTS}
    for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)):
        tree = VersatileTreeClassifier(min_samples_leaf=5, random_state=seed).fit(X[train], y[train])
        for shift, move in contexts(X[train], fold):
            moved = move(X[test])
            found[shift].append([adapted_accuracy(tree, method, moved, y[test]) for method in METHODS])
    return {shift: np.mean(rows, axis=0) for shift, rows in found.items()}


def data_sets(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """scikit-learn's, the two generated ones, and whatever numeric tables the folder holds."""
    for load in (load_breast_cancer, load_digits, load_iris, load_wine):
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    for make in (ringnorm, threenorm):
        yield make.__name__, *make(np.random.default_rng(7), 1_000)
    if folder is None:
        print("no folder of UCI tables given (--data): scikit-learn's and generated data only")
        return
    yield from from_folder(folder, skip={"iris", "wine"})


def few(folder: Path | None) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """The smallest data set, to see quickly that all of it works."""
    return (one for one in data_sets(folder) if one[0] == "iris")


def run(tables: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> Results:
    """Every data set."""
    names, collected = [], {shift: [] for shift in SHIFTS}
    for name, features, labels in tables:
        rows = np.random.default_rng(0).permutation(len(labels))[:MAX_ROWS]
        found = run_one(features[rows], labels[rows])
        names.append(name)
        for shift in SHIFTS:
            collected[shift].append(found[shift])
        print(f"{name:24s} {len(rows):6d} x {features.shape[1]:2d}  ", np.round(found["mixture"], 3), flush=True)
    return Results(names, {shift: np.array(rows) for shift, rows in collected.items()})


def nemenyi(methods: int, data_sets_: int, level: float = 0.05) -> float:
    """Critical difference of average ranks (Demsar 2006): q sqrt(k (k + 1) / 6 N)."""
    q = studentized_range.ppf(1 - level, methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(methods * (methods + 1) / (6 * data_sets_)))


def friedman(results: Results, shift: str) -> float:
    """The p-value of "all methods rank alike"; over the paper's six."""
    return float(friedmanchisquare(*np.round(results.accuracies[shift], 3)[:, : len(PAPERS)].T).pvalue)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, default=None, help="folder of UCI tables (CSV, class last)")
    given = parser.parse_args()
    results = run(few(given.data) if given.quick else data_sets(given.data))
    tests = {shift: friedman(results, shift) for shift in SHIFTS}
    parts = [write(results, METHODS, tests, nemenyi(len(PAPERS), len(results.data_sets)))]
    parts += [] if given.quick else [extras()]
    text = "\n".join(parts)
    print(text)
    if given.report is not None:
        given.report.write_text(text)


if __name__ == "__main__":
    main()
