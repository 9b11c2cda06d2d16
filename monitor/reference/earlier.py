"""What files of the release before lack: the scores of the sample as the model said them, before calibration."""

import numpy as np

from monitor.arrays import Matrix
from monitor.calibration import Calibration
from monitor.errors import ArtefactError


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
