"""What files of the release before lack, and what they have that is no more.

They lack the scores of the sample as the model said them, before calibration. And some report the prevalence by `auto`,
a mean of estimators that was dropped for the default, which reads what is in every reference. Such a reference keeps
its version, under which windows were published, and the errors that `auto` had in its blocks.
"""

import numpy as np

from monitor.arrays import Matrix
from monitor.calibration import Calibration
from monitor.errors import ArtefactError
from monitor.priors import DEFAULT


def scores_before(posteriors: Matrix, calibration: Calibration) -> Matrix:
    """Scores that the calibration takes to these posteriors, where it can be undone: where it has at most one slope.

    The sample was calibrated out of sample, fold by fold: the scores are the model's own but for that small difference.
    """
    if calibration.method == "none":
        return posteriors
    slopes = np.asarray(calibration.parameters.get("slopes", np.ones(1)))
    if calibration.method not in ("balanced", "temperature", "bias-corrected-temperature") or np.ptp(slopes):
        raise ArtefactError(
            f"the reference was built by an earlier release, and its calibration ({calibration.method}) cannot be "
            "undone: build it anew (shiftwatch reference build)"
        )
    shifts = calibration.log_weights + calibration.parameters.get("intercepts", 0.0)
    scores = np.exp((np.log(np.maximum(posteriors, np.finfo(float).tiny)) - shifts) / slopes[0])
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def estimator_now(name: str) -> str:
    """The estimator that a reference goes on with."""
    return DEFAULT if name == "auto" else name
