"""How fast are the prior estimators, beside QuaPy and plain NumPy, on the same data, one thread, one run?

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
        python -m tests.bench.priors --peer quapy=/path/to/python [--report tests/bench/reports/priors.md]

QuaPy lives in an environment of its own (`python -m venv E; E/bin/pip install quapy`); without it only our figures are
printed. Times are processor seconds, so that other work on the machine counts little; each is the best of three.

The events are Gaussian classes with exact posteriors: the centre of class k is `separation` along axis k, the window's
priors are one draw from the simplex. Both sides generate them from the same seed (tests/bench/priors_quapy.py).
"""

import json
import os
import platform
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import scipy
from scipy.optimize import minimize

from monitor.priors import counting, em, intervals, maps
from monitor.priors.estimate import row_blocks
from monitor.priors.histogram import binned
from monitor.tolerances import LIKELIHOOD_GAP
from tests.bench import priors_quapy
from tests.bench.options import options, pythons
from tests.bench.priors_quapy import confusion_problem, draw, em_problems
from tests.bench.timing import best_of

WORKER = Path(priors_quapy.__file__)
TARGETS = {"binary": 0.02, "10 classes": 0.15, "37 classes": 0.15, "37 classes, weak": 1.0}


def quapy(interpreter: str, quick: bool) -> dict[str, dict[str, float]]:
    """QuaPy's times, measured by its own interpreter."""
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [interpreter, str(WORKER), *(["--quick"] if quick else [])]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=single)
    return json.loads(done.stdout)


def available(interpreter: str | None) -> bool:
    if interpreter is None:
        return False
    return subprocess.run([interpreter, "-c", "import quapy"], check=False, capture_output=True).returncode == 0


def gap_of(posteriors: np.ndarray, source: np.ndarray, priors: np.ndarray) -> float:
    return float(np.log((1.0 / (posteriors @ (priors / source)) @ posteriors / (len(posteriors) * source)).max()))


def em_rows(theirs: dict[str, dict[str, float]] | None, quick: bool) -> list[list[str]]:
    rows = []
    for name, (events, classes, separation) in em_problems(quick).items():
        g, source = draw(events, classes, separation)
        if name == "binary":
            seconds = best_of(lambda g=g, source=source: em.certified(binned(g, source), 0))
            gap = gap_of(g, source, em.certified(binned(g, source), 0).priors)
        else:
            # To the gap that is asked for; without a tolerance the solver goes on to rounding.
            seconds = best_of(lambda g=g, source=source: em.maximum_likelihood(g, source, tolerance=LIKELIHOOD_GAP))
            gap = em.maximum_likelihood(g, source, tolerance=LIKELIHOOD_GAP).gap
        polished = best_of(lambda g=g, source=source: em.maximum_likelihood(g, source), 1)
        other = theirs[name] if theirs else None
        rows.append(
            [
                f"EM, {name}, {events:,} events",
                f"{seconds:.3f} s to gap {gap:.0e}",
                f"{other['seconds']:.3f} s to gap {other['gap']:.0e}" if other else "-",
                f"{seconds / other['seconds']:.3f}" if other else "-",
                f"{TARGETS[name]}",
                f"all rows to rounding: {polished:.3f} s",
            ]
        )
    return rows


def counting_row(theirs: dict[str, dict[str, float]] | None) -> list[list[str]]:
    confusion, counts = confusion_problem()
    seconds = best_of(lambda: [counting.adjusted_qp(confusion, counts) for _ in range(200)]) / 200
    rates = (confusion / confusion.sum(axis=1, keepdims=True)).T
    share = counts / counts.sum()

    def slsqp() -> object:
        return minimize(
            lambda p: np.sum((rates @ p - share) ** 2),
            np.full(10, 0.1),
            method="SLSQP",
            bounds=[(0, 1)] * 10,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        )

    plain = best_of(lambda: [slsqp() for _ in range(20)]) / 20
    other = theirs["adjusted"]["seconds"] if theirs else None
    return [
        [
            "adjusted QP with its interval, 10 classes",
            f"{1e3 * seconds:.3f} ms",
            f"{1e3 * other:.3f} ms" if other else "-",
            f"{other / seconds:.0f} x faster" if other else "-",
            "20 x",
            f"SciPy SLSQP: {1e3 * plain:.3f} ms",
        ]
    ]


