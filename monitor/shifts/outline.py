"""The thresholds of a fitted tree or forest as JSON, and where the inputs of a feed move them: no scikit-learn here.

A monitor need not load the model that it watches. The model's owner exports an outline once, beside the reference:

    json.dump(tree.outline().to_message(), file)

For each window the monitor turns the feed's input corrections, and the window's rows, into adapted thresholds, and the
scoring service, which has the model, applies them:

    message = follow(Outline.from_message(json.load(file)), assessment.recalibration.inputs, rows)    # in the monitor
    adapted = tree.with_thresholds(message)                                                           # in the service
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from monitor.arrays import Flags, Labels, Vector, frozen_labels, frozen_matrix, frozen_vector
from monitor.errors import InputError
from monitor.shifts.adaptation import TreeAdaptation, rules_from
from monitor.shifts.nodes import LEAF, Columns, SplitCounts, adapted_thresholds


@dataclass(frozen=True, slots=True, eq=False)
class TreeOutline:
    """One tree as `monitor.shifts.nodes` walks it, with scikit-learn's names; leaves have no children."""

    feature: Labels
    threshold: Vector
    children_left: Labels
    children_right: Labels
    missing_go_to_left: Flags
    counts: SplitCounts

    @property
    def node_count(self) -> int:
        """How many nodes the tree has, leaves included."""
        return int(self.feature.size)

    @property
    def inner(self) -> Labels:
        """The numbers of the nodes that decide."""
        return np.flatnonzero(self.children_left != LEAF)


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """What of a fitted model its thresholds follow from; `model` tells which one it is of."""

    model: str
    names: tuple[str, ...]
    classes: tuple[str, ...]
    priors: Vector
    """Of the training rows, by class."""
    trees: tuple[TreeOutline, ...]

    def to_message(self) -> dict[str, Any]:
        """The outline as JSON carries it: decisions by node, with the training rows of each class on either side."""
        trees = []
        for tree in self.trees:
            inner = tree.inner
            columns = {
                "nodes": inner,
                "attributes": tree.feature[inner],
                "thresholds": tree.threshold[inner],
                "left": tree.children_left[inner],
                "right": tree.children_right[inner],
                "missing_left": tree.missing_go_to_left[inner],
                "left_rows": tree.counts.left[inner],
                "right_rows": tree.counts.right[inner],
            }
            trees.append({name: column.tolist() for name, column in columns.items()})
        return {
            "model": self.model,
            "features": list(self.names),
            "classes": list(self.classes),
            "priors": self.priors.tolist(),
            "trees": trees,
        }

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The outline out of a message; refuses one that no fitted model could have written."""
        with understood("outline"):
            names = tuple(str(name) for name in message["features"])
            if len(set(names)) < len(names):
                raise InputError(f"outline: want every feature once, got {names}")
            classes = tuple(str(name) for name in message["classes"])
            priors = frozen_vector(message["priors"], "outline: priors", len(classes))
            trees = tuple(_tree_outline(tree, len(names), len(classes)) for tree in message["trees"])
            return cls(str(message["model"]), names, classes, priors, trees)

    def ratios(self, classes: Sequence[str], priors: Vector) -> Vector:
        """Target over training priors in the model's class order; ones where the model names its classes otherwise."""
        if set(classes) != set(self.classes):
            return np.ones(len(self.classes))
        target = np.array([priors[list(classes).index(name)] for name in self.classes])
        return np.asarray(np.divide(target, self.priors, out=np.zeros(target.size), where=self.priors > 0))


def tree_outline(tree: Any, counts: SplitCounts) -> TreeOutline:
    """The outline of a tree of scikit-learn."""
    return TreeOutline(
        feature=frozen_labels(tree.feature, "attributes"),
        threshold=frozen_vector(tree.threshold, "thresholds"),
        children_left=frozen_labels(tree.children_left, "left"),
        children_right=frozen_labels(tree.children_right, "right"),
        missing_go_to_left=np.array(tree.missing_go_to_left, dtype=bool),
        counts=counts,
    )


