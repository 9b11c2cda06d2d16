"""Which strategy each attribute of a tree follows in a deployment, and the record of what was chosen and why.

Everything between an explanation of a column and a rule for thresholds lives here; the procedure is Algorithm 1 of
Al-Otaibi et al. (2015), with the paper's single strategies beside it. All of it is plain values: a record is JSON.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import scipy

from monitor.arrays import Labels, Matrix, Vector
from monitor.errors import InputError
from monitor.shifts import covariates
from monitor.shifts.correction import holm
from monitor.shifts.covariates import Direction, Explanation
from monitor.shifts.maps import IDENTITY, InputMap
from monitor.shifts.nodes import Choice, Columns, Rule
from monitor.tolerances import DIRECTION_EVIDENCE

Strategy = Literal["versatile", "strict", "original", "linear", "percentile", "ks-linear", "ks-percentile"]
"""The versatile model, also without its last resort; the paper's single strategies always, and only where the test sees
a shift (section 4)."""

Correction = Literal["holm", "none"]


@dataclass(frozen=True, slots=True)
class Policy:
    """How strategies are chosen: which are allowed, the level of the test, and its correction across attributes."""

    strategy: Strategy
    level: float
    correction: Correction

    def __post_init__(self) -> None:
        for value, allowed in ((self.strategy, Strategy), (self.correction, Correction)):
            if value not in get_args(allowed):
                raise InputError(f"policy: want one of {sorted(get_args(allowed))}, got {value!r}")


@dataclass(frozen=True, slots=True)
class AttributeChoice:
    """What was chosen for one attribute, and on what evidence."""

    feature: str
    choice: Choice
    reason: str
    kind: str
    orientation: str
    alpha: float
    beta: float
    p_value: float
    corrected_p_value: float
    """After the correction that was fitted; compare `p_value`, before it. Both before correction across attributes."""


@dataclass(frozen=True, slots=True)
class TreeAdaptation:
    """The record of one adaptation."""

    strategy: str
    level: float
    correction: str
    rows: int
    priors: tuple[float, ...] | None
    attributes: tuple[AttributeChoice, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """What a tree remembers of its training data in order to adapt: each attribute's values, sorted, with classes."""

    names: tuple[str, ...]
    values: tuple[Vector, ...]
    classes: tuple[Labels, ...]
    weights: tuple[Vector, ...] | None
    """Sample weights; None for equal ones."""
    priors: Vector
    class_means: Matrix
    """Mean of each attribute in each class, (attributes, classes); what labelled deployment rows are held against."""

    def row_weights(self, attribute: int, ratios: Vector | None) -> Vector | None:
        """Weights that give the training rows of an attribute the target class mix."""
        weights = None if self.weights is None else self.weights[attribute]
        if ratios is None:
            return weights
        target = ratios[self.classes[attribute]]
        return target if weights is None else target * weights


def remember(columns: Columns, labels: Labels, weights: Vector | None, names: Sequence[str], classes: int) -> Training:
    """Sort each attribute once. Rows of weight 0 are as if absent."""
    if weights is not None:
        columns, labels, weights = columns[weights > 0], labels[weights > 0], weights[weights > 0]
    mass = np.bincount(labels, weights, classes)
    values, sorted_classes, sorted_weights, means = [], [], [], np.zeros((len(names), classes))
    for j, column in enumerate(np.asarray(columns.T, dtype=np.float64)):
        order = np.argsort(column, kind="stable")[: np.count_nonzero(~np.isnan(column))]
        values.append(column[order])
        sorted_classes.append(labels[order])
        row_weights = np.ones(order.size) if weights is None else weights[order]
        sorted_weights.append(row_weights)
        totals = np.bincount(labels[order], row_weights * column[order], classes)
        counts = np.bincount(labels[order], row_weights, classes)
        means[j] = np.divide(totals, counts, out=np.zeros(classes), where=counts > 0)
    return Training(
        names=tuple(names),
        values=tuple(values),
        classes=tuple(sorted_classes),
        weights=None if weights is None else tuple(sorted_weights),
        priors=mass / mass.sum(),
        class_means=means,
    )


