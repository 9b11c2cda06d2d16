"""How accurate is `em-debiased` on hold-outs of 200 and 500 events, and do its intervals hold?

    python -m tests.bench.accuracy_small --data FOLDER --peer quapy=PYTHON --state cells.jsonl [--seconds 300]

The published rivals are EM with bias-corrected temperature or vector scaling, the energy distance, DyS (for two
classes) and PACC, on the same posteriors and the same samples (see `accuracy`). Real tables come from the folder, and
two with scikit-learn; the other problems are made up, and have as many test events as an interval's figure wants: an
interval holds where it holds the mix of the window. All windows of a split share the hold-out's error, so that eight
splits tell little of intervals: they are looked at in forty. Every split that is done stands in the state file.
"""

import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor.priors import DEFAULT, ESTIMATORS
from monitor.reference.classifier import Reference
from monitor.windows import Window
from tests.bench import accuracy
from tests.bench.accuracy import STAND_IN, Problem
from tests.bench.options import REPORTS, options

HELD_OUT = (200, 500)
SPLITS, COVERAGE_SPLITS, WINDOWS = 8, 40, 20
RIVALS = ("EMQ-BCTS", "EMQ-VS", "EDy", "DyS", "PACC")
OURS = DEFAULT
COVERED_FROM = 2_000
"""Test events below which a window's own events repeat: an interval does not know of that."""

_LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())
_FOREST = RandomForestClassifier(60, min_samples_leaf=3, random_state=0)


def problems(data: Path | None) -> Iterator[Problem]:
    """The real tables that are there, and those that are made up."""
    yield Problem("breast cancer, naive Bayes", lambda: load_breast_cancer(return_X_y=True), GaussianNB(), 120, 0)
    yield Problem("digits, logistic", lambda: load_digits(return_X_y=True), _LOGISTIC, 500, 0)
    yield Problem("made up, 2 classes, naive Bayes", accuracy.informative(2, 12_000, 0.5, 112), GaussianNB(), 2_000, 0)
    yield Problem("made up, 3 classes, forest", accuracy.informative(3, 12_000, 0.6, 113), _FOREST, 2_000, 0)
    yield Problem("made up, 5 classes, logistic", accuracy.informative(5, 14_000, 0.7, 116), _LOGISTIC, 2_000, 0)
    if data is None:
        return
    yield Problem("banknote, naive Bayes", _table(data / "banknote_authentication.csv"), GaussianNB(), 300, 0)
    yield Problem("phoneme, naive Bayes", _table(data / "phoneme.csv"), GaussianNB(), 1_500, 0)
    yield Problem("phoneme, forest", _table(data / "phoneme.csv"), _FOREST, 1_500, 0)
    yield Problem("pima, logistic", _table(data / "pima-indians-diabetes.csv"), _LOGISTIC, 250, 0)
    yield Problem("abalone, logistic", _abalone(data / "abalone.csv"), _LOGISTIC, 1_000, 0)
    yield Problem("abalone, forest", _abalone(data / "abalone.csv"), _FOREST, 1_000, 0)
    yield Problem("weather, forest", _table(data / "weather.csv", header=1), _FOREST, 3_000, 0)
    yield Problem("weather, naive Bayes", _table(data / "weather.csv", header=1), GaussianNB(), 3_000, 0)


def _table(path: Path, header: int = 0) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def read() -> tuple[np.ndarray, np.ndarray]:
        rows = np.loadtxt(path, delimiter=",", skiprows=header)
        return rows[:, :-1], rows[:, -1].astype(int)

    return read


def _abalone(path: Path) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """The class is the third of the rings."""

    def read() -> tuple[np.ndarray, np.ndarray]:
        rows = np.loadtxt(path, delimiter=",", usecols=range(1, 9))
        return rows[:, :-1], np.searchsorted(np.quantile(rows[:, -1], [1 / 3, 2 / 3]), rows[:, -1])

    return read


def one_split(problem: Problem, seed: int, interpreter: str | None, windows: int) -> dict[str, object]:
    """Errors of all methods, and of ours how often an interval held a class's share."""
    case = accuracy.split(problem, seed, windows)
    estimates, held = ours(case)
    if seed < SPLITS:
        estimates[STAND_IN] = accuracy.stand_in(case)
    if seed < SPLITS and interpreter is not None:
        wanted = RIVALS if case["true"].shape[1] == 2 else tuple(name for name in RIVALS if name != "DyS")
        estimates |= {name: each for name, each in accuracy.theirs(case, interpreter, wanted).items() if name in RIVALS}
    error = accuracy.errors(estimates, case["true"], tuple(estimates))
    return {"error": error, "held": held, "pool": len(case["pool"])}


