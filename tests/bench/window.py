"""What a window costs: CPU of a full assessment and of its KS part, beside its peers, and how it grows.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m tests.bench.window \\
        --peer evidently=PYTHON --peer nannyml=PYTHON --peer alibi-detect=PYTHON

Times are CPU seconds of one thread, the best of several, from one run. The peers' requirements conflict with each
other's: each is timed by a Python of its own, on the same two tables; those that are not given or fail are named.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from river import drift
from scipy.stats import ks_2samp

from monitor.arrays import Matrix
from monitor.assessment.classifier import assess
from monitor.ports.schema import Feature, StreamSchema
from monitor.priors import ESTIMATORS
from monitor.reference.classifier import Reference
from monitor.shifts import feature_tests as moves
from monitor.shifts import window_view as looked
from monitor.shifts.prepared import Prepared, prepare
from monitor.tolerances import VERDICT_LEVEL
from monitor.windows.window import Window
from tests.bench.options import REPORTS, options, pythons
from tests.estimators import QUICK

ROWS, FEATURES, CLASSES = 10_000, 10, 3
KSWIN_EVENTS = 500
PEERS = {"evidently": "Evidently", "nannyml": "NannyML", "alibi-detect": "alibi-detect"}


def columns(rows: int, features: int, classes: int, seed: int) -> tuple[Matrix, Matrix, np.ndarray]:
    """Posteriors by Bayes' rule, features, labels."""
    centres = np.random.default_rng(0).normal(size=(classes, features))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, size=rows)
    x = centres[labels] + rng.normal(size=(rows, features))
    logs = x @ centres.T - (centres**2).sum(axis=1) / 2
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True), x, labels


def reference(features: int) -> Reference:
    """10,000 rows; the cheap estimators, which are those that a window reports."""
    g, x, labels = columns(ROWS, features, CLASSES, 1)
    schema = StreamSchema("bench", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(features)))
    with patch.dict(ESTIMATORS, QUICK, clear=True):
        return Reference.reduce(schema, g, labels, x, seed=0, calibration="temperature")


def window(rows: int, features: int, shift: float = 0.0, unknown: float = 0.0) -> Window:
    """A window, one feature moved by `shift`, and a share of its events from a class that nobody knew."""
    _, x, _ = columns(rows, features, CLASSES, 2)
    x[:, 0] += shift
    x[: int(unknown * rows)] = 5 + np.random.default_rng(1).normal(size=(int(unknown * rows), features))
    centres = np.random.default_rng(0).normal(size=(CLASSES, features))
    logs = x @ centres.T - (centres**2).sum(axis=1) / 2
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return Window.of(odds / odds.sum(axis=1, keepdims=True), x)


def cpu(work: Callable[[], object], times: int) -> float:
    """The least CPU milliseconds of several runs, after one to warm up."""
    work()
    best = np.inf
    for _ in range(times):
        begun = time.process_time()
        work()
        best = min(best, time.process_time() - begun)
    return best * 1e3


def ks_part(one: Window, ready: Prepared) -> None:
    """Sort, merge, plain and reweighted distance and p-value of every feature."""
    assert one.features is not None
    seen = looked.seen_columns(ready.features, one.features)
    moves.corrected(moves.compared(seen, ready.source_priors), VERDICT_LEVEL)


def _sorted(one: Window) -> None:
    assert one.features is not None
    for j in range(one.features.shape[1]):
        np.sort(one.features[:, j])


def stably_sorted(one: Window) -> None:
    """The order of every feature's values; NumPy's plain sort is ten times as fast on some processors as on others."""
    assert one.features is not None
    for column in one.features.T:
        np.argsort(column, kind="stable")


def scipys(one: Window, known: Reference) -> None:
    """SciPy's plain test of every feature: it sorts both samples each time."""
    assert one.features is not None
    for j, profile in enumerate(known.features):
        ks_2samp(profile.values, one.features[:, j], method="asymp")


def kswin(one: Window) -> None:
    """River's KSWIN, event by event, on a part of the window."""
    assert one.features is not None
    for j in range(one.features.shape[1]):
        detector = drift.KSWIN(seed=0)
        for value in one.features[:KSWIN_EVENTS, j]:
            detector.update(value)


