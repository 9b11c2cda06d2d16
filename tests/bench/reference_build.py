"""Time, memory and size of a reference built from a large file, and the time of wide ones built from arrays.

python -m tests.bench.reference_build [--events 1000000] [--report tests/bench/reports/reference_build.md]
"""

import json
import platform
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.special import softmax

from monitor.reference.building import build
from monitor.reference.classifier import Reference
from monitor.reference.holdout import Wanted
from monitor.reference.regressor import RegressionReference
from tests.bench.options import options
from tests.bench.timing import best_of
from tests.bench.window import columns

CLASSES, PRIORS, FEATURES = ("legit", "fraud", "dispute"), (0.7, 0.2, 0.1), 10


def write(path: Path, events: int) -> None:
    """Scored, labelled events, some thousands at a time, so that writing them costs no memory."""
    random = np.random.default_rng(0)
    with path.open("w") as file:
        for start in range(0, events, 10_000):
            size = min(10_000, events - start)
            labels = random.choice(len(CLASSES), size, p=PRIORS)
            features = random.normal(size=(size, FEATURES))
            features[np.arange(size), labels] += 1.5
            posteriors = softmax(1.5 * features[:, :3] + np.log(PRIORS), axis=1)
            for p, x, y in zip(posteriors.round(6).tolist(), features.round(4).tolist(), labels.tolist(), strict=True):
                event = {
                    "posteriors": dict(zip(CLASSES, p, strict=True)),
                    "features": {f"f{j}": value for j, value in enumerate(x)},
                    "label": CLASSES[y],
                }
                file.write(json.dumps(event) + "\n")


def of_regressor(events: int, features: int) -> float:
    """CPU seconds of a regressor's reference, whose targets follow one straight line."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(events, features))
    predictions = inputs @ random.normal(size=features)
    return best_of(lambda: RegressionReference.fit(predictions, predictions + random.normal(size=events), inputs), 1)


def of_many_classes(events: int, features: int, classes: int) -> float:
    """CPU seconds of a classifier's reference, everything chosen by the reference itself."""
    posteriors, inputs, labels = columns(events, features, classes, 1)
    return best_of(lambda: Reference.fit(posteriors, labels, inputs, classes=range(classes)), 1)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    given = parser.parse_args()
    if given.quick:
        given.events = 50_000
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "holdout.jsonl", Path(folder) / "x.ref"
        write(source, given.events)
        wall, cpu = time.perf_counter(), time.process_time()
        reference, _ = build(source, Wanted())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        reference.save(target)
        load = time.process_time()
        Reference.load(target)
        load = time.process_time() - load
        share = 10 if given.quick else 1
        regressor = of_regressor(100_000 // share, 20)
        many_classes = of_many_classes(30_000 // share, 20, 50)
        lines = [
            "# Building a reference",
            "",
            "Made by `python -m tests.bench.reference_build --report tests/bench/reports/reference_build.md`, "
            f"Python {platform.python_version()}, numpy {np.__version__}; the time includes the preflight report.",
            "",
            "| what | figure |",
            "|---|---|",
            f"| events x features x classes | {given.events:,} x {FEATURES} x {len(CLASSES)} |",
            f"| file | {source.stat().st_size / 1e6:.0f} MB |",
            f"| CPU time | {cpu:.1f} s |",
            f"| wall time | {wall:.1f} s |",
            f"| highest resident memory | {resident:.0f} MB |",
            f"| reference | {target.stat().st_size / 1e6:.1f} MB |",
            f"| loading it, hashes checked | {1000 * load:.0f} ms CPU |",
            f"| error of a kept distribution function | {max(p.error for p in reference.features):.1e} |",
            f"| CPU time, a regressor's {100_000 // share:,} events x 20 features on one line | {regressor:.1f} s |",
            f"| CPU time, {30_000 // share:,} events x 20 features x 50 classes | {many_classes:.1f} s |",
            "",
        ]
    print("\n".join(lines))
    if given.report is not None:
        given.report.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
