"""The correction that a window of a regression stream implies: the reference's relation, and the one of now.

Nothing is needed to import this, and numpy to apply it. Unless `apply`, the adapted relation is exactly the
reference's, so that the correction of every prediction is exactly zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

from monitor.recalibration.causes import Cause
from monitor.recalibration.message import Recalibration
from monitor.recalibration.numbers import finite, finite_rows

with suppress(ImportError):  # the message can be read without
    import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RelationParameters:
    """A mixture of regressions: the label is coefficients . (1, inputs) + sigma x noise with probability weight."""

    weights: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    """A row for each component, the intercept first."""
    sigmas: tuple[float, ...]

    def mean(self, inputs: Floats) -> Floats:
        """The mean label of every row of inputs."""
        betas = np.array(self.weights) @ np.array(self.coefficients)
        return np.asarray(betas[0] + inputs @ betas[1:])


@dataclass(frozen=True, slots=True)
class RelationCorrection:
    """How the label depended on the inputs, and how it does now."""

    inputs: tuple[str, ...]
    """By name, in the order of the coefficients; `prediction` stands for the prediction itself."""
    reference: RelationParameters
    adapted: RelationParameters
    model: str
    """The link of the adapted relation to the reference's; M1 means the same."""
    description: str
    labels: int
    tested: bool
    """Whether there were labels enough to say anything."""

    def change(self, inputs: Floats) -> Floats:
        """What the mean label of every row of inputs has changed by."""
        if self.adapted == self.reference:
            return np.zeros(inputs.shape[0])
        return self.adapted.mean(inputs) - self.reference.mean(inputs)


@dataclass(frozen=True, slots=True)
class RegressionRecalibration(Recalibration):
    """The message of a regression stream: no classes, and a relation instead."""

    relation: RelationCorrection = field(kw_only=True)

    def withheld(self, cause: Cause, reason: str) -> Self:
        """Without a change of the relation."""
        relation = replace(self.relation, adapted=self.relation.reference, model="M1", description="unchanged")
        return replace(self, apply=False, cause=cause, reason=reason, relation=relation)


def corrected_predictions(predictions: Floats, inputs: Floats, message: Recalibration) -> Floats:
    """Predictions, moved by what the mean label of their inputs has changed by.

    One without all of its inputs stays as it is; so do all while nothing is to be applied.
    """
    if not isinstance(message, RegressionRecalibration) or not message.apply:
        return predictions
    change = message.relation.change(inputs).reshape(predictions.shape)
    return np.where(np.isfinite(change), predictions + change, predictions)


def corrected_by_columns(
    predictions: Floats, features: Floats | None, names: Sequence[str], message: Recalibration
) -> Floats:
    """The same of rows of features with these names; all stay as they are by a message that has no relation."""
    if not isinstance(message, RegressionRecalibration):
        return predictions
    table = np.full((predictions.size, len(names)), np.nan) if features is None else features
    columns = dict(zip(names, table.T, strict=True))
    return corrected_predictions(predictions, relation_inputs(message.relation.inputs, predictions, columns), message)


def of_regression(plain: Recalibration, table: Mapping[str, Any]) -> RegressionRecalibration:
    """The message with its relation, from the JSON of that; KeyError, TypeError or ValueError if it is none."""
    inputs = tuple(table["inputs"])
    relation = RelationCorrection(
        inputs=inputs,
        reference=_parameters(table["reference"], len(inputs)),
        adapted=_parameters(table["adapted"], len(inputs)),
        model=str(table["model"]),
        description=str(table["description"]),
        labels=int(table["labels"]),
        tested=bool(table["tested"]),
    )
    common = {field.name: getattr(plain, field.name) for field in fields(plain)}
    return RegressionRecalibration(**common, relation=relation)


def _parameters(table: Mapping[str, Any], inputs: int) -> RelationParameters:
    weights = finite(table["weights"])
    rows = finite_rows(table["coefficients"], columns=inputs + 1)
    if len(rows) != len(weights):
        raise ValueError(f"coefficients: want a row for each of {len(weights)} components, got {len(rows)}")
    return RelationParameters(weights, rows, finite(table["sigmas"], len(weights)))


def relation_inputs(names: tuple[str, ...], predictions: Floats, features: Any) -> Floats:
    """The relation's inputs as a matrix, from columns by name or from the matrix itself."""
    if names == ("prediction",):
        return predictions[:, None]
    if features is None or isinstance(features, np.ndarray | list):
        matrix = np.asarray(features, dtype=np.float64)
        if matrix.shape != (predictions.size, len(names)):
            want = f"{predictions.size} rows of {list(names)}"
            raise ValueError(f"features: want {want}, or columns by name, got shape {matrix.shape}")
        return matrix
    missing = [name for name in names if name not in features]
    if missing:
        raise ValueError(f"features: want columns {list(names)}, {missing} are not there")
    columns = [np.asarray(features[name], dtype=np.float64).ravel() for name in names]
    if any(column.size != predictions.size for column in columns):
        sizes = [column.size for column in columns]
        raise ValueError(f"features: want {predictions.size} values of each, got {sizes}")
    return np.column_stack(columns)
