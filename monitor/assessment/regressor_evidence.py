"""What the labelled rows of a window, and of those before it, say: the relation, the error, and what to do about it.

The test is one of the relation between inputs and labels, whatever model makes the predictions; or, where the regressor
is not linear, between predictions and labels, and then the errors of the predictions have to bear it out: they are
others than the reference's, or the change corrects them. Where inputs have moved and the relation is not known to be
linear, they have to among events that look like the hold-out's: elsewhere any line would bend, and any model may be
wrong, though labels depend on the inputs as they did. The test has to say the same without the labels that fit worst:
an outlier beyond all that the hold-out events held is no relation.

A correction of the predictions is justified by more than a changed relation: parameters that were adapted to one half
of the labels have to improve the predictions of the other half, both ways round. Where the relation changed between
the halves they do not, and the window waits for more labels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from monitor.arrays import Labels, Matrix, Vector, present
from monitor.assessment.regressor_errors import (
    ErrorsFound,
    among_alike,
    enough_alike,
    error_p_value,
    errors_found,
    rms,
    weighted_mean,
)
from monitor.assessment.regressor_view import RelationReference
from monitor.limits import EVIDENCE_ROWS
from monitor.ports.schema import PREDICTION
from monitor.regression import (
    Adaptation,
    Mixture,
    Prior,
    RelationStatus,
    RelationTest,
    adapt,
    adapt_bayes,
    relation_test,
)
from monitor.tolerances import ERROR_SHARE, GAIN_ERRORS, LARGEST_NUMBER, RELATION_FLOOR, RELATION_TRIM
from monitor.windows import Window, sampled

AdaptBy = Literal["bic", "press", "bayes"]
"""How the relation of now is estimated: along the link of the smallest BIC or PRESS, or as the posterior mean."""


@dataclass(frozen=True, slots=True, eq=False)
class RelationFound:
    """What the labels say."""

    test: RelationTest
    p_value: float
    """The test's or, where that is larger, the one without the labels that the reference explains worst."""
    level: float
    wanted: int
    """Labels that the test wants."""
    labels_since: int | None
    """When the oldest of them came, microseconds; None where nobody knows."""
    since: int | None
    """When the relation changed, by the times of the events; None where it did not, or nobody knows."""
    labels: int
    """Rows with a label, a prediction and all inputs."""
    errors: ErrorsFound
    """Of the predictions."""
    corrected_error: float | None
    """Root mean square of label minus prediction after the adapted parameters; None where nothing changed."""
    helps: bool
    """Whether each half's parameters improve the other half's predictions."""
    now: Mixture | None
    """The relation of now, where it changed."""
    borne_out: bool = True
    """Whether the errors say so, too, among events like those of the hold-out where inputs have moved."""

    @property
    def tested(self) -> bool:
        """Whether there were labels enough to say anything."""
        return self.test.status is RelationStatus.TESTED

    @property
    def changed(self) -> bool:
        """Significantly, and by more than the floor."""
        significant = self.p_value < self.level and self.test.effect >= RELATION_FLOOR
        return self.test.changed and significant and self.borne_out

    @property
    def only_noise(self) -> bool:
        """Whether the labels scatter otherwise, about means that have stayed: nothing to correct."""
        return self.changed and self.test.model == "M1n"

    @property
    def adaptation(self) -> Adaptation | None:
        """How the relation of now follows from the reference's, where it changed."""
        return self.test.adaptation if self.changed else None


def evidence_of(window: Window) -> Window:
    """The labelled rows that a window is judged by: those gathered for it, or else its own."""
    gathered = window.evidence if window.evidence is not None else window.take(window.labelled)
    return sampled(gathered, EVIDENCE_ROWS)


def relation_found(
    evidence: Window,
    reference: RelationReference,
    level: float,
    by: AdaptBy = "bic",
    like_holdout: Callable[[Window], Vector] | None = None,
) -> RelationFound:
    """Test the relation where the labels suffice, and see whether the change can be corrected.

    `like_holdout` weighs labelled rows so that they look like the hold-out's; None where no column has moved.
    """
    evidence = _complete(evidence, reference)
    predictions, targets = present(evidence.predictions, "predictions"), present(evidence.targets, "targets")
    inputs = reference.relation_inputs(evidence)
    wanted = reference.wanted
    test = relation_test(
        reference.mixture,
        inputs if targets.size >= wanted else inputs[:0],
        targets if targets.size >= wanted else targets[:0],
        null=reference.null,
        level=level,
        criterion="press" if by == "press" else "bic",
        names=reference.input_names,
    )
    alike = like_holdout(evidence) if like_holdout is not None and evidence.events else None
    relation = RelationFound(
        test=test,
        p_value=max(test.p_value, _without_outliers(inputs, targets, reference)) if test.changed else test.p_value,
        level=level,
        wanted=wanted,
        labels_since=None if evidence.timestamps is None or not evidence.events else int(evidence.timestamps.min()),
        since=None,
        labels=int(targets.size),
        errors=_errors(targets - predictions, reference, level, alike),
        corrected_error=None,
        helps=False,
        now=None,
    )
    if relation.adaptation is None:
        return relation
    estimate = _bayes if by == "bayes" else partial(_likeliest, model=relation.adaptation.model)
    gains = _gains(predictions, inputs, targets, reference.mixture, estimate)
    helps = _beyond_chance(gains)
    if not _borne_out(targets - predictions, gains, reference, level, alike):
        return replace(relation, borne_out=False)
    adapted = _bayes(reference.mixture, inputs, targets) if by == "bayes" else relation.adaptation.mixture
    now = corrected(predictions, inputs, reference.mixture, adapted)
    times = evidence.timestamps if evidence.happened is None else evidence.happened
    since = None if times is None else _changed_since(times, inputs, targets, reference.mixture, adapted)
    return replace(relation, corrected_error=rms(targets - now), helps=helps, since=since, now=adapted)