def matched_mix(training: Training, columns: Columns, level: float) -> Vector | None:
    """The class mix that explains all attributes but those which moved by themselves; None where these are the most.

    The mix of class-wise shares of each attribute's tenths that is nearest to the window's (Dussap et al. 2023, problem
    (P), by non-negative least squares). An attribute that still moves at that mix leaves, the farthest first, until
    none does: as a window's verdict has it, what a change of the class mix explains has not moved.
    """
    window = np.asarray(np.sort(columns, axis=0).T, dtype=np.float64)
    tenths = [_tenths(training, j, values) for j, values in enumerate(window)]
    staying = list(range(len(window)))
    while 2 * len(staying) > len(window):
        by_class, of_window = (np.concatenate([tenths[j][part] for j in staying]) for part in (0, 1))
        shares, _ = scipy.optimize.nnls(by_class, of_window)
        if not shares.any():
            return None
        mix: Vector = shares / shares.sum()
        ratios = np.divide(mix, training.priors, out=np.ones_like(mix), where=training.priors > 0)
        explained = [
            covariates.explain(training.values[j], window[j], training.row_weights(j, ratios)) for j in staying
        ]
        moved = holm(np.array([each.p_value for each in explained])) < level
        if not moved.any():
            return mix
        staying.pop(int(np.argmax(np.where(moved, [each.effect for each in explained], -1.0))))
    return None


def _tenths(training: Training, attribute: int, window: Vector) -> tuple[Matrix, Vector]:
    """Shares of the training values in each of its tenths, by class (10, classes), and those of the window's (10,)."""
    values, known = training.values[attribute], window[np.isfinite(window)]
    if not values.size or not known.size:
        return np.zeros((0, training.priors.size)), np.zeros(0)
    edges = np.quantile(values, np.arange(1, 10) / 10)
    inside = np.zeros((10, training.priors.size))
    weights = 1.0 if training.weights is None else training.weights[attribute]
    np.add.at(inside, (np.searchsorted(edges, values), training.classes[attribute]), weights)
    by_class = inside.sum(axis=0)
    of_window = np.bincount(np.searchsorted(edges, known), minlength=10) / known.size
    return np.divide(inside, by_class, out=np.zeros_like(inside), where=by_class > 0), of_window


def choose(
    training: Training,
    columns: Columns,
    ratios: Vector | None,
    directions: Sequence[Direction | None],
    policy: Policy,
    *,
    excluded: Collection[int] = (),
) -> tuple[tuple[Rule, ...], tuple[AttributeChoice, ...]]:
    """A rule per attribute. `ratios` are target over source priors by class, None for an unchanged mix."""
    # Explanations do not depend on the order of rows, and short floats are sorted in half the time.
    window = np.asarray(np.sort(columns, axis=0).T, dtype=np.float64)
    weights = [training.row_weights(j, ratios) for j in range(len(window))]
    explanations = [
        covariates.explain(training.values[j], window[j], weights[j], level=policy.level, direction=directions[j])
        for j in range(len(window))
    ]
    p_values = np.array([each.p_value for each in explanations])
    adjusted = holm(p_values) if policy.correction == "holm" else p_values
    rules, choices = [], []
    for j, (name, explanation) in enumerate(zip(training.names, explanations, strict=True)):
        moved = explanation.kind != "none" and (adjusted[j] < policy.level or directions[j] == "decreasing")
        compared = training.values[j], window[j], weights[j], directions[j]
        rule, reason = _rule(policy.strategy, explanation, moved, compared)
        if j in excluded:
            rule, reason = Rule("original", IDENTITY), "excluded"
        rules.append(rule)
        choices.append(_record(name, rule, reason, explanation))
    return tuple(rules), tuple(choices)


Data = tuple[Vector, Vector, Vector | None, Direction | None]


def _rule(strategy: Strategy, explanation: Explanation, moved: bool, data: Data) -> tuple[Rule, str]:
    if strategy == "original":
        return Rule("original", IDENTITY), "asked for"
    if not moved and strategy not in ("linear", "percentile"):
        return Rule("original", IDENTITY), "no shift: " + explanation.reason
    if strategy in ("versatile", "strict"):
        if explanation.kind in CURVES:
            return Rule(CHOICE_FOR[explanation.kind], explanation.correction), explanation.reason
        if strategy == "strict":
            return Rule("original", IDENTITY), "neither a line nor a curve: " + explanation.reason
    # What is left is a change of shape, which Algorithm 1 leaves to the percentiles, and the paper's single strategies.
    linear = strategy in ("linear", "ks-linear")
    fitted = covariates.line_by_moments(*data) if linear else covariates.percentiles(*data)
    if fitted.kind == "none":
        return Rule("original", IDENTITY), "one side has no two different values to fit anything to"
    reason = explanation.reason if strategy == "versatile" else "asked for"
    return Rule("linear" if linear else "percentile", fitted), reason


