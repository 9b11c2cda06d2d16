"""Beside the paper's experiments: a changed class mix, mirrored attributes, and what adapting costs."""

from collections.abc import Callable

import numpy as np
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from monitor.shifts import VersatileTreeClassifier
from tests.bench.tables import markdown
from tests.bench.timing import interleaved
from tests.bench.trees_data import ringnorm, threenorm

TRAIN, DEPLOY, REPEATS = 2_000, 1_000, 10
Rows = tuple[np.ndarray, np.ndarray]


def generators() -> dict[str, Callable[[np.random.Generator, int], Rows]]:
    """Endless data of two classes."""

    def classification(random: np.random.Generator, rows: int) -> Rows:
        X, y = make_classification(40_000, 20, n_informative=8, class_sep=1.5, random_state=5)
        chosen = random.choice(len(y), rows, replace=False)
        return X[chosen], y[chosen]

    return {"ringnorm": ringnorm, "threenorm": threenorm, "classification": classification}


def with_mix(random: np.random.Generator, make: Callable[..., Rows], share: float) -> Rows:
    """Deployment rows of which `share` are of the second class."""
    X, y = make(random, 12 * DEPLOY)
    second = int(DEPLOY * share)
    chosen = np.concatenate([np.flatnonzero(y == 1)[:second], np.flatnonzero(y == 0)[: DEPLOY - second]])
    return X[chosen], y[chosen]


def class_mix() -> str:
    """All attributes cubed and the second class at 85 % (half in training): percentiles with and without eq 7."""
    rows = []
    for name, make in generators().items():
        found = []
        for seed in range(REPEATS):
            random = np.random.default_rng(seed)
            tree = VersatileTreeClassifier(min_samples_leaf=5, random_state=seed).fit(*make(random, TRAIN))
            X, y = with_mix(random, make, 0.85)
            cube = X**3
            guesses = [
                tree.predict(X),
                tree.predict(cube),
                tree.adapt(cube).predict(cube),
                tree.adapt(cube, [0.15, 0.85]).predict(cube),
            ]
            found.append([np.mean(guess == y) for guess in guesses])
        rows.append([name, *(f"{a:.3f}" for a in np.mean(found, axis=0))])
    head = ["", "original, not cubed", "original, cubed", "VM, mix unknown", "VM, mix known"]
    return "## Cubed attributes and a class mix of 15 to 85 instead of half and half\n\n" + markdown(head, rows)


def mirrored() -> str:
    """Half of the attributes times -1.5, plus 1; adapting blind, with the class mix, and with labelled rows."""
    rows = []
    for name, make in generators().items():
        found = []
        for seed in range(REPEATS):
            random = np.random.default_rng(seed)
            tree = VersatileTreeClassifier(min_samples_leaf=5, random_state=seed).fit(*make(random, TRAIN))
            X, y = make(random, DEPLOY)
            flipped = np.where(np.arange(X.shape[1]) % 2 == 0, X, 1 - 1.5 * X)
            mix = np.bincount(y, minlength=2) / len(y)
            models = [tree.adapt(flipped), tree.adapt(flipped, mix)]
            models += [tree.adapt(flipped, labelled=(flipped[:n], y[:n])) for n in (50, 200, 1_000)]
            found.append([tree.score(X, y), *(np.mean(model.predict(flipped) == y) for model in models)])
        rows.append([name, *(f"{a:.3f}" for a in np.mean(found, axis=0))])
    head = ["", "original, not mirrored", "VM, blind", "VM, mix known", "50 labelled", "200 labelled", "1,000 labelled"]
    return "## Every other attribute mirrored\n\n" + markdown(head, rows)


def ordered(random: np.random.Generator, rows: int, tilt: float = 0.0) -> Rows:
    """An ordinal category of eight and two numbers; `tilt` moves the category's frequencies, and nothing else."""
    shares = np.exp(tilt * np.arange(8.0))
    category = random.choice(8, rows, p=shares / shares.sum())
    numbers = random.normal(size=(rows, 2))
    return np.column_stack([category, numbers]), (category + 0.5 * numbers[:, 0] > 5.5).astype(np.int64)


