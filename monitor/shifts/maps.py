"""How values of a moved feature go back to the values the model knows, and its thresholds the other way.

Everything that carries a correction of an input lives here: as a value, and as the message of the feed.
Two directions, one name each: `map` takes a *window* value back to the reference's scale (what a scoring service
does to an input before it scores); `inverse` takes a *reference* value, such as a threshold, to the window's scale
(what an adapted tree does to its thresholds).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Vector, frozen_vector
from monitor.errors import InputError
from monitor.tolerances import PERCENTILE_KNOTS, STEEPEST_SLOPE

Kind = Literal["none", "linear", "monotone", "shape"]

_NO_KNOTS = frozen_vector([], "knots")


@dataclass(frozen=True, slots=True, eq=False)
class InputMap:
    """One feature's correction: nothing, a line, or a strictly monotone percentile map.

    `none` and `shape` map every value to itself: where no map explains the move, no map is applied.
    """

    kind: Kind
    alpha: float = 1.0
    beta: float = 0.0
    """window = alpha * reference + beta; for `monotone` the line that is followed outside the knots."""
    window_knots: Vector = field(default_factory=lambda: _NO_KNOTS)
    reference_knots: Vector = field(default_factory=lambda: _NO_KNOTS)
    """Matching percentiles; `window_knots` ascend strictly, `reference_knots` ascend or descend strictly."""

    @property
    def decreasing(self) -> bool:
        """Large window values stand for small reference values: a threshold's two sides change places."""
        return self.alpha < 0

    def map(self, values: ArrayLike) -> Vector:
        """Window values as the reference would have shown them, x^u = (x' - beta) / alpha; NaN stays NaN."""
        x = np.asarray(values, dtype=np.float64)
        if self.kind == "linear":
            return (x - self.beta) / self.alpha
        if self.kind == "monotone":
            return _interpolate(x, self.window_knots, self.reference_knots, 1.0 / self.alpha)
        return x.copy()

    def inverse(self, values: ArrayLike) -> Vector:
        """Reference values (thresholds) on the window's scale, th_dep = alpha * th_tr + beta; NaN stays NaN."""
        x = np.asarray(values, dtype=np.float64)
        if self.kind == "linear":
            return self.alpha * x + self.beta
        if self.kind == "monotone":
            step = -1 if self.decreasing else 1
            return _interpolate(x, self.reference_knots[::step], self.window_knots[::step], self.alpha)
        return x.copy()

    def to_message(self) -> dict[str, Any]:
        """The correction as JSON would carry it; knots only where there are any."""
        message: dict[str, Any] = {"kind": self.kind, "alpha": self.alpha, "beta": self.beta}
        if self.kind == "monotone":
            message["window"] = self.window_knots.tolist()
            message["reference"] = self.reference_knots.tolist()
        return message

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The correction out of a message; refuses one that could not be applied in both directions."""
        kind, alpha, beta = message["kind"], float(message.get("alpha", 1.0)), float(message.get("beta", 0.0))
        if kind not in get_args(Kind):
            raise InputError(f"input map: want a kind of {sorted(get_args(Kind))}, got {kind!r}")
        if not (np.isfinite(beta) and usable_slopes(np.array([alpha]))):
            raise InputError(f"input map: want finite alpha and beta, alpha not 0, got {alpha} and {beta}")
        window = frozen_vector(message.get("window", ()), "input map: window")
        reference = frozen_vector(message.get("reference", ()), "input map: reference", window.size)
        if kind == "monotone":
            rises = np.concatenate([np.diff(window), np.sign(alpha) * np.diff(reference)])
            if window.size == 0 or not np.all(rises > 0):
                raise InputError("input map: want knots that ascend strictly in the window, strictly in the reference")
        return cls(cast(Kind, kind), alpha, beta, window, reference)


IDENTITY = InputMap("none")


def percentile_map(
    reference: Vector, cumulative: Vector | None, window: Vector, line: tuple[float, float]
) -> InputMap | None:
    """The map that sends each percentile of the window to the same percentile of the reference (al-otaibi, eq 6).

    `reference` and `window` are sorted; `cumulative` is the reference's weighted distribution function, 0 first, or
    None. Ties: equal window values must map to one value, so a block of them goes to the middle of the block of
    percentiles it covers, and the other way round; what is left is strictly monotone in both directions. None where
    fewer than two usable knots remain. `line` (alpha, beta) is followed outside the knots; with alpha < 0 the map
    decreases.
    """
    m = window.size
    knots = min(PERCENTILE_KNOTS, m)
    ends = np.array([0.5 / m, 1 - 0.5 / m])
    p = np.unique(np.concatenate([(np.arange(knots) + 0.5) / knots, ends]))
    x = window[_rank(p, m)]
    q = 1 - p if line[0] < 0 else p
    y = reference[
        _rank(q, reference.size)
        if cumulative is None
        else np.minimum(np.searchsorted(cumulative[1:], q - 1e-12), reference.size - 1)
    ]
    x, y = _middle_of_ties(x, y)
    y, x = _middle_of_ties(y, x)
    with np.errstate(over="ignore", divide="ignore"):
        if x.size < 2 or not usable_slopes(np.diff(x) / np.diff(y)):
            return None
    return InputMap("monotone", line[0], line[1], frozen_vector(x, "knots"), frozen_vector(y, "knots"))


def usable_slopes(slopes: Vector) -> bool:
    """Whether values can be multiplied and divided by these without leaving the range of floats."""
    return bool(np.all((np.abs(slopes) > 1 / STEEPEST_SLOPE) & (np.abs(slopes) < STEEPEST_SLOPE)))


def _rank(p: Vector, size: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Index of the p-quantile as an order statistic, k = ceil(p * size): a value that occurred, never one between."""
    # p is a ratio of small integers; without the slack 0.07 * 100 = 7.000000000000001 would be one rank too high.
    return np.clip(np.ceil(p * size - 1e-9).astype(np.intp) - 1, 0, size - 1)


def _middle_of_ties(keys: Vector, values: Vector) -> tuple[Vector, Vector]:
    """Each run of equal keys once, with the value in the middle of the run."""
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    ends = np.append(starts[1:], keys.size)
    return keys[starts], values[(starts + ends - 1) // 2]


def _interpolate(x: Vector, knots: Vector, values: Vector, slope: float) -> Vector:
    """Piecewise linear between the knots; parallel to the fitted line outside what the window showed."""
    inside = np.interp(x, knots, values)
    return inside + slope * (x - np.clip(x, knots[0], knots[-1]))
