"""The correction that a window implies for a scoring service: the message, and the rule that decides to apply it.

Only numpy is needed to import this: scoring services read the message without the rest of the monitor.

When the evidence does not justify a correction, `apply` is false, the multipliers are exactly 1, and the reason says
why: a monitor must never make scores worse because it had to say something.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class InputCorrection:
    """How one input is taken back to the scale the model knows."""

    kind: str
    """`linear` or `monotone`."""
    alpha: float
    beta: float
    """window = alpha x reference + beta; for `monotone` the line that is followed outside the knots."""
    window: tuple[float, ...] = ()
    reference: tuple[float, ...] = ()
    """Matching percentiles of a monotone map."""


@dataclass(frozen=True, slots=True)
class Validity:
    """Which window the correction comes from, and which model it is for."""

    stream: str = ""
    segment: str = ""
    window: str = ""
    start: int = 0
    end: int = 0
    """Microseconds since the epoch."""
    reference: str = ""
    """The version of the reference."""


@dataclass(frozen=True, slots=True)
class Recalibration:
    """What a scoring service should do to its scores; everything in the order of `classes`."""

    classes: tuple[str, ...]
    source_priors: tuple[float, ...]
    target_priors: tuple[float, ...]
    """The estimate, whether or not it is applied."""
    multipliers: tuple[float, ...]
    """target / source, for posteriors before they are normalised again; exactly 1 unless `apply`."""
    log_multipliers: tuple[float, ...]
    """What a softmax bias gets on top; -1e308 stands for a class that is gone, as JSON has no infinity."""
    thresholds: Mapping[str, float]
    """For each class: the uncorrected posterior at which its corrected posterior is one half against the rest."""
    inputs: Mapping[str, InputCorrection]
    validity: Validity
    apply: bool
    reason: str
    tree: Mapping[str, Any] | None = None
    """Where the stream's model is a versatile tree or forest whose outline the monitor has: its adapted thresholds,
    which the model's `with_thresholds` takes. They follow from `inputs`, whether or not `apply`."""


@dataclass(frozen=True, slots=True, eq=False)
class Grounds:
    """What the rule looks at: the facts of one window."""

    verdict: str
    target_priors: Vector
    half_widths: Vector
    """Of the per-class intervals."""
    trustworthy: bool
    """The estimate converged and is unique."""
    mix_significant: bool
    effect: float
    """Cohen's w of the change of the mix."""
    disagreement: float
    """The largest total variation distance between the reported estimate and another unbiased one."""


GONE = -1e308
"""The finite stand-in for the logarithm of a multiplier that is 0."""

FLOOR = 0.05
"""Cohen's w below which a correction is not worth a change of scores; the floor that also makes a verdict."""

DISAGREEMENT = 0.1
"""Total variation between unbiased estimators above which the estimate is not to be trusted: under label shift they
differ by their sampling errors, a hundredth or two in a window of thousands."""


def imply(
    classes: tuple[str, ...],
    source_priors: Vector,
    grounds: Grounds,
    inputs: Mapping[str, InputCorrection],
    validity: Validity,
) -> Recalibration:
    """The correction that one window implies."""
    apply, reason = justified(grounds, source_priors)
    target = np.asarray(grounds.target_priors, dtype=np.float64)
    ratios = target / source_priors if apply else np.ones(len(classes))
    logs = [float(np.log(ratio)) if ratio > 0 else GONE for ratio in ratios]
    # g' = r g / (r g + s (1 - g)), with s the other classes' multiplier at their source mix: one half at s / (r + s).
    thresholds = {}
    for y, name in enumerate(classes):
        others = 1 - source_priors[y]
        s = (1 - target[y]) / others if apply and others > 0 else 1.0
        total = float(ratios[y] + s)
        thresholds[name] = float(s / total) if total > 0 else 0.5
    return Recalibration(
        classes=classes,
        source_priors=tuple(float(p) for p in source_priors),
        target_priors=tuple(float(p) for p in target),
        multipliers=tuple(float(r) for r in ratios),
        log_multipliers=tuple(logs),
        thresholds=thresholds,
        # The values alone cannot tell a stretch from a mirror image, and to mirror an input that was stretched ruins
        # the scores: what does not keep the order of the values is left alone.
        inputs={name: one for name, one in inputs.items() if one.alpha > 0},
        validity=validity,
        apply=apply,
        reason=reason,
    )


def justified(grounds: Grounds, source_priors: Vector) -> tuple[bool, str]:
    """Whether to apply, and why: every condition has its own sentence."""
    change = np.abs(grounds.target_priors - source_priors)
    conditions = (
        (
            grounds.verdict == "prior-shift",
            f"the verdict is {grounds.verdict}: only a pure prior shift is corrected through the class mix",
        ),
        (grounds.mix_significant, "the change of the class mix is within chance"),
        (grounds.effect >= FLOOR, f"the change of the class mix is too small (w {grounds.effect:.3f} < {FLOOR})"),
        (grounds.trustworthy, "the estimate did not converge or is not unique"),
        (
            grounds.disagreement <= DISAGREEMENT,
            f"the estimators disagree by {grounds.disagreement:.3f} (at most {DISAGREEMENT})",
        ),
        (bool((change > grounds.half_widths).any()), "no class changed by more than its interval"),
    )
    failed = next((reason for holds, reason in conditions if not holds), None)
    if failed is not None:
        return False, failed
    return True, "label shift explains the window, and the class mix changed by more than its uncertainty"


def settled(previous: Recalibration | None, current: Recalibration) -> Recalibration:
    """Hysteresis, so that a feed does not flap: a correction in force stays until a window contradicts it.

    A window that is not sure (its change is within chance or its intervals) but whose estimate lies nearer to the
    correction in force than to the source priors keeps the correction; any other window speaks for itself.
    """
    if previous is None or not previous.apply or current.apply or current.classes != previous.classes:
        return current
    if previous.validity.reference != current.validity.reference or not _unsure(current.reason):
        return current
    target = np.array(current.target_priors)
    nearer = np.abs(target - previous.target_priors).sum() < np.abs(target - current.source_priors).sum()
    if not nearer:
        return current
    return replace(
        previous,
        inputs=current.inputs,
        tree=current.tree,
        validity=current.validity,
        reason="kept: this window is unsure, and nearer to the last correction",
    )


def _unsure(reason: str) -> bool:
    return reason.startswith(("the change of the class mix", "no class changed", "the verdict is stable"))


def withheld(message: Recalibration, reason: str) -> Recalibration:
    """The same estimate, not to be applied."""
    if not (message.apply or message.inputs):
        return message
    nothing = identity(message.classes, np.array(message.source_priors), message.validity, reason)
    return replace(nothing, target_priors=message.target_priors)


def identity(
    classes: tuple[str, ...], source_priors: Vector, validity: Validity | None = None, reason: str = ""
) -> Recalibration:
    """No correction: for services that have not heard of one, and windows that justify none."""
    ones = tuple(1.0 for _ in classes)
    priors = tuple(float(p) for p in source_priors)
    return Recalibration(
        classes=classes,
        source_priors=priors,
        target_priors=priors,
        multipliers=ones,
        log_multipliers=tuple(0.0 for _ in classes),
        thresholds=dict.fromkeys(classes, 0.5),
        inputs={},
        validity=validity or Validity(),
        apply=False,
        reason=reason,
    )
