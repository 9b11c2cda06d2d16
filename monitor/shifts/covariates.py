"""Explains how one feature moved between the reference and a window: not, on a line, monotonically, or in shape.

The procedure is Algorithm 1 of Al-Otaibi et al. (2015): test, correct, test again, and accept the simplest
correction after which the test no longer tells the two samples apart.

What two samples of one feature cannot say is whether the feature was also turned round: a decreasing map of a
symmetric feature leaves the same sample as an increasing one, and every continuous sample is the monotone image of
every other in both directions. `orientation` says what is known: a rising line whose mirror image does not fit is
`increasing`; a falling line that fits where no rising one does, the class mix being accounted for by weights, is
`decreasing`; everything else is `assumed` to be increasing, unless the caller knows the `direction` from labels.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Labels, Vector
from monitor.errors import InputError
from monitor.shifts import ks
from monitor.shifts.maps import IDENTITY, InputMap, Kind, percentile_map, usable_slopes
from monitor.tolerances import EXPLANATION_FLOOR, EXPLANATION_LEVEL, GLANCES, MIRROR_EVIDENCE, VRBIK_SIZE

Direction = Literal["increasing", "decreasing"]
Line = tuple[float, float]
"""alpha and beta of window = alpha * reference + beta."""

Orientation = Literal["increasing", "decreasing", "assumed"]


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """How a feature moved, the tests before and after the correction, and the correction itself."""

    kind: Kind
    orientation: Orientation
    reason: str
    correction: InputMap
    statistic: float
    p_value: float
    corrected_statistic: float
    corrected_p_value: float
    reference_values: int
    window_values: int
    missing: int
    """Window values that are not finite numbers; they take no part."""

    @property
    def effect(self) -> float:
        """How far the feature moved: the largest difference of the two distribution functions, 0 to 1."""
        return self.statistic

    @property
    def alpha(self) -> float:
        """window = alpha * reference + beta; 1 where no line was fitted."""
        return self.correction.alpha

    @property
    def beta(self) -> float:
        """window = alpha * reference + beta; 0 where no line was fitted."""
        return self.correction.beta

    def map(self, values: ArrayLike) -> Vector:
        """Window values taken back to the reference's scale."""
        return self.correction.map(values)

    def inverse(self, values: ArrayLike) -> Vector:
        """Reference values, such as thresholds, taken to the window's scale."""
        return self.correction.inverse(values)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Sorted finite values, with weights or without, and the centre and spread that lines are fitted by."""

    values: Vector
    weights: Vector | None = None

    @property
    def constant(self) -> bool:
        # The standard deviation of a column of 0.1 is 1e-17, not 0.
        return bool(self.values[0] == self.values[-1])

    @cached_property
    def effective(self) -> float:
        """How many equally weighted values would know as much."""
        return self.values.size if self.weights is None else ks.effective_size(self.weights)

    @cached_property
    def cumulative(self) -> Vector | None:
        """The weighted distribution function, 0 first; None for equal weights."""
        return None if self.weights is None else ks.steps(self.weights)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation, divided by n as printed."""
        mean = np.average(self.values, weights=self.weights)
        return float(mean), float(np.sqrt(np.average((self.values - mean) ** 2, weights=self.weights)))

    @cached_property
    def quartiles(self) -> tuple[float, float]:
        """Median and interquartile range, as order statistics."""
        p = np.array([0.25, 0.5, 0.75])
        if self.cumulative is None:
            low, median, high = self.values[np.ceil(p * self.values.size).astype(np.intp) - 1]
        else:
            low, median, high = self.values[np.searchsorted(self.cumulative[1:], p)]
        return float(median), float(high - low)

    @cached_property
    def atoms(self) -> Vector:
        """The values that occur more than once."""
        return np.unique(self.values[:-1][self.values[1:] == self.values[:-1]])


