"""The correction that a window implies for a scoring service: the message, and how one follows another.

Nothing is needed to import this, not even numpy: scoring services read the message without the rest of the monitor.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import copysign, inf, log
from typing import Any, Self

from monitor.recalibration.calibration_map import CalibrationMap
from monitor.recalibration.causes import SILENT, UNSURE, Cause
from monitor.recalibration.experts import Expert
from monitor.tolerances import HYSTERESIS_ODDS, NORMAL_95


@dataclass(frozen=True, slots=True)
class InputCorrection:
    """How one input is taken back to the scale the model knows."""

    kind: str
    """`linear`, `monotone`, or `none` where nothing is to be done: then alpha is 1 and beta 0."""
    alpha: float
    """window = alpha x reference + beta; for `monotone` the line that is followed outside the knots."""
    beta: float
    """See alpha."""
    window: tuple[float, ...] = ()
    """Percentiles of the window, ascending, each of which stands for the value of `reference` at the same place;
    between two of them values are interpolated. Empty unless `monotone`."""
    reference: tuple[float, ...] = ()
    """See window."""
    apply: bool = False
    """Whether the input is to be corrected; this does not hang on the message's own `apply`, nor that on this."""
    reason: str = ""
    """Why, in words."""


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
    """The model's, by name; a regressor has none."""
    source_priors: tuple[float, ...]
    """How often each class was among the events that the reference was made from."""
    target_priors: tuple[float, ...]
    """The estimate, in which classes with a handful of hold-out events keep their proportions, or their shares; where
    it is applied, no other share is below a third of what it may be at most by its interval."""
    multipliers: tuple[float, ...]
    """target / source, for calibrated posteriors before they are normalised again; exactly 1 unless `apply`."""
    log_multipliers: tuple[float, ...]
    """What a softmax bias gets on top; -1e308 stands for a class that is gone, as JSON has no infinity."""
    thresholds: Mapping[str, float]
    """For each class: the posterior, as it was scored, at which its corrected posterior is one half against the rest,
    whose posteriors share what is left as they shared the events of the reference. Where scores are margins: the
    posterior as it is calibrated."""
    inputs: Mapping[str, InputCorrection]
    """By feature: how its values are taken back to the scale that the model knows, before it scores."""
    validity: Validity
    """Where the message comes from, and for which model it is."""
    apply: bool
    """Whether posteriors, or a regressor's predictions, are to be corrected; if not, they are used as they are."""
    cause: Cause
    """What programs decide by."""
    reason: str
    """The same in words, for people."""
    calibration: CalibrationMap | None = None
    """What posteriors go through before they are multiplied; null stands for none, as it always does unless `apply`.
    Margins go through it in any case: without `apply` it makes posteriors of them for the reference's class mix."""
    tree: Mapping[str, Any] | None = None
    """Where the stream's model is a versatile tree or forest whose outline the monitor has: its thresholds, which the
    model's `with_thresholds` takes, with an `apply` and a `reason` of their own. They follow the corrected inputs, of
    which they take the place: correct inputs or thresholds, not both."""
    target_errors: tuple[float, ...] = ()
    """Half the width of the 95 % interval of each of the target priors, 0 where a rare class keeps its share; empty
    where they are not known."""
    against: float = 0.0
    """What windows since have had to say against a correction that is kept: the logarithm of the odds."""
    complete: bool = True
    """Whether the window had all of its events, or a uniform sample of them; any other recommends nothing."""
    experts: tuple[Expert, ...] = ()
    """Where labels of earlier windows have come: the correction is this pool, and `apply`, `multipliers` and
    `calibration` say what it would be without labels. Empty stands for none."""

    def withheld(self, cause: Cause, reason: str) -> Self:
        """The same estimate, not to be applied, nor any earlier one to be kept."""
        nothing = identity(self.classes, self.source_priors, margins=self.of_margins)
        return replace(
            self,
            multipliers=nothing.multipliers,
            log_multipliers=nothing.log_multipliers,
            thresholds=nothing.thresholds,
            inputs={},
            tree=None,
            apply=False,
            cause=cause,
            reason=reason,
            calibration=nothing.calibration,
            against=0.0,
            experts=(),
        )

    @property
    def corrects(self) -> bool:
        """Whether posteriors are to be corrected, in one way or the other."""
        return self.apply or bool(self.experts)

    @property
    def of_margins(self) -> CalibrationMap | None:
        """The calibration, where scores are margins."""
        known = self.calibration
        return known if known is not None and known.scores == "margin" else None


def settled(previous: Recalibration | None, current: Recalibration) -> Recalibration:
    """Hysteresis, so that a feed does not flap: a correction in force stays until a window contradicts it.

    A window that is not sure (its change is within chance or its intervals) is weighed by its own errors: the
    correction ends once such windows have spoken for the source priors against it ten to one. A window with too few
    events or labels contradicts nothing: inputs and thresholds stay moved too. Any other window speaks for itself.
    """
    if previous is None or current.classes != previous.classes or current.experts:
        return current  # a pool speaks for itself
    previous = replace(previous, experts=())
    if previous.validity.reference != current.validity.reference:
        return current
    if current.cause in SILENT:
        return _kept_through_silence(previous, current)
    if not previous.apply or current.cause not in UNSURE:
        return current
    against = max(0.0, previous.against + evidence_against(previous, current))
    if against > log(HYSTERESIS_ODDS):
        return current
    return replace(
        previous,
        inputs=current.inputs,
        tree=current.tree,
        validity=current.validity,
        cause=Cause.KEPT,
        reason="kept: this window is unsure, and does not speak against the last correction",
        against=against,
    )


def _kept_through_silence(previous: Recalibration, current: Recalibration) -> Recalibration:
    if previous.apply:
        reason = f"kept: this window cannot contradict it ({current.reason})"
        return replace(previous, validity=current.validity, cause=Cause.KEPT, reason=reason)
    return replace(current, inputs=previous.inputs, tree=previous.tree)


def evidence_against(previous: Recalibration, current: Recalibration) -> float:
    """The logarithm of the odds at which an estimate speaks for the source priors against those of a correction.

    With x where the estimate lies between the two, 0 at the source and 1 at the correction, and s its standard error
    along that line, it is ((x - 1)^2 - x^2) / 2 s^2. Without errors the nearer of the two is taken for certain.
    """
    steps = [after - before for after, before in zip(previous.target_priors, current.source_priors, strict=True)]
    length = sum(step * step for step in steps)
    if length == 0:
        return inf
    moves = [after - before for after, before in zip(current.target_priors, current.source_priors, strict=True)]
    x = sum(step * move for step, move in zip(steps, moves, strict=True)) / length
    errors = current.target_errors or (0.0,) * len(steps)
    # Shares sum to 1, so that their errors go against one another: k / (k - 1) is right for two classes of equal error.
    share = len(steps) / (len(steps) - 1)
    s2 = share * sum((step * error / NORMAL_95) ** 2 for step, error in zip(steps, errors, strict=True)) / length**2
    return (1 - 2 * x) / (2 * s2) if s2 > 0 else copysign(inf, 0.5 - x)


def identity(
    classes: tuple[str, ...],
    source_priors: Iterable[float],
    validity: Validity | None = None,
    cause: Cause = Cause.NOTHING_KNOWN,
    reason: str = "",
    *,
    margins: CalibrationMap | None = None,
) -> Recalibration:
    """No correction: for services that have not heard of one, and windows that justify none.

    `margins` is what makes posteriors of scores that are margins.
    """
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
        cause=cause,
        reason=reason,
        calibration=margins,
    )
