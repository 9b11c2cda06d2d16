"""What one feature looked like, class by class: all that a window's column is compared with.

Since values are kept with their class, the reference can be looked at under any class mix: `weights` gives each
kept value the weight it has when the classes have given priors, so that a pure prior shift moves no feature.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector, frozen_labels
from monitor.limits import VALUES_KEPT, VALUES_KEPT_IN_ALL
from monitor.ports.schema import Feature


@dataclass(frozen=True, slots=True, eq=False)
class FeatureProfile:
    """One feature of the hold-out events. Numbers keep sorted values; categories and booleans keep counts."""

    feature: Feature
    values: Vector
    """Ascending, without missing values; empty unless the feature is a number."""
    labels: Labels
    """The class of each value."""
    class_counts: Vector
    """Events of each class that have a value: more than the class's kept values when the profile is reduced."""
    missing: Vector
    """Share of each class's events that have no value."""
    counts: Matrix
    """(classes, categories + 1), the last column for values outside the list; no columns for a number."""
    error: float
    """Largest error of any class's distribution function: 0 when every value was kept. Where rows were sampled before,
    the sampling error is in it, at 95 % confidence."""

    def weights(self, priors: Vector) -> Vector:
        """The weight of each value when the classes have these priors; they sum to 1.

        Priors are those of all events: a class with more missing values weighs less among the values.
        """
        present = np.bincount(self.labels, minlength=priors.size)
        mass = np.where(present > 0, priors * (1.0 - self.missing), 0.0)
        per_value = mass / np.maximum(present, 1)
        total = float(mass.sum())
        return np.asarray(per_value[self.labels] / total) if total > 0 else np.full(self.labels.size, np.nan)

    def described(self) -> dict[str, Any]:
        """What a file's header says of it."""
        feature = self.feature
        return {
            "name": feature.name,
            "kind": feature.kind,
            "categories": list(feature.categories),
            "error": self.error,
        }

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The plain arrays that a reference artefact holds; `from_arrays` is the way back."""
        return {
            "values": self.values,
            "labels": compact(self.labels),
            "class_counts": self.class_counts,
            "missing": self.missing,
            "counts": self.counts,
        }

    @classmethod
    def from_arrays(cls, feature: Feature, error: float, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The profile that `to_arrays` wrote; KeyError if one is missing."""
        return cls(
            feature,
            arrays["values"],
            frozen_labels(arrays["labels"], "labels"),
            arrays["class_counts"],
            arrays["missing"],
            arrays["counts"],
            error,
        )


def compact(labels: Labels) -> NDArray[Any]:
    """Class numbers in the smallest type that holds them: a byte instead of eight on disk."""
    return labels.astype(np.min_scalar_type(int(labels.max(initial=0))))


def values_kept(features: int) -> int:
    """How many values each numeric feature may keep."""
    return min(VALUES_KEPT, VALUES_KEPT_IN_ALL // max(1, features))


def profile_of(
    feature: Feature,
    column: Vector,
    labels: Labels,
    classes: int,
    *,
    keep: int = VALUES_KEPT,
    sampled_from: Vector | None = None,
) -> FeatureProfile:
    """Reduce one column of labelled events, which may be a sample: of so many events of each class."""
    events = np.bincount(labels, minlength=classes)
    has_value = ~np.isnan(column)
    values, of_class = column[has_value], labels[has_value]
    class_counts = np.bincount(of_class, minlength=classes)
    missing = 1.0 - class_counts / np.maximum(events, 1)
    if feature.kind == "number":
        kept, kept_labels, error = _quantiles(values, of_class, class_counts, keep)
        if sampled_from is not None:
            error += _sampling_error(events, sampled_from)
        counts = np.zeros((classes, 0))
    else:
        kept, kept_labels, error = np.zeros(0), np.zeros(0, dtype=np.int64), 0.0
        cells = len(feature.categories) + 1
        codes = np.minimum(values, cells - 1).astype(np.int64)
        flat = np.bincount(of_class * cells + codes, minlength=classes * cells)
        counts = flat.reshape(classes, cells).astype(np.float64)
    return FeatureProfile(feature, kept, kept_labels, class_counts.astype(np.float64), missing, counts, error)


def _quantiles(values: Vector, labels: Labels, counts: Labels, keep: int) -> tuple[Vector, Labels, float]:
    """Each class's values, or k of its n at the ranks nearest to (i + 1/2) n / k; then the classes merged.

    The distribution function of k such values is off by at most 1/(2k) + 1/n, whatever n: the kept values are
    shared out evenly, and small classes, which need fewer than their share, are kept whole.
    """
    order = np.lexsort((values, labels))
    values, labels = values[order], labels[order]
    shares = _even_shares(counts, keep)
    starts = np.cumsum(counts) - counts
    rows = [start + _ranks(int(n), int(k)) for start, n, k in zip(starts, counts, shares, strict=True)]
    picked = np.concatenate(rows)
    picked = picked[np.argsort(values[picked], kind="stable")]
    errors = [0.5 / k + 1.0 / n for n, k in zip(counts, shares, strict=True) if k < n]
    return values[picked], labels[picked], float(max(errors, default=0.0))


def _sampling_error(rows: Labels, sampled_from: Vector) -> float:
    """The largest distance, at 95 %, of a class's sample to all its events (the inequality of Massart, 1990)."""
    sampled = rows[(rows > 0) & (rows < sampled_from)]
    return float(np.sqrt(np.log(2 / 0.05) / (2 * sampled.min()))) if sampled.size else 0.0


def _ranks(n: int, k: int) -> Labels:
    return ((np.arange(k) * 2 + 1) * n // (2 * k)) if 0 < k < n else np.arange(n)


def _even_shares(counts: Labels, keep: int) -> Labels:
    """Even shares of `keep`; what small classes leave over goes to the larger ones."""
    shares = np.zeros_like(counts)
    left = keep
    for position, c in enumerate(np.argsort(counts, kind="stable")):
        shares[c] = min(int(counts[c]), left // (counts.size - position))
        left -= int(shares[c])
    return shares
