"""The rule that decides whether a window's correction is to be applied.

When the evidence does not justify a correction, `apply` is false, the multipliers are exactly 1, and the reason says
why: a monitor must never make scores worse because it had to say something.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.recalibration.message import InputCorrection, Recalibration, Validity

Vector = NDArray[np.float64]


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
