"""What level do the verdicts on a regression stream have, window after window, and how soon is a change found?

    python -m tests.bench.regression_streams --report tests/bench/reports/regression_streams.md

Windows go through the real panes and the real assessment; evidence of neighbouring windows overlaps where labels are
scarce. Without a shift any verdict but `stable` is a false alarm; the nominal level is 1 % of the windows.

Then windows by themselves, each with labels of its own: of slopes that grow; of noise that grows by itself; and of
regressors that are not linear, whose first two inputs move while the label given the inputs stays as it was.
"""

from functools import cache, partial
from itertools import product

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from monitor.assessment.regressor import assess_regression
from monitor.ports import NEVER
from monitor.reference.regressor import RegressionReference
from monitor.regression import Mixture
from monitor.windows.by_time import TimePlan, TimeWindows
from monitor.windows.label_evidence import EvidencePlan
from monitor.windows.panes import Arrivals
from monitor.windows.window import Window
from tests.bench.options import options

COMMAND = "python -m tests.bench.regression_streams --report tests/bench/reports/regression_streams.md"
MINUTE = 60_000_000
SPAN = 12
EVENTS = 1_000
HOLD_OUT = 5_000
TRUTH = Mixture.of([0.6, 0.4], [[10.0, 4.0, -2.0, 1.0], [7.0, 4.5, -1.5, 2.0]], [1.0, 1.5])
NOISES = {"normal": lambda rng, n: rng.normal(size=n), "Student t, 4 df": lambda rng, n: rng.standard_t(4, n) / 2**0.5}


def draw(rng, rows, noise, slopes=1.0):
    """Predictions, labels and inputs."""
    x = rng.normal(size=(rows, 3))
    component = rng.choice(2, rows, p=TRUTH.weights)
    betas = TRUTH.coefficients[component]
    y = betas[:, 0] + slopes * (betas[:, 1:] * x).sum(axis=1) + TRUTH.sigmas[component] * NOISES[noise](rng, rows)
    return TRUTH.predict(x), y, x