def harmless() -> str:
    """Where nothing but the class mix or a category's frequencies moved: adapting must not cost what the tree knows."""
    labelled_rows, rows = 3_000, []
    for name, make in generators().items():
        found = []
        for seed in range(REPEATS):
            random = np.random.default_rng(seed)
            tree = VersatileTreeClassifier(min_samples_leaf=5, random_state=seed).fit(*make(random, TRAIN))
            (X, y), (known, told) = (mixed(random, make, rows_wanted) for rows_wanted in (DEPLOY, labelled_rows))
            models = [tree, tree.adapt(X), tree.adapt(X, strategy="strict"), tree.adapt(X, labelled=(known, told))]
            found.append([model.score(X, y) for model in models])
        means = [f"{a:.3f}" for a in np.mean(found, axis=0)]
        rows.append([f"{name}, second class 10 %", means[0], means[1], means[2], means[3], "-"])
    found = []
    for seed in range(REPEATS):
        random = np.random.default_rng(seed)
        tree = VersatileTreeClassifier(min_samples_leaf=5, random_state=seed).fit(*ordered(random, TRAIN))
        (X, y), told = ordered(random, DEPLOY, 0.8), ordered(random, labelled_rows, 0.8)
        models = [tree, tree.adapt(X), tree.adapt(X, strategy="strict"), tree.adapt(X, labelled=told)]
        found.append([model.score(X, y) for model in (*models, tree.adapt(X, exclude=[0]))])
    rows.append(["an ordinal category, other frequencies", *(f"{a:.3f}" for a in np.mean(found, axis=0))])
    head = ["", "original", "VM, blind", "strict", f"{labelled_rows:,} labelled rows", "category excluded"]
    return "## Where no attribute changed its unit\n\n" + markdown(head, rows)


def mixed(random: np.random.Generator, make: Callable[..., Rows], rows: int) -> Rows:
    """So many rows of which one in ten is of the second class."""
    X, y = make(random, 4 * rows)
    chosen = np.concatenate([np.flatnonzero(y == 1)[: rows // 10], np.flatnonzero(y == 0)[: rows - rows // 10]])
    return X[chosen], y[chosen]


def cost() -> str:
    """Adapting 10,000 x 20 and predicting 100,000 rows, CPU time, least of 15."""
    X, y = make_classification(20_000, 20, n_informative=8, random_state=0)
    tree = VersatileTreeClassifier(min_samples_leaf=5, random_state=0).fit(X[:10_000], y[:10_000])
    plain = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(X[:10_000], y[:10_000])
    D = X[10_000:]
    third = np.arange(20) % 3
    windows = {
        "unshifted": D,
        "linear": 2 * D + 1,
        "cubic": D**3,
        "mixture": np.where(third == 0, D, np.where(third == 1, 2 * D + 1, D**3)),
    }
    many = np.tile(D**3, (10, 1))
    adapted = tree.adapt(D**3)
    predicting = {
        "adapted": lambda: adapted.predict(many),
        "scikit-learn's tree": lambda: plain.predict(many),
    }
    adapting = {name: lambda w=window: tree.adapt(w) for name, window in windows.items()}
    spent = interleaved(predicting, 15)
    rows = [
        [f"adapt 10,000 x 20, {name}", f"{1e3 * one.best:.0f} ms"] for name, one in interleaved(adapting, 15).items()
    ]
    rows += [[f"predict 100,000 rows, {name}", f"{1e3 * one.best:.0f} ms"] for name, one in spent.items()]
    rows.append(["adapted / scikit-learn's", spent["adapted"].ratio(spent["scikit-learn's tree"])])
    head = f"A tree of {tree.tree_.node_count} nodes, 10,000 training rows; CPU time, one thread, least of 15."
    return f"## Cost\n\n{head}\n\n" + markdown(["", "CPU"], rows)


def extras() -> str:
    """All of it."""
    return "\n".join([class_mix(), mirrored(), harmless(), cost()])


if __name__ == "__main__":
    print(extras())
