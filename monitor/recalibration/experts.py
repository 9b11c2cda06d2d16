"""A linear pool of corrections: what a stream with late labels publishes instead of deciding for one of them.

    corrected = sum over the experts of weight x what the expert makes of the row

An expert takes a row through the steps that it has, in this order: a calibration, the multipliers of a class mix, and a
recalibration on logarithms, softmax(slope log max(q, 1e-7) + intercepts). One without any is the scores as they were.
`applying` does it, with numpy and without.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from monitor.recalibration.calibration_map import CalibrationMap, calibration_map
from monitor.recalibration.numbers import finite

WEIGHTS_SUM = 1e-6
"""The weights of a message sum to 1 within this: they are written with all their digits."""


@dataclass(frozen=True, slots=True)
class Expert:
    """One correction in a pool. Without any step it is the scores as they were."""

    weight: float
    """Its share of the pool; the weights of all experts sum to 1."""
    calibration: CalibrationMap | None = None
    """The first step: what posteriors go through before they are multiplied; null stands for none."""
    multipliers: tuple[float, ...] = ()
    """The second step: posteriors are multiplied by these, and normalised; empty stands for none."""
    slope: float = 1.0
    """Of the third step: posteriors q become softmax(slope z + intercepts) with z = log max(q, 1e-7)."""
    intercepts: tuple[float, ...] = ()
    """Of the third step, in the order of the classes; empty stands for none, and then there is no third step."""
    name: str = ""
    """What it is, for those who look at weights: `raw`, `label-shift` or `learned`. Nothing is decided by it."""


def experts_in(tables: Iterable[Mapping[str, Any]], classes: int) -> tuple[Expert, ...]:
    """The pool out of a message; ValueError if its numbers cannot be applied."""
    pool = tuple(_expert(table, classes) for table in tables)
    if pool and abs(sum(expert.weight for expert in pool) - 1) > WEIGHTS_SUM:
        raise ValueError(f"experts: want weights that sum to 1, got {[one.weight for one in pool]}")
    return pool


def _expert(table: Mapping[str, Any], classes: int) -> Expert:
    calibration = table.get("calibration")
    weight, slope = finite((table["weight"], table.get("slope", 1.0)))
    multipliers, intercepts = finite(table.get("multipliers", ())), finite(table.get("intercepts", ()))
    if min((weight, *multipliers)) < 0:
        raise ValueError("experts: want no weight or multiplier below 0")
    for steps in (multipliers, intercepts):
        finite(steps, classes if steps else 0)
    return Expert(
        weight=weight,
        calibration=None if calibration is None else calibration_map(calibration, classes),
        multipliers=multipliers,
        slope=slope,
        intercepts=intercepts,
        name=str(table.get("name", "")),
    )
