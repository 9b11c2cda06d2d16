"""What no rule can beat: the error in calm against the error after the worst jump.

The level was 0 before the window, for certain; it is J now, and the window says x, normal about J with variance 1. Any
rule d(x) whose root mean square error in calm, at J = 0, is at most c, any weights w of jumps that sum to one and any
m >= 0 have

    largest E (d - J)^2  >=  sum_J w_J E (d - J)^2  >=  (1 + m) B(w, m) - m c^2

where B is the least risk of any rule under the prior (w + m at 0) / (1 + m), that of its posterior mean. The weights
that make it largest are sought by multiplying them up where that rule is worst (Bickel 1983 has the problem; Freund and
Schapire 1999 the method): the bound holds for whichever are found.
"""

import numpy as np

from monitor.arrays import Vector

JUMPS = np.arange(0, 10.01, 0.2)
POINTS = np.linspace(-9, 19, 561)
MULTIPLES = (0.5, 1, 2, 3, 4, 8, 16)
STEPS = 2_000

_STEP = POINTS[1] - POINTS[0]
_UP, _DOWN = (np.exp(-((POINTS - side * JUMPS[:, None]) ** 2) / 2) * _STEP / np.sqrt(2 * np.pi) for side in (1, -1))


def _risks(prior: Vector) -> Vector:
    """By jump, of the posterior mean; jumps go up and down alike."""
    mean = ((prior * JUMPS) @ (_UP - _DOWN)) / np.maximum(prior @ (_UP + _DOWN), np.finfo(np.float64).tiny)
    return np.asarray((_UP * (mean - JUMPS[:, None]) ** 2).sum(axis=1))


def _least(multiple: float) -> float:
    """(1 + m) B of the weights that were found."""
    weights, best = np.full(JUMPS.size, 1 / JUMPS.size), 0.0
    for step in range(STEPS):
        prior = weights.copy()
        prior[0] += multiple
        risks = _risks(prior / (1 + multiple))
        best = max(best, float(prior @ risks))
        weights = weights * np.exp(0.5 / np.sqrt(1 + step / 50) * (risks - risks.max()))
        weights /= weights.sum()
    return best


def bounds(calm: list[float]) -> list[float]:
    """Of the error after the worst jump, for each error in calm."""
    least = {multiple: _least(multiple) for multiple in MULTIPLES}
    return [float(np.sqrt(max(of - multiple * c**2 for multiple, of in least.items()))) for c in calm]