def _record(name: str, rule: Rule, reason: str, explanation: Explanation | None) -> AttributeChoice:
    """Without an explanation all that is known is the map; p-values of 1 stand for tests that were made elsewhere."""
    return AttributeChoice(
        feature=name,
        choice=rule.choice,
        reason=reason,
        kind=explanation.kind if explanation else rule.map.kind,
        orientation=explanation.orientation if explanation else "assumed",
        alpha=rule.map.alpha,
        beta=rule.map.beta,
        p_value=explanation.p_value if explanation else 1.0,
        corrected_p_value=explanation.corrected_p_value if explanation else 1.0,
    )


def kept(record: TreeAdaptation, reason: str) -> tuple[tuple[Rule, ...], TreeAdaptation]:
    """The thresholds as they were fitted in place of those of a record, and why."""
    attributes = tuple(
        replace(each, choice="original", reason=f"{reason}; {each.reason}") for each in record.attributes
    )
    return (Rule("original", IDENTITY),) * len(attributes), replace(record, attributes=attributes)


def rules_from(
    names: Sequence[str], movements: Mapping[str, Any]
) -> tuple[tuple[Rule, ...], tuple[AttributeChoice, ...]]:
    """A rule per attribute from what a monitor said about the features, where the raw window is not at hand.

    `movements` holds by feature name what `_as_map` reads; features that are not named did not move. Without rows there
    is nothing to take node-local percentiles of: a monotone map moves every threshold by the percentiles of the column.
    """
    unknown = sorted(set(movements) - set(names))
    if unknown:
        raise InputError(f"features: want names out of {list(names)}, got {unknown}")
    rules, choices = [], []
    for name in names:
        correction, explanation = _as_map(movements.get(name, IDENTITY))
        rule = Rule(CHOICE_FOR[correction.kind], correction)
        rules.append(rule)
        choices.append(_record(name, rule, "told: " + correction.kind, explanation))
    return tuple(rules), tuple(choices)


CURVES = ("linear", "monotone")
"""Explanations that say where each value went."""

CHOICE_FOR: dict[str, Choice] = {
    "none": "original",
    "linear": "linear",
    "monotone": "percentile",
    # No map leads back; without rows there are no node-local percentiles to fall back on either.
    "shape": "original",
}


def _as_map(movement: Any) -> tuple[InputMap, Explanation | None]:
    """Out of an explanation, its correction, a window's `FeatureShift`, or a feed's input correction (or its JSON)."""
    if hasattr(movement, "explanation"):
        movement = movement.explanation if movement.moved and movement.explanation is not None else IDENTITY
    if isinstance(movement, Explanation):
        return movement.correction, movement
    if isinstance(movement, InputMap):
        return movement, None
    if not isinstance(movement, Mapping):
        movement = {name: getattr(movement, name) for name in ("kind", "alpha", "beta", "window", "reference")}
    return InputMap.from_message(movement), None


def directions_from_labels(training: Training, columns: Columns, labels: Labels) -> list[Direction | None]:
    """Which attributes keep their order of classes in labelled deployment rows, and which reverse it.

    Each labelled row says what its attribute's mean was in training for its class. If the transform increases, rows of
    the classes with large means have large values still. None where the labels cannot tell: too few of them, or
    an attribute with much the same mean in every class.
    """
    expected = training.class_means[:, labels]
    values = np.asarray(columns.T, dtype=np.float64)
    directions: list[Direction | None] = []
    for seen, mean in zip(values, expected, strict=True):
        present = ~np.isnan(seen)
        z = _correlation(seen[present], mean[present]) * np.sqrt(np.count_nonzero(present))
        directions.append(None if abs(z) < DIRECTION_EVIDENCE else "increasing" if z > 0 else "decreasing")
    return directions


def _correlation(a: Vector, b: Vector) -> float:
    if a.size < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def parse_choices(messages: Iterable[Mapping[str, Any]]) -> tuple[AttributeChoice, ...]:
    """The choices out of a message."""
    return tuple(AttributeChoice(**message) for message in messages)
