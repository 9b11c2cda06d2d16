"""CBPE: what calibrated posteriors expect of accuracy and ROC AUC, by the class mix of the hold-out.

With `--peer nannyml=PYTHON` by that interpreter's NannyML (`pip install nannyml statsmodels`), with its own calibration
and intervals. Otherwise the published formula (NannyML's documentation, "How it works": CBPE) on posteriors calibrated
as NannyML does, by isotonic regression on the hold-out, and without intervals.
"""

import pickle
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from monitor.arrays import Labels, Matrix
from monitor.performance import Scores, measures

PEER = """
import logging, pickle, sys, warnings
warnings.filterwarnings("ignore")
import numpy as np, pandas as pd, nannyml
logging.disable(logging.CRITICAL)
answers, sys.stdout = sys.stdout.buffer, sys.stderr
def frame(p, **more):
    columns = {f"p{c}": p[:, c] for c in range(p.shape[1])} if p.shape[1] > 2 else {"p1": p[:, 1]}
    return pd.DataFrame({**columns, "decided": p.argmax(axis=1), **more})
while True:
    try:
        hold_out, labels, windows, metrics = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    classes = hold_out.shape[1]
    cbpe = nannyml.CBPE(y_pred_proba={c: f"p{c}" for c in range(classes)} if classes > 2 else "p1", y_pred="decided",
        y_true="y", metrics=list(metrics.values()), chunk_number=1,
        problem_type="classification_multiclass" if classes > 2 else "classification_binary")
    cbpe.fit(frame(hold_out, y=labels))
    parts, found = ("value", "lower_confidence_boundary", "upper_confidence_boundary"), []
    for p in windows:
        d = cbpe.estimate(frame(p)).filter(period="analysis").to_df()
        found.append({ours: tuple(float(d[(name, part)].iloc[0]) for part in parts) for ours, name in metrics.items()})
    pickle.dump(found, answers)
    answers.flush()
"""

Estimates = list[dict[str, tuple[float, float, float]]]
"""Value, lower and upper end by metric, for each window; without intervals where it is the formula alone."""
Peer = Callable[[Matrix, Labels, Sequence[Matrix], Sequence[str]], Estimates]


def nannyml(python: str) -> Peer:
    """NannyML in an interpreter of its own, which is started once."""
    process = subprocess.Popen(
        [python, "-W", "ignore", "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )

    def ask(hold_out: Matrix, labels: Labels, windows: Sequence[Matrix], metrics: Sequence[str]) -> Estimates:
        names = {name: "roc_auc" if name.endswith("roc_auc") else name for name in metrics}
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump((hold_out, labels, list(windows), names), process.stdin)
        process.stdin.flush()
        found: Estimates = pickle.load(process.stdout)  # noqa: S301 - our own process
        return found

    return ask


def formula(hold_out: Matrix, labels: Labels, windows: Sequence[Matrix], metrics: Sequence[str]) -> Estimates:
    """The mean of what calibrated posteriors expect."""
    classes = hold_out.shape[1]
    steps = [IsotonicRegression(out_of_bounds="clip").fit(hold_out[:, y], labels == y) for y in range(classes)]
    every = measures(classes, 1, costs=False, ranking=True)
    return [{name: _value(every[name], steps, window) for name in metrics} for window in windows]


def _value(measure: Any, steps: Sequence[Any], window: Matrix) -> tuple[float, float, float]:
    q = np.column_stack([step.predict(window[:, y]) for y, step in enumerate(steps)])
    q = np.maximum(q, 1e-12) / np.maximum(q, 1e-12).sum(axis=1, keepdims=True)
    value = measure.of(Scores(window, window, window.argmax(axis=1)), q)[0]
    return value, float("nan"), float("nan")
