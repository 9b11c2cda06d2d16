"""Decision nodes as arrays: what passed them in training, and where their thresholds go in a deployment.

Everything that reads or rebuilds scikit-learn's `Tree` lives here. A node sends x <= threshold to its left child;
after a decreasing transform of the attribute the two children change places.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.shifts.maps import InputMap

Choice = Literal["original", "linear", "percentile"]
Columns = NDArray[np.float32]
"""Attribute values as scikit-learn's trees compare them, in column order."""
Tree = Any  # scikit-learn ships no types

LEAF = -1


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """How the thresholds on one attribute follow a deployment."""

    choice: Choice
    map: InputMap
    """Of the whole column; for percentiles what nodes take that no deployment row reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class SplitCounts:
    """n_left^c and n_right^c of eq 5: training rows per node and class whose tested value was present."""

    left: Matrix
    right: Matrix

    def left_share(self, ratios: Vector) -> Vector:
        """n_left^ / (n_left^ + n_right^) with n^ = sum_c n^c P_dep^c / P_tr^c (eq 7); NaN where nothing is expected.

        As printed, eq 7 divides by the rows of the whole tree or keeps the node's old count: right at the root only.
        """
        left, right = self.left @ ratios, self.right @ ratios
        with np.errstate(invalid="ignore"):
            return np.asarray(left / (left + right), dtype=np.float64)


def split_counts(tree: Tree, columns: Columns, classes: Labels, weights: Vector, class_count: int) -> SplitCounts:
    """Send the training rows down the tree, level by level, and count them by class at each decision."""
    shape = (tree.node_count, class_count)
    left, right = np.zeros(shape), np.zeros(shape)
    rows = np.arange(columns.shape[0])
    at = np.zeros(rows.size, dtype=np.intp)
    while rows.size:
        inner = tree.children_left[at] != LEAF
        rows, at = rows[inner], at[inner]
        values = columns[rows, tree.feature[at]]
        present = ~np.isnan(values)
        goes_left = np.where(present, values <= tree.threshold[at], tree.missing_go_to_left[at].astype(bool))
        for counts, chosen in ((left, present & goes_left), (right, present & ~goes_left)):
            np.add.at(counts, (at[chosen], classes[rows[chosen]]), weights[rows[chosen]])
        at = np.where(goes_left, tree.children_left[at], tree.children_right[at])
    return SplitCounts(left, right)


def adapted_thresholds(
    tree: Tree, rules: tuple[Rule, ...], left_shares: Vector, columns: Columns | None
) -> tuple[Vector, Flags]:
    """The deployment threshold of every node, and which nodes' children change places.

    Linear rules are th_dep = alpha th_tr + beta (Algorithm 1). Percentile rules are node-local (eq 6): among the
    deployment rows that reach the node over adapted thresholds, the share that went left in training goes left. Without
    deployment rows (`columns` None, or none at the node) the percentile map of the whole column stands in.
    """
    thresholds: Vector = tree.threshold.copy()
    swapped = np.zeros(tree.node_count, dtype=bool)
    local = np.zeros(tree.node_count, dtype=bool)
    for attribute, rule in enumerate(rules):
        if rule.choice == "original":
            continue
        here = (tree.feature == attribute) & (tree.children_left != LEAF)
        thresholds[here] = rule.map.inverse(tree.threshold[here])
        swapped[here] = rule.map.decreasing
        local |= here & (rule.choice == "percentile")
    if columns is not None and local.any():
        _walk(tree, columns, np.where(local, left_shares, np.nan), thresholds, swapped)
    return thresholds, swapped


def _walk(tree: Tree, columns: Columns, left_shares: Vector, thresholds: Vector, swapped: Flags) -> None:
    """Set the thresholds that have a share, in place, parents first: a node's rows depend on those above it."""
    sharing = (~np.isnan(left_shares)).tolist()
    wanted = _leads_to(tree, sharing)
    children = tree.children_left.tolist(), tree.children_right.tolist()
    feature, missing_left = tree.feature.tolist(), tree.missing_go_to_left.astype(bool).tolist()
    attributes = [np.ascontiguousarray(columns[:, j]) for j in range(columns.shape[1])]
    holed = np.any(np.isnan(columns), axis=0).tolist()
    stack = [(0, np.arange(columns.shape[0]))]
    while stack:
        node, rows = stack.pop()
        values = attributes[feature[node]].take(rows)
        missing = np.isnan(values) if holed[feature[node]] else None
        present = values if missing is None else values[~missing]
        if sharing[node] and present.size:
            thresholds[node] = percentile_threshold(present, float(left_shares[node]), bool(swapped[node]))
        goes_left = values > thresholds[node] if swapped[node] else values <= thresholds[node]
        if missing is not None and missing_left[node]:
            goes_left |= missing
        for child, chosen in ((children[0][node], goes_left), (children[1][node], ~goes_left)):
            if wanted[child]:
                reached = rows[chosen]
                if reached.size:
                    stack.append((child, reached))


def _leads_to(tree: Tree, marked: list[bool]) -> list[bool]:
    """Which nodes are marked or have a marked node below; children come after their parents."""
    wanted = list(marked)
    left, right = tree.children_left.tolist(), tree.children_right.tolist()
    for node in range(tree.node_count - 1, -1, -1):
        if left[node] != LEAF:
            wanted[node] = wanted[node] or wanted[left[node]] or wanted[right[node]]
    return wanted


def percentile_threshold(values: NDArray[np.floating[Any]], left_share: float, swapped: bool = False) -> float:
    """R_dep^-1 (eq 6) with integers: the threshold that k = ceil(left_share * m) of the m values do not exceed.

    Midway between the k-th and the next value, as a tree puts it. k = 0 lies just below the smallest value, k = m on
    the largest. A block of ties goes to the side that leaves the count nearest to k. `swapped` keeps the share on the
    side of the large values. Missing values must be gone; there must be one value at least.
    """
    m = values.size
    # n_left m / n is exact whenever it is an integer; the slack is for shares that a change of priors has rounded.
    k = min(int(np.ceil(left_share * m - 1e-9)), m)
    k = m - k if swapped else k
    if k == 0:
        return float(np.nextafter(np.float64(values.min()), -np.inf))
    if k == m:
        return float(values.max())
    low, high = np.partition(values, (k - 1, k))[k - 1 : k + 1].astype(np.float64)
    if low == high:
        below, above = values[values < low], values[values > low]
        if k - below.size < m - above.size - k:
            high = low
            low = np.float64(below.max()) if below.size else np.nextafter(low, -np.inf)
        else:
            high = np.float64(above.min()) if above.size else low
    # Halves, so that the sum of two large values cannot overflow; never up to `high`, which would let it pass.
    middle = low / 2 + high / 2
    return float(middle if middle < high else low)


def rebuilt(tree: Tree, thresholds: Vector, swapped: Flags) -> Tree:
    """A copy of the tree with other thresholds, and children that changed places where a threshold's sides did."""
    make, arguments, state = tree.__reduce__()
    nodes = state["nodes"].copy()
    nodes["threshold"] = thresholds
    left, right = nodes["left_child"].copy(), nodes["right_child"].copy()
    nodes["left_child"], nodes["right_child"] = np.where(swapped, right, left), np.where(swapped, left, right)
    nodes["missing_go_to_left"] = np.where(swapped, 1 - nodes["missing_go_to_left"], nodes["missing_go_to_left"])
    copy = make(*arguments)
    copy.__setstate__({**state, "nodes": nodes})
    return copy
