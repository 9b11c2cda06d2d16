"""How accurate is `em-debiased`, against QuaPy's quantifiers on identical posteriors and identical samples?

    python -m tests.bench.accuracy --peer quapy=/path/to/python [--report tests/bench/reports/accuracy.md]

QuaPy lives in an environment of its own (`python -m venv E; E/bin/pip install quapy quadprog`); without it only our
figures are printed. None of these problems was used to choose a method or a constant: that was done on
 other generators, seeds and models.

Each problem is split several times into training, hold-out and test events. A model is fitted, its posteriors on the
hold-out events make the reference, and windows of test events are drawn under priors that are uniform on the simplex.
"""

import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sklearn
from sklearn.base import ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs, make_classification, make_hastie_10_2
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import calibration
from monitor.priors import ESTIMATORS, em
from monitor.reference.classifier import Reference
from monitor.sampling import draw, uniform_simplex
from monitor.windows.window import Window
from tests.bench.options import options, pythons

EVENTS = 500
OURS = ("em-debiased", "em", "retargeted", "pacc", "dfm-energy")
STAND_IN = "EM-BCTS"
"""EM on bias-corrected temperature scaling, fitted by us: QuaPy's own fit of it fails on some problems (nan)."""
THEIRS = ("EMQ", "EMQ-BCTS", "PACC", "KDEy-ML", "KDEy-CS", "EDy")


@dataclass(frozen=True)
class Problem:
    """Data, a model, and how many events train it and are held out; the rest are test events."""

    name: str
    data: Callable[[], tuple[np.ndarray, np.ndarray]]
    model: ClassifierMixin
    train: int
    held_out: int


def informative(classes: int, events: int, separation: float, seed: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    return lambda: make_classification(
        events, 24, n_informative=14, n_redundant=4, n_classes=classes, n_clusters_per_class=1,
        class_sep=separation, flip_y=0.02, random_state=seed,
    )  # fmt: skip


def hastie() -> tuple[np.ndarray, np.ndarray]:
    x, y = make_hastie_10_2(12_000, random_state=101)
    return x, (y > 0).astype(int)


def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(20_000, n_features=8, centers=20, cluster_std=4.0, random_state=104)[:2]


PROBLEMS = (
    Problem("binary, boosted trees", hastie, GradientBoostingClassifier(n_estimators=60, random_state=0), 3000, 2000),
    Problem("binary, naive Bayes", informative(2, 12_000, 0.5, 102), GaussianNB(), 3000, 2000),
    Problem("breast cancer, naive Bayes", lambda: load_breast_cancer(return_X_y=True), GaussianNB(), 150, 200),
    Problem("5 classes, extra trees", informative(5, 14_000, 0.8, 103),
            ExtraTreesClassifier(80, min_samples_leaf=2, random_state=0), 3000, 2000),
    Problem("5 classes, logistic", informative(5, 14_000, 0.7, 106), LogisticRegression(max_iter=400), 3000, 2000),
    Problem("digits, logistic", lambda: load_digits(return_X_y=True),
            make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=400)), 500, 600),
    Problem("10 classes, naive Bayes", informative(10, 16_000, 1.1, 107), GaussianNB(), 3000, 2000),
    Problem("20 classes, naive Bayes", informative(20, 22_000, 1.3, 105), GaussianNB(), 4000, 2000),
    Problem("20 blobs, perceptron", blobs, MLPClassifier((40,), max_iter=40, random_state=0), 4000, 2000),
)  # fmt: skip

QUICK = PROBLEMS[1:3]
"""To see quickly that all of it works."""


def split(problem: Problem, seed: int, windows: int) -> dict[str, np.ndarray]:
    """Posteriors of held-out and of test events, and the windows to estimate."""
    x, y = problem.data()
    random = np.random.default_rng(seed)
    order = random.permutation(y.size)
    x, y = x[order], y[order]
    model = clone(problem.model).fit(x[: problem.train], y[: problem.train])
    end = problem.train + problem.held_out
    hold_out, pool = model.predict_proba(x[problem.train : end]), model.predict_proba(x[end:])
    classes = hold_out.shape[1]
    samples = np.array([draw(y[end:], p, EVENTS, random) for p in uniform_simplex(classes, windows, random)])
    true = np.array([np.bincount(y[end:][rows], minlength=classes) / EVENTS for rows in samples])
    return {"hold_out": hold_out, "labels": y[problem.train : end], "pool": pool, "samples": samples, "true": true}


