"""A reference's calibration as plain numbers, so that a scoring service can apply it: with numpy, or row by row.

Every method ends in the same step: calibrated = softmax(u + weights), and differs in how a row of posteriors p becomes
u. With z = log max(p, floor) and f = z - log max(1 - p, floor), or both z and f the margins where scores are those:

    scaled     u_c = slopes_c z_c
    matrix     u_c = sum_k z_k matrix_kc
    platt      u_c = log max(sigmoid(slopes_c f_c + intercepts_c), floor)
    isotonic   u_c = log max(values_c[number of edges_c below p_c], floor)

`monitor.calibration` fits them, and cites where each is from.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any, Literal, get_args

from monitor.recalibration.numbers import finite, finite_rows

with suppress(ImportError):  # lists can be calibrated without
    import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CalibrationMethod = Literal["scaled", "matrix", "platt", "isotonic"]
ScoreKind = Literal["posterior", "margin"]


@dataclass(frozen=True, slots=True)
class CalibrationMap:
    """What takes posteriors as they were scored to calibrated ones; what a method does not use is empty.

    With z = log max(p, floor) of a row of posteriors p, the calibrated row is softmax(u + weights), where of class c
    `scaled` has u = slopes[c] z[c]; `matrix` has u = sum over k of z[k] matrix[k][c]; `platt` has u = log max(s, floor)
    with s = 1 / (1 + exp(-(slopes[c] (z[c] - log max(1 - p[c], floor)) + intercepts[c]))); `isotonic` has
    u = log max(values[c][i], floor) with i the number of edges[c] that are below p[c]. Where `scores` says margin, the
    margin of c is in the place of z[c], and of z[c] - log max(1 - p[c], floor).
    """

    method: CalibrationMethod
    floor: float
    """Smaller posteriors are taken for this."""
    weights: tuple[float, ...]
    """Added to each class's u."""
    slopes: tuple[float, ...] = ()
    intercepts: tuple[float, ...] = ()
    matrix: tuple[tuple[float, ...], ...] = ()
    edges: tuple[tuple[float, ...], ...] = ()
    values: tuple[tuple[float, ...], ...] = ()
    """One more than edges for each class."""
    scores: ScoreKind = "posterior"
    """What rows are: posteriors, or margins, of which one number may stand for two classes: the second one's, where the
    first one's is its negative."""

    def row(self, posteriors: Sequence[float]) -> list[float]:
        """One row, calibrated, without numpy."""
        u = [x + w for x, w in zip(_ROW[self.method](self, posteriors), self.weights, strict=True)]
        top = max(u)
        shares = [exp(x - top) for x in u]
        total = sum(shares)
        return [share / total for share in shares]

    def rows(self, posteriors: Floats) -> Floats:
        """Any number of rows, calibrated; classes in the last dimension."""
        u = _ROWS[self.method](self, posteriors) + np.array(self.weights)
        shares = np.exp(u - u.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    @property
    def slope(self) -> float | None:
        """The one slope of all classes, where there is one: then a shift of biases can decide as calibrated scores."""
        return self.slopes[0] if self.method == "scaled" and len(set(self.slopes)) == 1 else None


def _kind_of_scores(table: Mapping[str, Any]) -> ScoreKind:
    kind: ScoreKind = table.get("scores", "posterior")  # messages of earlier releases do not say it
    if kind not in get_args(ScoreKind):
        raise ValueError(f"calibration: want scores of {get_args(ScoreKind)}, got {kind!r}")
    return kind


def calibration_map(table: Mapping[str, Any], classes: int) -> CalibrationMap:
    """The map out of a message; ValueError if a number is missing, or one too many."""
    method = table["method"]
    if method not in get_args(CalibrationMethod):
        raise ValueError(f"calibration: want a method of {sorted(get_args(CalibrationMethod))}, got {method!r}")
    (floor,) = finite((table["floor"],))
    edges, values = finite_rows(table["edges"]), finite_rows(table["values"])
    wanted = {"scaled": ("slopes",), "matrix": (), "platt": ("slopes", "intercepts"), "isotonic": ()}[method]
    steps = classes if method == "isotonic" else 0
    if (len(edges), len(values)) != (steps, steps) or any(
        len(after) != len(at) + 1 for at, after in zip(edges, values, strict=True)
    ):
        raise ValueError(f"calibration: want edges and one value more for each of {steps} classes")
    if not 0 < floor < 1 or any(list(at) != sorted(at) for at in edges):
        raise ValueError("calibration: want a floor between 0 and 1, and edges that ascend")
    return CalibrationMap(
        method=method,
        floor=floor,
        weights=finite(table["weights"], classes),
        slopes=finite(table["slopes"], classes if "slopes" in wanted else 0),
        intercepts=finite(table["intercepts"], classes if "intercepts" in wanted else 0),
        matrix=finite_rows(table["matrix"], *((classes, classes) if method == "matrix" else (0, 0))),
        edges=edges,
        values=values,
        scores=_kind_of_scores(table),
    )


def _logs(given: CalibrationMap, p: Sequence[float]) -> list[float]:
    if given.scores == "margin":
        return list(p)
    return [log(max(x, given.floor)) for x in p]


def _log_odds(given: CalibrationMap, p: Sequence[float]) -> list[float]:
    if given.scores == "margin":
        return list(p)
    return [z - log(max(1 - x, given.floor)) for z, x in zip(_logs(given, p), p, strict=True)]


def _scaled_row(given: CalibrationMap, p: Sequence[float]) -> list[float]:
    return [s * z for s, z in zip(given.slopes, _logs(given, p), strict=True)]


def _matrix_row(given: CalibrationMap, p: Sequence[float]) -> list[float]:
    z = _logs(given, p)
    return [sum(x * row[c] for x, row in zip(z, given.matrix, strict=True)) for c in range(len(z))]


def _platt_row(given: CalibrationMap, p: Sequence[float]) -> list[float]:
    f = zip(given.slopes, _log_odds(given, p), given.intercepts, strict=True)
    return [log(max(_sigmoid(s * x + b), given.floor)) for s, x, b in f]


def _isotonic_row(given: CalibrationMap, p: Sequence[float]) -> list[float]:
    steps = zip(given.edges, given.values, p, strict=True)
    return [log(max(values[bisect_left(edges, x)], given.floor)) for edges, values, x in steps]


def _sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x)) if x >= 0 else exp(x) / (1 + exp(x))


