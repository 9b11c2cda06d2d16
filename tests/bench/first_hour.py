"""Does a monitor stay calm when a producer rounds? Calm windows of five kinds of models, written in six ways.

    python -m tests.bench.first_hour [--quick] [--report tests/bench/reports/first_hour.md]

Each model is fitted by scikit-learn, its reference is built from what the model says exactly, and windows of further
events come with scores and features as some producer may write them: as they are, in single precision, or with 3 to 6
decimals. Nothing moves: a window that is not `stable` is a false alarm. Streams of further kinds come after that
(`first_hour_streams`). Six minutes of CPU for the first, three for the second.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from unittest.mock import patch

import numpy as np
from scipy.stats import binom
from sklearn.base import ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference, Window, assess
from monitor.arrays import Labels, Matrix
from monitor.priors import ESTIMATORS
from monitor.tolerances import VERDICT_LEVEL
from tests.bench import first_hour_streams
from tests.bench.options import REPORTS, options
from tests.estimators import QUICK

MODELS: dict[str, ClassifierMixin] = {
    "boosted trees": HistGradientBoostingClassifier(max_iter=10, max_leaf_nodes=5, random_state=0),
    "forest": RandomForestClassifier(80, min_samples_leaf=3, random_state=0, n_jobs=1),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
    "naive Bayes": GaussianNB(),
    "network": make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=60, random_state=0)),
}
WRITTEN: dict[str, Callable[[Matrix], Matrix]] = {
    "exact": lambda x: x,
    "float32": lambda x: x.astype(np.float32).astype(np.float64),
    "6 decimals": lambda x: np.round(x, 6),
    "5 decimals": lambda x: np.round(x, 5),
    "4 decimals": lambda x: np.round(x, 4),
    "3 decimals": lambda x: np.round(x, 3),
}
CLASSES = (2, 3)
TRAIN, HELD_OUT, EVENTS, POOL = 4_000, 20_000, 2_000, 150_000
REFERENCES, WINDOWS = 5, 100
"""Of each cell and number of classes: so many references, with so many windows each."""
ALLOWED = 0.015


@dataclass(frozen=True, slots=True)
class Pool:
    """Events that a model has scored, and references of others like them."""

    features: Matrix
    scores: Matrix
    references: list[Reference]


def events(classes: int, rows: int) -> tuple[Matrix, Labels]:
    """Ten numbers that matter, one of three values that are no multiples of a power of two, and one mostly zero."""
    x, y = make_classification(
        rows, 10, n_informative=6, n_classes=classes, weights=[0.8] if classes == 2 else [0.6, 0.3],
        class_sep=0.8, flip_y=0.03, random_state=classes,
    )  # fmt: skip
    rng = np.random.default_rng(classes)
    tariff = np.array([0.1, 0.2, 0.35])[np.minimum(rng.integers(0, 3, rows), y + 1)]
    gain = np.where(rng.random(rows) < 0.1 + 0.05 * y, rng.lognormal(8, 1, rows), 0.0)
    return np.column_stack([x, tariff, gain]), y


def scored(model: ClassifierMixin, classes: int, references: int) -> Pool:
    """A model, and so many references of what it says."""
    x, y = events(classes, TRAIN + references * HELD_OUT + POOL)
    said = clone(model).fit(x[:TRAIN], y[:TRAIN]).predict_proba(x)
    hold_outs = [slice(start, start + HELD_OUT) for start in range(TRAIN, y.size - POOL, HELD_OUT)]
    with patch.dict(ESTIMATORS, QUICK, clear=True):
        known = [Reference.fit(said[rows], y[rows], x[rows]) for rows in hold_outs]
    return Pool(x[-POOL:], said[-POOL:], known)


def alarms(pool: Pool, write: Callable[[Matrix], Matrix], windows: int) -> int:
    """Windows that were not `stable`; the same events for every way of writing."""
    rng = np.random.default_rng(pool.scores.shape[1])
    features, scores = write(pool.features), write(pool.scores)
    return sum(
        assess(Window.of(scores[rows], features[rows]), reference).verdict != "stable"
        for reference in pool.references
        for rows in (rng.choice(POOL, EVENTS, replace=False) for _ in range(windows))
    )


def writing(references: int, windows: int) -> Iterator[str]:
    """The table of how producers write, as Markdown."""
    count = len(CLASSES) * references * windows
    most = int(binom.ppf(0.99, count, VERDICT_LEVEL))
    yield from (
        "## Calm windows that are not `stable`, by how the producer writes its numbers",
        "",
        f"{count:,} windows of {EVENTS:,} events a cell, half of them with two classes and half with three, against",
        f"{references} references each of {HELD_OUT:,} events. Promised are {VERDICT_LEVEL:.0%}; by chance alone one",
        f"cell in a hundred has more than {most}. More than {ALLOWED:.1%} is in bold.",
        "",
        "| model | " + " | ".join(WRITTEN) + " |",
        "|---|" + "---|" * len(WRITTEN),
    )
    for name, model in MODELS.items():
        pools = [scored(model, classes, references) for classes in CLASSES]
        counts = [sum(alarms(pool, write, windows) for pool in pools) for write in WRITTEN.values()]
        cells = [f"**{n}**" if n > ALLOWED * count else str(n) for n in counts]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


def streams(number: int) -> Iterator[str]:
    """The table of the streams, as Markdown."""
    yield from (
        f"## {number * len(first_hour_streams.KINDS)} streams of the kinds that people begin with",
        "",
        f"{number} streams of each kind, each with a model, a hold-out and windows of its own. Calm windows: false",
        f"alarms, and the bounds of a binomial at {VERDICT_LEVEL:.0%} (1 % to 99 %). Beside them what is said where",
        "the second class comes twice as often, and where a column changes its unit.",
        "",
        "| kind | calm windows | not `stable` | bounds | mix moved: verdicts | unit changed: verdicts |",
        "|---|---|---|---|---|---|",
    )
    for name in first_hour_streams.KINDS:
        said = first_hour_streams.counted(name, number)
        calm = said["calm"].total()
        low, high = (int(binom.ppf(q, calm, VERDICT_LEVEL)) for q in (0.01, 0.99))
        told = (", ".join(f"{verdict} {n}" for verdict, n in said[key].most_common()) for key in ("mix", "unit"))
        yield f"| {name} | {calm} | {calm - said['calm']['stable']} | {low} to {high} | {' | '.join(told)} |"


def main() -> None:
    """The tables as Markdown; what is done stands in the report."""
    given = options(__doc__, REPORTS / "first_hour.md").parse_args()
    references, windows, number = (1, 10, 1) if given.quick else (REFERENCES, WINDOWS, first_hour_streams.STREAMS)
    lines = ["# The first hour", "", "Made by `python -m tests.bench.first_hour`.", ""]
    for line in chain(writing(references, windows), streams(number)):
        print(line, flush=True)
        lines.append(line)
        if given.report is not None:
            given.report.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