@dataclass(frozen=True, slots=True)
class _TestOutcome:
    statistic: float
    p_value: float
    rejects: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Comparison:
    """The two samples and the rule that says whether they differ."""

    reference: _Sample
    window: _Sample
    missing: int
    level: float
    floor: float

    def test(self, values: Vector) -> _TestOutcome:
        """The same as `ks.two_sample`, with what the reference's side of it costs paid once."""
        r = self.reference
        return self._judge(ks.distance(ks.merge_sorted(r.values, values), r.cumulative, r.values.size))

    def glance(self, values: Vector, ranks: Labels) -> _TestOutcome:
        """The test at some of the sorted values only, whose ranks in the window are given: what this rejects, the
        test would reject, as the distance can only be larger and the p-value smaller."""
        r, m = self.reference, self.window.values.size
        below = np.searchsorted(r.values, values, side="right"), np.searchsorted(r.values, values, side="left")
        right, left = (i / r.values.size if r.cumulative is None else r.cumulative[i] for i in below)
        return self._judge(float(max(((ranks + 1) / m - right).max(), (left - ranks / m).max(), 0.0)))

    def _judge(self, statistic: float) -> _TestOutcome:
        p_value = _p_value(statistic, self.reference.effective, self.window.values.size)
        return _TestOutcome(statistic, p_value, p_value < self.level and statistic >= self.floor)

    def conclude(
        self, correction: InputMap, orientation: Orientation, reason: str, before: _TestOutcome, after: _TestOutcome
    ) -> Explanation:
        return Explanation(
            kind=correction.kind,
            orientation=orientation,
            reason=reason,
            correction=correction,
            statistic=before.statistic,
            p_value=before.p_value,
            corrected_statistic=after.statistic,
            corrected_p_value=after.p_value,
            reference_values=self.reference.values.size,
            window_values=self.window.values.size,
            missing=self.missing,
        )


def explain(
    reference: ArrayLike,
    window: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    level: float = EXPLANATION_LEVEL,
    floor: float = EXPLANATION_FLOOR,
    direction: Direction | None = None,
) -> Explanation:
    """Explain how a feature moved (Al-Otaibi et al., Algorithms 1 and 2, with asymptotic KS p-values).

    `weights` are the reference rows' weights, the target prior over the source prior of each row's class: with them
    a pure change of the class mix moves nothing, and alpha, beta and percentiles are those of the reference under the
    new mix (eq 7). A move counts when the test rejects at `level` *and* the distance reaches `floor`; the same rule
    says whether a correction was enough. `direction` overrules what the values alone suggest: a feature that is known
    to be mirrored is mapped back even where its distribution looks as before.

    In order: `none`; `linear` by mean and standard deviation, or where heavy tails spoil those by median and
    quartiles; `monotone` by percentiles; `shape`, which no invertible map undoes. Missing values take no part. An
    empty side, or a window too small to reject, is `none`; two different constants are a line with alpha 1; a constant
    on one side only is `shape`. A reference that is sorted already saves the sort.
    """
    r, _ = _sample(reference, "reference", weights)
    w, missing = _sample(window, "window")
    pair = _Comparison(r, w, missing, level, floor)
    if r.values.size == 0 or w.values.size == 0:
        untested = _TestOutcome(0.0, 1.0, False)
        side = "reference" if r.values.size == 0 else "window"
        return pair.conclude(IDENTITY, "assumed", f"the {side} has no values", untested, untested)
    before = pair.test(w.values)
    if not before.rejects and direction != "decreasing":
        reason = f"distance {before.statistic:.3g}, p {before.p_value:.3g}: chance, or too small to matter"
        return pair.conclude(IDENTITY, "increasing", reason, before, before)
    if r.constant or w.constant:
        return _constant(pair, before)
    return _linear(pair, before, direction) or _monotone(pair, before, direction) or _shape(pair, before)


def line_by_moments(
    reference: ArrayLike, window: ArrayLike, weights: ArrayLike | None = None, direction: Direction | None = None
) -> InputMap:
    """Algorithm 2 whether or not the feature moved; the identity where a side has no spread to compare."""
    r, w = _sample(reference, "reference", weights)[0], _sample(window, "window")[0]
    if r.values.size == 0 or w.values.size == 0 or r.constant or w.constant:
        return IDENTITY
    line = _line(r, w, "moments", -1 if direction == "decreasing" else 1)
    return IDENTITY if line is None else InputMap("linear", *line)


