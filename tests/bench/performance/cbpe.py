"""CBPE: what calibrated posteriors expect of accuracy and ROC AUC, by the class mix of the hold-out.

With `--peer nannyml=PYTHON` by that interpreter's NannyML, with its own calibration and intervals. Otherwise the
published formula (docs of NannyML, "How it works: CBPE") on posteriors calibrated as NannyML does, by isotonic
regression on the hold-out, and without intervals.
"""

import pickle
import subprocess
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from monitor.arrays import Labels, Matrix
from monitor.performance import Scores, measures

PEER = """
import pickle, sys, warnings
warnings.filterwarnings("ignore")
import logging; logging.disable(logging.CRITICAL)
import numpy as np, pandas as pd, nannyml
hold_out, labels, windows, metrics = pickle.load(sys.stdin.buffer)
def frame(p, y=None):
    columns = {f"p{c}": p[:, c] for c in range(p.shape[1])} if p.shape[1] > 2 else {"p1": p[:, 1]}
    d = pd.DataFrame({**columns, "decided": p.argmax(axis=1)})
    if y is not None: d["y"] = y
    return d
classes = hold_out.shape[1]
proba = {c: f"p{c}" for c in range(classes)} if classes > 2 else "p1"
kind = "classification_multiclass" if classes > 2 else "classification_binary"
cbpe = nannyml.CBPE(y_pred_proba=proba, y_pred="decided", y_true="y", metrics=list(metrics.values()), chunk_number=1,
    problem_type=kind)
cbpe.fit(frame(hold_out, labels))
parts = "value", "lower_confidence_boundary", "upper_confidence_boundary"
found = []
for p in windows:
    d = cbpe.estimate(frame(p)).filter(period="analysis").to_df()
    found.append({ours: tuple(float(d[(theirs, part)].iloc[0]) for part in parts) for ours, theirs in metrics.items()})
sys.stdout.buffer.write(pickle.dumps(found))
"""


def estimates(
    hold_out: Matrix, labels: Labels, windows: Sequence[Matrix], metrics: Sequence[str], python: str | None
) -> list[dict[str, tuple[float, float, float]]]:
    """Value, lower and upper end by metric, for each window; without intervals where it is the formula alone."""
    if python:
        names = {name: "roc_auc" if name.endswith("roc_auc") else name for name in metrics}
        given = pickle.dumps((hold_out, labels, list(windows), names))
        answer = subprocess.run([python, "-W", "ignore", "-c", PEER], input=given, capture_output=True, check=True)
        found: list[Any] = pickle.loads(answer.stdout[answer.stdout.index(b"\x80") :])  # noqa: S301 - our own
        return found
    steps = [
        IsotonicRegression(out_of_bounds="clip").fit(hold_out[:, y], labels == y) for y in range(hold_out.shape[1])
    ]
    every = measures(hold_out.shape[1], 1, costs=False, ranking=True)
    return [{name: _formula(every[name], steps, window) for name in metrics} for window in windows]


def _formula(measure: Any, steps: Sequence[Any], window: Matrix) -> tuple[float, float, float]:
    q = np.column_stack([step.predict(window[:, y]) for y, step in enumerate(steps)])
    q = np.maximum(q, 1e-12) / np.maximum(q, 1e-12).sum(axis=1, keepdims=True)
    value = measure.of(Scores(window, window, window.argmax(axis=1)), q)[0]
    return value, float("nan"), float("nan")
