"""What a regressor looked like on labelled hold-out events: all that a window of a regression stream is compared with.

The relation between inputs and labels is a mixture of regressions; predictions and features are kept sorted, as those
of classifiers are; the error of the predictions says what is usual. Reduced once, never changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Labels, Matrix, Vector, frozen_vector, present
from monitor.errors import InputError
from monitor.limits import RELATION_ROWS
from monitor.ports.schema import PREDICTION, Feature, StreamSchema
from monitor.reference import artefact
from monitor.reference.base import Arrays, FiledReference, Header
from monitor.reference.column_notices import column_notices
from monitor.reference.feature_columns import Kinds, read_features
from monitor.reference.table import out_of_line
from monitor.regression import Mixture, RelationNull, calibrate_relation, labels_wanted
from monitor.shifts import FeatureProfile, profile_of, values_kept
from monitor.tolerances import (
    BEND_LEAVES,
    BEND_ROWS,
    ENOUGH_LABELS,
    MINIMUM_EVENTS,
    PREDICTION_SAYS_MORE,
    RELATION_MISSING,
)
from monitor.windows import Window


@dataclass(frozen=True, slots=True)
class LineCount:
    """Of how many linear regressions the relation is a mixture."""

    number: int | None = None
    """None: as many as BIC chooses,"""
    most: int = 5
    """and no more than these."""

    def notices(self, mixture: Mixture) -> Iterator[str]:
        """What has to be said of a fitted one."""
        if self.number is None and mixture.components == self.most > 1:
            yield (
                f"the relation is a mixture of {self.most} lines, the most that BIC may choose: more may fit better "
                "(`--lines-most`)"
            )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegressionReference(FiledReference):
    """The hold-out events of a regressor; the profiles of its features know one class, all events."""

    task: ClassVar[str | None] = "regression"
    prediction: FeatureProfile
    inputs: tuple[int, ...]
    """The columns of the features that the relation is about; none: it is about the prediction itself."""
    mixture: Mixture
    """Of the labels, given the inputs."""
    null: RelationNull
    """How the relation test behaves on the reference's own rows."""
    error: float
    """Root mean square of label minus prediction."""
    bends: bool
    """Whether the labels are not known to be linear in the inputs: where inputs move, lines may bend by themselves."""
    absolute_error: float | None = None
    """Mean of the absolute value of label minus prediction,"""
    bias: float | None = None
    """and of label minus prediction itself; None where an earlier release made the reference."""

    @property
    def events(self) -> int:
        """All labelled events that it was made from."""
        return int(self.facts["events"])

    @property
    def input_names(self) -> tuple[str, ...]:
        """What the relation is about, by name."""
        return tuple(self.schema.features[j].name for j in self.inputs) or (PREDICTION.name,)

    @property
    def wanted(self) -> int:
        """Labels that the relation test wants at least."""
        return labels_wanted(self.mixture)

    @property
    def enough(self) -> int:
        """Labels beyond which evidence is not looked for in older windows."""
        return max(ENOUGH_LABELS, self.wanted)

    def relation_inputs(self, window: Window) -> Matrix:
        """The rows of a window as the relation takes them; NaN where a value is missing."""
        return relation_inputs(present(window.predictions, "predictions"), window.features, self.inputs)

    @classmethod
    def fit(
        cls,
        predictions: ArrayLike,
        targets: ArrayLike,
        features: Any = None,
        *,
        feature_names: Iterable[str] | None = None,
        category: Iterable[str] = (),
        number: Iterable[str] = (),
        ignore: Iterable[str] = (),
        lines: LineCount | None = None,
        seed: int = 0,
        stream: str = "",
    ) -> Self:
        """The reference of a fitted regressor, from its predictions on a labelled set it was not trained on.

        `features`, `category`, `number` and `ignore` are those of a classifier's reference. The numbers are the inputs
        of the relation that is watched, a mixture of linear regressions with the number of components chosen by BIC,
        unless `lines` says another way.
        Without features the prediction is; so it is where it knows more of the labels than any such mixture, because
        the regressor is not linear: lines would bend where inputs move, though nothing has changed.
        """
        kinds = Kinds(tuple(category), tuple(number), tuple(ignore))
        table = None if features is None else read_features(features, feature_names, kinds)
        return cls.reduce(
            StreamSchema(stream, (), () if table is None else table.features),
            frozen_vector(predictions, "predictions"),
            frozen_vector(targets, "targets"),
            None if table is None else table.values,
            seed=seed,
            lines=lines,
            notices=[
                *out_of_line(targets=targets, features=features),
                *(() if table is None else column_notices(table.columns, table.features, kinds)),
            ],
        )

    @classmethod
    def reduce(
        cls,
        schema: StreamSchema,
        predictions: Vector,
        targets: Vector,
        features: Matrix | None,
        *,
        seed: int,
        lines: LineCount | None = None,
        events: int | None = None,
        facts: Mapping[str, Any] | None = None,
        notices: Iterable[str] = (),
    ) -> Self:
        """A reference from checked columns; `events` when the rows are a sample of more events than these."""
        _check(predictions, targets, features)
        rows = np.zeros(targets.size, dtype=np.int64)
        keep = values_kept(len(schema.features) + 1)
        columns = () if features is None else tuple(np.asarray(features).T)
        profiles = tuple(
            profile_of(feature, column, rows, 1, keep=keep)
            for feature, column in zip(schema.features, columns, strict=True)
        )
        lines = lines or LineCount()
        fit = partial(_relation, lines=lines, seed=seed)
        inputs, mixture, null, measured = _watched_relation(_inputs(profiles), predictions, targets, features, fit)
        bends = not inputs or _bends(relation_inputs(predictions, features, inputs), targets, mixture)
        cautions = [{"cause": "features", "text": notice} for notice in notices]
        cautions += [{"cause": "relation", "text": notice} for notice in lines.notices(mixture)]
        return cls(
            schema=schema,
            features=profiles,
            prediction=profile_of(PREDICTION, predictions, rows, 1, keep=keep),
            inputs=inputs,
            mixture=mixture,
            null=null,
            error=float(np.sqrt(np.mean((targets - predictions) ** 2))),
            bends=bends,
            absolute_error=float(np.mean(np.abs(targets - predictions))),
            bias=float(np.mean(targets - predictions)),
            facts={
                "events": int(targets.size if events is None else events),
                "rows": int(targets.size),
                "seed": seed,
                **measured,
                **({"warnings": cautions} if cautions else {}),
                **(facts or {}),
            },
            version="",
        ).sealed()

    def header(self) -> Header:
        return {
            "prediction": self.prediction.described(),
            "inputs": list(self.inputs),
            "error": self.error,
            "bends": self.bends,
            **({} if self.absolute_error is None else {"absolute_error": self.absolute_error, "bias": self.bias}),
        }

    def arrays(self) -> Arrays:
        return {
            **artefact.placed("mixture", self.mixture.to_arrays()),
            **artefact.placed("null", self.null.to_arrays()),
            **artefact.placed("prediction", self.prediction.to_arrays()),
        }

    @classmethod
    def fields_of(cls, header: Header, arrays: Arrays, features: tuple[Feature, ...]) -> dict[str, Any]:
        prediction = artefact.under(arrays, "prediction")
        return {
            "schema": StreamSchema(header["stream"], (), features),
            "prediction": FeatureProfile.from_arrays(PREDICTION, header["prediction"]["error"], prediction),
            "inputs": tuple(header["inputs"]),
            "mixture": Mixture.from_arrays(artefact.under(arrays, "mixture")),
            "null": RelationNull.from_arrays(artefact.under(arrays, "null")),
            "error": header["error"],
            "bends": bool(header.get("bends", True)),  # earlier releases did not look
            "absolute_error": header.get("absolute_error"),
            "bias": header.get("bias"),
        }


