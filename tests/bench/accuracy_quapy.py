"""QuaPy's quantifiers on given posteriors. Run by tests.bench.accuracy under an interpreter that has QuaPy.

    python accuracy_quapy.py problem.npz estimates.npz [METHOD ...]

The classifier is the identity, so that every method sees exactly the posteriors that ours see.
"""

import sys
import time
import warnings

import numpy as np
import quapy as qp
from quapy.method.aggregative import EMQ, PACC, DyS, EDy, KDEyCS, KDEyML
from sklearn.base import BaseEstimator


class Given(BaseEstimator):
    """A fitted classifier whose inputs are its posteriors."""

    def __init__(self, classes=2):
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, _posteriors, _labels):  # QuaPy asks whether it exists
        return self

    def predict_proba(self, posteriors):
        return posteriors


def floored(posteriors):
    raised = np.maximum(posteriors, 1e-4)
    return raised / raised.sum(axis=1, keepdims=True)


def methods(given):
    return {
        "EMQ": EMQ(given, fit_classifier=False, exact_train_prev=True, calib=None),
        "EMQ-BCTS": EMQ.EMQ_BCTS(given, fit_classifier=False),
        "EMQ-VS": EMQ(given, fit_classifier=False, exact_train_prev=False, calib="vs"),
        "PACC": PACC(given, fit_classifier=False),
        "KDEy-ML": KDEyML(given, fit_classifier=False, random_state=0),
        "KDEy-CS": KDEyCS(given, fit_classifier=False),
        "EDy": EDy(given, fit_classifier=False),
        "DyS": DyS(given, fit_classifier=False, divergence="topsoe"),
    }


def main(problem, output, *names):
    warnings.simplefilter("ignore")
    data = np.load(problem)
    hold_out, labels, pool, samples = data["hold_out"], data["labels"], data["pool"], data["samples"]
    given = Given(hold_out.shape[1])
    estimates = {"version": np.array(qp.__version__)}
    for name, method in methods(given).items():
        if names and name not in names:
            continue
        start = time.perf_counter()
        try:
            method.train_prevalence = np.bincount(labels, minlength=hold_out.shape[1]) / labels.size
            method._check_init_parameters()
            # Its calibration has no answer to exact zeros: a floor lets it take part.
            floor = floored if name in ("EMQ-BCTS", "EMQ-VS") else (lambda p: p)
            method.aggregation_fit(floor(hold_out), labels)
            estimates[name] = np.array([method.aggregate(floor(pool[rows])) for rows in samples])
        except Exception as error:  # noqa: BLE001 - a method that fails on a problem is a result, and the others go on
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
            estimates[name] = np.full((len(samples), hold_out.shape[1]), np.nan)
        estimates[f"seconds {name}"] = np.array(time.perf_counter() - start)
    np.savez(output, **estimates)


if __name__ == "__main__":
    main(*sys.argv[1:])
