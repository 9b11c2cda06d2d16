"""How often is the verdict right? Worlds with known shifts, through the whole of `assess`.

    nice -n 10 python -m tests.bench.verdicts                 # a quarter of an hour: the table and picture in reports/
    nice -n 10 python -m tests.bench.verdicts --full          # hours: 200 windows in every cell

Three worlds: `gauss` (classes with covariances of their own, scored by Bayes' rule itself), `skewed` (long-tailed
features, scored by a fitted logistic regression: miscalibrated as real models are) and `mixed` (two clusters a
class, one category and one boolean among the features, scored by a logistic regression on squares).
"""

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from monitor.arrays import Labels, Matrix, Vector
from monitor.assessment import CHEAP, Assessment, assess
from monitor.priors import ESTIMATORS, em, nulls
from monitor.reference import Reference
from monitor.schema import Feature, StreamSchema
from monitor.tolerances import VERDICT_LEVEL
from monitor.verdict import Verdict
from monitor.windows import Window

REPORTS = Path(__file__).parent / "reports"
NUMBERS = 4
"""Numeric features of the mixed world; the others have six."""

SHIFTS: dict[str, Verdict] = {
    "none": Verdict.STABLE,
    "prior": Verdict.PRIOR_SHIFT,
    "linear": Verdict.COVARIATE_SHIFT,
    "monotone": Verdict.COVARIATE_SHIFT,
    "both": Verdict.PRIOR_AND_COVARIATE_SHIFT,
    "unknown": Verdict.UNKNOWN_CLASS,
    "rotated": Verdict.UNEXPLAINED,
}


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """Where events come from, and the model that scores them."""

    kind: str
    priors: Vector
    centres: Matrix
    spreads: np.ndarray
    shares: Matrix
    """Of the categories, by class; without columns where there are none."""
    model: Pipeline | None

    @property
    def classes(self) -> int:
        return self.priors.size

    @property
    def numbers(self) -> int:
        return self.centres.shape[1]

    def schema(self) -> StreamSchema:
        """Numbers first, then the category and the boolean."""
        features = [Feature(f"x{j}") for j in range(self.numbers)]
        if self.shares.size:
            features += [
                Feature("channel", "category", tuple("abcd")),
                Feature("returning", "boolean", ("false", "true")),
            ]
        return StreamSchema("study", tuple(f"class {y}" for y in range(self.classes)), tuple(features))

    def inside(self, labels: Labels, rng: np.random.Generator, rotation: Matrix | None = None) -> Matrix:
        """Numbers before they are made long-tailed, each class about its own centre."""
        x = np.empty((labels.size, self.numbers))
        for y in range(self.classes):
            rows = np.flatnonzero(labels == y)
            z = rng.normal(size=(rows.size, self.numbers)) @ self.spreads[y].T
            if self.kind == "mixed":
                z += np.where(rng.random(rows.size) < 0.5, 1.0, -1.0)[:, None] * 0.8 * self.spreads[y][:, 0]
            x[rows] = self.centres[y] + (z if rotation is None else z @ rotation.T)
        return x

    def outside(self, inside: Matrix, labels: Labels, rng: np.random.Generator) -> Matrix:
        """The features as a model sees them."""
        x = np.where(np.arange(self.numbers) % 2 == 0, np.exp(inside / 2), inside) if self.kind == "skewed" else inside
        if not self.shares.size:
            return x
        drawn = (rng.random(labels.size)[:, None] > np.cumsum(self.shares[labels], axis=1)).sum(axis=1)
        flag = rng.random(labels.size) < 0.2 + 0.6 * labels / max(self.classes - 1, 1)
        return np.column_stack([x, np.minimum(drawn, self.shares.shape[1] - 1), flag])

    def posteriors(self, features: Matrix) -> Matrix:
        """What the model says; for `gauss`, Bayes' rule."""
        if self.model is not None:
            return np.asarray(self.model.predict_proba(features))
        logs = np.empty((features.shape[0], self.classes))
        for y in range(self.classes):
            z = np.linalg.solve(self.spreads[y], (features - self.centres[y]).T)
            logs[:, y] = np.log(self.priors[y]) - (z**2).sum(axis=0) / 2 - np.linalg.slogdet(self.spreads[y])[1]
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def world(kind: str, classes: int, seed: int) -> World:
    """A random world of this kind."""
    rng = np.random.default_rng(seed)
    numbers = NUMBERS if kind == "mixed" else 6
    spreads = np.stack([np.linalg.cholesky(np.cov(rng.normal(size=(numbers, 3 * numbers)))) for _ in range(classes)])
    made = World(
        kind=kind,
        priors=rng.dirichlet(np.full(classes, 8.0)),
        centres=rng.normal(size=(classes, numbers)) * 1.2,
        spreads=spreads,
        shares=rng.dirichlet(np.full(4, 3.0), size=classes) if kind == "mixed" else np.zeros((0, 0)),
        model=None,
    )
    if kind == "gauss":
        return made
    labels = rng.choice(classes, size=5_000, p=made.priors)
    features = made.outside(made.inside(labels, rng), labels, rng)
    squares = [PolynomialFeatures(2, include_bias=False)] if kind == "mixed" else []
    model = make_pipeline(StandardScaler(), *squares, LogisticRegression(max_iter=200, tol=1e-3))
    model.fit(features, labels)
    return World(kind, made.priors, made.centres, spreads, made.shares, model)


