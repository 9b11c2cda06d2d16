"""From a window of a regression stream and a reference to an answer. Pure, as the assessment of classifiers is.

Predictions and features are compared with the reference's by Kolmogorov-Smirnov distance (categories by chi-square),
all corrected together; the labels say whether the relation to the inputs still holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from monitor.arrays import Flags, Matrix, Vector, present
from monitor.assessment import message as result
from monitor.assessment import regressor_message
from monitor.assessment import regressor_reasons as wording
from monitor.assessment.baseline import Baseline, baselines
from monitor.assessment.completeness import as_far_as_seen
from monitor.assessment.data_quality import NOTHING_WRONG, DataQuality, data_quality, rejected_share
from monitor.assessment.regressor_evidence import AdaptBy, RelationFound, evidence_of, relation_found
from monitor.assessment.regressor_feed import implied
from monitor.assessment.regressor_view import RelationReference
from monitor.assessment.verdict import RegressionEvidence, Verdict, decide_regression
from monitor.assessment.viewed import Viewed
from monitor.assessment.window_tests import FeatureShift, Test, of_moves
from monitor.errors import InputError
from monitor.limits import REFERENCES_READY
from monitor.ports.schema import PREDICTION
from monitor.recalibration import RegressionRecalibration, Validity
from monitor.shifts import (
    ColumnQuality,
    Explanation,
    KnownColumns,
    Move,
    SketchedColumns,
    Sketches,
    SortedColumn,
    WrittenColumn,
    balancing_weights,
    coarsened_table,
    column_of,
    common_features,
    covariates,
    features_written,
    qualities,
    sketched,
)
from monitor.shifts import feature_tests as moves
from monitor.shifts.window_view import SeenColumns, seen_columns
from monitor.tolerances import DISTANCE_FLOOR, ERROR_GROWTH, MINIMUM_EVENTS, RELATION_FLOOR, VERDICT_LEVEL
from monitor.version import __version__
from monitor.windows import Origin, Window, WindowCounts, WindowKey

ALL = np.ones(1)
"""The class mix of a stream without classes."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RegressionAssessment(Viewed):
    """Everything that is known about one window of a regression stream."""

    key: WindowKey
    closed_because: str
    origin: Origin
    events: int
    counts: WindowCounts
    unusable: int
    """Events whose prediction was not a number."""
    missing_values: int
    verdict: Verdict
    reasons: tuple[str, ...]
    tests: Mapping[str, Test]
    features: Mapping[str, FeatureShift]
    prediction: FeatureShift | None
    """None where too few events were seen."""
    relation: RelationFound
    recalibration: RegressionRecalibration
    reference_version: str
    quality: DataQuality = NOTHING_WRONG
    """What is plainly wrong with the data."""
    sketches: Sketches | None = None
    """How features and predictions are distributed beside the reference's; None where they are not wanted, and where
    there are too few events."""
    task: ClassVar[str | None] = "regression"

    @property
    def compared(self) -> Mapping[str, FeatureShift]:
        """All that was compared with the reference one by one: the features, and the predictions beside them."""
        return self.features if self.prediction is None else {**self.features, PREDICTION.name: self.prediction}

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """Against the `reference`: no other is known."""
        return baselines(self.verdict, self.reasons, self.compared)

    def to_result(self) -> result.WindowResult:
        """The message as a value."""
        return regressor_message.to_result(self, __version__)

    def to_json(self) -> bytes:
        """The message as deterministic bytes."""
        return result.encode(self.to_result())


def assess_regression(
    window: Window,
    reference: RelationReference,
    level: float = VERDICT_LEVEL,
    *,
    by: AdaptBy = "bic",
    sketches: bool = True,
) -> RegressionAssessment:
    """Assess a window. `level` is the chance of any verdict but `stable` for a window without a shift.

    `by` says how the relation of now is estimated where it changed, `sketches` whether small sketches of the
    distributions belong to the answer.
    """
    remarks = reference.remarks(window)
    window = reference.matched(window)
    usable = _usable(window, reference)
    kept = window if usable.all() else window.take(usable)
    family = level / 2
    enough = kept.events >= MINIMUM_EVENTS
    compared = _compared(kept, reference) if enough else None
    moved = () if compared is None else _moves(compared, family)
    elsewhere = tuple(j - len(moved) for j, move in enumerate(moved) if move.moved)
    like_holdout = partial(_like_holdout, reference, elsewhere) if elsewhere else None
    relation = relation_found(evidence_of(kept), reference, family, by, like_holdout)
    explained = _explanations(kept, reference, moved, family)
    tests = _tests(moved, relation, family, kept.events)
    verdict = decide_regression(RegressionEvidence(relation.changed, enough, bool(elsewhere), relation.errors.grown))
    unusable = int((~usable).sum())
    words = wording.reasons(
        verdict, moved, explained, relation, inputs=reference.input_names, events=kept.events, unusable=unusable
    )
    shifts = {move.name: FeatureShift(move, explained.get(j)) for j, move in enumerate(moved[:-1])}
    key = kept.key
    validity = Validity(key.stream, key.segment, key.id, key.start, key.end, reference.version)
    assessment = RegressionAssessment(
        key=key,
        closed_because=kept.closed_because,
        origin=kept.origin,
        events=kept.events,
        counts=kept.counts,
        unusable=unusable,
        missing_values=0 if kept.features is None else int(np.isnan(kept.features).sum()),
        verdict=verdict,
        reasons=(*remarks, *words),
        tests=tests,
        features=shifts,
        prediction=FeatureShift(moved[-1], explained.get(len(moved) - 1)) if moved else None,
        relation=relation,
        recalibration=implied(relation, reference, validity),
        reference_version=reference.version,
        quality=_quality(kept, compared, moved),
        sketches=_sketches(compared, moved) if compared is not None and sketches else None,
    )
    return as_far_as_seen(assessment)


