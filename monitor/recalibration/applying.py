"""What a correction does to posteriors: calibrated first, then reweighted to the class mix of now, and normalised.

Margins are calibrated whether or not the class mix is to be corrected: what comes out are always posteriors.

The arrays are for services with numpy, and for corrected events; rows and thresholds need nothing. A row that is not of
finite numbers, or that has all its mass on classes that are gone, stays as it is: the correction says nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING

from monitor.recalibration.calibration_map import CalibrationMap
from monitor.recalibration.message import Recalibration

with suppress(ImportError):  # lists can be corrected without
    import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

THRESHOLD_HALVINGS = 40
"""A threshold is known to 1e-12 after so many: finer than any score."""


def corrected_rows(posteriors: Floats, message: Recalibration) -> Floats:
    """Posteriors as a scoring service should use them; classes in the last dimension, in the message's order."""
    if not message.apply and message.calibration is None:
        return posteriors
    return reweighted(posteriors, message.calibration, message.multipliers)


def reweighted(posteriors: Floats, calibration: CalibrationMap | None, multipliers: Sequence[float]) -> Floats:
    """Calibrated, multiplied and normalised."""
    given = posteriors.sum(axis=-1, keepdims=True)
    weighted = (posteriors if calibration is None else calibration.rows(posteriors)) * np.array(multipliers)
    totals = weighted.sum(axis=-1, keepdims=True)
    usable = np.isfinite(given) & (totals > 0) & ((given > 0) | _of_margins(calibration))
    return np.asarray(np.divide(weighted, totals, out=posteriors.copy(), where=usable))


def _of_margins(calibration: CalibrationMap | None) -> bool:
    return calibration is not None and calibration.scores == "margin"


def corrected_row(posteriors: Sequence[float], message: Recalibration) -> list[float]:
    """One row, without numpy."""
    given = sum(posteriors)
    unread = not message.apply and message.calibration is None
    if unread or not isfinite(given) or (given <= 0 and not _of_margins(message.calibration)):
        return list(posteriors)
    calibrated = posteriors if message.calibration is None else message.calibration.row(posteriors)
    weighted = [value * multiplier for value, multiplier in zip(calibrated, message.multipliers, strict=True)]
    total = sum(weighted)
    return [value / total for value in weighted] if total > 0 else list(posteriors)


def scored_threshold(
    y: int,
    wanted: float,
    source_priors: Sequence[float],
    target_priors: Sequence[float],
    calibrate: Callable[[list[float]], Sequence[float]] | None,
) -> float:
    """The posterior of class y, as it was scored, at which its corrected posterior reaches `wanted`.

    All other classes are taken together: their posteriors share what is left as they shared the events of the
    reference. The corrected posterior is then (eq 2.8 of Saerens et al. for two classes)

        g' = r g / (r g + s (1 - g)),    r = target_y / source_y,    s = (1 - target_y) / (1 - source_y)

    which is solved for g; with a calibration g is found by halving, as that rises with the scored posterior.
    """
    source, target = source_priors[y], target_priors[y]
    r, s = target / source, (1 - target) / (1 - source)
    if calibrate is None:
        total = r * (1 - wanted) + s * wanted
        return s * wanted / total if total > 0 else wanted
    multipliers = [t / p for t, p in zip(target_priors, source_priors, strict=True)]
    low, high = 0.0, 1.0
    for _ in range(THRESHOLD_HALVINGS):
        middle = (low + high) / 2
        row = [middle if c == y else (1 - middle) * p / (1 - source) for c, p in enumerate(source_priors)]
        weighted = [float(q) * m for q, m in zip(calibrate(row), multipliers, strict=True)]
        low, high = (low, middle) if weighted[y] >= wanted * sum(weighted) else (middle, high)
    return high
