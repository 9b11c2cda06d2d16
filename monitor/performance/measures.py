"""How good a model is, as functions of how much of each event is of each class.

Everything that measures a model stands here, once: with labels as weights (1 for the class that an event was of, 0
elsewhere) a measure is what it is anywhere else; with posteriors as weights it is what these expect of it.

Notation: W the weights (events, classes), t their sum by event, T by all. Every measure is a function f(W) of degree 0
(twice the events make no difference), and comes with its gradient G = df/dW, so that for small changes

    f(W + dW) - f(W) = sum_ic G_ic dW_ic,        sum_ic G_ic W_ic = 0

from which every error follows (`errors`). For one class, a is its column of W and b = t - a:

    ROC AUC    sum_i a_i (B(below i) + B(as i) / 2 - b_i / 2) / (A B - sum_i a_i b_i)        ties count for a half
    average precision     sum_i a_i P_i / A,    P_i = (A(from i up) - a_i + t_i) / N(from i up)

in which no event is held against itself: of whichever class it is, it is not of the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

import numpy as np

from monitor.arrays import Labels, Matrix, Vector, row_sums
from monitor.tolerances import POSTERIOR_FLOOR


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """What a model said of some events, and what was decided by it."""

    posteriors: Matrix
    """Where scores are margins: as they are calibrated."""
    ranking: Matrix
    """By class: what events are ranked by, posteriors or margins."""
    decisions: Labels
    """Class numbers."""
    costs: Matrix | None = None
    """Of deciding for the second class where it was the first: costs[true, decided]; None where nobody has said any."""

    _orders: "dict[int, _Order]" = field(default_factory=dict, init=False)

    def order(self, of_class: int) -> "_Order":
        """The events by their ranking for a class, the lowest first: sorted once, by whoever asks first."""
        if of_class not in self._orders:
            self._orders[of_class] = _Order.by(self.ranking[:, of_class])
        return self._orders[of_class]


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """Events in order, and those of the same score as groups."""

    rows: Labels
    first: Labels
    """Where each group begins."""
    group: Labels
    """Of each event, in order."""

    @classmethod
    def by(cls, column: Vector) -> "_Order":
        rows = np.argsort(column, kind="stable")
        new = np.ones(rows.size, dtype=np.bool_)
        new[1:] = np.diff(column[rows]) > 0
        return cls(rows, np.flatnonzero(new), np.cumsum(new) - 1)

    def sums(self, values: Vector) -> Vector:
        """Of each group; the values are in order."""
        return np.asarray(np.add.reduceat(values, self.first))

    def back(self, values: Vector) -> Vector:
        """Values in order, in the order in which the events came."""
        out = np.empty_like(values)
        out[self.rows] = values
        return out


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """W, and t."""

    by_class: Matrix
    by_event: Vector

    @classmethod
    def of(cls, by_class: Matrix) -> "Weights":
        return cls(by_class, row_sums(by_class))


Measured = tuple[float, Matrix]
"""A value and its gradient."""
OneClass = tuple[float, Vector, Vector]
"""Of one class against the rest: a value, its gradient by that class's weight, and by the weight of the rest."""


def accuracy(scores: Scores, weights: Matrix) -> Measured:
    """The share of right decisions."""
    return _mean(_indicators(scores.decisions, weights.shape[1]), weights)


def brier(scores: Scores, weights: Matrix) -> Measured:
    """The mean squared difference from what was, over events and classes (`quality.brier`)."""
    p = scores.posteriors
    return _mean((np.einsum("ic,ic->i", p, p)[:, None] - 2 * p + 1) / p.shape[1], weights)


def log_loss(scores: Scores, weights: Matrix) -> Measured:
    """The mean of minus the logarithm of the posterior of what was (`quality.log_loss`)."""
    return _mean(-np.log(np.maximum(scores.posteriors, POSTERIOR_FLOOR)), weights)


def cost(scores: Scores, weights: Matrix) -> Measured:
    """What an event costs on average, as decisions are taken."""
    assert scores.costs is not None  # noqa: S101 - measured only where somebody has said what mistakes cost
    return _mean(scores.costs.T[scores.decisions], weights)


def f1(scores: Scores, weights: Weights, of_class: int) -> OneClass:
    """2 TP / (decided for the class + of the class)."""
    decided = (scores.decisions == of_class).astype(np.float64)
    a = weights.by_class[:, of_class]
    both = float(decided @ weights.by_event + a.sum())
    if both == 0:
        return 0.0, np.zeros(a.size), np.zeros(a.size)
    value = 2 * float(decided @ a) / both
    return value, (2 * decided - value * (decided + 1)) / both, -value * decided / both


