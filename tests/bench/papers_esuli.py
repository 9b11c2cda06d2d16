"""Esuli, Molinari and Sebastiani, "A Critical Reassessment of the Saerens-Latinne-Decaestecker Algorithm", again.

    python -m tests.bench.papers_esuli [--quick] [--runs 10] [--report FILE]

The paper's 517,978 Reuters documents are not free to pass on. Here 37 topics are made up: word distributions from one
Dirichlet each, documents of 60 words from a vocabulary of 500, so that the learners meet sparse counts as in print, but
no better than that: only signs and orders can be compared, not figures. Protocol as in section 3.2: 1,000 training and
1,000 test documents, class shares of both from uniform numbers that are normalised. Learners: logistic regression and
naive Bayes with scikit-learn's defaults, as they are and with Platt's calibration; random forests and SVMs are not.
Errata that matter here: what the paper's tables call BS is CE + RE of eq 10 and 11, as printed; SLD stops when the mean
absolute change is below 1e-6, after 1,000 steps at the latest. Beside it stands what the certified maximum gives.
"""

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

from monitor import quality
from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import bayes, em
from tests.bench.options import REPORTS, options
from tests.bench.pictures import pyplot
from tests.bench.tables import claims, markdown

TOPICS, VOCABULARY, WORDS = 37, 500, 60
CONCENTRATION = 0.05
EVENTS = 1_000
CLASSES = (2, 5, 10, 20, 37)
LEARNERS: dict[str, Callable[[], ClassifierMixin]] = {
    "LR": lambda: LogisticRegression(max_iter=300),
    "MNB": MultinomialNB,
    "LR, calibrated": lambda: CalibratedClassifierCV(LogisticRegression(max_iter=300), cv=3),
    "MNB, calibrated": lambda: CalibratedClassifierCV(MultinomialNB(), cv=3),
}
MEASURES = (
    "NAE before",
    "NAE after",
    "BS before",
    "BS after",
    "steps",
    "not converged",
    "NAE at the maximum",
    "entropy",
)

# Tables 1 to 5 (NAE, isometric BS), before and after SLD; Table 11 (steps, share not converged).
PRINTED = {
    "LR": {2: (0.005, 0.013, 0.011, 0.011, 60.86, 0.0018), 5: (0.007, 0.003, 0.005, 0.007, 138.92, 0.002),
           10: (0.014, 0.030, 0.005, 0.007, 476.69, 0.124), 20: (0.017, 0.081, 0.003, 0.006, 939.06, 0.776),
           37: (0.014, 0.137, 0.002, 0.003, 999.62, 0.998)},
    "MNB": {2: (0.116, 0.186, 0.020, 0.025, 29.27, 0.0), 5: (0.022, 0.030, 0.009, 0.012, 53.74, 0.0),
            10: (0.014, 0.035, 0.006, 0.009, 136.46, 0.006), 20: (0.021, 0.075, 0.004, 0.006, 296.92, 0.058),
            37: (0.022, 0.115, 0.002, 0.004, 469.28, 0.14)},
    "LR, calibrated": {2: (0.008, 0.002, 0.004, 0.003, 9.39, 0.0), 5: (0.004, 0.009, 0.002, 0.002, 27.68, 0.0),
                       10: (0.018, 0.026, 0.002, 0.004, 95.87, 0.0), 20: (0.024, 0.047, 0.002, 0.003, 249.06, 0.01),
                       37: (0.026, 0.067, 0.001, 0.003, 368.32, 0.04)},
    "MNB, calibrated": {2: (0.023, 0.014, 0.009, 0.006, 35.69, 0.0082), 5: (0.015, 0.017, 0.005, 0.004, 58.95, 0.004),
                        10: (0.017, 0.020, 0.003, 0.004, 162.36, 0.01), 20: (0.015, 0.047, 0.002, 0.004, 308.40, 0.042),
                        37: (0.015, 0.071, 0.001, 0.003, 507.15, 0.206)},
}  # fmt: skip

Found = dict[str, dict[int, Vector]]


def topics() -> Matrix:
    """Word distributions of the 37 topics; a twentieth of each word's share is common to all."""
    return np.random.default_rng(0).dirichlet(np.full(VOCABULARY, CONCENTRATION), TOPICS) * 0.5 + 0.5 / VOCABULARY


def documents(distributions: Matrix, rng: np.random.Generator) -> tuple[Matrix, Labels]:
    """Word counts under random class shares; every class has at least three documents, which calibration needs."""
    classes = len(distributions)
    share = rng.random(classes)
    labels = np.concatenate(
        [np.tile(np.arange(classes), 3), rng.choice(classes, EVENTS - 3 * classes, p=share / share.sum())]
    )
    return np.array([rng.multinomial(WORDS, distributions[y]) for y in labels], dtype=np.float64), labels


def tfidf(counts: Matrix, training: Matrix) -> Matrix:
    """Eq 13, with log(1 + count), as log(count) drops all words that occur once; cosine-normalised."""
    weights = np.log1p(counts) * np.log(len(training) / np.maximum((training > 0).sum(axis=0), 1))
    return weights / np.maximum(np.linalg.norm(weights, axis=1, keepdims=True), 1e-12)