def relation_inputs(predictions: Vector, features: Matrix | None, inputs: tuple[int, ...]) -> Matrix:
    """The columns that the relation is about; NaN where events carry no features."""
    if not inputs:
        return predictions[:, None]
    return np.full((predictions.size, len(inputs)), np.nan) if features is None else features[:, list(inputs)]


def _check(predictions: Vector, targets: Vector, features: Matrix | None) -> None:
    if targets.size != predictions.size:
        raise InputError(f"targets: want one for each of the {predictions.size} events, got {targets.size}")
    if features is not None and features.shape[0] != targets.size:
        raise InputError(f"features: want a row for each of the {targets.size} events, got {features.shape[0]}")
    for name, values in (("predictions", predictions), ("targets", targets)):
        bad = ~np.isfinite(values)
        if bad.any():
            raise InputError(f"{name}: {int(bad.sum())} are missing or infinite, the first in row {int(bad.argmax())}")
    if targets.size < MINIMUM_EVENTS:
        raise InputError(f"targets: want at least {MINIMUM_EVENTS} labelled events, got {targets.size}")
    if np.ptp(targets) == 0:
        raise InputError(f"targets: all are {targets[0]:g}: there is no relation to watch")


def _inputs(profiles: tuple[FeatureProfile, ...]) -> tuple[int, ...]:
    """Numbers and booleans that vary and are mostly there: a row with a missing input is no evidence."""
    return tuple(
        j
        for j, p in enumerate(profiles)
        if p.feature.kind != "category" and float(p.missing[0]) <= RELATION_MISSING and _varies(p)
    )


