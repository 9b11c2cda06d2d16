"""What the labelled rows of a window, and of those before it, say: the relation, the error, and what to do about it.

The test is one of the relation between inputs and labels, whatever model makes the predictions; or, where the regressor
is not linear, between predictions and labels, and then the errors of the predictions have to bear it out: they are
others than the reference's, or the change corrects them. It has to say the
same without the labels that fit worst: an outlier beyond all that the hold-out events held is no relation. A
correction of the predictions is justified by more than a changed relation: parameters that were adapted to one half
of the labels have to improve the predictions of the other half, both ways round. Where the relation changed between
the halves they do not, and the window waits for more labels.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from monitor.arrays import Matrix, Vector
from monitor.assessment.regressor_view import RelationReference
from monitor.limits import EVIDENCE_ROWS
from monitor.ports.schema import PREDICTION
from monitor.regression import Adaptation, Mixture, RelationStatus, RelationTest, adapt, relation_test
from monitor.tolerances import GAIN_ERRORS, LARGEST_NUMBER, RELATION_FLOOR, RELATION_TRIM
from monitor.windows import Window, sampled


@dataclass(frozen=True, slots=True, eq=False)
class RelationFound:
    """What the labels say."""

    test: RelationTest
    p_value: float
    """The test's or, where that is larger, the one without the labels that the reference explains worst."""
    level: float
    wanted: int
    """Labels that the test wants."""
    since: int | None
    """When the oldest of them happened, microseconds; None where nobody knows."""
    labels: int
    """Rows with a label, a prediction and all inputs."""
    error: float | None
    """Root mean square of label minus prediction over them; None without labels."""
    reference_error: float
    corrected_error: float | None
    """The same after the adapted parameters; None where nothing changed."""
    error_p_value: float | None
    """Of the test whether the predictions' squared errors are others in the mean than the reference's."""
    helps: bool
    """Whether each half's parameters improve the other half's predictions."""
    borne_out: bool = True
    """Whether the errors say so, too: asked for where the relation is one to the prediction itself."""

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
    def adaptation(self) -> Adaptation | None:
        """The relation of now, where it changed."""
        return self.test.adaptation if self.changed else None


def evidence_of(window: Window) -> Window:
    """The labelled rows that a window is judged by: those gathered for it, or else its own."""
    gathered = window.evidence if window.evidence is not None else window.take(window.labelled)
    return sampled(gathered, EVIDENCE_ROWS)


def relation_found(evidence: Window, reference: RelationReference, level: float) -> RelationFound:
    """Test the relation where the labels suffice, and see whether the change can be corrected."""
    predictions, inputs, targets = _complete(evidence, reference)
    wanted = reference.wanted
    test = relation_test(
        reference.mixture,
        inputs if targets.size >= wanted else inputs[:0],
        targets if targets.size >= wanted else targets[:0],
        null=reference.null,
        level=level,
        names=reference.input_names,
    )
    relation = RelationFound(
        test=test,
        p_value=max(test.p_value, _without_outliers(inputs, targets, reference)) if test.changed else test.p_value,
        level=level,
        wanted=wanted,
        since=None if evidence.timestamps is None or not evidence.events else int(evidence.timestamps.min()),
        labels=int(targets.size),
        error=_error(targets - predictions) if targets.size else None,
        reference_error=reference.error,
        corrected_error=None,
        error_p_value=_error_changed(targets - predictions, reference.error),
        helps=False,
    )
    if relation.adaptation is None:
        return relation
    helps = _helps(predictions, inputs, targets, reference.mixture, relation.adaptation.model)
    worse = relation.error_p_value is not None and relation.error_p_value < level
    if reference.input_names == (PREDICTION.name,) and not (helps or worse):
        return replace(relation, borne_out=False)
    now = corrected(predictions, inputs, reference.mixture, relation.adaptation.mixture)
    return replace(relation, corrected_error=_error(targets - now), helps=helps)


def corrected(predictions: Vector, inputs: Matrix, before: Mixture, now: Mixture) -> Vector:
    """f(x) + m*(x) - m(x): what the model knows beyond the mixture stays."""
    moved: Vector = predictions + (now.predict(inputs) - before.predict(inputs))
    return moved


def _complete(evidence: Window, reference: RelationReference) -> tuple[Vector, Matrix, Vector]:
    """Predictions, inputs and labels of the rows that have all of them, and none that is absurd."""
    if not evidence.events or evidence.predictions is None or evidence.targets is None:
        return np.zeros(0), np.zeros((0, reference.mixture.inputs)), np.zeros(0)
    inputs = reference.relation_inputs(evidence)
    numbers = np.column_stack([evidence.predictions, evidence.targets, inputs])
    whole = (np.abs(numbers) < LARGEST_NUMBER).all(axis=1)  # false for NaN, too
    return evidence.predictions[whole], inputs[whole], evidence.targets[whole]


def _without_outliers(inputs: Matrix, targets: Vector, reference: RelationReference) -> float:
    """The p-value of all labels but those that the reference explains worst."""
    fit = np.logaddexp.reduce(reference.mixture.log_densities(inputs, targets), axis=1)
    kept = np.sort(np.argsort(-fit, kind="stable")[: targets.size - max(1, round(RELATION_TRIM * targets.size))])
    return relation_test(reference.mixture, inputs[kept], targets[kept], null=reference.null, level=0.0).p_value


def _helps(predictions: Vector, inputs: Matrix, targets: Vector, before: Mixture, model: str) -> bool:
    """Whether the chosen link, estimated on the older half, improves the newer one, and the other way round; and both
    together beyond chance: noise that has grown passes for steeper slopes, and corrects nothing."""
    middle = targets.size // 2
    halves = slice(None, middle), slice(middle, None)
    gains = []
    for known, other in (halves, halves[::-1]):
        now = adapt(before, inputs[known], targets[known], models=[model]).mixture
        moved = corrected(predictions[other], inputs[other], before, now)
        gains.append((targets[other] - predictions[other]) ** 2 - (targets[other] - moved) ** 2)
        if not gains[-1].mean() > 0:
            return False
    gain = np.concatenate(gains)
    return bool(gain.mean() > GAIN_ERRORS * gain.std(ddof=1) / np.sqrt(gain.size))


def _error_changed(residuals: Vector, usual: float) -> float | None:
    """The two-sided p-value of the mean squared residual against the usual one; None where they are one number."""
    if residuals.size < 2 or not (scale := max(float(np.abs(residuals).max()), usual)) > 0:
        return None
    squares, expected = (residuals / scale) ** 2, (usual / scale) ** 2
    spread = float(squares.std(ddof=1))
    if not spread > np.finfo(np.float64).eps * (squares.mean() + expected):
        return None
    z = (squares.mean() - expected) / (spread / np.sqrt(squares.size))
    return float(2.0 * ndtr(-abs(z)))


def _error(residuals: Vector) -> float:
    return float(np.sqrt(np.mean(residuals**2)))
