"""What level do the verdicts on a regression stream have, window after window, and how soon is a change found?

    python -m tests.bench.regression_streams --report tests/bench/reports/regression_streams.md

Windows go through the real panes and the real assessment; evidence of neighbouring windows overlaps where labels are
scarce. Without a shift any verdict but `stable` is a false alarm; the nominal level is 1 % of the windows.
"""

from functools import cache

import numpy as np

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
