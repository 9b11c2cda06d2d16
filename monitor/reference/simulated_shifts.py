"""Whether estimates follow the truth for this very model: class mixes that shift, simulated on its hold-out events.

A simulation must have the two kinds of noise that production has: a window is a sample, and so is the reference. Each
simulated reference is a resample of the hold-out events (within classes), with its own calibration and statistics;
its windows are drawn from all of them under a known class mix, half uniform on the simplex and half around the source.
Held-out folds instead would give windows of a small population and references of the rest.

Nothing is chosen by it. A mean of four estimators with weights learnt from such windows was .99 of EM by itself on nine
problems with large hold-outs, and 1.01 on 24 with small ones (tests/bench/accuracy, tests/bench/accuracy_small).
"""

from typing import Any, Final

import numpy as np

from monitor import calibration, priors
from monitor.arrays import Labels, Matrix
from monitor.priors import CalibratedView, HoldOut
from monitor.sampling import draw, near_simplex, stratified_sample, uniform_simplex
from monitor.tolerances import NEAR_SOURCE, SIMULATED_EVENTS, SIMULATED_ROWS
from monitor.windows import Window

REFERENCES, UNIFORM, NEAR = 6, 6, 4
"""Simulated references, and windows of each kind per reference."""

PLAIN: Final = ("cc", "pcc")
"""What one would do without any method, for comparison: count the predictions, or average the scores."""


def simulated(posteriors: Matrix, labels: Labels, method: str, estimator: str, seed: int) -> dict[str, Any]:
    """Plain values: what was true of each window, what the estimator said, and by how much it and others are off.

    `posteriors` are those of the hold-out as the model says them; they are calibrated by `method`.
    """
    rows = stratified_sample(labels, SIMULATED_ROWS, seed)
    posteriors, labels = posteriors[rows], labels[rows]
    random, names = np.random.default_rng(seed), dict.fromkeys((estimator, *PLAIN))
    true, estimates = [], []
    for _ in range(REFERENCES):
        reference, calibrated = _resampled(posteriors, labels, method, tuple(names), random)
        mixes = (
            uniform_simplex(len(reference.classes), UNIFORM, random),
            near_simplex(reference.source_priors, NEAR, NEAR_SOURCE, random),
        )
        for mix in np.vstack(mixes):
            picked = draw(labels, mix, SIMULATED_EVENTS, random)
            solved = priors.solve(names, Window.of(calibrated[picked]), reference)
            true.append(np.bincount(labels[picked], minlength=mix.size) / picked.size)
            estimates.append([solved[name].priors for name in names])
    said, truth = np.array(estimates), np.array(true)
    errors = np.abs(said - truth[:, None, :]).mean(axis=(0, 2))
    return {
        "windows": len(truth),
        "events": SIMULATED_EVENTS,
        "mean_absolute_error": {name: round(float(error), 6) for name, error in zip(names, errors, strict=True)},
        "true": np.round(truth, 4).tolist(),
        "estimated": np.round(said[:, 0], 4).tolist(),
    }


def _resampled(
    posteriors: Matrix, labels: Labels, method: str, names: tuple[str, ...], random: np.random.Generator
) -> tuple[CalibratedView, Matrix]:
    """A reference of resampled events, and the posteriors of all events as it calibrates them."""
    counts = np.bincount(labels, minlength=posteriors.shape[1])
    members = [np.flatnonzero(labels == c) for c in range(counts.size)]
    rows = np.concatenate([m[random.integers(0, m.size, m.size)] for m in members])
    seed = int(random.integers(2**32))
    fitted = calibration.cross_fit(posteriors[rows], labels[rows], method, seed, folds=3)
    held_out = HoldOut(fitted.posteriors, labels[rows], None, seed)
    needed = frozenset[str]().union(*map(priors.kept_for, names))
    reference = CalibratedView(
        tuple(str(c) for c in range(counts.size)),
        counts / counts.sum(),
        counts.astype(np.float64),
        {name: priors.ESTIMATORS[name].summarise(held_out) for name in sorted(needed)},
    )
    return reference, fitted.calibration(posteriors)
