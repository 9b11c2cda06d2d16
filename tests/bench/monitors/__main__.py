"""Shiftwatch, Evidently and NannyML on the same 20,000 events: lines, seconds, and what is told.

    python -m tests.bench.monitors --report deploy/guides/comparison.md

makes an environment for each of the others in a folder of its own (`--environments`, kept if it is named; a minute or
two of downloads), writes one made-up stream whose truth is known, and runs the three scripts beside this one on it.
Lines are those of their function `watch`; seconds are processor time with one thread, the import of the library
among them.
"""

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from connectors.worlds import BLOCK, Period, Population, Timetable, World
from tests.bench import machine, tables
from tests.bench.options import options

HERE = Path(__file__).parent
PEERS: Mapping[str, tuple[str, ...]] = {
    "Shiftwatch": (),
    "Evidently": ("evidently==0.7.23", "pandas<3"),  # it does not import with pandas 3
    "NannyML": ("nannyml==0.13.1", "statsmodels"),  # which it imports and does not ask for
}
"""What is installed for each; nothing for the one that is here."""
WORLD = World(
    stream="card-fraud",
    classes=("legit", "fraud"),
    priors=(0.9, 0.1),
    features=("amount", "age_days", "velocity", "distance_km"),
    seed=11,
)
PERIODS = (
    Period("nothing happens", 8 * BLOCK),
    Period("fraud rises from 10 % to 25 %; inputs of each class stay as they were", 4 * BLOCK, priors=(0.75, 0.25)),
    Period("age_days comes in another unit (x 1.5)", 4 * BLOCK, linear={"age_days": (1.5, 0.0)}),
    Period("a tenth of the events is of a new kind", 4 * BLOCK, unknown=0.1),
)
HOLD_OUT = 10_000


@dataclass(frozen=True)
class Ran:
    """One of them, and what it said."""

    name: str
    version: str
    lines: int
    first: float
    seconds: float
    told: Sequence[Mapping[str, Any]]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--environments", type=Path, help="where those of the others are kept")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        timetable = Timetable(WORLD, PERIODS)
        events = [timetable.block(number).population for number in range(timetable.events // BLOCK)]
        _table(WORLD.holdout(HOLD_OUT), labelled=True).to_csv(folder / "hold_out.csv", index=False)
        pd.concat([_table(block, labelled=False) for block in events]).to_csv(folder / "events.csv", index=False)
        ran = [_run(name, wanted, folder, given.environments or folder) for name, wanted in PEERS.items()]
    text = _page(ran, [_area(block) for block in events])
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")
    return 0


def _table(population: Population, *, labelled: bool) -> pd.DataFrame:
    columns = np.column_stack([population.features, population.posteriors])
    table = pd.DataFrame(columns, columns=[*WORLD.features, *WORLD.classes])
    return table.assign(label=np.take(WORLD.classes, population.labels)) if labelled else table


def _area(population: Population) -> float:
    """What the model really achieved; of events of a new kind nobody can say what would have been right."""
    known = population.labels >= 0
    return float(roc_auc_score(population.labels[known], population.posteriors[known, 1]))


def _run(name: str, wanted: Sequence[str], folder: Path, environments: Path) -> Ran:
    python = _environment(environments, wanted) if wanted else sys.executable
    module = f"with_{name.lower()}"
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = {} if wanted else {"PYTHONPATH": str(HERE.parents[2])}
    done = subprocess.run(
        [python, HERE / "run_one.py", module, folder / "hold_out.csv", folder / "events.csv"],
        env={**os.environ, **threads, **paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout.splitlines()[-1])
    version = wanted[0].partition("==")[2] if wanted else f"at {machine.commit()}"
    return Ran(name, version, _lines(module), answer["first"], answer["seconds"], answer["told"])


def _environment(folder: Path, wanted: Sequence[str]) -> str:
    """Python with these packages in it, made if it is not there."""
    home = folder / wanted[0].partition("=")[0]
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return str(python)


def _lines(module: str) -> int:
    """Of the function `watch`, but for its docstring and empty ones."""
    text = (HERE / f"{module}.py").read_text(encoding="utf-8")
    (watch,) = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "watch"]
    first, last = watch.body[1].lineno, watch.end_lineno or 0
    return sum(bool(line.strip()) for line in text.splitlines()[first - 1 : last])


def _page(ran: Sequence[Ran], areas: Sequence[float]) -> str:
    parts = [(HERE / "comparison.head.md").read_text(encoding="utf-8"), _costs(ran)]
    for (period, first, last), words in zip(_spans(), _sections(ran), strict=True):
        true = f"{np.mean(areas[first:last]):.3f}"
        parts.append(f"\n## Windows {first + 1} to {last}: {period.name}\n\n")
        parts.append(tables.markdown(["", "windows flagged", "what is told", "ROC AUC, estimated"], words))
        parts.append(f"\nROC AUC by the true labels{' of known kinds' if period.unknown else ''}: {true}.\n")
    return "".join(parts) + (HERE / "comparison.foot.md").read_text(encoding="utf-8")


def _spans() -> Iterator[tuple[Period, int, int]]:
    for period, first, last in Timetable(WORLD, PERIODS).spans():
        yield period, first // BLOCK, last // BLOCK


def _costs(ran: Sequence[Ran]) -> str:
    rows = [(f"{one.name} {one.version}", one.lines, f"{one.first:.1f}", f"{one.seconds:.1f}") for one in ran]
    return tables.markdown(["", "lines", "seconds to the first answer", "seconds for all windows"], rows)


def _sections(ran: Sequence[Ran]) -> Iterator[list[tuple[str, ...]]]:
    for _, first, last in _spans():
        yield [(one.name, *_row(one.told[first:last])) for one in ran]


def _row(told: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    flagged = sum(one["flagged"] for one in told)
    words = ", ".join(f"{count} x {said}" for said, count in Counter(one["words"] for one in told).most_common())
    named = Counter(name for one in told for name in one["inputs"])
    inputs = "; inputs: " + ", ".join(f"{name} {count}" for name, count in named.most_common()) if named else ""
    shares = [one["share"] for one in told if one["share"] is not None]
    share = f"; fraud {np.mean(shares):.1%}" if shares else ""
    areas = [one["auc"] for one in told if one["auc"] is not None]
    area = f"{np.mean(areas):.3f} ({len(areas)} of {len(told)})" if areas else "not said"
    return f"{flagged} of {len(told)}", words + inputs + share, area


if __name__ == "__main__":
    sys.exit(main())