def _errors(residuals: Vector, reference: RelationReference, level: float, alike: Vector | None) -> ErrorsFound:
    found = errors_found(residuals, reference.error, reference.events, level * ERROR_SHARE)
    return found if alike is None else among_alike(found, residuals, alike)


def _borne_out(
    residuals: Vector, gains: Vector, reference: RelationReference, level: float, alike: Vector | None
) -> bool:
    """Whether the errors are others than the reference's, or would be smaller, where they can tell."""
    if not (reference.bends if alike is not None else reference.input_names == (PREDICTION.name,)):
        return True
    if alike is not None and not enough_alike(alike):
        return False
    p_value = error_p_value(residuals, reference.error, reference.events, alike)
    # Squares are skewed: a few weighted ones without an extreme look smaller than they are, with too small an error.
    others = p_value is not None and p_value < level and (alike is None or rms(residuals, alike) > reference.error)
    return others or _beyond_chance(gains, alike)


Estimate = Callable[[Mixture, Matrix, Vector], Mixture]
"""The relation of now, from that of before and labelled rows."""


def _likeliest(before: Mixture, inputs: Matrix, targets: Vector, *, model: str) -> Mixture:
    return adapt(before, inputs, targets, models=[model]).mixture


def _bayes(before: Mixture, inputs: Matrix, targets: Vector) -> Mixture:
    return adapt_bayes(before, inputs, targets, prior=Prior.relative(before, inputs)).mixture


def _changed_since(times: Labels, inputs: Matrix, targets: Vector, before: Mixture, now: Mixture) -> int:
    """The event from which on the relation of now says most more than that of before, the likeliest change-point."""
    order = np.argsort(times, kind="stable")
    gain = _fit(now, inputs[order], targets[order]) - _fit(before, inputs[order], targets[order])
    return int(times[order][np.argmax(np.cumsum(gain[::-1])[::-1])])


def corrected(predictions: Vector, inputs: Matrix, before: Mixture, now: Mixture) -> Vector:
    """f(x) + m*(x) - m(x): what the model knows beyond the mixture stays."""
    moved: Vector = predictions + (now.predict(inputs) - before.predict(inputs))
    return moved


def _complete(evidence: Window, reference: RelationReference) -> Window:
    """The rows that have a prediction, a label and all inputs, and none that is absurd."""
    if evidence.predictions is None or evidence.targets is None:
        nobody = np.zeros(0)
        return Window(np.zeros((0, 0)), np.zeros((0, len(reference.features))), predictions=nobody, targets=nobody)
    numbers = np.column_stack([evidence.predictions, evidence.targets, reference.relation_inputs(evidence)])
    return evidence.take(np.flatnonzero((np.abs(numbers) < LARGEST_NUMBER).all(axis=1)))  # false for NaN, too


def _without_outliers(inputs: Matrix, targets: Vector, reference: RelationReference) -> float:
    """The p-value of all labels but those that the reference explains worst."""
    fit = _fit(reference.mixture, inputs, targets)
    kept = np.sort(np.argsort(-fit, kind="stable")[: targets.size - max(1, round(RELATION_TRIM * targets.size))])
    return relation_test(reference.mixture, inputs[kept], targets[kept], null=reference.null, level=0.0).p_value


def _fit(mixture: Mixture, inputs: Matrix, targets: Vector) -> Vector:
    """The log-likelihood of each label."""
    return np.asarray(np.logaddexp.reduce(mixture.log_densities(inputs, targets), axis=1))


def _gains(predictions: Vector, inputs: Matrix, targets: Vector, before: Mixture, estimate: Estimate) -> Vector:
    """What the relation, estimated on the older half, makes of the squared errors of the newer one, and the other way
    round: better where positive."""
    middle, gains = targets.size // 2, np.zeros(targets.size)
    halves = slice(None, middle), slice(middle, None)
    for known, other in (halves, halves[::-1]):
        now = estimate(before, inputs[known], targets[known])
        moved = corrected(predictions[other], inputs[other], before, now)
        gains[other] = (targets[other] - predictions[other]) ** 2 - (targets[other] - moved) ** 2
    return gains


def _beyond_chance(gains: Vector, weights: Vector | None = None) -> bool:
    """Whether each half has gained, and both together beyond chance: noise that has grown passes for steeper slopes,
    and corrects nothing."""
    middle = gains.size // 2
    shares = np.full(gains.size, 1.0 / gains.size) if weights is None else weights
    each = shares * gains
    mean, error = weighted_mean(gains, weights)
    return bool(each[:middle].sum() > 0 and each[middle:].sum() > 0 and mean > GAIN_ERRORS * error)
