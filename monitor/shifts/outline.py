"""The thresholds of a fitted tree or forest as JSON, and where the inputs of a feed move them: no scikit-learn here.

A monitor need not load the model that it watches. The model's owner exports an outline once, beside the reference:

    json.dump(tree.outline().to_message(), file)

For each window the monitor turns the feed's input corrections into adapted thresholds, and the scoring service, which
has the model, applies them:

    message = follow(Outline.from_message(json.load(file)), assessment.recalibration.inputs)    # in the monitor
    adapted = tree.with_thresholds(message)                                                     # in the service
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from monitor.arrays import Flags, Labels, Vector, frozen_labels, frozen_vector
from monitor.errors import InputError
from monitor.shifts.adaptation import Adaptation, rules_from


@dataclass(frozen=True, slots=True, eq=False)
class TreeOutline:
    """The decisions of one tree: node number, attribute number and threshold of each."""

    nodes: Labels
    attributes: Labels
    thresholds: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """What of a fitted model its thresholds follow from; `model` tells which one it is of."""

    model: str
    names: tuple[str, ...]
    trees: tuple[TreeOutline, ...]

    def to_message(self) -> dict[str, Any]:
        """The outline as JSON carries it."""
        trees = [
            {"nodes": t.nodes.tolist(), "attributes": t.attributes.tolist(), "thresholds": t.thresholds.tolist()}
            for t in self.trees
        ]
        return {"model": self.model, "features": list(self.names), "trees": trees}

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The outline out of a message; refuses one that no fitted model could have written."""
        with understood("outline"):
            names = tuple(str(name) for name in message["features"])
            if len(set(names)) < len(names):
                raise InputError(f"outline: want every feature once, got {names}")
            trees = tuple(_tree_outline(tree, len(names)) for tree in message["trees"])
            return cls(str(message["model"]), names, trees)


def _tree_outline(message: Mapping[str, Any], attribute_count: int) -> TreeOutline:
    nodes = node_numbers(message["nodes"], "outline: nodes")
    attributes = frozen_labels(message["attributes"], "outline: attributes", nodes.size)
    if np.any((attributes < 0) | (attributes >= attribute_count)):
        raise InputError(f"outline: want attribute numbers below {attribute_count}")
    thresholds = frozen_vector(message["thresholds"], "outline: thresholds", nodes.size)
    if not np.isfinite(thresholds).all():
        raise InputError("outline: want finite thresholds")
    return TreeOutline(nodes, attributes, thresholds)


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


def follow(outline: Outline, told: Mapping[str, Any]) -> dict[str, Any]:
    """The message of adapted thresholds that `told` implies: by feature name, what `adapt_from` of the model takes."""
    rules, choices = rules_from(outline.names, told)
    moved = []
    for tree in outline.trees:
        thresholds, swapped = np.array(tree.thresholds), np.zeros(tree.nodes.size, dtype=bool)
        for attribute, rule in enumerate(rules):
            here = tree.attributes == attribute
            thresholds[here] = rule.map.inverse(tree.thresholds[here])
            swapped[here] = rule.map.decreasing
        moved.append((tree.nodes, tree.thresholds, thresholds, swapped))
    return thresholds_message(outline.model, Adaptation("told", 0.0, "none", 0, None, choices), moved)


def thresholds_message(
    model: str, record: Adaptation, moved: Sequence[tuple[Labels, Vector, Vector, Flags]]
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