def ours(case: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The estimates of ours, and the seconds for reference and windows together."""
    start = time.perf_counter()
    reference = Reference.fit(case["hold_out"], case["labels"])
    windows = [Window.of(case["pool"][rows]) for rows in case["samples"]]
    estimates = {name: np.array([ESTIMATORS[name](w, reference).priors for w in windows]) for name in OURS}
    estimates[STAND_IN] = stand_in(case)
    return estimates | {"seconds": np.array(time.perf_counter() - start)}


def stand_in(case: Mapping[str, np.ndarray]) -> np.ndarray:
    """The published method with the published source prior, the mean calibrated posterior."""
    fitted = calibration.fit(case["hold_out"], case["labels"], "bias-corrected-temperature")
    source = fitted(case["hold_out"]).mean(axis=0)
    return np.array([em.sld(fitted(case["pool"][rows]), source).priors for rows in case["samples"]])


def theirs(case: Mapping[str, np.ndarray], interpreter: str, names: tuple[str, ...] = THEIRS) -> dict[str, np.ndarray]:
    """QuaPy's estimates by these methods, made by its own interpreter."""
    script = Path(__file__).with_name("accuracy_quapy.py")
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder) / "problem.npz", Path(folder) / "estimates.npz"
        np.savez(given, **case)
        subprocess.run([interpreter, str(script), str(given), str(made), *names], check=True)
        with np.load(made) as estimates:
            return dict(estimates)


def errors(estimates: Mapping[str, np.ndarray], true: np.ndarray, names: tuple[str, ...]) -> dict[str, float]:
    """Mean absolute error of each."""
    return {name: float(np.abs(estimates[name] - true).mean()) for name in names}


def run(problem: Problem, interpreter: str | None, splits: int, windows: int) -> dict[str, float]:
    """Mean absolute errors over the splits of one problem."""
    collected: list[dict[str, float]] = []
    for seed in range(splits):
        case = split(problem, seed, windows)
        found = errors(ours(case), case["true"], (*OURS, STAND_IN))
        if interpreter is not None:
            found |= errors(theirs(case, interpreter), case["true"], THEIRS)
        collected.append(found)
    return {name: float(np.mean([found[name] for found in collected])) for name in collected[0]}


def table(results: Mapping[str, Mapping[str, float]], published: bool) -> list[str]:
    """Markdown: errors per problem, then relative to the best published method of each problem."""
    names = [*(THEIRS if published else ()), STAND_IN, *OURS]
    lines = ["| problem | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for problem, row in results.items():
        lines.append(f"| {problem} | " + " | ".join(f"{row[name]:.4f}" for name in names) + " |")
    if published:
        for said, rivals in (("best of QuaPy's", THEIRS), (f"best of QuaPy's and {STAND_IN}", (*THEIRS, STAND_IN))):
            best = {problem: np.nanmin([row[name] for name in rivals]) for problem, row in results.items()}
            relative = [np.mean([row[name] / best[p] for p, row in results.items()]) for name in names]
            lines.append(f"| **mean, relative to the {said}** | " + " | ".join(f"{r:.3f}" for r in relative) + " |")
    return lines


def with_quapy(peers: list[str]) -> str | None:
    """The interpreter that has QuaPy; without one that is said."""
    interpreter = pythons(peers).get("quapy")
    if interpreter and not subprocess.run([interpreter, "-c", "import quapy, quadprog"], check=False).returncode:
        return interpreter
    hint = "QuaPy is not available: give --peer quapy=PYTHON, a Python that can import quapy and quadprog"
    print(hint, file=sys.stderr)
    return None


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--peer", action="append", default=[], metavar="quapy=PYTHON")
    given = parser.parse_args()
    splits, windows = (1, 5) if given.quick else (4, 30)
    warnings.simplefilter("ignore")
    interpreter = with_quapy(given.peer)
    results: dict[str, dict[str, float]] = {}
    for problem in QUICK if given.quick else PROBLEMS:
        results[problem.name] = run(problem, interpreter, splits, windows)
        print(problem.name, {name: round(value, 4) for name, value in results[problem.name].items()}, flush=True)
    lines = table(results, interpreter is not None)
    print("\n".join(lines))
    if given.report is not None:
        given.report.write_text(report(lines, splits, windows), encoding="utf-8")


def report(lines: list[str], splits: int, windows: int) -> str:
    return "\n".join(
        [
            "# Accuracy of `em-debiased` against published quantifiers",
            "",
            "Made by `python -m tests.bench.accuracy --peer quapy=PYTHON --report tests/bench/reports/accuracy.md`, "
            f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn {sklearn.__version__}.",
            "",
            f"Mean absolute error of the priors over {splits} splits of {windows} windows of {EVENTS} events, priors "
            "uniform on the simplex. Posteriors and samples are identical for all; no problem was used to tune.",
            "",
            f"{STAND_IN} is EMQ-BCTS with our own fit of the temperature: QuaPy's ends in nan on some problems, on at "
            "least one split where it is shown. Errors are relative to each problem's best, without and with it.",
            "",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    main()