def _tree_outline(message: Mapping[str, Any], attribute_count: int, class_count: int) -> TreeOutline:
    nodes = node_numbers(message["nodes"], "outline: nodes")
    size = nodes.size
    attributes = frozen_labels(message["attributes"], "outline: attributes", size)
    if np.any((attributes < 0) | (attributes >= attribute_count)):
        raise InputError(f"outline: want attribute numbers below {attribute_count}")
    thresholds = frozen_vector(message["thresholds"], "outline: thresholds", size)
    children = node_numbers([*message["left"], *message["right"]], "outline: left and right")
    rows = [
        frozen_matrix(np.reshape(message[side], (size, class_count)), f"outline: {side}")
        for side in ("left_rows", "right_rows")
    ]
    if not (np.isfinite(thresholds).all() and all(np.isfinite(side).all() and (side >= 0).all() for side in rows)):
        raise InputError("outline: want finite thresholds, and numbers of rows of at least 0")
    # Children have larger numbers than their parents, so that whoever walks down the tree arrives at its end.
    if children.size != 2 * size or np.any(children.reshape(2, size) <= nodes):
        raise InputError("outline: want two children of each node, with larger numbers than its own")
    count = int(max(children.max(initial=0), nodes.max(initial=0))) + 1
    missing_left = frozen_labels(message["missing_left"], "outline: missing_left", size).astype(bool)

    def over_all(values: Any, fill: Any) -> Any:
        full = np.full((count, *np.shape(values)[1:]), fill, dtype=np.asarray(values).dtype)
        full[nodes] = values
        return full

    return TreeOutline(
        feature=over_all(attributes, LEAF),
        threshold=over_all(thresholds, 0.0),
        children_left=over_all(children[:size], LEAF),
        children_right=over_all(children[size:], LEAF),
        missing_go_to_left=over_all(missing_left, False),
        counts=SplitCounts(over_all(rows[0], 0.0), over_all(rows[1], 0.0)),
    )


def node_numbers(values: Any, name: str) -> Labels:
    """Numbers of nodes out of a message, each once."""
    given = np.asarray(values)
    if given.size and (given.dtype.kind != "i" or np.unique(given).size < given.size):
        raise InputError(f"{name}: want whole numbers, each once")
    return frozen_labels(given, name)


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Whatever a message trips over becomes an `InputError` that names it: nobody has to expect anything else."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{what}: the message lacks or misstates something: {error!r}") from error


def follow(
    outline: Outline, corrections: Mapping[str, Any], window: Columns | None = None, ratios: Vector | None = None
) -> dict[str, Any]:
    """The message of adapted thresholds that corrections of inputs imply, with its own `apply` and `reason`.

    `corrections` holds by feature name what `adapt_from` of the model takes. `window` are the rows to take node-local
    percentiles of (al-otaibi, eq 5-7), columns in the order of `names`, and `ratios` their class mix over the
    training's; without rows percentiles are those of whole columns.
    """
    rules, choices = rules_from(outline.names, corrections)
    moved = []
    for tree in outline.trees:
        shares = tree.counts.left_share(np.ones(len(outline.classes)) if ratios is None else ratios)
        thresholds, swapped = adapted_thresholds(tree, rules, shares, window)
        moved.append((tree.inner, tree.threshold[tree.inner], thresholds[tree.inner], swapped[tree.inner]))
    record = TreeAdaptation("told", 0.0, "none", 0 if window is None else len(window), None, choices)
    names = ", ".join(sorted(corrections))
    reason = f"they follow {names}" if names else "no input that the model decides by is to be corrected"
    return {**thresholds_message(outline.model, record, moved), "apply": bool(names), "reason": reason}


def thresholds_message(
    model: str, record: TreeAdaptation, moved: Sequence[tuple[Labels, Vector, Vector, Flags]]
) -> dict[str, Any]:
    """Adapted thresholds as JSON carries them; per tree: node numbers, thresholds before and after, and swaps.

    {"model": fingerprint of the fitted model, "record": what was chosen and why,
     "trees": [{"nodes": [...], "thresholds": [...], "swapped": [...]}, ...]}, one entry a tree with the numbers of
    the nodes that moved, their thresholds, and the numbers of those whose children changed places.
    """
    trees = []
    for nodes, before, after, swapped in moved:
        changed = (before != after) | swapped
        trees.append(
            {
                "nodes": nodes[changed].tolist(),
                "thresholds": after[changed].tolist(),
                "swapped": nodes[swapped].tolist(),
            }
        )
    return {"model": model, "record": asdict(record), "trees": trees}
