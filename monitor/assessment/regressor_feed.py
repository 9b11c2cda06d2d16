"""The correction that a window implies: the adapted relation where the labels justify it, else exactly no change."""

import numpy as np

from monitor.assessment.regressor_evidence import RelationFound
from monitor.assessment.regressor_view import RelationReference
from monitor.recalibration import Cause, RegressionRecalibration, RelationCorrection, RelationParameters, Validity
from monitor.regression import Mixture, RelationStatus


def implied(found: RelationFound, reference: RelationReference, validity: Validity) -> RegressionRecalibration:
    """The message of one window."""
    apply, cause, reason = justified(found)
    before = parameters(reference.mixture)
    adaptation, now = (found.adaptation, found.now) if apply else (None, None)
    return RegressionRecalibration(
        classes=(),
        source_priors=(),
        target_priors=(),
        multipliers=(),
        log_multipliers=(),
        thresholds={},
        inputs={},
        validity=validity,
        apply=apply,
        cause=cause,
        reason=reason,
        relation=RelationCorrection(
            inputs=reference.input_names,
            reference=before,
            adapted=before if now is None else parameters(now),
            model="M1" if adaptation is None else adaptation.model,
            description="unchanged" if adaptation is None else adaptation.description,
            labels=found.labels,
            tested=found.tested,
        ),
    )


def justified(found: RelationFound) -> tuple[bool, Cause, str]:
    """Whether to apply, and why: every condition has its own cause and sentence."""
    conditions = (
        (
            found.test.status is not RelationStatus.CONSTANT_TARGET,
            Cause.LABELS_ARE_CONSTANT,
            "all labels are equal: they carry no relation",
        ),
        (found.tested, Cause.TOO_FEW_LABELS, f"{found.labels} labels, {found.wanted} are wanted to judge the relation"),
        (
            found.changed or not found.test.changed or found.borne_out,
            Cause.NOT_TOLD_APART,
            "the errors among events like the hold-out's do not bear a changed relation out",
        ),
        (found.changed, Cause.RELATION_UNCHANGED, "the labels agree with the relation of the reference"),
        (
            not found.only_noise,
            Cause.NO_GAIN,
            "only the noise changed: no correction makes predictions better",
        ),
        (
            found.helps,
            Cause.NO_GAIN,
            "parameters adapted to one half of the labels do not improve the predictions of the other half: "
            "the change may be recent, or too small to correct",
        ),
    )
    failed = next(((cause, reason) for holds, cause, reason in conditions if not holds), None)
    if failed is not None:
        return False, *failed
    reason = "the relation changed, and each half of the labels improves the predictions of the other"
    return True, Cause.RELATION_CHANGED, reason


def parameters(mixture: Mixture) -> RelationParameters:
    """A mixture as plain numbers."""
    return RelationParameters(
        weights=tuple(np.asarray(mixture.weights).tolist()),
        coefficients=tuple(tuple(row) for row in np.asarray(mixture.coefficients).tolist()),
        sigmas=tuple(np.asarray(mixture.sigmas).tolist()),
    )
