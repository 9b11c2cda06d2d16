"""Whether a regressor's errors have changed, and whether they have among events like those of the hold-out. Pure.

A model may err more where inputs have moved to, though labels depend on the inputs as they did. Among labelled rows
that are weighted to look like the hold-out's (`monitor.shifts.balancing`) its errors are then those of the hold-out.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from monitor.arrays import Vector
from monitor.shifts import worth
from monitor.tolerances import ERROR_GROWTH, ERROR_LABELS


@dataclass(frozen=True, slots=True)
class ErrorsFound:
    """What labels say of the errors of the predictions."""

    error: float | None
    """Root mean square of label minus prediction; None without labels."""
    usual: float
    """In the reference."""
    p_value: float | None
    """Whether the squared errors are others in the mean; None where they are one number."""
    level: float
    labels: int
    alike: float | None = None
    """The labels whose inputs look like the hold-out's are worth so many; None where no input has moved,"""
    alike_error: float | None = None
    """and the error among them; None where they are too few."""
    quantiles: tuple[float, float, float] | None = None
    """Of label minus prediction: 10 %, 50 % and 90 %; None without labels."""

    @property
    def grown(self) -> bool:
        """Significantly, and by enough to count: of a few labels that are wrong by the same nothing follows."""
        if self.error is None or self.p_value is None or self.labels < ERROR_LABELS:
            return False
        return self.p_value < self.level and self.error > ERROR_GROWTH * self.usual


def errors_found(residuals: Vector, usual: float, events: int, level: float) -> ErrorsFound:
    """The errors of labelled rows against the usual one, which that many events of the hold-out have shown."""
    p_value = error_p_value(residuals, usual, events)
    if not residuals.size:
        return ErrorsFound(None, usual, p_value, level, 0)
    low, middle, high = np.quantile(residuals, [0.1, 0.5, 0.9]).tolist()
    return ErrorsFound(rms(residuals), usual, p_value, level, residuals.size, quantiles=(low, middle, high))


def among_alike(found: ErrorsFound, residuals: Vector, weights: Vector) -> ErrorsFound:
    """The same with the error among rows of these weights, which look like the hold-out's."""
    error = rms(residuals, weights) if enough_alike(weights) else None
    return replace(found, alike=worth(weights), alike_error=error)


def rms(residuals: Vector, weights: Vector | None = None) -> float:
    """Root mean square, of weighted rows."""
    return float(np.sqrt(np.average(residuals**2, weights=weights)))


def enough_alike(weights: Vector) -> bool:
    """Whether rows of these weights say anything."""
    return worth(weights) >= ERROR_LABELS


def error_p_value(residuals: Vector, usual: float, events: int, weights: Vector | None = None) -> float | None:
    """The two-sided p-value of the mean squared residual against the usual one; None where they are one number."""
    if residuals.size < 2 or not (scale := max(float(np.abs(residuals).max()), usual)) > 0:
        return None
    squares, expected = (residuals / scale) ** 2, (usual / scale) ** 2
    mean, error = weighted_mean(squares, weights)
    if not error > np.finfo(np.float64).eps * (mean + expected):
        return None
    both = np.sqrt(error**2 + squares.var() / events)
    return float(2.0 * ndtr(-abs(mean - expected) / both))


def weighted_mean(values: Vector, weights: Vector | None = None) -> tuple[float, float]:
    """The mean and its standard error."""
    shares = np.full(values.size, 1.0 / values.size) if weights is None else weights
    mean = float(shares @ values)
    spread = np.sum(shares**2 * (values - mean) ** 2) * values.size / max(values.size - 1, 1)
    return mean, float(np.sqrt(spread))
