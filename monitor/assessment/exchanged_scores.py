"""Whether the scores of a window fit once two of their columns are exchanged: looked at where no input moved."""

from dataclasses import replace
from itertools import combinations

import numpy as np

from monitor.arrays import frozen_matrix
from monitor.shifts import Prepared, Resolution, ShiftReference, comparable_posteriors, one_mix_explains
from monitor.tolerances import CLASSES_RANKED
from monitor.windows import Window


def exchanged_scores(
    window: Window, reference: ShiftReference, ready: Prepared, resolution: Resolution, level: float
) -> tuple[str, str] | None:
    """The first two classes whose columns have to change places before one class mix explains the window.

    `window` holds the scores as they came: a calibration is not the same for every class.
    """
    classes = window.posteriors.shape[1]
    for a, b in combinations(range(classes), 2) if classes <= CLASSES_RANKED else ():
        order = np.arange(classes)
        order[[a, b]] = b, a
        scores = comparable_posteriors(window.posteriors[:, order], reference, resolution)
        if one_mix_explains(replace(window, posteriors=frozen_matrix(scores, "posteriors")), ready, level):
            return reference.classes[a], reference.classes[b]
    return None
