"""What counts as a move of the class mix: by how much, of which class, and in which direction.

A mix that moved significantly counts when Cohen's w of the whole reaches a floor, or when the share of one class
changed by more than a factor, beyond chance of its own: a fraud rate that doubles from 0.2 to 0.4 % has a w of 0.045,
and is what the model is there for. A class whose move is allowed is left out, and the others are compared among
themselves.

Notation: p the class mix of the window, pi that of the hold-out events, n and N their events. Without a move p_y varies
around pi_y by e_y^2 + pi_y (1 - pi_y) (1/n + 1/N), with e_y the estimate's error for the shares of this very window.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtr, rel_entr

from monitor.arrays import Flags, Vector
from monitor.priors import PriorEstimate
from monitor.shifts import cohen_w
from monitor.tolerances import LEAST_ERROR, MIX_FACTOR, MIX_FLOOR, NORMAL_95, VERDICT_LEVEL


@dataclass(frozen=True, slots=True)
class ClassRule:
    """What a person says of one class; by default what holds for the stream."""

    may: Literal["rise", "fall"] | None = None
    """A move in this direction does not count."""
    factor: float | None = None
    """Its share has to change by this factor, or to the inverse of it, to count by itself."""
    level: float | None = None
    """How often its share may seem to move by chance; a move that is less significant does not count."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.factor is not None and self.factor <= 1:
            yield f"want `factor` above 1, got {self.factor}"
        if self.level is not None and not 0 < self.level < 1:
            yield f"want `level` between 0 and 1, got {self.level}"


@dataclass(frozen=True, slots=True)
class MixRule:
    """What counts as a move in one stream."""

    level: float = VERDICT_LEVEL
    floor: float = MIX_FLOOR
    """Of Cohen's w."""
    factor: float = MIX_FACTOR
    classes: Mapping[str, ClassRule] = field(default_factory=dict)


USUAL = MixRule()


@dataclass(frozen=True, slots=True, eq=False)
class MixMove:
    """A class mix held against a rule. All but `counts` speak of the class that stands out most."""

    factor: float
    """At least 1."""
    wanted: float
    statistic: float
    """By how much its share changed."""
    p_value: float
    counts: bool
    """Whether the mix moved by enough, in a way that is not allowed; whether it moved beyond chance is another test."""


def spread(estimate: PriorEstimate) -> Vector:
    """e_y^2 of an estimate."""
    p = estimate.priors
    errors = estimate.standard_errors
    if errors is None:
        errors = (estimate.upper - estimate.lower) / (2 * NORMAL_95)
    return np.asarray(np.maximum(errors**2 - p * (1 - p) / max(estimate.events, 1), 0.0))


def held_against(
    rule: MixRule,
    names: tuple[str, ...],
    priors: Vector,
    source: Vector,
    variances: Vector,
    *,
    events: int,
    hold_out_events: float,
) -> MixMove:
    """The mix `priors`, with `variances` e^2, against the hold-out's by the rule."""
    rules = [rule.classes.get(name, ClassRule()) for name in names]
    family = rule.level / 3
    p_values = _p_values(priors, source, variances, events, hold_out_events)
    levels = np.array([family if rule.level is None else rule.level for rule in rules])
    unsure = np.array([rule.level is not None for rule in rules]) & (p_values >= levels)
    left_out = _allowed(rules, priors - source) | unsure
    free = np.flatnonzero(~left_out)
    if free.size < 2 or not priors[free].sum() > 0:
        return MixMove(1.0, rule.factor, 0.0, 1.0, counts=False)
    p, pi = priors[free] / priors[free].sum(), source[free] / source[free].sum()
    if left_out.any():
        p_values[free] = _p_values(p, pi, variances[free] / priors[free].sum() ** 2, events, hold_out_events)
    # A class that no event shows may still be half of one.
    factors = np.maximum(p / pi, pi / np.maximum(p, 0.5 / max(events, 1)))
    wanted = np.array([rule.factor if rules[y].factor is None else rules[y].factor for y in free])
    beyond = p_values[free] < levels[free]
    counts = (factors >= wanted) & beyond
    # Among the classes that are left something has to have moved, not only in the mix as a whole.
    whole = cohen_w(p, pi) >= rule.floor and bool(beyond.any() or not left_out.any())
    # Of two classes both moved by as much, but for rounding: the rarer one's factor is the greater.
    clearly = [float(f"{p_value:.9e}") for p_value in p_values[free]]
    k = max(range(free.size), key=lambda k: (bool(counts[k]), -clearly[k], float(factors[k])))
    y = free[k]
    statistic = float(np.abs(p[k] - pi[k]))
    return MixMove(float(factors[k]), float(wanted[k]), statistic, float(p_values[y]), whole or bool(counts.any()))


def share_scores(p: Vector, pi: Vector, variances: Vector, events: int, hold_out_events: float) -> Vector:
    """Standard normal where the mix has not moved, or nearer to 0: also in small windows and for rare classes.

    z = (p - pi) / s with s the error at pi: at the estimate itself a window that came out low claims to be sure of it.
    Small counts are skewed, so that z is too large where a rare class rises. The signed root of the deviance of
    n = pi (1 - pi) / s^2 events is not: sqrt(2 n KL(p, pi)) exceeds t with probability e^(-t^2 / 2) at most (Chernoff).
    Whichever of the two claims less is the score.
    """
    errors = _errors(pi, variances, events, hold_out_events)
    deviance = 2 * pi * (1 - pi) / errors**2 * (rel_entr(p, pi) + rel_entr(1 - p, 1 - pi))
    z = (p - pi) / errors
    return np.asarray(np.sign(z) * np.minimum(np.abs(z), np.sqrt(np.maximum(deviance, 0.0))))


def _errors(pi: Vector, variances: Vector, events: int, hold_out_events: float) -> Vector:
    """Of the difference between a window's shares and the hold-out's, where the mix has not moved."""
    drawn = pi * (1 - pi) * (1 / max(events, 1) + 1 / max(hold_out_events, 1))
    return np.asarray(np.sqrt(np.maximum(variances + drawn, LEAST_ERROR**2)))


def _p_values(p: Vector, pi: Vector, variances: Vector, events: int, hold_out_events: float) -> Vector:
    """Two-sided, of each class."""
    return np.asarray(2 * ndtr(-np.abs(p - pi) / _errors(pi, variances, events, hold_out_events)))


def _allowed(rules: list[ClassRule], change: Vector) -> Flags:
    """Classes that moved as they may."""
    return np.array(
        [
            (rule.may == "rise" and d > 0) or (rule.may == "fall" and d < 0)
            for rule, d in zip(rules, change, strict=True)
        ]
    )
