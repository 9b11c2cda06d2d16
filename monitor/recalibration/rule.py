"""The rule that decides whether a window's correction is to be applied.

When the evidence does not justify a correction, `apply` is false, the multipliers are exactly 1, and the reason says
why: a monitor must never make scores worse because it had to say something.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from monitor.recalibration.applying import scored_threshold
from monitor.recalibration.calibration_map import CalibrationMap
from monitor.recalibration.causes import Cause
from monitor.recalibration.message import InputCorrection, Recalibration, Validity
from monitor.recalibration.rare_classes import ToldMix, told_mix
from monitor.tolerances import (
    FEWEST_OF_CLASS,
    LABEL_SHIFT_ODDS,
    MIX_FACTOR,
    MIX_FLOOR,
    POOLED_CHANGE,
    SCORES_ALONE_ODDS,
    TOLD_SHARE,
    UNSEEN_SHARE,
)

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
    """The mix moved beyond chance, and by enough to count: as a whole, or one class by a factor."""
    disagreement: float
    """The total variation distance between the reported estimate and the unbiased one that it is least in line with."""
    allowed: float
    """What that distance may be by the errors of both."""
    label_shift: bool = True
    """The estimate rests on label shift; what rests on anything else is no ground to correct scores by."""
    hold_out_events: float = inf
    """Labelled events that the source priors are the shares of."""
    told_apart: float = inf
    """The logarithm of the odds for a change of the class mix, against a shift of the inputs that looks like one."""
    scores_alone: bool = False
    """Those odds rest on nothing but the score of two classes."""


GONE = -1e308
"""The finite stand-in for the logarithm of a multiplier that is 0."""


def imply(
    classes: tuple[str, ...],
    source_priors: Vector,
    grounds: Grounds,
    inputs: Mapping[str, InputCorrection],
    validity: Validity,
    *,
    calibration: CalibrationMap | None = None,
) -> Recalibration:
    """The correction that one window implies. `calibration` is the one that its estimate was made with."""
    mix = told_mix(grounds.target_priors, grounds.half_widths, source_priors, grounds.hold_out_events)
    apply, cause, reason = _justified(grounds, mix, source_priors)
    source = _numbers(source_priors)
    target = _supposed(mix.priors, mix.half_widths) if apply else _numbers(mix.priors)
    margins = calibration is not None and calibration.scores == "margin"
    before = calibration if apply and not margins else None
    multipliers, logs = _multipliers(source, target if apply else source)
    return Recalibration(
        classes=classes,
        source_priors=source,
        target_priors=target,
        target_errors=_numbers(mix.half_widths),
        multipliers=multipliers,
        log_multipliers=logs,
        thresholds=_thresholds(classes, source, target if apply else source, before),
        inputs=inputs,
        validity=validity,
        apply=apply,
        cause=cause,
        reason=reason,
        calibration=calibration if apply or margins else None,
    )


def retargeted(
    message: Recalibration, target_priors: Vector, half_widths: Vector, hold_out_events: float = inf
) -> Recalibration:
    """A correction that is applied, towards another estimate of the class mix; none where that has not moved enough."""
    mix = told_mix(target_priors, half_widths, np.array(message.source_priors), hold_out_events)
    if mix.share < TOLD_SHARE:
        return message.withheld(Cause.NOT_UNIQUE, _TOO_RARE)
    target_priors, half_widths = mix.priors, mix.half_widths
    change, source = np.abs(target_priors - message.source_priors), message.source_priors
    effect = float(np.sqrt((change**2 / source).sum()))
    factors = np.maximum(target_priors, source) / np.maximum(np.minimum(target_priors, source), np.finfo(float).tiny)
    # As in a verdict: a rare class that doubles counts, however little that is of the whole mix.
    if effect < MIX_FLOOR and not ((factors >= MIX_FACTOR) & (change > half_widths)).any():
        return message.withheld(
            Cause.TOO_SMALL, f"the change of the smoothed class mix is too small (w {effect:.3f} < {MIX_FLOOR})"
        )
    if not (change > half_widths).any():
        return message.withheld(Cause.WITHIN_INTERVAL, "no class of the smoothed mix changed by more than its interval")
    target = _supposed(target_priors, half_widths)
    multipliers, logs = _multipliers(source, target)
    before = None if message.of_margins is not None else message.calibration
    return replace(
        message,
        target_priors=target,
        target_errors=tuple(half_widths.tolist()),
        multipliers=multipliers,
        log_multipliers=logs,
        thresholds=_thresholds(message.classes, source, target, before),
        reason=f"{message.reason}; the target is the smoothed class mix",
    )


def towards(target_priors: Vector, half_widths: Vector, source_priors: Vector) -> tuple[float, ...]:
    """The multipliers that a pool tries beside the scores as they were; none where the mix may as well not have moved.

    Labels will tell what they are worth, so the mix need not rest on all that a correction without labels asks for.
    """
    change = np.abs(target_priors - source_priors)
    small = float(np.sqrt((change**2 / source_priors).sum())) < MIX_FLOOR
    if small or not (change > POOLED_CHANGE * half_widths).any():
        return ()
    return _multipliers(_numbers(source_priors), _supposed(target_priors, half_widths))[0]


def _supposed(target: Vector, half_widths: Vector) -> tuple[float, ...]:
    """The class mix to correct towards: no share below a third of what it may be at most, where that is all one knows.

    An estimate of 0 says that a class is rare, and would make each of its events impossible: of a share that an
    interval puts between 0 and u the mean is about u / 3. Shares without an interval stay as they are.
    """
    supposed, estimated = np.maximum(target, 2 * half_widths / UNSEEN_SHARE), half_widths > 0
    if not np.array_equal(supposed, target):
        supposed[estimated] *= target[estimated].sum() / supposed[estimated].sum()
    return _numbers(supposed)


def _numbers(shares: Vector) -> tuple[float, ...]:
    return tuple(float(share) for share in shares)


def _multipliers(source: tuple[float, ...], target: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Exactly 1 where both are the same."""
    ratios = tuple(t / p for t, p in zip(target, source, strict=True))
    return ratios, tuple(float(np.log(ratio)) if ratio > 0 else GONE for ratio in ratios)


