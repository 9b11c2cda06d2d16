"""Decision trees and forests whose thresholds follow each deployment context (Al-Otaibi et al., 2015).

    tree = VersatileTreeClassifier(max_depth=6).fit(X, y)
    adapted = tree.adapt(X_window)                  # frozen; the tree itself stays as it was
    adapted.predict(X_window)
    adapted.record.attributes[0].reason             # "window = 1.31 x reference + 4.2"

Fitting, parameters and prediction are scikit-learn's own; what is added is the memory that an adaptation needs.

Where the raw window is not at hand, `adapt_from` takes a monitor's explanations or the corrections of its feed. Where
the model is not at hand, as in the monitor itself, `outline` says what its thresholds follow from, and `to_message`
and `with_thresholds` carry the adapted thresholds to any copy of the same fitted model.

Class posteriors in the leaves stay those of the training mix, also when `priors` are given: `priors` only say how many
rows a node should expect (eq 7). Correct posteriors with `monitor.priors.bayes.correct` or the feed's multipliers,
once.
"""
# ruff: noqa: N803 - X and y are scikit-learn's names

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import ClassifierTags, Tags, TargetTags, check_array
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from monitor.arrays import Flags, Matrix, Vector, frozen_vector
from monitor.errors import InputError
from monitor.shifts.adaptation import (
    Correction,
    Policy,
    Strategy,
    Training,
    TreeAdaptation,
    choose,
    directions_from_labels,
    kept,
    matched_mix,
    parse_choices,
    remember,
    rules_from,
)
from monitor.shifts.covariates import Direction
from monitor.shifts.nodes import LEAF, Columns, Rule, SplitCounts, Tree, adapted_thresholds, rebuilt, split_counts
from monitor.shifts.outline import Outline, node_numbers, thresholds_message, tree_outline, understood
from monitor.tolerances import ATTRIBUTE_LEVEL


@dataclass(frozen=True, slots=True, eq=False)
class AdaptedThresholds:
    """The thresholds of one tree in a deployment; where `swapped`, the children of a node changed places."""

    thresholds: Vector
    swapped: Flags