def one_run(distributions: Matrix, learner: Callable[[], ClassifierMixin], rng: np.random.Generator) -> list[float]:
    """The measures of one train-and-test run."""
    train, train_y = documents(distributions, rng)
    test, test_y = documents(distributions, rng)
    g = learner().fit(tfidf(train, train), train_y).predict_proba(tfidf(test, train))
    g /= g.sum(axis=1, keepdims=True)
    classes = len(distributions)
    source, true = (np.bincount(y, minlength=classes) / EVENTS for y in (train_y, test_y))
    after, best = em.sld(g, source), em.maximum_likelihood(g, source)
    moved = bayes.correct(g, source, after.priors)
    return [
        quality.normalised_absolute_error(true, g.mean(axis=0)),
        quality.normalised_absolute_error(true, after.priors),
        _printed_brier(g, test_y),
        _printed_brier(moved, test_y),
        after.iterations,
        float(after.stop_reason == "iteration cap"),
        quality.normalised_absolute_error(true, best.priors),
        quality.entropy(after.priors),
    ]


def _printed_brier(posteriors: Matrix, labels: Labels) -> float:
    parts = quality.brier_parts(posteriors, labels)
    return parts.printed_calibration_error + parts.printed_refinement_error


def study(sizes: tuple[int, ...], runs: int) -> Found:
    """Means over the runs; all learners see the same documents."""
    found: Found = {name: {} for name in LEARNERS}
    everything = topics()
    for size in sizes:
        for name, learner in LEARNERS.items():
            drawn = [np.random.default_rng([size, run]) for run in range(runs)]
            rows = [one_run(everything[rng.choice(TOPICS, size, replace=False)], learner, rng) for rng in drawn]
            found[name][size] = np.mean(rows, axis=0)
            print(name, size, found[name][size].round(3).tolist(), flush=True)
    return found


def statements(found: Found, sizes: tuple[int, ...]) -> str:
    """What section 4 and 5 conclude."""
    few, many = sizes[0], sizes[-1]
    calibrated = [rows for name, rows in found.items() if "calibrated" in name]
    plain = [rows for name, rows in found.items() if "calibrated" not in name]

    def gain(rows: dict[int, Vector], size: int) -> float:
        return float(1 - rows[size][1] / rows[size][0])

    said = [
        (
            "Two classes, calibrated: SLD improves the priors",
            all(gain(rows, few) > 0 for rows in calibrated),
            ", ".join(f"{gain(rows, few):+.0%}" for rows in calibrated),
        ),
        (
            "Two classes, not calibrated: SLD makes the priors worse",
            all(gain(rows, few) < 0 for rows in plain),
            ", ".join(f"{gain(rows, few):+.0%}" for rows in plain),
        ),
        (
            "The gain shrinks, or turns into loss, as classes are added",
            all(gain(rows, many) < gain(rows, few) for rows in found.values()),
            ", ".join(f"{gain(rows, few):+.0%} to {gain(rows, many):+.0%}" for rows in found.values()),
        ),
        (
            f"At {many} classes SLD makes the priors worse, calibrated or not",
            all(gain(rows, many) < 0 for rows in found.values()),
            ", ".join(f"{gain(rows, many):+.0%}" for rows in found.values()),
        ),
        (
            "Steps to convergence grow with the classes",
            all(rows[many][4] > rows[few][4] for rows in found.values()),
            ", ".join(f"{rows[few][4]:.0f} to {rows[many][4]:.0f}" for rows in found.values()),
        ),
        (
            "(not the paper's) The certified maximum is no better for the priors than SLD as printed",
            all(abs(rows[many][6] - rows[many][1]) < 0.2 * rows[many][1] for rows in found.values()),
            ", ".join(f"{rows[many][1]:.3f} and {rows[many][6]:.3f}" for rows in found.values()),
        ),
    ]
    return claims(said)


def table(found: Found) -> str:
    """Ours, with the paper's in brackets."""
    rows = []
    for name, sizes in found.items():
        for size, ours in sizes.items():
            paper = PRINTED[name][size]
            cells = [f"{a:.3f} ({b:.3f})" for a, b in zip(ours[:4], paper[:4], strict=True)]
            cells += [f"{ours[4]:.0f} ({paper[4]:.0f})", f"{ours[5]:.1%} ({paper[5]:.1%})"]
            rows.append([name, size, *cells, f"{ours[6]:.3f}", f"{ours[7]:.3f}"])
    return markdown(["learner", "classes", *MEASURES], rows)


def picture(found: Found, path: Path) -> None:
    """Error of the priors before and after, and the steps, against the number of classes."""
    plt = pyplot()

    figure, axes = plt.subplots(1, len(found), figsize=(14, 3.4), sharey=True, layout="constrained")
    for axis, (name, rows) in zip(axes, found.items(), strict=True):
        for column, what in ((0, "before SLD"), (1, "after SLD")):
            line = axis.plot(list(rows), [ours[column] for ours in rows.values()], marker="o", label=what)[0]
            printed = [PRINTED[name][size][column] for size in rows]
            axis.plot(list(rows), printed, linestyle=":", color=line.get_color(), label=f"{what}, paper")
        axis.set(title=name, xlabel="classes", yscale="log")
    axes[0].set_ylabel("NAE of the priors")
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = options(__doc__, REPORTS / "papers_esuli.md")
    parser.add_argument("--runs", type=int, default=10, help="train-and-test runs; the paper took 500")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    sizes, runs = ((2, 10), 2) if given.quick else (CLASSES, given.runs)
    found = study(sizes, runs)
    text = "\n".join(
        [
            "# SLD reassessed: Esuli et al. (2020)\n",
            f"Made by `python -m tests.bench.papers_esuli`, {runs} runs a cell (the paper: 500).\n",
            f"The paper{__doc__.partition('The paper')[2]}",
            "## What the paper concludes, and whether it holds here\n",
            statements(found, sizes),
            "## Tables 1 to 5 and 11: ours (paper)\n",
            f"![priors]({given.report.stem}.png)\n",
            table(found),
        ]
    )
    picture(found, given.report.with_suffix(".png"))
    given.report.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