def moved_priors(priors: Vector, rng: np.random.Generator) -> Vector:
    """Another class mix, with Cohen's w between 0.25 and 1."""
    while True:
        drawn = rng.dirichlet(priors * 12 + 0.5)
        if 0.25 <= np.sqrt(((drawn - priors) ** 2 / priors).sum()) <= 1.0:
            return np.asarray(drawn)


def window(made: World, shift: str, size: int, rng: np.random.Generator) -> Window:
    """A window with one kind of shift, scored by the world's model."""
    priors = moved_priors(made.priors, rng) if shift in {"prior", "both"} else made.priors
    labels = rng.choice(made.classes, size=size, p=priors)
    rotation = None
    if shift == "rotated":
        # Two numbers at a time trade places: every number keeps its centre, and gets its neighbour's noise.
        angle = np.pi / 3
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        rotation = np.kron(np.eye(made.numbers // 2), turn)
    inside = made.inside(labels, rng, rotation)
    if shift == "unknown":
        newcomers = rng.random(size) < 0.05
        inside[newcomers] = _elsewhere(made) + rng.normal(size=(int(newcomers.sum()), made.numbers))
    features = made.outside(inside, labels, rng)
    column = int(rng.integers(made.numbers))
    values = features[:, column]
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    unit = (high - low) / 1.349
    if shift in {"linear", "both"}:
        features[:, column] = 1.2 * values + 0.4 * unit * rng.choice([-1.0, 1.0])
    if shift == "monotone":
        z = (values - middle) / unit
        features[:, column] = middle + unit * np.where(z > 0, 1.8, 0.7) * z
    return Window.of(made.posteriors(features), features)


def _elsewhere(made: World) -> Vector:
    """The same place for a world: the furthest from all classes of many that are 4 to 6 away from the centre."""
    rng = np.random.default_rng(7)
    places = rng.normal(size=(500, made.numbers))
    places *= (rng.uniform(4, 6, size=500) / np.linalg.norm(places, axis=1))[:, None]
    nearest = np.linalg.norm(places[:, None] - made.centres, axis=2).min(axis=1)
    return np.asarray(places[int(nearest.argmax())])


def reference(made: World, rows: int, rng: np.random.Generator) -> Reference:
    """A reference with the cheap estimators only: nothing else is looked at here, and the rest takes minutes."""
    labels = rng.choice(made.classes, size=rows, p=made.priors)
    labels[: 2 * made.classes] = np.tile(np.arange(made.classes), 2)
    features = made.outside(made.inside(labels, rng), labels, rng)
    cheap = {name: ESTIMATORS[name] for name in CHEAP}
    with patch.dict(ESTIMATORS, cheap, clear=True):
        return Reference.reduce(made.schema(), made.posteriors(features), labels, features, seed=0, estimator="em")


@dataclass(frozen=True, slots=True)
class Cell:
    """What `assess` said of the windows of one kind."""

    kind: str
    classes: int
    size: int
    shift: str
    fresh: bool
    """A new reference every few windows instead of one for all."""
    said: dict[str, int]
    plain_alarms: int
    """Windows with a feature that plain KS or chi-square flags at the nominal level, Bonferroni-corrected."""
    covariate_alarms: int
    """Windows with a feature that counts as moved beyond the class mix."""

    @property
    def windows(self) -> int:
        return sum(self.said.values())

    @property
    def right(self) -> int:
        return self.said.get(SHIFTS[self.shift].value, 0)


def cell(made: World, size: int, shift: str, windows: int, fixed: Reference | None = None) -> Cell:
    """One cell of the study; without a fixed reference every fourth window gets a new one."""
    rng = np.random.default_rng([size, made.classes, list(SHIFTS).index(shift)])
    said: Counter[str] = Counter()
    plain = covariate = 0
    known = fixed
    for i in range(windows):
        if known is None or (fixed is None and i % 4 == 0):
            known = reference(made, 10 * size, rng)
        found = assess(window(made, shift, size, rng), known)
        said[found.verdict.value] += 1
        plain += _plain_alarm(found)
        covariate += any(feature.moved for feature in found.features.values())
    return Cell(made.kind, made.classes, size, shift, fixed is None, dict(said), plain, covariate)


def _plain_alarm(found: Assessment) -> bool:
    p_values = [feature.move.plain_p for feature in found.features.values()]
    return min(p_values) * len(p_values) < VERDICT_LEVEL


def sharpened(windows: int, size: int, level: float) -> dict[str, float]:
    """How often the likelihood-ratio test rejects a true null when posteriors were sharpened by temperature 2."""
    # One frequent and two rare classes that overlap: where classes hardly do, posteriors are near 0 and 1 whatever the
    # temperature, and where all are equally frequent sharpening favours none.
    priors, numbers = np.array([0.8, 0.15, 0.05]), 3
    spreads = np.stack([np.eye(numbers)] * priors.size)
    made = World("gauss", priors, 1.2 * np.eye(numbers), spreads, np.zeros((0, 0)), None)
    rng = np.random.default_rng(11)

    def scored(rows: int) -> tuple[Matrix, Labels]:
        labels = rng.choice(made.classes, size=rows, p=made.priors)
        g = made.posteriors(made.outside(made.inside(labels, rng), labels, rng)) ** 2
        return g / g.sum(axis=1, keepdims=True), labels

    g, labels = scored(10 * size)
    pi = np.bincount(labels) / labels.size
    null = nulls.calibrate(g, pi)
    tested = [scored(size)[0] for _ in range(windows)]
    return {
        "chi-square null": float(np.mean([em.likelihood_ratio(w, pi).p_value < level for w in tested])),
        "calibrated null": float(np.mean([em.likelihood_ratio(w, pi, null).p_value < level for w in tested])),
    }


def study(kinds: list[str], classes: list[int], sizes: dict[int, int], level_windows: int) -> list[Cell]:
    """All cells: one reference for all shifts of a world, and fresh references for the windows without a shift."""
    cells = []
    for kind in kinds:
        for c in classes:
            made = world(kind, c, c)
            for size, windows in sizes.items():
                fixed = reference(made, 10 * size, np.random.default_rng([size, c]))
                cells += [cell(made, size, shift, windows, fixed) for shift in SHIFTS]
                print(kind, c, size, [f"{x.shift} {x.right}/{x.windows}" for x in cells[-len(SHIFTS) :]], flush=True)
    made = world("gauss", 3, 3)
    fixed = reference(made, 10_000, np.random.default_rng(3))
    for shift in ("none", "prior"):
        cells.append(cell(made, 1_000, shift, level_windows, fixed))
        cells.append(cell(made, 1_000, shift, level_windows))
    return cells


def report(cells: list[Cell], levels: dict[str, dict[str, float]], command: str) -> str:
    """The tables as Markdown."""
    main, level_cells = cells[:-4], cells[-4:]
    lines = [
        "# How often the verdict is right",
        "",
        f"Made by `{command}`. Level {VERDICT_LEVEL:.0%} a window; references of ten windows. Shifts: `prior` has",
        "Cohen's w of 0.25 to 1; `linear` one feature times 1.2, moved by 0.4 sd; `monotone` one feature stretched by",
        "1.8 above its median and 0.7 below; `both` of the first two; `unknown` 5 % of the events in a new cluster;",
        "`rotated` every class turned by 60 degrees about its centre, in pairs of features.",
        "",
        "| world | classes | window | " + " | ".join(SHIFTS) + " |",
        "|---|---|---|" + "---|" * len(SHIFTS),
    ]
    for row in _rows(main):
        first = row[0]
        lines.append(
            f"| {first.kind} | {first.classes} | {first.size:,} | "
            + " | ".join(f"{x.right}/{x.windows}" for x in row)
            + " |"
        )
    lines += ["", "## Confusion at 5,000 events", "", "| shift | " + " | ".join(v.value for v in Verdict) + " |"]
    lines.append("|---|" + "---|" * len(Verdict))
    for shift in SHIFTS:
        total = _said(main, shift, 5_000)
        lines.append(f"| {shift} | " + " | ".join(str(total.get(v.value, 0)) for v in Verdict) + " |")
    lines += [
        "",
        "## False alarms: the class mix alone moved, or nothing did",
        "",
        "Windows of 1,000 in the world `gauss` with three classes. The last two columns are windows in which some",
        "feature was flagged: by plain tests of every feature (Bonferroni), and beyond the class mix.",
        "",
        "| shift | references | windows | wrong verdicts | 99 % bound at the level | plain KS | beyond the mix |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {x.shift} | {'fresh' if x.fresh else 'one'} | {x.windows} | {x.windows - x.right} | "
        f"{int(binom.ppf(0.99, x.windows, VERDICT_LEVEL))} | {x.plain_alarms} | {x.covariate_alarms} |"
        for x in level_cells
    ]
    pure = [x for x in main if x.shift == "prior"]
    lines += [
        "",
        f"Over all worlds and sizes, of {sum(x.windows for x in pure)} windows under a pure prior shift plain tests "
        f"flagged a feature in {sum(x.plain_alarms for x in pure)}, tests beyond the class mix in "
        f"{sum(x.covariate_alarms for x in pure)}.",
        "",
        "## Posteriors sharpened by temperature 2, nothing moved",
        "",
        "| window | chi-square null rejects | calibrated null rejects |",
        "|---|---|---|",
    ]
    lines += [
        f"| {size} | {found['chi-square null']:.1%} | {found['calibrated null']:.1%} |"
        for size, found in levels.items()
    ]
    return "\n".join(lines) + "\n"


def _rows(cells: list[Cell]) -> list[list[Cell]]:
    width = len(SHIFTS)
    return [cells[i : i + width] for i in range(0, len(cells), width)]


def _said(cells: list[Cell], shift: str, size: int) -> Counter[str]:
    total: Counter[str] = Counter()
    for x in cells:
        if x.shift == shift and x.size == size:
            total.update(x.said)
    return total


def picture(cells: list[Cell], path: Path) -> None:
    """The confusion matrices as shares, one for each window size."""
    import matplotlib  # noqa: PLC0415 - only the picture needs it

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    sizes = sorted({x.size for x in cells})
    figure, axes = plt.subplots(1, len(sizes), figsize=(5.5 * len(sizes), 5), squeeze=False, layout="constrained")
    for axis, size in zip(axes[0], sizes, strict=True):
        matrix = np.array([[_said(cells, s, size).get(v.value, 0) for v in Verdict] for s in SHIFTS], dtype=float)
        matrix /= np.maximum(matrix.sum(axis=1, keepdims=True), 1)
        axis.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
        for (i, j), share in np.ndenumerate(matrix):
            if share > 0:
                axis.text(j, i, f"{share:.2f}", ha="center", va="center", color="white" if share > 0.5 else "black")
        axis.set_xticks(range(len(Verdict)), [v.value for v in Verdict], rotation=40, ha="right")
        axis.set_yticks(range(len(SHIFTS)), list(SHIFTS))
        axis.set_title(f"windows of {size:,}")
    figure.savefig(path, dpi=90)


def main() -> None:
    """Run the study and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="200 windows in every cell")
    parser.add_argument("--windows", type=int, default=48, help="windows in every cell, a quarter at 50,000")
    options = parser.parse_args()
    few = options.windows
    sizes = {1_000: 200, 5_000: 200, 50_000: 200} if options.full else {1_000: few, 5_000: few, 50_000: few // 4}
    cells = study(["gauss", "skewed", "mixed"], [2, 3, 10], sizes, 1_000 if options.full else 200)
    levels = {f"{size:,}": sharpened(200, size, VERDICT_LEVEL) for size in (200, 2_000)}
    command = "python -m tests.bench.verdicts" + (" --full" if options.full else f" --windows {options.windows}")
    REPORTS.mkdir(exist_ok=True)
    text = report(cells, levels, command)
    (REPORTS / "verdicts.md").write_text(text, encoding="utf-8")
    picture(cells[:-4], REPORTS / "verdicts.png")
    print(text)


if __name__ == "__main__":
    main()