def peers(given: list[str], known: Reference, one: Window) -> tuple[list[tuple[str, float]], list[str]]:
    """What each peer takes for the same window, and why some could not be timed; `given` as NAME=PYTHON."""
    interpreters = pythons(given)
    times, absent = [], [f"{name}: no Python was given" for name in PEERS if name not in interpreters]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with TemporaryDirectory() as folder:
        data = Path(folder) / "tables.npz"
        np.savez(data, reference=np.stack([profile.values for profile in known.features], axis=1), window=one.features)
        for name, python in interpreters.items():
            command = [python, str(Path(__file__).with_name("window_peers.py")), name, str(data)]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            if done.returncode:
                absent.append(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            else:
                told = json.loads(done.stdout)
                times.append((f"{PEERS[name]} {told['version']}: plain KS of all features", told["ms"]))
    return times, absent


def main() -> None:
    """Measure, and write the report."""
    parser = options(__doc__, REPORTS / "window.md")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help=f"one of {list(PEERS)}")
    given = parser.parse_args()
    known = reference(FEATURES)
    ready = prepare(known)
    one, moved, strange = window(ROWS, FEATURES), window(ROWS, FEATURES, 0.2), window(ROWS, FEATURES, unknown=0.05)
    rows = [
        ("NumPy: sorting every feature", cpu(lambda: _sorted(one), 30)),
        ("NumPy: a stable sort of every feature", cpu(lambda: stably_sorted(one), 30)),
        ("Shiftwatch: full assessment, nothing moved", cpu(lambda: assess(one, known), 15)),
        ("Shiftwatch: full assessment, one input moved", cpu(lambda: assess(moved, known), 15)),
        ("Shiftwatch: full assessment, an unknown class that moves all inputs", cpu(lambda: assess(strange, known), 5)),
        ("Shiftwatch: KS of all features, plain and reweighted", cpu(lambda: ks_part(one, ready), 30)),
        ("SciPy: plain KS of all features", cpu(lambda: scipys(one, known), 10)),
    ]
    others, absent = peers(given.peer, known, one)
    rows += [*others, ("River: KSWIN of all features", cpu(lambda: kswin(one), 1) * ROWS / KSWIN_EVENTS)]
    lines = [
        "# What a window costs",
        "",
        "Made by `OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m tests.bench.window --peer NAME=PYTHON ...`.",
        f"{ROWS:,} events, {FEATURES} features, {CLASSES} classes, a reference of {ROWS:,} rows; CPU of one thread,",
        f"the best of several. KSWIN was timed on {KSWIN_EVENTS} events a feature and scaled up. Sorting alone",
        "is in the first rows: it tells how busy the machine was. Peers sort or look up what they need of the",
        "reference as they come; what they can do once for many windows is not timed.",
        "",
        "| | ms |",
        "|---|---|",
        *(f"| {name} | {spent:,.1f} |" for name, spent in rows),
    ]
    if absent:
        lines += ["", "Not timed:", *(f"- {why}" for why in absent)]
    lines += ["", "## Small windows, each with its JSON", "", "| events | features | ms |", "|---|---|---|"]
    for events, features in ((200, 10), (1_000, 10), (200, 1), (1_000, 1)):
        small, held = window(events, features), reference(features)
        spent = cpu(lambda small=small, held=held: assess(small, held).to_json(), 50)
        lines.append(f"| {events:,} | {features} | {spent:,.2f} |")
    lines += ["", "## Growth", "", "| events | features | ms | microseconds an event |", "|---|---|---|---|"]
    for events in (1_000, 10_000, 100_000, 1_000_000)[: 2 if given.quick else 4]:
        grown = window(events, FEATURES)
        spent = cpu(lambda grown=grown: assess(grown, known), 1 if events > 100_000 else 3)
        lines.append(f"| {events:,} | {FEATURES} | {spent:,.1f} | {spent * 1e3 / events:.2f} |")
    for features in (1, 5, 20, 40, 100)[: 1 if given.quick else 5]:
        wide, wider = window(ROWS, features), reference(features)
        spent = cpu(lambda wide=wide, wider=wider: assess(wide, wider), 3)
        lines.append(f"| {ROWS:,} | {features} | {spent:,.1f} | {spent * 1e3 / ROWS:.2f} |")
    text = "\n".join(lines) + "\n"
    given.report.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
