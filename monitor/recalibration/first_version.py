"""What messages of the first version do not say in so many words.

They had no `cause`, only their reason. They did not say either whether an input, or a tree's thresholds, are to be
corrected, and sent what fitted the values best: without somebody's word for it that is not applied any more.
"""

from collections.abc import Mapping
from typing import Any

from monitor.recalibration.causes import Cause

_REASONS = {
    "label shift explains the window": Cause.PRIOR_SHIFT,
    "the relation changed": Cause.RELATION_CHANGED,
    "kept:": Cause.KEPT,
    "the verdict is stable": Cause.STABLE,
    "the verdict is insufficient-data": Cause.TOO_FEW_EVENTS,
    "the verdict is": Cause.OTHER_SHIFT,
    "the change of the class mix is within chance": Cause.WITHIN_CHANCE,
    "the change of the class mix is too small": Cause.TOO_SMALL,
    "no class changed by more than its interval": Cause.WITHIN_INTERVAL,
    "the estimate did not converge": Cause.NOT_UNIQUE,
    "the estimators disagree": Cause.ESTIMATORS_DISAGREE,
    "labels show": Cause.LABELS_DISAGREE,
    "all labels are equal": Cause.LABELS_ARE_CONSTANT,
    "the labels agree with the relation": Cause.RELATION_UNCHANGED,
    "parameters adapted to one half of the labels": Cause.NO_GAIN,
}
"""How the reasons of the first version began; the first that fits."""


def cause_of(table: Mapping[str, Any]) -> Cause:
    """The cause of a message of the first version."""
    if "relation" in table and not table["relation"]["tested"]:
        return Cause.TOO_FEW_LABELS
    reason = str(table["reason"])
    return next((cause for start, cause in _REASONS.items() if reason.startswith(start)), Cause.NOTHING_KNOWN)


def tree_of(table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The thresholds of a message, which in the first version did not say whether they are to be applied."""
    tree = table.get("tree")
    if not isinstance(tree, Mapping) or isinstance(tree.get("apply"), bool):
        return tree
    return {**tree, "apply": False, "reason": "a message of the first version does not say whether to apply it"}