def _usable(window: Window, reference: RelationReference) -> Flags:
    """Rows with a prediction."""
    if window.predictions is None:
        raise InputError("window: want predictions, got none")
    columns = len(reference.features)
    if window.features is not None and columns and window.features.shape[1] != columns:
        raise InputError(f"features: want {columns} columns, got {window.features.shape[1]}")
    return np.isfinite(window.predictions)


@lru_cache(maxsize=REFERENCES_READY)
def _written(reference: RelationReference) -> tuple[WrittenColumn | None, ...]:
    """How the features and last the predictions are written: worked out once while the reference lives."""
    return features_written((*reference.features, reference.prediction))


@lru_cache(maxsize=REFERENCES_READY)
def _prepared(reference: RelationReference, resolutions: tuple[int, ...]) -> KnownColumns:
    """What is compared: the features, where events carry them, and last the predictions, at these resolutions."""
    profiles = (*reference.features, reference.prediction)[-len(resolutions) :]
    return KnownColumns.of([column_of(profile, at) for profile, at in zip(profiles, resolutions, strict=True)])


def _table(window: Window, reference: RelationReference) -> Matrix:
    """What is compared, as columns: the features, where events carry them, and last the predictions."""
    said = present(window.predictions, "predictions")[:, None]
    return said if window.features is None or not reference.features else np.hstack([window.features, said])


def _resolutions(window: Window, reference: RelationReference) -> tuple[int, ...]:
    """The resolutions at which the columns are compared."""
    table = _table(window, reference)
    return common_features(table, _written(reference)[-table.shape[1] :])


def _compared(window: Window, reference: RelationReference) -> SeenColumns:
    """The features, where events carry them, and last the predictions."""
    resolutions = _resolutions(window, reference)
    return seen_columns(_prepared(reference, resolutions), coarsened_table(_table(window, reference), resolutions))


def _like_holdout(reference: RelationReference, moved: tuple[int, ...], evidence: Window) -> Vector:
    """Weights under which labelled rows look like the hold-out's in these columns, counted from the predictions, -1."""
    table, known = _table(evidence, reference), (*reference.features, reference.prediction)
    columns = [j for j in moved if -j <= table.shape[1]]
    return balancing_weights([known[j] for j in columns], table[:, columns])


def _moves(seen: SeenColumns, level: float) -> tuple[Move, ...]:
    """Every feature and last the predictions, corrected for one another."""
    return moves.corrected(moves.compared(seen, ALL), level)


def _quality(window: Window, compared: SeenColumns | None, moved: tuple[Move, ...]) -> DataQuality:
    """Of the features: predictions are nobody else's data."""
    columns: list[ColumnQuality] = []
    if compared is not None and window.features is not None:
        columns = qualities(compared.known.each[:-1], compared.each[:-1], window.features)
    missing = int(np.isnan(window.features).sum()) if columns and window.features is not None else 0
    rejected = rejected_share(window.events, window.counts)
    return data_quality([move.name for move in moved[:-1]], columns, window.events, missing, rejected)


def _sketches(seen: SeenColumns, moved: tuple[Move, ...]) -> Sketches:
    names, far = [move.name for move in moved], [move.distance for move in moved]
    features, predictions = (
        SketchedColumns(names[part], seen.known.each[part], seen.each[part], far[part])
        for part in (slice(None, -1), slice(-1, None))
    )
    return sketched(features, predictions, ALL)


def _explanations(
    window: Window, reference: RelationReference, moved: tuple[Move, ...], level: float
) -> dict[int, Explanation]:
    """How each number that moved did."""
    explanations: dict[int, Explanation] = {}
    if not moved:
        return explanations
    ready = _prepared(reference, _resolutions(window, reference))
    for j, (column, move, values) in enumerate(zip(ready, moved, _table(window, reference).T, strict=True)):
        if isinstance(column, SortedColumn) and move.distribution_moved:
            explanations[j] = covariates.explain(
                column.exact, values, column.weights(ALL), level=level, floor=DISTANCE_FLOOR
            )
    return explanations


def _tests(moved: tuple[Move, ...], found: RelationFound, level: float, events: int) -> dict[str, Test]:
    """Every test with its statistic, p-value, effect size, threshold and n."""
    tests = {}
    if moved:
        *features, said = moved
        meaning = "the predictions against the reference's"
        tests["prediction"] = Test(
            said.statistic, said.adjusted_p, said.distance, level, DISTANCE_FLOOR, events, said.moved, meaning
        )
        if features:
            tests["features"] = of_moves(tuple(features), level, events)
    errors = found.errors
    if errors.error is not None and errors.p_value is not None and errors.usual > 0:
        growth, meaning = errors.error / errors.usual - 1, "the predictions' squared errors against the reference's"
        tests["error"] = Test(
            growth, errors.p_value, growth, errors.level, ERROR_GROWTH - 1, found.labels, errors.grown, meaning
        )
    if found.tested:
        test, meaning = (
            found.test,
            "likelihood ratio of the most telling link against an unchanged relation, in nats a label",
        )
        tests["relation"] = Test(
            test.statistic, found.p_value, test.effect, level, RELATION_FLOOR, found.labels, found.changed, meaning
        )
    return tests
