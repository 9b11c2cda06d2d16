"""What Al-Otaibi et al. measure: trees under made-up shifts, and between regions and seasons; and weighted trees."""

from itertools import permutations
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from monitor.arrays import Labels, Matrix, Vector
from monitor.shifts import VersatileTreeClassifier
from tests.bench import trees
from tests.bench.papers.data import columns, keel
from tests.bench.trees_data import from_folder, threenorm

SETS = ("phoneme", "bupa", "pima", "wisconsin", "magic", "ring", "ionosphere")  # of KEEL
SHIFTS = (*trees.SHIFTS, "raw cubes")
METHODS = ("VM", "OM", "KMM", "importance")
CONTEXTS = {
    "AutoMPG": ("Auto.csv", "origin", ("displacement", "horsepower", "weight", "acceleration"), "mpg"),
    "Bike Sharing": ("Bikeshare.csv", "season", ("temp", "atemp", "hum", "windspeed"), "bikers"),
}
KMM_BOUND = 10.0
LEAF, LEAVES = 5, (1, 2, 5, 10, 20)


def data_sets(folder: Path | None) -> dict[str, tuple[Matrix, Labels]]:
    """Those of table 2: Threenorm is made, Sonar is in the folder of UCI tables, the others are KEEL's."""
    tables = [("threenorm", *threenorm(np.random.default_rng(7), 1_000)), *keel(SETS)]
    if folder is not None:
        tables += [one for one in from_folder(folder, skip=set()) if one[0] == "sonar"]
    return {name: (x, y) for name, x, y in tables}


def table_2(x: Matrix, y: Labels) -> Vector:
    """(SHIFTS, the paper's six methods): accuracies by five-fold cross-validation, the mean over the contexts."""
    found: dict[str, list[list[float]]] = {shift: [] for shift in SHIFTS}
    for fold, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(x, y)):
        tree = VersatileTreeClassifier(min_samples_leaf=LEAF, random_state=0).fit(x[train], y[train])
        for shift, move in [*trees.contexts(x[train], fold), ("raw cubes", lambda rows: rows**3)]:
            moved = move(x[test])
            found[shift].append([trees.adapted_accuracy(tree, method, moved, y[test]) for method in trees.PAPERS])
    return np.ravel([np.mean(found[shift], axis=0) for shift in SHIFTS])


def contexts(name: str, own_mean: bool, leaf: int = LEAF) -> Vector:
    """(pairs of contexts, methods): a tree of the one, deployed on the other; the target above its mean.

    The mean is the whole table's, as the text has it, or each context's own.
    """
    file, where, features, target = CONTEXTS[name]
    table = columns("ISLP", "data", file)
    x = np.column_stack([table[feature].astype(np.float64) for feature in features])
    place, values = table[where].astype(np.float64), table[target].astype(np.float64)
    found = []
    for first, second in permutations(np.unique(place), 2):
        here, there = (place == one for one in (first, second))
        labels = {
            side: (values[rows] > (values[rows] if own_mean else values).mean()).astype(np.int64)
            for side, rows in (("here", here), ("there", there))
        }
        found.append(transferred(x[here], labels["here"], x[there], labels["there"], leaf))
    return np.ravel(found)


def transferred(x: Matrix, y: Labels, target: Matrix, truth: Labels, leaf: int) -> list[float]:
    """Accuracy in the target of METHODS: nothing of it is labelled."""
    tree = VersatileTreeClassifier(min_samples_leaf=leaf, random_state=0).fit(x, y)
    said = [tree.adapt(target, strategy="versatile", correction="none").predict(target), tree.predict(target)]
    said += [
        DecisionTreeClassifier(min_samples_leaf=leaf, random_state=0).fit(x, y, weights).predict(target)
        for weights in (kernel_mean_matching(x, target), importance(x, target))
    ]
    return [float(np.mean(one == truth)) for one in said]


def kernel_mean_matching(x: Matrix, target: Matrix, most: int = 600) -> Vector:
    """Weights that bring the Gaussian kernel mean of x to the target's, between 0 and KMM_BOUND (Huang et al. 2006).

    The bandwidth is the median distance. Rows beyond `most` of a side are thinned evenly for it, and those of x get the
    weight of their nearest kept row.
    """
    scale = StandardScaler().fit(x)
    a, b = scale.transform(x), scale.transform(target)
    kept = np.linspace(0, len(a) - 1, min(most, len(a))).astype(np.int64)
    some = b[np.linspace(0, len(b) - 1, min(most, len(b))).astype(np.int64)]
    squares = _squares(a[kept], a[kept])
    width = float(np.median(squares[squares > 0]))
    gram = np.exp(-squares / width)
    pull = np.exp(-_squares(a[kept], some) / width).sum(axis=1) * kept.size / len(some)
    start = np.ones(kept.size)
    found = minimize(
        lambda w: (0.5 * w @ gram @ w - pull @ w, gram @ w - pull),
        start,
        jac=True,
        bounds=[(0.0, KMM_BOUND)] * kept.size,
        method="L-BFGS-B",
        options={"maxiter": 200},
    )
    return np.maximum(found.x[_squares(a, a[kept]).argmin(axis=1)], 1e-3)


def importance(x: Matrix, target: Matrix) -> Vector:
    """Odds of a logistic model that tells target rows from x's (Sugiyama et al. 2007, by classification)."""
    scale = StandardScaler().fit(x)
    both, side = np.vstack([scale.transform(x), scale.transform(target)]), np.repeat([0, 1], [len(x), len(target)])
    p = LogisticRegression(max_iter=300).fit(both, side).predict_proba(scale.transform(x))[:, 1]
    return np.clip(p / (1 - p) * len(x) / len(target), 1e-3, 1e3)


def _squares(a: Matrix, b: Matrix) -> Matrix:
    return np.maximum((a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T, 0.0)
