"""Why a correction is, or is not, to be applied: a closed set that programs decide by, beside the reason in words."""

from enum import StrEnum


class Cause(StrEnum):
    """Why `apply` is what it is.

    Applied: `prior-shift`, `relation-changed`, and `kept` (an earlier correction that nothing has contradicted).
    Not applied, and an earlier correction ends: `other-shift`, `not-unique`, `estimators-disagree`, `labels-disagree`,
    `relation-unchanged`, `no-gain`, `nothing-known`, `incomplete`.
    Not applied, but an earlier correction stays until such windows speak against it ten to one, each by its estimate
    and its errors: `stable`, `within-chance`, `too-small`, `within-interval`,
    `not-told-apart`.
    Not applied, and an earlier correction stays: `too-few-events`, `too-few-labels`, `labels-are-constant`.
    """

    PRIOR_SHIFT = "prior-shift"
    RELATION_CHANGED = "relation-changed"
    KEPT = "kept"
    STABLE = "stable"
    WITHIN_CHANCE = "within-chance"
    TOO_SMALL = "too-small"
    WITHIN_INTERVAL = "within-interval"
    NOT_TOLD_APART = "not-told-apart"
    TOO_FEW_EVENTS = "too-few-events"
    TOO_FEW_LABELS = "too-few-labels"
    OTHER_SHIFT = "other-shift"
    NOT_UNIQUE = "not-unique"
    ESTIMATORS_DISAGREE = "estimators-disagree"
    LABELS_DISAGREE = "labels-disagree"
    LABELS_ARE_CONSTANT = "labels-are-constant"
    RELATION_UNCHANGED = "relation-unchanged"
    NO_GAIN = "no-gain"
    NOTHING_KNOWN = "nothing-known"
    INCOMPLETE = "incomplete"


UNSURE = frozenset({Cause.STABLE, Cause.WITHIN_CHANCE, Cause.TOO_SMALL, Cause.WITHIN_INTERVAL, Cause.NOT_TOLD_APART})
"""The change of the class mix is within chance, its interval or the floor, or may be one of the inputs."""

SILENT = frozenset({Cause.TOO_FEW_EVENTS, Cause.TOO_FEW_LABELS, Cause.LABELS_ARE_CONSTANT})
"""The window could say nothing."""