def windows(reference, rng, noise, labels, count, *, changed_at=None):
    """The assessments of consecutive windows; about so many labels in each."""
    evidence = EvidencePlan(SPAN * MINUTE, reference.enough)
    timed = TimeWindows("s", TimePlan(MINUTE, MINUTE, 0, 100_000, evidence=evidence))
    for number in range(count):
        moved = changed_at is not None and number >= changed_at
        said, y, x = draw(rng, EVENTS, noise, 1.2 if moved else 1.0)
        y[rng.random(EVENTS) >= labels / EVENTS] = np.nan
        times = number * MINUTE + np.arange(EVENTS) * (MINUTE // EVENTS)
        rows = Window(np.empty((EVENTS, 0)), x, None, said, y, times)
        before = np.full(EVENTS, times[0])
        timed.add(Arrivals("p", rows, number * EVENTS + np.arange(EVENTS), before, times), NEVER)
        window = timed.close(number * MINUTE, {"p": NEVER}, "watermark")
        timed.prune((number + 1) * MINUTE)
        yield assess_regression(window, reference)


@cache
def reference_of(seed, noise):
    """From hold-out events of its own."""
    said, y, x = draw(np.random.default_rng((seed, 1)), HOLD_OUT, noise)
    return RegressionReference.fit(said, y, x)


def references(count, noise):
    """So many references, each with random numbers for its windows."""
    return [(reference_of(seed, noise), np.random.default_rng((seed, 2))) for seed in range(count)]


def level(noise, labels, runs, count):
    """Shares of windows: tested, relation-shift, covariate-shift, corrected; and of alarms that follow an alarm."""
    tested = relation = covariate = applied = follows = total = 0
    for reference, rng in references(runs, noise):
        before = False
        for found in windows(reference, rng, noise, labels, count):
            alarm = str(found.verdict) == "relation-shift"
            total += 1
            tested += found.relation.tested
            relation += alarm
            covariate += str(found.verdict) == "covariate-shift"
            applied += found.recalibration.apply
            follows += alarm and before
            before = alarm
    return total, tested / total, relation / total, covariate / total, applied / total, follows, relation


def power(noise, labels, runs, before=SPAN, after=3 * SPAN):
    """Windows from the change until it is said, and until it is corrected; the share found within three spans."""
    said, corrected = [], []
    for reference, rng in references(runs, noise):
        first = {"said": None, "corrected": None}
        found = windows(reference, rng, noise, labels, before + after, changed_at=before)
        for number, one in enumerate(found, start=1 - before):
            if number > 0 and str(one.verdict) == "relation-shift":
                first["said"] = first["said"] or number
                if one.recalibration.apply:
                    first["corrected"] = number
                    break
        said.append(first["said"] or np.inf)
        corrected.append(first["corrected"] or np.inf)
    return np.median(said), np.median(corrected), np.mean(np.isfinite(said))


def alone(reference, rng, labels, count, drawn):
    """The assessments of so many windows with evidence of their own; `drawn(rng, rows)` makes their events."""
    for _ in range(count):
        said, y, x = drawn(rng, EVENTS)
        y[labels:] = np.nan
        yield assess_regression(Window.of_predictions(said, x, y), reference)


def shares(found):
    """Of windows: called relation-shift; corrected."""
    rows = [(str(one.verdict) == "relation-shift", one.recalibration.apply) for one in found]
    return np.mean(rows, axis=0)


def grown(noise_by):
    """The world with noise about the mean of each component that is so many times as large."""
    truth = Mixture.of(TRUTH.weights, TRUTH.coefficients, np.array(TRUTH.sigmas) * noise_by)

    def drawn(rng, rows):
        x = rng.normal(size=(rows, 3))
        component = rng.choice(2, rows, p=truth.weights)
        noise = truth.sigmas[component] * rng.normal(size=rows)
        design = np.column_stack([np.ones(rows), x])
        return truth.predict(x), (truth.coefficients[component] * design).sum(axis=1) + noise, x

    return drawn


MEANS = {
    "quadratic": lambda x: x[:, 0] ** 2 + x[:, 1],
    "step functions": lambda x: 3 * (x[:, 0] > 0) + 2 * (x[:, 1] > 0.5) - 1.5 * (x[:, 2] < -0.5),
    "waves": lambda x: 3 * np.sin(1.5 * x[:, 0]) + x[:, 1] ** 2 + 2 * x[:, 2],
}
"""What the labels scatter about, with a standard deviation of 1."""
BOOSTED = "boosted trees on "
REGRESSORS = ("quadratic", "step functions", *(BOOSTED + name for name in MEANS))


@cache
def regressor(name, seed):
    """The mean itself, or boosted trees that were trained on 20,000 rows."""
    mean = MEANS[name.removeprefix(BOOSTED)]
    if not name.startswith(BOOSTED):
        return mean
    rng = np.random.default_rng((seed, 3))
    x = rng.normal(size=(20_000, 3))
    return HistGradientBoostingRegressor(random_state=seed).fit(x, mean(x) + rng.normal(size=20_000)).predict


def curved(name, seed, by):
    """Events of such a regressor after its first two inputs have moved by so many standard deviations."""
    predict, mean = regressor(name, seed), MEANS[name.removeprefix(BOOSTED)]

    def drawn(rng, rows):
        x = rng.normal(size=(rows, 3)) + by * np.array([1.0, -0.5, 0.0])
        return predict(x), mean(x) + rng.normal(size=rows), x

    return drawn


@cache
def nonlinear_reference(name, seed):
    """From hold-out events of its own."""
    return RegressionReference.fit(*curved(name, seed, 0.0)(np.random.default_rng((seed, 4)), HOLD_OUT))


def nonlinear(name, by, labels, runs, count):
    """Shares of windows over references: called relation-shift; corrected."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng((seed, 5, int(10 * by), labels))
        found.append(shares(alone(nonlinear_reference(name, seed), rng, labels, count, curved(name, seed, by))))
    return np.mean(found, axis=0)


def report(references, windows):
    """The page, line by line."""
    yield "# Verdicts on regression streams\n"
    yield f"Made by `{COMMAND}`."
    sizes = f"{references} references of {HOLD_OUT:,} labelled events"
    yield f"Windows of {EVENTS:,} events, evidence of {SPAN} windows, {sizes}.\n"
    yield "## Without a shift\n"
    yield "Shares of all windows. The nominal level of a window's verdict is 1 %, half of it for the relation. It is"
    yield "that of each window by itself: where labels are scarce neighbours share theirs and may alarm in runs.\n"
    heads = "noise | labels a window | windows | tested | relation-shift | covariate-shift | corrected"
    yield f"| {heads} | relation-shifts right after another |"
    yield "|---|---|---|---|---|---|---|---|"
    for noise, labels in [("normal", 200), ("normal", 50), ("normal", 10), ("normal", 2), ("Student t, 4 df", 50)]:
        total, *shares, follows, alarms = level(noise, labels, references, windows)
        cells = " | ".join(f"{share:.2%}" for share in shares)
        yield f"| {noise} | {labels} | {total:,} | {cells} | {follows} of {alarms} |"
    yield "\n## Slopes that grow by a fifth\n"
    yield "Medians over the references, in windows from the change on.\n"
    yield "| labels a window | said after | corrected after | said within 36 windows |"
    yield "|---|---|---|---|"
    for labels in (200, 50, 10):
        said, corrected, share = power("normal", labels, references)
        yield f"| {labels} | {said:g} | {corrected:g} | {share:.0%} |"
    yield "\nShares of windows that have so many labels, by themselves.\n"
    yield "| labels | windows | relation-shift | corrected |"
    yield "|---|---|---|---|"
    for labels in (40, 80, 160):
        steeper = partial(draw, noise="normal", slopes=1.2)
        yield _row(labels, references, windows, steeper)
    yield "\n## Noise that grows by itself\n"
    yield f"The noise is {NOISIER} times as large, the means have stayed: a correction would be wrong.\n"
    yield "| labels | windows | relation-shift | corrected |"
    yield "|---|---|---|---|"
    for labels in (40, 80, 160):
        yield _row(labels, references, windows, grown(NOISIER))
    yield "\n## Regressors that are not linear, and inputs that move\n"
    yield "The first input moves by so many standard deviations, the second by half as many, down; labels given inputs"
    yield f"stay as they were. {references} references, {windows // 4} windows each.\n"
    yield "| regressor | inputs moved by | labels | relation-shift | corrected |"
    yield "|---|---|---|---|---|"
    for name, by, labels in product(REGRESSORS, (0.5, 1.0, 2.0), (50, 300)):
        alarms, applied = nonlinear(name, by, labels, references, windows // 4)
        yield f"| {name} | {by:g} | {labels} | {alarms:.2%} | {applied:.2%} |"


NOISIER = 2.5


def _row(labels, count, windows, drawn):
    each = windows // 4
    found = [shares(alone(reference, rng, labels, each, drawn)) for reference, rng in references(count, "normal")]
    alarms, applied = np.mean(found, axis=0)
    return f"| {labels} | {count * each:,} | {alarms:.1%} | {applied:.1%} |"


def main():
    """Do the study, and write the report."""
    given = options(__doc__).parse_args()
    lines = []
    for line in report(*((2, 20) if given.quick else (8, 100))):
        print(line, flush=True)
        lines.append(line)
    if given.report:
        given.report.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