def percentiles(
    reference: ArrayLike, window: ArrayLike, weights: ArrayLike | None = None, direction: Direction | None = None
) -> InputMap:
    """The percentile map (eq 6) whether or not the feature moved; the identity where a side has no spread."""
    r, w = _sample(reference, "reference", weights)[0], _sample(window, "window")[0]
    if r.values.size == 0 or w.values.size == 0 or r.constant or w.constant:
        return IDENTITY
    return _percentiles(r, w, direction) or IDENTITY


def _sample(values: ArrayLike, name: str, weights: ArrayLike | None = None) -> tuple[_Sample, int]:
    """The finite values that carry weight, sorted, and how many values were missing."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise InputError(f"{name}: want shape (n,), got {x.shape}")
    kept = np.isfinite(x)
    missing = int(x.size - np.count_nonzero(kept))
    if weights is None:
        x = x[kept] if missing else x
        return _Sample(x if _ascends(x) else np.sort(x)), missing
    v = np.asarray(weights, dtype=np.float64)
    if v.shape != x.shape or not np.all((v >= 0) & np.isfinite(v)):
        raise InputError(f"weights: want one finite weight of at least 0 per {name} value, got shape {v.shape}")
    kept &= v > 0
    x, v = (x, v) if kept.all() else (x[kept], v[kept])
    if not _ascends(x):
        order = np.argsort(x, kind="stable")
        x, v = x[order], v[order]
    return _Sample(x, v), missing


def _p_value(statistic: float, m: float, n: int) -> float:
    """The asymptotic p-value; by the series where that is as good, as an explanation takes up to six of them."""
    law = ks.series_p if m * n / (m + n) >= VRBIK_SIZE else ks.asymptotic_p
    return float(law(statistic, m, n))


def _ascends(values: Vector) -> bool:
    return bool(np.all(values[1:] >= values[:-1]))


def _constant(pair: _Comparison, before: _TestOutcome) -> Explanation:
    """Sigma is 0 on a side: only a constant that became another constant is a line, a translation."""
    if pair.reference.constant and pair.window.constant:
        moved = float(pair.window.values[0] - pair.reference.values[0])
        line = InputMap("linear", 1.0, moved)
        return pair.conclude(line, "assumed", "one constant became another", before, _TestOutcome(0.0, 1.0, False))
    side = "reference" if pair.reference.constant else "window"
    return pair.conclude(InputMap("shape"), "assumed", f"only the {side} is constant", before, before)


def _linear(pair: _Comparison, before: _TestOutcome, direction: Direction | None) -> Explanation | None:
    """The first line after which the test accepts; None where there is none (Algorithm 2)."""
    if direction != "decreasing":
        rising = _likeliest(pair, _lines(pair, decreasing=False))
        if rising is not None and not rising[1].rejects:
            mirrored = direction is None and _fits(pair, next(iter(_lines(pair, decreasing=True)), None))
            return _on_line(pair, before, rising, "assumed" if mirrored else "increasing")
        # A change of the class mix can leave the mirror image of the reference (20 and 80 % against 80 and 20 %), and
        # mirroring by mistake sends every event to the wrong side of every threshold. So a falling line is believed
        # only with the class mix accounted for, and if a rising one is all but impossible.
        improbable = rising is None or rising[1].p_value < MIRROR_EVIDENCE
        if direction == "increasing" or pair.reference.weights is None or not improbable:
            return None
    falling = _likeliest(pair, _lines(pair, decreasing=True))
    return None if falling is None or falling[1].rejects else _on_line(pair, before, falling, "decreasing")


def _on_line(
    pair: _Comparison, before: _TestOutcome, found: tuple[Line, _TestOutcome], orientation: Orientation
) -> Explanation:
    (alpha, beta), after = found
    reason = f"window = {alpha:.4g} x reference {'-' if beta < 0 else '+'} {abs(beta):.4g}"
    return pair.conclude(InputMap("linear", alpha, beta), orientation, reason, before, after)


def _likeliest(pair: _Comparison, lines: Iterable[Line]) -> tuple[Line, _TestOutcome] | None:
    """The first line that the test accepts after its correction, else the likeliest one; None without a line."""
    likeliest = None
    for line in lines:
        tested = _corrected(pair, line)
        if not tested.rejects:
            return line, tested
        if likeliest is None or tested.p_value > likeliest[1].p_value:
            likeliest = (line, tested)
    return likeliest


def _fits(pair: _Comparison, line: Line | None) -> bool:
    return line is not None and not _corrected(pair, line).rejects


def _corrected(pair: _Comparison, line: Line) -> _TestOutcome:
    """The test after the window was taken back along a line; most wrong lines show at a few values."""
    back = InputMap("linear", *line)
    values = pair.window.values[::-1] if back.decreasing else pair.window.values
    ranks = np.arange(0, values.size, max(1, values.size // GLANCES))
    glance = pair.glance(_onto_atoms(back.map(values[ranks]), pair), ranks)
    return glance if glance.rejects else pair.test(_onto_atoms(back.map(values), pair))


def _lines(pair: _Comparison, *, decreasing: bool) -> list[Line]:
    """Two lines: by mean and standard deviation as printed; by median and quartiles, which heavy tails do not spoil."""
    lines = (_line(pair.reference, pair.window, by, -1 if decreasing else 1) for by in ("moments", "quartiles"))
    return [line for line in lines if line is not None]


def _line(r: _Sample, w: _Sample, by: str, sign: int) -> Line | None:
    """Algorithm 2: sigma_dep = |alpha| sigma_tr and mu_dep = alpha mu_tr + beta."""
    with np.errstate(over="ignore", invalid="ignore"):
        (mu, sigma), (mu_dep, sigma_dep) = getattr(r, by), getattr(w, by)
        # A spread of 0, or one that overflowed, has no ratio.
        if not (0 < sigma < np.inf and 0 < sigma_dep < np.inf):
            return None
        alpha = sign * sigma_dep / sigma
        beta = mu_dep - alpha * mu
    return (alpha, beta) if usable_slopes(np.array([alpha])) and np.isfinite(beta) else None


def _onto_atoms(values: Vector, pair: _Comparison) -> Vector:
    """Corrected values that land beside a repeated reference value, within the error of the line, put onto it.

    On a lattice (counts, ages, zeros) an estimated line misses every point by a hair, and the test would see all of
    the mass of each point move. The line is known to about 3 sigma sqrt(1/n + 1/m) (1 + |z|) at z deviations.
    """
    atoms = pair.reference.atoms
    if atoms.size == 0:
        return values
    mean, deviation = pair.reference.moments
    error = (
        3 * np.sqrt(1 / pair.reference.effective + 1 / pair.window.values.size) * (deviation + np.abs(values - mean))
    )
    above = np.minimum(np.searchsorted(atoms, values), atoms.size - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(np.abs(values - atoms[below]) <= np.abs(values - atoms[above]), atoms[below], atoms[above])
    return np.where(np.abs(values - nearest) <= error, nearest, values)


def _monotone(pair: _Comparison, before: _TestOutcome, direction: Direction | None) -> Explanation | None:
    """The percentile map, where the window's percentiles taken back pass the test (eq 6)."""
    correction = _percentiles(pair.reference, pair.window, direction)
    if correction is None:
        return None
    after = pair.test(_ascending(correction.map(pair.window.values)))
    if after.rejects:
        return None
    reason = f"a monotone map of the reference, {direction or 'assumed to be increasing'}"
    return pair.conclude(correction, direction or "assumed", reason, before, after)


def _percentiles(r: _Sample, w: _Sample, direction: Direction | None) -> InputMap | None:
    sign = -1 if direction == "decreasing" else 1
    line = _line(r, w, "moments", sign) or _line(r, w, "quartiles", sign) or (float(sign), 0.0)
    return percentile_map(r.values, r.cumulative, w.values, line)


def _shape(pair: _Comparison, before: _TestOutcome) -> Explanation:
    reason = "no line and no monotone map leads back to the reference"
    return pair.conclude(InputMap("shape"), "assumed", reason, before, before)


def _ascending(values: Vector) -> Vector:
    """A strictly monotone image of sorted values, sorted again without a sort."""
    return values[::-1] if values[0] > values[-1] else values