def fourier_row(events: int) -> list[list[str]]:
    rng = np.random.default_rng(0)
    x, frequencies, wide = rng.normal(size=(events, 5)), rng.normal(size=(500, 5)), rng.normal(size=(5, 1000))

    def ours() -> object:
        total = np.zeros(1000)
        for begin, end in row_blocks(len(x), 1000):
            total += maps.fourier(x[begin:end], frequencies).sum(axis=0)
        return total

    def bare() -> None:
        for begin, end in row_blocks(len(x), 1000):
            np.cos(x[begin:end] @ wide)

    mine, least = best_of(ours, 2), best_of(bare, 2)
    what = f"RFF mean of {events:,} events in 5 dimensions, D = 1,000"
    return [
        [what, f"{mine:.2f} s", f"{least:.2f} s (product and cosines)", f"{mine / least:.2f}", "1.2", "both blockwise"]
    ]


def interval_rows() -> list[list[str]]:
    confusion, _ = confusion_problem()
    variances, priors = np.full((10, 10), 0.1), np.full(10, 0.1)

    def linear() -> object:
        errors = intervals.standard_errors(variances, priors, confusion.sum(axis=1), 10_000)
        return intervals.box(priors, errors, events=10_000)

    seconds = best_of(lambda: [linear() for _ in range(500)]) / 500
    g, source = draw(10_000, 10, 2.0)
    best = em.maximum_likelihood(g, source).priors
    rows = np.full(10, 1000.0)
    heavy = best_of(lambda: [intervals.likelihood_errors(g, source, best, rows) for _ in range(20)]) / 20
    return [
        ["interval of a linear estimator, 10 classes", f"{1e3 * seconds:.3f} ms", "-", "-", "1 ms", ""],
        [
            "interval of EM with reference noise, 10 classes",
            f"{1e3 * heavy:.2f} ms",
            "-",
            "-",
            "1 ms",
            "over 10,000 events",
        ],
    ]


def memory_row(quick: bool) -> list[list[str]]:
    worst = 0.0
    for events, classes, separation in em_problems(quick).values():
        g, source = draw(events, classes, separation)
        tracemalloc.start()
        em.maximum_likelihood(g, source)
        worst = max(worst, tracemalloc.get_traced_memory()[1] / g.nbytes)
        tracemalloc.stop()
    return [["peak memory of EM, worst problem", f"{1 + worst:.2f} x its input", "-", "-", "1.3", "input included"]]


def main() -> None:
    parser = options("Time the prior estimators.")
    parser.add_argument("--peer", action="append", default=[], metavar="quapy=PYTHON")
    given = parser.parse_args()
    interpreter = pythons(given.peer).get("quapy")
    if interpreter is not None and available(interpreter):
        theirs = quapy(interpreter, given.quick)
    else:
        theirs = None
        print("QuaPy is not available: give --peer quapy=PYTHON, a Python that can import quapy", file=sys.stderr)
    rows = [
        *em_rows(theirs, given.quick),
        *counting_row(theirs),
        *fourier_row(50_000 if given.quick else 1_000_000),
        *interval_rows(),
        *memory_row(given.quick),
    ]
    header = ["what", "Shiftwatch", "QuaPy or bare", "ratio", "target", "note"]
    lines = ["| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *rows]]
    version = f"QuaPy {theirs['version']['quapy']}, " if theirs else ""
    text = "\n".join(
        [
            "# Speed of the prior estimators",
            "",
            "Made by `OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m tests.bench.priors --peer quapy=PYTHON "
            "--report tests/bench/reports/priors.md`;",
            f"{version}NumPy {np.__version__}, SciPy {scipy.__version__}, Python {platform.python_version()}; "
            "processor seconds, one thread, best of three.",
            "",
            *lines,
            "",
        ]
    )
    print(text)
    if given.report:
        given.report.write_text(text)


if __name__ == "__main__":
    main()