def _thresholds(
    classes: tuple[str, ...],
    source: tuple[float, ...],
    target: tuple[float, ...],
    calibration: CalibrationMap | None,
) -> dict[str, float]:
    calibrate = None if calibration is None else lambda row: calibration.rows(np.array(row)).tolist()
    return {name: scored_threshold(y, 0.5, source, target, calibrate) for y, name in enumerate(classes)}


def justified(grounds: Grounds, source_priors: Vector) -> tuple[bool, Cause, str]:
    """Whether to apply, and why: every condition has its own cause and sentence."""
    mix = told_mix(grounds.target_priors, grounds.half_widths, source_priors, grounds.hold_out_events)
    return _justified(grounds, mix, source_priors)


_TOO_RARE = f"too little of the class mix is in classes with {FEWEST_OF_CLASS} hold-out events or more to tell by"
_TOO_SMALL = "the window is too small to tell the change of the class mix from a shift of the inputs"
_ALONE = (
    "scores alone do not tell this change of the class mix from a shift of the inputs: features would, larger "
    'windows may, labels would show what a correction is worth; or declare of the stream that `may = "change-mix"`'
)


def _justified(grounds: Grounds, mix: ToldMix, source_priors: Vector) -> tuple[bool, Cause, str]:
    change = np.abs(mix.priors - source_priors)
    wanted = SCORES_ALONE_ODDS if grounds.scores_alone else LABEL_SHIFT_ODDS
    conditions = (
        (
            grounds.verdict == "prior-shift",
            VERDICT_CAUSES.get(grounds.verdict, Cause.OTHER_SHIFT),
            f"the verdict is {grounds.verdict}: only a pure prior shift is corrected through the class mix",
        ),
        (
            grounds.label_shift,
            Cause.OTHER_SHIFT,
            "the class mix is not estimated by label shift: windows of this stream differ in other ways too",
        ),
        (mix.share >= TOLD_SHARE, Cause.NOT_UNIQUE, _TOO_RARE),
        (grounds.mix_significant, Cause.WITHIN_CHANCE, "the change of the class mix is within chance"),
        (
            grounds.told_apart >= log(wanted),
            Cause.NOT_TOLD_APART,
            _ALONE if grounds.scores_alone else _TOO_SMALL,
        ),
        (grounds.trustworthy, Cause.NOT_UNIQUE, "the estimate did not converge or is not unique"),
        (
            grounds.disagreement <= grounds.allowed,
            Cause.ESTIMATORS_DISAGREE,
            f"the estimators disagree by {grounds.disagreement:.3f} (at most {grounds.allowed:.3f})",
        ),
        (
            bool((change > mix.half_widths).any()),
            Cause.WITHIN_INTERVAL,
            "no class changed by more than its interval",
        ),
    )
    failed = next(((cause, reason) for holds, cause, reason in conditions if not holds), None)
    if failed is not None:
        return False, *failed
    return (
        True,
        Cause.PRIOR_SHIFT,
        "label shift explains the window, and the class mix changed by more than its uncertainty",
    )


VERDICT_CAUSES = {"stable": Cause.STABLE, "insufficient-data": Cause.TOO_FEW_EVENTS}
"""Of windows that are not corrected because of their verdict; any other verdict is another shift."""
