"""The message of a regression stream's window: the envelope of every window, with a relation in place of classes."""

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import json

from monitor.assessment import message as result
from monitor.assessment.regressor_evidence import RelationFound
from monitor.assessment.regressor_feed import parameters
from monitor.assessment.to_message import (
    baseline_results,
    counts,
    feature_result,
    finite,
    quality_part,
    rows_of,
    sketches_part,
    test_results,
)
from monitor.recalibration import RegressionRecalibration, RelationParameters

if TYPE_CHECKING:
    from monitor.assessment.regressor import RegressionAssessment

SCHEMA_ID = "shiftwatch.regression-window.v1"


class Relation(result.MessagePart, frozen=True):
    """What the labels say about the relation between inputs and labels."""

    status: str
    """`tested`, `too-few-labels` or `constant-target`."""
    labels: int
    """Rows with a label, a prediction and all inputs, of this window and as many before it as were needed."""
    wanted: int
    labels_since: str | None
    """When the oldest of them came."""
    since: str | None
    """When the relation changed: the first of the events that are likelier under the relation of now than under the
    reference's, by their own times. Null where it did not change."""
    inputs: tuple[str, ...]
    model: str
    """The link between the reference's relation and that of now, by the name in the literature; M1: unchanged."""
    description: str
    alternative: str
    """The link that the statistic is of."""
    degrees: int
    calibrated: bool
    reference: RelationParameters
    now: RelationParameters | None
    """Estimated from the labels, whether or not it is applied; null where nothing changed."""
    unique: bool
    """False where the labels leave a direction of the inputs undetermined: there the parameters are the reference's."""
    notes: tuple[str, ...]
    """What else a reader of the parameters has to know, such as `collinear-inputs` or `empty-component`."""
    factors: tuple[tuple[float | None, ...], ...] | None
    """What each coefficient was multiplied by, a row for each component; null where it was zero."""
    error: float | None
    """Root mean square of label minus prediction,"""
    error_p_value: float | None
    """Whether it is another than"""
    reference_error: float
    """in the reference,"""
    corrected_error: float | None
    """and after the correction."""
    alike_labels: float | None = None
    """Where inputs have moved: the labels whose inputs look like the hold-out's are worth so many, by their weights."""
    alike_error: float | None = None
    """The error among them; null where they are too few."""
    residual_quantiles: tuple[float, float, float] | None = None
    """Of label minus prediction: 10 %, 50 % and 90 %. Null without labels."""


class RegressionResult(result.WindowResult, frozen=True):
    """One closed window of a regression stream; what belongs to classes is empty."""

    prediction: result.FeatureResult | None
    """The predictions against the reference's; null where too few events were seen."""
    relation: Relation
    recalibration: RegressionRecalibration


def to_result(assessment: "RegressionAssessment", software: str) -> RegressionResult:
    """The message of contract 2."""
    key, said = assessment.key, assessment.prediction
    compared = rows_of(assessment, assessment.events)
    return RegressionResult(
        schema=SCHEMA_ID,
        stream=key.stream,
        segment=key.segment,
        window=key.id,
        start=result.rfc3339(key.start),
        end=result.rfc3339(key.end),
        closed_because=assessment.closed_because,
        complete=assessment.origin.complete,
        gaps=assessment.origin.gaps,
        member=assessment.origin.member,
        partitions=() if assessment.origin.complete else assessment.origin.partitions,
        events=counts(assessment.events, assessment.counts, assessment.unusable, assessment.missing_values),
        verdict=assessment.verdict,
        reasons=assessment.reasons,
        baselines=baseline_results(assessment.baselines),
        prevalence={},
        unknown=None,
        estimator="",
        based_on=None,
        harm=None,
        smoothed=None,
        performance=None,
        estimates={},
        tests=test_results(assessment),
        features={name: feature_result(shift, compared) for name, shift in assessment.features.items()},
        posteriors={},
        versions=result.Versions(software, assessment.reference_version),
        quality=quality_part(assessment.quality),
        volume=None,
        sketches=sketches_part(assessment.sketches),
        prediction=None if said is None else feature_result(said, compared),
        relation=_relation(assessment.relation, assessment.recalibration),
        recalibration=assessment.recalibration,
    )


def _relation(found: RelationFound, feed: RegressionRecalibration) -> Relation:
    test, adaptation = found.test, found.adaptation
    return Relation(
        status=str(test.status),
        labels=found.labels,
        wanted=found.wanted,
        labels_since=None if found.labels_since is None else result.rfc3339(found.labels_since),
        since=None if found.since is None else result.rfc3339(found.since),
        inputs=feed.relation.inputs,
        model="M1" if adaptation is None else adaptation.model,
        description="unchanged" if adaptation is None else adaptation.description,
        alternative=test.alternative,
        degrees=test.degrees,
        calibrated=test.calibrated,
        reference=feed.relation.reference,
        now=None if found.now is None else parameters(found.now),
        unique=adaptation is None or adaptation.unique,
        notes=() if adaptation is None else tuple(map(str, adaptation.notes)),
        factors=None
        if adaptation is None
        else tuple(tuple(finite(value) for value in row) for row in np.asarray(adaptation.factors).tolist()),
        error=finite(found.errors.error),
        error_p_value=finite(found.errors.p_value),
        reference_error=found.errors.usual,
        corrected_error=finite(found.corrected_error),
        alike_labels=finite(found.errors.alike),
        alike_error=finite(found.errors.alike_error),
        residual_quantiles=found.errors.quantiles,
    )


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the message."""
    schema: dict[str, Any] = result.in_order(json.schema(RegressionResult))
    return schema
