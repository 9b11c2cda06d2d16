"""A window and a reference made comparable: both written at the resolution that they have in common.

Everything that holds a window against a reference goes through here, so that distances, matches, likelihoods and
novelty all see the same values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.calibration import Sharpness, sharpened
from monitor.limits import REFERENCES_READY
from monitor.priors import HoldOut
from monitor.shifts.blocks import Blocks
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.resolution import EXACT, Resolution, WrittenColumn, coarsened_table, written, written_finer
from monitor.shifts.rounded_scores import ByCell, RoundedScores, cells_at, rounded_scores
from monitor.shifts.written_margins import WrittenMargins, written_margins
from monitor.tolerances import SHARED_SCORE
from monitor.windows import Window


class ShiftReference(Protocol):
    """The parts of a reference that the tests use."""

    def __hash__(self) -> int: ...

    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def source_priors(self) -> Vector: ...
    @property
    def class_counts(self) -> Vector: ...
    @property
    def features(self) -> tuple[FeatureProfile, ...]: ...
    @property
    def sample(self) -> HoldOut: ...
    @property
    def raw(self) -> Matrix:
        """The sample's posteriors, or margins, before calibration."""
        ...

    @property
    def margins(self) -> bool:
        """Whether these are margins."""
        ...

    @property
    def blocks(self) -> Blocks | None: ...
    @property
    def calendar(self) -> tuple[int, ...]:
        """The features that tell when an event was and not what: they are in no test."""
        ...

    @property
    def ignored(self) -> tuple[int, ...]:
        """Others that are in no test, though the blocks' own map has them."""
        ...

    def calibrated(self, posteriors: Matrix) -> Matrix: ...


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceWritten:
    """How the scores and features of a reference are written."""

    scores: RoundedScores | WrittenMargins
    features: tuple[WrittenColumn | None, ...]
    """None for a category, which is its number."""

    @property
    def base(self) -> Resolution:
        """The resolution at which a reference stays what it is."""
        return Resolution(self.scores.own, tuple(EXACT if f is None else f.base for f in self.features))


@lru_cache(maxsize=REFERENCES_READY)
def reference_written(reference: ShiftReference) -> ReferenceWritten:
    """Worked out once while the reference lives."""
    scores = written_margins(reference.raw) if reference.margins else rounded_scores(reference.raw)
    return ReferenceWritten(scores, features_written(reference.features))


def features_written(profiles: Sequence[FeatureProfile]) -> tuple[WrittenColumn | None, ...]:
    """How each numeric feature is written."""
    return tuple(written(p.values) if p.feature.kind == "number" else None for p in profiles)


def common_resolution(window: Window, reference: ShiftReference) -> Resolution:
    """The resolution at which a window, its posteriors as the model says them, is compared with the reference."""
    known = reference_written(reference)
    return Resolution(known.scores.common(window.posteriors), common_features(window.features, known.features))


def common_features(table: Matrix | None, known: tuple[WrittenColumn | None, ...]) -> tuple[int, ...]:
    """The resolution of each feature; without a table, the reference's own."""
    if table is None or not known:
        return tuple(EXACT if one is None else one.base for one in known)
    finer = written_finer(table, known)
    return tuple(
        EXACT if one is None else one.base if finer[j] else one.common(table[:, j]) for j, one in enumerate(known)
    )


def comparable_posteriors(posteriors: Matrix, reference: ShiftReference, resolution: Resolution) -> Matrix:
    """Calibrated posteriors of scores at a resolution, of either side.

    Where that is coarser than the reference's own, the posterior of a class is multiplied by what it is worth to the
    reference's events whose score of the class is written alike: a calibration may tell apart what a score of 1.000
    says of 1 - 1e-4 and 1 - 1e-9, and the calibrated mean is not the mean of the calibrated. Of several classes that
    mends each by itself: `Sharpness` mends what they say together.
    """
    scores = reference_written(reference).scores
    if reference.margins or resolution.scores >= scores.own:
        return reference.calibrated(scores.at(posteriors, resolution.scores))
    worth = _worth_of(posteriors, reference, resolution.scores)
    return worth if worth.shape[1] == 2 else _sharpness(reference, resolution.scores)(worth)


def _worth_of(posteriors: Matrix, reference: ShiftReference, resolution: int) -> Matrix:
    coarse = reference.calibrated(reference_written(reference).scores.at(posteriors, resolution))
    factors = _worth(reference, resolution).at(cells_at(posteriors, resolution).T, 1.0)
    worth = coarse * np.ascontiguousarray(factors.T)
    return np.asarray(worth / worth.sum(axis=1, keepdims=True))


@lru_cache(maxsize=REFERENCES_READY)
def _sharpness(reference: ShiftReference, resolution: int) -> Sharpness:
    """Of what the reference's own scores are worth at the resolution, to what they say."""
    return sharpened(_worth_of(reference.raw, reference, resolution), reference.calibrated(reference.raw))


@lru_cache(maxsize=REFERENCES_READY)
def _worth(reference: ShiftReference, resolution: int) -> ByCell:
    """Of each class: calibrated posteriors as they are / those at the resolution, of events that are written alike."""
    exact = reference.calibrated(reference.raw)
    coarse = reference.calibrated(reference_written(reference).scores.at(reference.raw, resolution))
    return ByCell.ratios(cells_at(reference.raw, resolution).T, exact.T, coarse.T, SHARED_SCORE)


def comparable_sample(reference: ShiftReference, resolution: Resolution) -> HoldOut:
    """The reference's sample at a resolution."""
    return comparable(replace(reference.sample, posteriors=reference.raw), reference, resolution)


def comparable(rows: HoldOut, reference: ShiftReference, resolution: Resolution) -> HoldOut:
    """Hold-out rows, their posteriors as the model says them, at a resolution."""
    features = None if rows.features is None else coarsened_table(rows.features, resolution.features)
    return replace(rows, posteriors=comparable_posteriors(rows.posteriors, reference, resolution), features=features)