def _varies(p: FeatureProfile) -> bool:
    if p.feature.kind == "number":
        return bool(p.values.size and p.values[0] < p.values[-1])
    return bool(np.count_nonzero(p.counts.sum(axis=0)) > 1)


Fitted = tuple[Mixture, RelationNull, dict[str, Any]]
"""A relation, its null, and what a reader of the reference wants to know of it."""


def _watched_relation(
    inputs: tuple[int, ...],
    predictions: Vector,
    targets: Vector,
    features: Matrix | None,
    fit: Callable[[Matrix, Vector], Fitted],
) -> tuple[tuple[int, ...], Mixture, RelationNull, dict[str, Any]]:
    """The columns that the relation is about, and the relation: of the inputs, unless the prediction says more."""
    design = relation_inputs(predictions, features, inputs)
    mixture, null, measured = fit(design, targets)
    if inputs and _says_more(predictions, mixture, design, targets):
        mixture, null, measured = fit(predictions[:, None], targets)
        return (), mixture, null, {**measured, "relation": "not linear in the inputs"}
    return inputs, mixture, null, measured


def _says_more(predictions: Vector, mixture: Mixture, inputs: Matrix, targets: Vector) -> bool:
    """Whether the predictions explain what lines through the inputs leave."""
    complete = np.isfinite(inputs).all(axis=1)
    said = mixture.predict(inputs[complete])
    return _explains(predictions[complete] - said, targets[complete] - said)


def _bends(inputs: Matrix, targets: Vector, mixture: Mixture) -> bool:
    """Whether a tree explains, of rows that it has not seen, what lines through the inputs leave."""
    from sklearn.model_selection import cross_val_predict  # noqa: PLC0415 - see `_relation`
    from sklearn.tree import DecisionTreeRegressor  # noqa: PLC0415 - see `_relation`

    complete = np.isfinite(inputs).all(axis=1)
    left = targets[complete] - mixture.predict(inputs[complete])
    tree = DecisionTreeRegressor(max_leaf_nodes=BEND_LEAVES, min_samples_leaf=BEND_ROWS, random_state=0)
    return _explains(cross_val_predict(tree, inputs[complete], left, cv=5), left)


def _explains(guess: Vector, left: Vector) -> bool:
    """Whether a guess has to do with what is left: the robust t of their product."""
    spread = float(np.sqrt(np.sum((left * guess) ** 2)))
    return spread > 0 and float(left @ guess) > PREDICTION_SAYS_MORE * spread


def _relation(inputs: Matrix, targets: Vector, *, lines: LineCount, seed: int) -> Fitted:
    from monitor.regression import MixtureOfRegressions  # noqa: PLC0415 - brings scikit-learn with it

    complete = np.flatnonzero(np.isfinite(inputs).all(axis=1))
    if complete.size < MINIMUM_EVENTS:
        raise InputError(f"features: want at least {MINIMUM_EVENTS} events without missing inputs, got {complete.size}")
    picked = _sample(complete, seed)
    x, y = inputs[picked], targets[picked]
    model = MixtureOfRegressions(lines.number, max_components=lines.most, random_state=seed).fit(x, y)
    null = calibrate_relation(model, x, y, seed=seed)
    residual = float(np.sqrt(np.mean((y - model.predict(x)) ** 2)))
    measured = {
        "relation_rows": int(picked.size),
        "relation_residual": residual,
        "bic_by_components": {str(k): float(bic) for k, bic in model.bic_by_components_.items()},
        "converged": bool(model.converged_),
    }
    return model.mixture_, null, measured


def _sample(rows: Labels, seed: int) -> Labels:
    if rows.size <= RELATION_ROWS:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, RELATION_ROWS, replace=False))