def ours(case: Mapping[str, np.ndarray]) -> tuple[dict[str, np.ndarray], float]:
    """What we say of every window, and how often its intervals hold."""
    reference = Reference.fit(case["hold_out"], case["labels"])
    said = [ESTIMATORS[OURS](Window.of(case["pool"][rows]), reference) for rows in case["samples"]]
    held = np.mean([(one.lower <= t) & (t <= one.upper) for one, t in zip(said, case["true"], strict=True)])
    return {OURS: np.array([one.priors for one in said])}, float(held)


def study(data: Path | None, interpreter: str | None, state: Path, seconds: float, quick: bool) -> list[dict]:
    """Do what the state file does not hold yet, for so many seconds of CPU."""
    done = [json.loads(line) for line in state.read_text().splitlines()] if state.exists() else []
    known = {(one["problem"], one["held_out"], one["seed"]) for one in done}
    for seed in range(1 if quick else COVERAGE_SPLITS):
        for problem in problems(data):
            for held_out in HELD_OUT:
                if (problem.name, held_out, seed) in known or not _fits(problem, held_out, 200):
                    continue
                if seed >= SPLITS and not _fits(problem, held_out, COVERED_FROM):
                    continue
                if time.process_time() > seconds:
                    return done
                found = one_split(replace(problem, held_out=held_out), seed, interpreter, 5 if quick else WINDOWS)
                done.append({"problem": problem.name, "held_out": held_out, "seed": seed, **found})
                with state.open("a") as file:
                    file.write(json.dumps(done[-1]) + "\n")
    return done


def _fits(problem: Problem, held_out: int, left: int) -> bool:
    """Whether so many test events are left."""
    return len(problem.data()[1]) >= problem.train + held_out + left


def report(done: list[dict]) -> list[str]:
    """The tables as Markdown."""
    cells = sorted({(one["problem"], one["held_out"]) for one in done})
    rivals = [name for name in (*RIVALS, STAND_IN) if any(name in one["error"] for one in done)]
    names = [*rivals, OURS]
    lines = [
        "# Accuracy on small hold-outs",
        "",
        "Made by `python -m tests.bench.accuracy_small --data FOLDER --peer quapy=PYTHON --state FILE`: mean absolute",
        f"error of the class mix over up to {SPLITS} splits of {WINDOWS} windows of {accuracy.EVENTS} events, mixes",
        f"uniform on the simplex. {STAND_IN} is EMQ-BCTS with our own fit of the temperature. The last columns say how",
        f"often the 95 % interval of a class holds its share, in {COVERAGE_SPLITS} splits, where at least",
        f"{COVERED_FROM:,} test events are left; the error is that of the mean over splits.",
        "",
        f"| problem | hold-out | {' | '.join(names)} | {OURS} / best rival | {OURS} holds | error |",
        "|---" * (len(names) + 5) + "|",
    ]
    ratios: list[list[float]] = []
    for problem, held_out in cells:
        rows = [one for one in done if (one["problem"], one["held_out"]) == (problem, held_out)]
        beside = [row for row in rows if row["seed"] < SPLITS]
        mean = {n: float(np.mean([row["error"].get(n, np.nan) for row in beside])) for n in names}
        held = np.array([row["held"] if row["pool"] >= COVERED_FROM else np.nan for row in rows])
        ratios.append([mean[OURS] / float(np.nanmin([mean[n] for n in rivals])), float(held.mean())])
        told = [*(f"{mean[n]:.4f}" for n in names), *(f"{x:.3f}" for x in (*ratios[-1], held.std() / len(held) ** 0.5))]
        lines.append(f"| {problem} | {held_out} | " + " | ".join(told).replace("nan", "") + " |")
    means = [f"{x:.3f}" for x in np.nanmean(ratios, axis=0)]
    lines.append("| **mean** | " + "| " * (len(names) + 1) + "| " + " | ".join(means) + " | |")
    return lines


def main() -> None:
    """Go on with the study, and write the report of what is done."""
    parser = options(__doc__, REPORTS / "accuracy_small.md")
    parser.add_argument("--data", type=Path, help="folder of the public tables; without it those are left out")
    parser.add_argument("--peer", action="append", default=[], metavar="quapy=PYTHON")
    parser.add_argument("--state", type=Path, help="JSON lines: the splits that are done")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of CPU, after which no split is begun")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        state = given.state or Path(folder) / "cells.jsonl"
        done = study(given.data, accuracy.with_quapy(given.peer), state, given.seconds, given.quick)
    lines = report(done)
    print("\n".join(lines))
    if given.report is not None:
        given.report.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