def _all_logs(given: CalibrationMap, p: Floats) -> Floats:
    return p if given.scores == "margin" else _floored_logs(given, p)


def _floored_logs(given: CalibrationMap, p: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(p, given.floor)))


def _all_log_odds(given: CalibrationMap, p: Floats) -> Floats:
    return p if given.scores == "margin" else _floored_logs(given, p) - _floored_logs(given, 1 - p)


def _scaled_rows(given: CalibrationMap, p: Floats) -> Floats:
    return np.asarray(np.array(given.slopes) * _all_logs(given, p))


def _matrix_rows(given: CalibrationMap, p: Floats) -> Floats:
    return np.asarray(_all_logs(given, p) @ np.array(given.matrix))


def _platt_rows(given: CalibrationMap, p: Floats) -> Floats:
    f = _all_log_odds(given, p)
    x = np.array(given.slopes) * f + np.array(given.intercepts)
    small = np.exp(-np.abs(x))
    return _floored_logs(given, np.where(x >= 0, 1.0, small) / (1 + small))


def _isotonic_rows(given: CalibrationMap, p: Floats) -> Floats:
    columns = [
        np.array(values)[np.searchsorted(np.array(edges), p[..., c])]
        for c, (edges, values) in enumerate(zip(given.edges, given.values, strict=True))
    ]
    return _floored_logs(given, np.stack(columns, axis=-1))


_ROW: Mapping[str, Callable[[CalibrationMap, Sequence[float]], list[float]]] = {
    "scaled": _scaled_row,
    "matrix": _matrix_row,
    "platt": _platt_row,
    "isotonic": _isotonic_row,
}
_ROWS: Mapping[str, Callable[[CalibrationMap, Any], Any]] = {
    "scaled": _scaled_rows,
    "matrix": _matrix_rows,
    "platt": _platt_rows,
    "isotonic": _isotonic_rows,
}