def roc_auc(scores: Scores, weights: Weights, of_class: int) -> OneClass:
    """How often an event of the class is ranked above one of another."""
    order, a, b = _sorted(scores, weights, of_class)
    groups_a, groups_b = order.sums(a), order.sums(b)
    below = np.cumsum(groups_b) - groups_b / 2
    above = a.sum() - np.cumsum(groups_a) + groups_a / 2
    pairs = float(a.sum() * b.sum() - a @ b)
    if pairs <= 0:
        return 0.5, np.zeros(a.size), np.zeros(a.size)
    value = float((groups_a @ below - a @ b / 2) / pairs)
    by_a = (below[order.group] - b / 2 - value * (b.sum() - b)) / pairs
    by_b = (above[order.group] - a / 2 - value * (a.sum() - a)) / pairs
    return value, order.back(by_a), order.back(by_b)


def average_precision(scores: Scores, weights: Weights, of_class: int) -> OneClass:
    """The mean over the events of the class of how many of those ranked as high are of it."""
    order, a, b = _sorted(scores, weights, of_class)
    of_it = float(a.sum())
    if of_it <= 0:
        return 0.0, np.zeros(a.size), np.zeros(a.size)

    def from_here_up(values: Vector) -> Vector:
        sums = order.sums(values)
        return np.asarray((sums.sum() - np.cumsum(sums) + sums)[order.group])

    up = from_here_up(a + b)
    precision = (from_here_up(a) + b) / up
    value = float(a @ precision) / of_it

    def from_here_down(values: Vector) -> Vector:
        return np.asarray(np.cumsum(order.sums(values))[order.group])

    counted, diluted = from_here_down(a / up), from_here_down(a * precision / up)
    by_a = (precision + counted - diluted - value) / of_it
    by_b = (a / up - diluted) / of_it
    return value, order.back(by_a), order.back(by_b)


def macro(one: Callable[[Scores, Weights, int], OneClass]) -> Callable[[Scores, Matrix], Measured]:
    """The mean of a measure over all classes, each against the rest."""

    def measured(scores: Scores, weights: Matrix) -> Measured:
        classes, known = weights.shape[1], Weights.of(weights)
        # A row for each class: rows of events are added in a quarter of the time.
        values, gradient = np.empty(classes), np.zeros(weights.T.shape)
        for y in range(classes):
            values[y], of_class, of_rest = one(scores, known, y)
            gradient += of_rest / classes
            gradient[y] += (of_class - of_rest) / classes
        return float(values.mean()), np.ascontiguousarray(gradient.T)

    return measured


def of_class(one: Callable[[Scores, Weights, int], OneClass], positive: int) -> Callable[[Scores, Matrix], Measured]:
    """A measure of two classes, by its positive one."""

    def measured(scores: Scores, weights: Matrix) -> Measured:
        value, of_positive, of_rest = one(scores, Weights.of(weights), positive)
        columns = (of_rest, of_positive) if positive == 1 else (of_positive, of_rest)
        return value, np.column_stack(columns)

    return measured


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a stream's model."""

    of: Callable[[Scores, Matrix], Measured]
    range: Literal["share", "loss"]
    """A share lies between 0 and 1; a loss is at least 0, and less is better."""
    of_classes: bool = False
    """Whether it holds classes against each other, and means nothing where one of them has no event."""


@cache
def measures(classes: int, positive: int, *, costs: bool, ranking: bool) -> Mapping[str, Measure]:
    """Those of a model, by name. With `ranking` those that sort the events for every class of more than two, too."""
    one_class = {"f1": f1, "roc_auc": roc_auc, "average_precision": average_precision}
    shares: dict[str, Callable[[Scores, Matrix], Measured]] = {"accuracy": accuracy}
    if classes == 2:
        shares |= {name: of_class(share, positive) for name, share in one_class.items()}
    else:
        shares |= {f"macro_{name}": macro(share) for name, share in one_class.items() if ranking or name == "f1"}
    losses = {"brier": brier, "log_loss": log_loss, **({"cost": cost} if costs else {})}
    return {name: Measure(of, "share", of_classes=name != "accuracy") for name, of in shares.items()} | {
        name: Measure(of, "loss") for name, of in losses.items()
    }


def _mean(losses: Matrix, weights: Matrix) -> Measured:
    total = float(weights.sum())
    value = float(np.einsum("ic,ic", losses, weights)) / total
    return value, (losses - value) / total


def _indicators(labels: Labels, classes: int) -> Matrix:
    return np.eye(classes)[labels]


def _sorted(scores: Scores, weights: Weights, of_class: int) -> tuple[_Order, Vector, Vector]:
    order = scores.order(of_class)
    a = weights.by_class[order.rows, of_class]
    return order, a, np.asarray(weights.by_event[order.rows] - a)
