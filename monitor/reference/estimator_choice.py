"""Which estimator to believe for this very model: simulate prior shifts on its hold-out events and learn from them.

A simulation must have the two kinds of noise that production has: a window is a sample, and so is the reference. Each
simulated reference is a resample of the hold-out events (within classes), with its own calibration and statistics;
its windows are drawn from all of them under a known class mix, half uniform on the simplex and half around the source.
Held-out folds instead would give windows of a small population and references of the rest: on twelve development
problems they ranked EM first wherever calibration noise, which hits EM hardest, was the larger of the two.

The weights of the combination minimise its mean squared error over all windows, on the simplex, with a ridge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from monitor import calibration, priors
from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import CalibratedView, HoldOut
from monitor.priors.simplex import minimise
from monitor.sampling import draw, near_simplex, stratified_sample, uniform_simplex
from monitor.tolerances import COMBINATION_RIDGE, NEAR_SOURCE, SIMULATED_EVENTS, SIMULATED_ROWS
from monitor.windows import Window

REFERENCES, UNIFORM, NEAR = 6, 6, 4
"""Simulated references, and windows of each kind per reference."""


PRIOR_WEIGHTS = {"em": 0.25, "pacc": 0.1, "dfm-energy": 0.1, "retargeted": 0.55}
"""Of the combination, before anything is known of a model."""


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedWindows:
    """Simulated windows: what was true, and what each estimator said."""

    names: tuple[str, ...]
    true: Matrix
    """(windows, classes)"""
    estimates: Vector
    """(windows, estimators, classes)"""
    reference: Labels
    """The simulated reference of each window."""
    weights: Vector

    @property
    def errors(self) -> dict[str, float]:
        """Mean absolute error of every estimator, and of the combination with weights that its windows never saw."""
        single = np.abs(self.estimates - self.true[:, None, :]).mean(axis=(0, 2))
        return dict(zip(self.names, single.tolist(), strict=True)) | {"auto": self._unseen_error()}

    def facts(self) -> dict[str, Any]:
        """Plain values for a reference's facts: enough to draw estimate against truth."""
        return {
            "windows": self.true.shape[0],
            "events": SIMULATED_EVENTS,
            "weights": dict(zip(self.names, np.round(self.weights, 4).tolist(), strict=True)),
            "mean_absolute_error": {name: round(error, 6) for name, error in self.errors.items()},
            "true": np.round(self.true, 4).tolist(),
            "estimated": np.round(self.combined(), 4).tolist(),
        }

    def combined(self) -> Matrix:
        """What the combination says of every window."""
        return np.asarray(np.einsum("m,wmk->wk", self.weights, self.estimates))

    def _unseen_error(self) -> float:
        errors = []
        for number in np.unique(self.reference):
            held = self.reference == number
            if held.all():
                break
            weights = combination(self.estimates[~held], self.true[~held])
            errors.append(np.abs(np.einsum("m,wmk->wk", weights, self.estimates[held]) - self.true[held]).mean(axis=1))
        return float(np.concatenate(errors).mean()) if errors else float("nan")


def simulate(
    posteriors: Matrix, labels: Labels, method: str, seed: int, step: Callable[[str], None] = lambda _what: None
) -> SimulatedWindows:
    """Simulated shifts of a model with these uncalibrated hold-out posteriors, calibrated by `method`."""
    rows = stratified_sample(labels, SIMULATED_ROWS, seed)
    posteriors, labels = posteriors[rows], labels[rows]
    random = np.random.default_rng(seed)
    true, estimates, numbers = [], [], []
    for number in range(REFERENCES):
        step(f"simulated shifts {number + 1} of {REFERENCES}")
        reference, calibrated = _resampled(posteriors, labels, method, random)
        mixes = (
            uniform_simplex(len(reference.classes), UNIFORM, random),
            near_simplex(reference.source_priors, NEAR, NEAR_SOURCE, random),
        )
        for mix in np.vstack(mixes):
            picked = draw(labels, mix, SIMULATED_EVENTS, random)
            window = Window.of(calibrated[picked])
            true.append(np.bincount(labels[picked], minlength=mix.size) / picked.size)
            solved = priors.solve(priors.COMBINED, window, reference)
            estimates.append([solved[name].priors for name in priors.COMBINED])
            numbers.append(number)
    said, truth = np.array(estimates), np.array(true)
    return SimulatedWindows(priors.COMBINED, truth, said, np.array(numbers), combination(said, truth))


def combination(estimates: Vector, true: Matrix) -> Vector:
    """Weights w on the simplex that minimise sum |sum_m w_m e_m - p|^2 + r |w - w_0|^2.

    Some sixty windows cannot tell apart estimators whose errors differ little: the ridge r then decides for w_0, what
    did best on average on the development problems.
    """
    deviations = estimates - true[:, None, :]
    gram = np.einsum("wmk,wnk->mn", deviations, deviations)
    ridge = COMBINATION_RIDGE * np.trace(gram) / gram.shape[0]
    start = np.array([PRIOR_WEIGHTS[name] for name in priors.COMBINED])
    return minimise(gram + ridge * np.eye(start.size), ridge * start).point


def _resampled(
    posteriors: Matrix, labels: Labels, method: str, random: np.random.Generator
) -> tuple[CalibratedView, Matrix]:
    """A reference of resampled events, and the posteriors of all events as it calibrates them."""
    counts = np.bincount(labels, minlength=posteriors.shape[1])
    members = [np.flatnonzero(labels == c) for c in range(counts.size)]
    rows = np.concatenate([m[random.integers(0, m.size, m.size)] for m in members])
    seed = int(random.integers(2**32))
    fitted = calibration.cross_fit(posteriors[rows], labels[rows], method, seed, folds=3)
    held_out = HoldOut(fitted.posteriors, labels[rows], None, seed)
    reference = CalibratedView(
        tuple(str(c) for c in range(counts.size)),
        counts / counts.sum(),
        counts.astype(np.float64),
        {name: priors.ESTIMATORS[name].summarise(held_out) for name in priors.COMBINED},
    )
    return reference, fitted.calibration(posteriors)