@dataclass(frozen=True, slots=True, eq=False)
class AdaptedModel:
    """A tree, or a forest, with thresholds for one deployment, and the record of what was chosen and why."""

    classes: NDArray[Any]
    record: TreeAdaptation
    original: tuple[Vector, ...]
    adapted: tuple[AdaptedThresholds, ...]
    fingerprint: str
    trees: tuple[Tree, ...]

    def predict_proba(self, X: ArrayLike) -> Matrix:
        """Class posteriors, those of the training mix, in the order of `classes`."""
        columns = check_array(X, dtype=np.float32, ensure_all_finite="allow-nan")
        if columns.shape[1] != self.trees[0].n_features:
            raise InputError(f"X: want {self.trees[0].n_features} features, got {columns.shape[1]}")
        total = self.trees[0].predict(columns)
        for tree in self.trees[1:]:
            total += tree.predict(columns)
        return np.asarray(total / len(self.trees) if len(self.trees) > 1 else total, dtype=np.float64)

    @property
    def classes_(self) -> NDArray[Any]:
        """The same under scikit-learn's name, for its metrics and pipelines."""
        return self.classes

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Nothing: it is adapted already. A Pipeline asks that its last step has it."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        return Tags("classifier", TargetTags(required=True), classifier_tags=ClassifierTags(multi_label=False))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest class of each row."""
        return np.asarray(self.classes[np.argmax(self.predict_proba(X), axis=1)])

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """The share of rows that are told right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def to_message(self) -> dict[str, Any]:
        """What changed, as JSON (see `outline.thresholds_message`): `with_thresholds` gives this model back."""
        moved = [
            (np.arange(before.size), before, after.thresholds, after.swapped)
            for before, after in zip(self.original, self.adapted, strict=True)
        ]
        return thresholds_message(self.fingerprint, self.record, moved)


class _Versatile:
    """What a fitted tree and a fitted forest have in common: their memory of the training data, and adapting."""

    classes_: NDArray[Any]

    def _remember(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        columns = validate_data(self, X, reset=False, dtype=np.float32, ensure_all_finite="allow-nan", order="F")
        classes = np.searchsorted(self.classes_, np.asarray(y))
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        given = np.ones(classes.size) if weights is None else weights
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(columns.shape[1])])
        # All training rows go down every tree, not each tree's own bootstrap sample: so will the deployment's.
        self.training_: Training = remember(columns, classes, weights, [str(n) for n in names], self.classes_.size)
        self.split_counts_: tuple[SplitCounts, ...] = tuple(
            split_counts(tree, columns, classes, given, self.classes_.size) for tree in self._fitted_trees()
        )

    def _fitted_trees(self) -> tuple[Tree, ...]:
        raise NotImplementedError

    def adapt(
        self,
        X_deploy: ArrayLike,
        priors: ArrayLike | None = None,
        *,
        labelled: tuple[ArrayLike, ArrayLike] | None = None,
        strategy: Strategy = "versatile",
        level: float = ATTRIBUTE_LEVEL,
        correction: Correction = "holm",
        exclude: Collection[str | int] = (),
    ) -> AdaptedModel:
        """Thresholds for a deployment context from its unlabelled rows (Algorithm 1).

        `priors` is the deployment's class mix in the order of `classes_`. `labelled` (X, y) are deployment rows with
        known classes, if there are any: without `priors` they say what the mix is (section 3.2), and they tell which
        attributes run the other way round, which rows without labels rarely can (see `covariates`). Where the tree as
        it was fitted does better on them, it is kept, and the record says so. Without either an unchanged mix is
        taken for granted, and a changed one passes for a shift of the attributes: estimate it first
        (`monitor.priors`). `exclude` names attributes (or their columns) that no unit can have changed, such as a
        category in order: their thresholds stay. `strategy` is the versatile model or one of the paper's single ones,
        with the test at `level`, corrected across attributes as `correction` says (the paper: "none"); "strict" is the
        versatile model without its last resort: an attribute that moved along no line and no curve stays, too, and so
        does one that a change of the class mix explains, which is estimated where neither priors nor labels tell it.

        Percentiles are those of `X_deploy`: predict other rows with the result only if they come from the same context.
        """
        policy = Policy(strategy, level, correction)
        columns = self._columns(X_deploy)
        directions: Sequence[Direction | None] = [None] * columns.shape[1]
        if labelled is not None:
            known, classes = self._columns(labelled[0]), self._class_numbers(labelled[1])
            directions = directions_from_labels(self.training_, known, classes)
            priors = self._labelled_mix(classes) if priors is None else priors
        elif strategy == "strict" and priors is None:
            priors = matched_mix(self.training_, columns, level)
        ratios = self._ratios(priors)
        rules, choices = choose(self.training_, columns, ratios, directions, policy, excluded=self._numbers(exclude))
        target = None if priors is None else tuple(float(p) for p in np.asarray(priors))
        record = TreeAdaptation(strategy, level, correction, columns.shape[0], target, choices)
        ratios = np.ones(self.training_.priors.size) if ratios is None else ratios
        adapted = self._adapted(rules, record, columns, ratios)
        if labelled is None:
            return adapted
        as_fitted = self._adapted(*kept(record, "the tree as it was fitted does better on the labels"), columns, ratios)
        return adapted if adapted.score(*labelled) >= as_fitted.score(*labelled) else as_fitted

    def adapt_from(self, features: Mapping[str, Any]) -> AdaptedModel:
        """Thresholds for a deployment that a monitor has seen: `assessment.features`, or a feed's `inputs`, by name.

        Each value may be an `Explanation`, its `correction`, a window's `FeatureShift`, or the feed's input correction
        as an object or as JSON. Features that are not named keep their thresholds.
        """
        check_is_fitted(self)
        rules, choices = rules_from(self.training_.names, features)
        record = TreeAdaptation("told", 0.0, "none", 0, None, choices)
        return self._adapted(rules, record, None, np.ones(self.training_.priors.size))

    def outline(self) -> Outline:
        """The decisions of the fitted model, for a monitor that adapts its thresholds without having it."""
        check_is_fitted(self)
        trees = tuple(map(tree_outline, self._fitted_trees(), self.split_counts_))
        priors = frozen_vector(self.training_.priors, "priors")
        return Outline(self._fingerprint(), self.training_.names, tuple(map(str, self.classes_)), priors, trees)

    def with_thresholds(self, message: Mapping[str, Any]) -> AdaptedModel:
        """The adapted model that a message of `AdaptedModel.to_message` or `outline.follow` describes.

        Refuses the message of another model, and one that names what is no decision of this one.
        """
        check_is_fitted(self)
        with understood("thresholds"):
            read = self._read(message)
        return self._assembled(*read)

    def _read(self, message: Mapping[str, Any]) -> tuple[TreeAdaptation, list[tuple[Vector, Flags]]]:
        trees, fingerprint = self._fitted_trees(), self._fingerprint()
        if message["model"] != fingerprint or len(message["trees"]) != len(trees):
            raise InputError(f"thresholds: want those of model {fingerprint[:12]}, got {str(message['model'])[:12]}")
        adapted = []
        for tree, moved in zip(trees, message["trees"], strict=True):
            nodes, turned = node_numbers(moved["nodes"], "nodes"), node_numbers(moved["swapped"], "swapped")
            moved_to = frozen_vector(moved["thresholds"], "thresholds", nodes.size)
            inner = np.flatnonzero(tree.children_left != LEAF)
            if not (np.isin(nodes, inner).all() and np.isin(turned, inner).all() and np.isfinite(moved_to).all()):
                raise InputError("thresholds: want finite ones, of nodes that are decisions of the model")
            thresholds, swapped = tree.threshold.copy(), np.zeros(tree.node_count, dtype=bool)
            thresholds[nodes] = moved_to
            swapped[turned] = True
            adapted.append((thresholds, swapped))
        kept = dict(message["record"])
        priors = None if kept["priors"] is None else tuple(kept["priors"])
        record = TreeAdaptation(**{**kept, "priors": priors, "attributes": parse_choices(kept["attributes"])})
        return record, adapted

    def _adapted(
        self, rules: tuple[Rule, ...], record: TreeAdaptation, columns: Columns | None, ratios: Vector
    ) -> AdaptedModel:
        thresholds = [
            adapted_thresholds(tree, rules, counts.left_share(ratios), columns)
            for tree, counts in zip(self._fitted_trees(), self.split_counts_, strict=True)
        ]
        return self._assembled(record, thresholds)

    def _assembled(self, record: TreeAdaptation, thresholds: Sequence[tuple[Vector, Flags]]) -> AdaptedModel:
        trees = self._fitted_trees()
        for _, swapped in thresholds:
            swapped.flags.writeable = False
        return AdaptedModel(
            classes=self.classes_,
            record=record,
            original=tuple(frozen_vector(tree.threshold, "thresholds") for tree in trees),
            adapted=tuple(
                AdaptedThresholds(frozen_vector(moved, "thresholds"), swapped) for moved, swapped in thresholds
            ),
            fingerprint=self._fingerprint(),
            trees=tuple(rebuilt(tree, *moved) for tree, moved in zip(trees, thresholds, strict=True)),
        )

    def _columns(self, X: ArrayLike) -> Columns:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float32, ensure_all_finite="allow-nan", order="F")  # type: ignore[no-any-return]

    def _ratios(self, priors: ArrayLike | None) -> Vector | None:
        if priors is None:
            return None
        target = np.asarray(priors, dtype=np.float64)
        source = self.training_.priors
        if target.shape != source.shape or not (np.all(target >= 0) and np.isclose(target.sum(), 1)):
            raise InputError(f"priors: want {source.size} shares that sum to 1, got {priors!r}")
        return np.asarray(np.divide(target, source, out=np.zeros(source.size), where=source > 0))

    def _labelled_mix(self, classes: NDArray[np.int64]) -> Vector:
        """Shares of the classes among labelled rows; as few labels say little, one event of the training mix beside."""
        source = self.training_.priors
        counts = np.bincount(classes, minlength=source.size) + source
        return np.asarray(counts / counts.sum())

    def _numbers(self, attributes: Collection[str | int]) -> frozenset[int]:
        """The columns of attributes that are named or numbered."""
        names = self.training_.names
        numbers = [names.index(a) if a in names else a for a in attributes]
        strangers = [a for a in numbers if not isinstance(a, int) or not 0 <= a < len(names)]
        if strangers:
            raise InputError(f"exclude: want attributes out of {list(names)}, got {strangers}")
        return frozenset(number for number in numbers if isinstance(number, int))

    def _class_numbers(self, y: ArrayLike) -> NDArray[np.int64]:
        labels = np.asarray(y)
        numbers = np.minimum(np.searchsorted(self.classes_, labels), self.classes_.size - 1)
        if not np.array_equal(self.classes_[numbers], labels):
            raise InputError(f"labelled: want classes out of {list(self.classes_)}")
        return numbers.astype(np.int64)

    def _fingerprint(self) -> str:
        digest = hashlib.sha256()
        for tree in self._fitted_trees():
            for part in (tree.children_left, tree.children_right, tree.feature, tree.threshold, tree.value):
                digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


def adapt(
    model: Any, X_deploy: ArrayLike, *, labelled: tuple[ArrayLike, ArrayLike] | None = None, **options: Any
) -> Any:
    """`model.adapt`, also where the versatile model is the last step of a fitted Pipeline.

    Then the rows go through the steps before it, and the answer is a Pipeline that ends in the adapted model. An
    attribute is then a column that those steps make, and `exclude` names it so.
    """
    if not isinstance(model, Pipeline):
        return model.adapt(X_deploy, labelled=labelled, **options)
    before, (name, last) = model[:-1], model.steps[-1]
    known = None if labelled is None else (before.transform(labelled[0]), labelled[1])
    adapted = last.adapt(before.transform(X_deploy), labelled=known, **options)
    return Pipeline([*before.steps, (name, adapted)])


class VersatileTreeClassifier(_Versatile, DecisionTreeClassifier):  # type: ignore[misc]
    """scikit-learn's `DecisionTreeClassifier`, whose thresholds can follow a deployment context."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit as scikit-learn's tree, and keep what an adaptation needs of the training data."""
        _refuse_sparse(X)
        y = column_or_1d(y, warn=True)
        super().fit(X, y, sample_weight=sample_weight)
        self._remember(X, y, sample_weight)
        return self

    def _fitted_trees(self) -> tuple[Tree, ...]:
        return (self.tree_,)

    def __sklearn_tags__(self) -> Any:
        return _single_dense_output(super().__sklearn_tags__())


class VersatileForestClassifier(_Versatile, RandomForestClassifier):  # type: ignore[misc]
    """scikit-learn's `RandomForestClassifier`, whose thresholds can follow a deployment context."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit as scikit-learn's forest, and keep what an adaptation needs of the training data."""
        _refuse_sparse(X)
        y = column_or_1d(y, warn=True)
        super().fit(X, y, sample_weight=sample_weight)
        self._remember(X, y, sample_weight)
        return self

    def _fitted_trees(self) -> tuple[Tree, ...]:
        return tuple(tree.tree_ for tree in self.estimators_)

    def __sklearn_tags__(self) -> Any:
        return _single_dense_output(super().__sklearn_tags__())


def _refuse_sparse(X: ArrayLike) -> None:
    if issparse(X):
        raise TypeError("X: want a dense matrix (percentiles need every value), got a sparse one; use X.toarray()")


def _single_dense_output(tags: Any) -> Any:
    tags.input_tags.sparse = False
    tags.target_tags.multi_output = False
    tags.classifier_tags.multi_label = False
    return tags
