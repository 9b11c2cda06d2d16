"""What a correction does to posteriors: calibrated first, then reweighted to the class mix of now, and normalised.

Margins are calibrated whether or not the class mix is to be corrected: what comes out are always posteriors. Where a
message has experts, their pool is the correction.

The arrays are for services with numpy, and for corrected events; rows and thresholds need nothing. A row that is not of
finite numbers, or that has all its mass on classes that are gone, stays as it is: the correction says nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from math import exp, isfinite, log
from typing import TYPE_CHECKING, Any

from monitor.recalibration.calibration_map import CalibrationMap
from monitor.recalibration.experts import Expert
from monitor.recalibration.message import Recalibration
from monitor.tolerances import POSTERIOR_FLOOR

with suppress(ImportError):  # lists can be corrected without
    import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

THRESHOLD_HALVINGS = 40
"""A threshold is known to 1e-12 after so many: finer than any score."""


def corrected_rows(posteriors: Floats, message: Recalibration) -> Floats:
    """Posteriors as a scoring service should use them; classes in the last dimension, in the message's order."""
    if message.experts:
        return pooled_rows(posteriors, message.experts)
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


def pooled_rows(posteriors: Floats, experts: Sequence[Expert]) -> Floats:
    """What a pool makes of them."""
    return np.asarray(sum(expert.weight * expert_rows(posteriors, expert) for expert in experts))


def expert_rows(posteriors: Floats, expert: Expert) -> Floats:
    """What one expert makes of them."""
    q = posteriors
    if expert.calibration is not None or expert.multipliers:
        q = reweighted(posteriors, expert.calibration, expert.multipliers or (1.0,) * posteriors.shape[-1])
    if not expert.intercepts:
        return q
    u = expert.slope * np.log(np.maximum(q, POSTERIOR_FLOOR)) + np.array(expert.intercepts)
    shares = np.exp(u - u.max(axis=-1, keepdims=True))
    totals, given = shares.sum(axis=-1, keepdims=True), q.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(shares, totals, out=q.copy(), where=np.isfinite(given) & (given > 0)))


def _of_margins(calibration: CalibrationMap | None) -> bool:
    return calibration is not None and calibration.scores == "margin"


def corrected_row(posteriors: Sequence[float], message: Recalibration) -> list[float]:
    """One row, without numpy."""
    if message.experts:
        return pooled_row(posteriors, message.experts)
    if not message.apply and message.calibration is None:
        return list(posteriors)
    return _reweighted_row(posteriors, message.calibration, message.multipliers)


def pooled_row(posteriors: Sequence[float], experts: Sequence[Expert]) -> list[float]:
    """What a pool makes of one row, without numpy."""
    parts = [(expert.weight, _expert_row(posteriors, expert)) for expert in experts]
    return [sum(weight * row[y] for weight, row in parts) for y in range(len(posteriors))]


def _expert_row(posteriors: Sequence[float], expert: Expert) -> list[float]:
    q = list(posteriors)
    if expert.calibration is not None or expert.multipliers:
        q = _reweighted_row(posteriors, expert.calibration, expert.multipliers or (1.0,) * len(q))
    if not expert.intercepts or not isfinite(sum(q)) or sum(q) <= 0:
        return q
    z = [log(max(x, POSTERIOR_FLOOR)) for x in q]
    u = [expert.slope * x + b for x, b in zip(z, expert.intercepts, strict=True)]
    top = max(u)
    shares = [exp(x - top) for x in u]
    total = sum(shares)
    return [share / total for share in shares]


def _reweighted_row(
    posteriors: Sequence[float], calibration: CalibrationMap | None, multipliers: Sequence[float]
) -> list[float]:
    given = sum(posteriors)
    if not isfinite(given) or (given <= 0 and not _of_margins(calibration)):
        return list(posteriors)
    calibrated = posteriors if calibration is None else calibration.row(posteriors)
    weighted = [value * multiplier for value, multiplier in zip(calibrated, multipliers, strict=True)]
    total = sum(weighted)
    return [value / total for value in weighted] if total > 0 else list(posteriors)


def experts_of_posteriors(message: Recalibration) -> tuple[Expert, ...]:
    """The pool as it takes what thresholds are of: posteriors, which margins are once they are calibrated."""
    if message.experts[0].calibration is None:
        return message.experts
    return tuple(replace(expert, calibration=None) for expert in message.experts)


def pooled_thresholds(
    ys: Sequence[int], wanted: float, source_priors: Sequence[float], pooled: Callable[[list[list[float]]], Any]
) -> list[float]:
    """The posterior of each class, as it was scored, at which its pooled posterior reaches `wanted`, by halving.

    All other classes share what is left as they shared the events of the reference. A pool rises with the scored
    posterior, as each expert does: no slope is below 0. `pooled` makes rows of rows.
    """
    bounds = [(0.0, 1.0)] * len(ys)
    for _ in range(THRESHOLD_HALVINGS):
        middles = [(low + high) / 2 for low, high in bounds]
        rows = pooled([along(y, g, source_priors) for y, g in zip(ys, middles, strict=True)])
        bounds = [
            (low, g) if row[y] >= wanted else (g, high)
            for (low, high), g, row, y in zip(bounds, middles, rows, ys, strict=True)
        ]
    return [float(high) for _, high in bounds]


def along(y: int, g: float, source_priors: Sequence[float]) -> list[float]:
    """A row with g for class y, in which the other classes share what is left as in the reference."""
    rest = 1 - source_priors[y]
    return [g if c == y else (1 - g) * p / rest for c, p in enumerate(source_priors)]


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
        row = calibrate(along(y, middle, source_priors))
        weighted = [float(q) * m for q, m in zip(row, multipliers, strict=True)]
        low, high = (low, middle) if weighted[y] >= wanted * sum(weighted) else (middle, high)
    return high
