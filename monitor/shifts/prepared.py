"""What the tests need of a reference, worked out once and kept while the reference lives.

Everything here follows from the reference alone; a window only looks things up: its columns, the class means and
covariances of its feature map (`feature_map`, `moments`), and where its classes lie (`novelty`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector, present
from monitor.limits import MAPPED_READY, RARELY_READY, REFERENCES_READY
from monitor.priors import HoldOut
from monitor.shifts import feature_map, novelty
from monitor.shifts.blocks import Blocks, BlockSums
from monitor.shifts.columns import KnownColumns, SortedColumn, column_of
from monitor.shifts.comparable import ShiftReference, comparable_sample, reference_written
from monitor.shifts.moments import CoordinateBlock, Moments, moments_of
from monitor.shifts.novelty import Landscape
from monitor.shifts.projections import Projections, fitted
from monitor.shifts.resolution import SINGLE, Resolution
from monitor.shifts.seasonal_columns import SeasonalColumns, UsualColumns, usual_columns
from monitor.shifts.unusual_values import unusual_shares
from monitor.tolerances import FEWEST_BLOCKS


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A reference, ready for windows."""

    source_priors: Vector
    class_counts: Vector
    """Rows of each class in the sample."""
    posteriors: KnownColumns
    features: KnownColumns
    """In the schema's order."""
    resolution: Resolution
    """At which all of this is."""
    blocks: tuple[CoordinateBlock, ...]
    projections: Projections | None
    moments: Moments
    landscape: Landscape | None
    sample: HoldOut
    """The reference's rows."""
    standardised: NDArray[np.float32] | None
    unusual: Mapping[int, Vector]
    """Of numbers that are nearly all the same the share of other values, by class (`unusual_values`)."""
    untested: tuple[int, ...]
    """Features that are in no test."""
    hold_out: Blocks | None
    """The hold-out in time order; None where it was not cut into blocks enough."""
    seasonal: "Prepared | None" = None
    """The same for windows whose inputs are held against the same time of their season."""

    def feature_name(self, number: int) -> str:
        """The name of a column of the features."""
        return self.features.names[number]

    def usual_features(self, when: Vector | None) -> UsualColumns | None:
        """What is usual of the features at a time of their season; None where they follow none."""
        known, held = self.moments.usual(when), self._seasonal
        if known is None or held is None or when is None:
            return None
        return usual_columns(self.features, when @ held.gaps, when @ held.missing_gaps, known)

    def usual_scores(self, when: Vector | None) -> UsualColumns | None:
        """The same of the posteriors."""
        known, held = self.moments.usual(when), self._seasonal
        if known is None or held is None or when is None:
            return None
        return usual_columns(self.posteriors, when @ held.score_gaps, np.zeros(len(self.posteriors)), known)

    @property
    def _seasonal(self) -> SeasonalColumns | None:
        return None if self.hold_out is None else self.hold_out.seasonal


@lru_cache(maxsize=REFERENCES_READY)
def prepare(reference: ShiftReference, resolution: Resolution | None = None) -> Prepared:
    """Everything that windows will be held against; about a tenth of a second, once per reference and resolution."""
    if resolution is None:
        return prepare(reference, reference_written(reference).base)
    sample = comparable_sample(reference, resolution)
    cut = None if reference.blocks is None or reference.blocks.number < FEWEST_BLOCKS else reference.blocks
    classes = sample.posteriors.shape[1]
    counts = np.bincount(sample.labels, minlength=classes).astype(np.float64)
    features = KnownColumns.of(
        [column_of(profile, at) for profile, at in zip(reference.features, resolution.features, strict=True)]
    )
    posteriors = KnownColumns.of([_posterior(sample, y, counts) for y in range(classes)])
    chosen, projections = np.zeros(0, dtype=np.int64), None
    unusual: dict[int, Vector] = {}
    if sample.features is not None:
        rare = [feature_map.rare(column, sample.labels, classes) for column in sample.features.T]
        frequent = ~np.array(rare, dtype=np.bool_)
        frequent[[*reference.calendar, *reference.ignored]] = False
        chosen = feature_map.columns_in_map(features, sample.features, sample.labels, classes, frequent)
        projections = fitted(sample.features, reference.features, frequent)
        shares = {
            j: unusual_shares(sample.features[:, j], sample.labels, classes) for j in features.numbers_at.tolist()
        }
        unusual = {j: each for j, each in shares.items() if each is not None}
    parts, blocks = [], []
    start = 0
    for name, kind, index, part in feature_map.coordinates_of(sample, features, posteriors, projections, chosen):
        parts.append(part)
        blocks.append(CoordinateBlock(name, kind, index, slice(start, start + part.shape[1])))
        start += part.shape[1]
    mapped = np.concatenate(parts, axis=1)
    standardised = None
    if projections is not None and sample.features is not None:
        standardised = projections.standardised(sample.features)
    moments = moments_of(mapped, sample.labels, reference.source_priors, None if cut is None else cut.fold_of_sample)
    of_windows = Prepared(
        source_priors=reference.source_priors,
        class_counts=counts,
        posteriors=posteriors,
        features=features,
        resolution=resolution,
        blocks=tuple(blocks),
        projections=projections,
        moments=moments,
        landscape=None if standardised is None else novelty.landscape(standardised, sample.labels, classes),
        sample=sample,
        standardised=standardised,
        unusual=unusual,
        untested=(*reference.calendar, *reference.ignored),
        hold_out=None,
    )
    if cut is None:
        return of_windows

    def held_against(blocks: Blocks) -> Prepared:
        sums = _sums(blocks, mapped, sample.labels, reference)
        return replace(of_windows, moments=replace(moments, blocks=sums), hold_out=blocks)

    return replace(held_against(cut.at_any_time), seasonal=None if cut.seasonal is None else held_against(cut))


def at_time(reference: Prepared, start: int, end: int) -> Prepared:
    """By which a window of this time is compared."""
    seasonal = reference.seasonal
    held = None if seasonal is None else seasonal.hold_out
    return reference if seasonal is None or held is None or held.when(start, end) is None else seasonal


def _sums(cut: Blocks, mapped: Matrix, labels: Labels, reference: ShiftReference) -> BlockSums:
    """The blocks' own; of the sample's rows where the map is another one, because of columns that a stream leaves out
    or that no longer vary at a coarser resolution."""
    if not reference.ignored and cut.sums.shape[2] == mapped.shape[1]:
        return cut.mapped
    return BlockSums.reduced(mapped, labels, cut.of_sample, cut, reference.source_priors.size)


@lru_cache(maxsize=RARELY_READY)
def part(reference: Prepared, coordinates: tuple[int, ...]) -> Moments:
    """The moments of some of the map's coordinates, kept with what follows from them."""
    return reference.moments.at(np.array(coordinates, dtype=np.int64))


@lru_cache(maxsize=RARELY_READY)
def without(reference: Prepared, columns: frozenset[int]) -> tuple[Labels, Projections | None, Moments]:
    """What is left of features and cosines when some columns are not looked at, and its moments.

    The coordinates come first as positions in the full map (features), then all of the cosines, by these projections.
    """
    kept = [b for b in reference.blocks if b.kind == "feature" and b.index not in columns]
    at = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(b.at.start, b.at.stop) for b in kept)])
    rows, blind = _mapped_sample(reference)[:, at], None
    if reference.projections is not None and reference.standardised is not None:
        blind = reference.projections.without(columns)
        rows = np.concatenate([rows, blind(reference.standardised).astype(np.float64)], axis=1)
    return at, blind, _sampled_moments(rows, reference)


@lru_cache(maxsize=RARELY_READY)
def blind_landscape(reference: Prepared, column: int) -> tuple[Labels, Landscape] | None:
    """Where the classes lie without a feature, and the other features' positions among the standardised ones; None
    where there is no other."""
    others = np.flatnonzero(present(reference.projections, "projections").columns != column)
    if not others.size:
        return None
    rows = np.ascontiguousarray(present(reference.standardised, "standardised features")[:, others])
    return others, novelty.landscape(rows, reference.sample.labels, reference.class_counts.size)


def shares_inside(reference: Prepared, threshold: float) -> Vector:
    """The share of each class within a distance of the classes, with half an event more: none is quite outside."""
    counts = np.bincount(reference.sample.labels[_near(reference, threshold)], minlength=reference.class_counts.size)
    return np.asarray((counts + 0.5) / (reference.class_counts + 0.5))


def out_of_inside(priors: Vector, inside: Vector) -> Vector:
    """By what the share of each class among the events inside is multiplied, to be that among all."""
    return np.asarray(1.0 / (inside * float((priors / inside).sum())))


def _near(reference: Prepared, threshold: float) -> Flags:
    """The sample's rows within a distance of the classes, in the landscape of `novelty`."""
    return np.asarray(present(reference.landscape, "distances of the reference's rows").by_row <= threshold)


def inside(reference: Prepared, threshold: float, *, varied: bool) -> Moments:
    """The moments of the sample's rows within a distance of the classes, by blocks where these differ."""
    return _sampled_moments(_mapped_sample(reference), reference, _near(reference, threshold), varied=varied)


@lru_cache(maxsize=MAPPED_READY)
def _mapped_sample(reference: Prepared) -> Matrix:
    """The map of the reference's rows, before scaling: as large as all the rest, and rarely looked at."""
    return mapped_rows(reference.sample, reference)


def mapped_rows(rows: HoldOut, reference: Prepared) -> Matrix:
    """The map of other rows at the reference's resolution, before scaling."""
    chosen = np.array([block.index for block in reference.blocks if block.kind == "feature"], dtype=np.int64)
    parts = feature_map.coordinates_of(rows, reference.features, reference.posteriors, reference.projections, chosen)
    return np.concatenate([part for *_, part in parts], axis=1)


def _sampled_moments(rows: Matrix, reference: Prepared, picked: Flags | None = None, *, varied: bool = True) -> Moments:
    """The moments of the mapped rows of the sample, or of some of them."""
    classes, held = reference.class_counts.size, reference.hold_out
    labels = reference.sample.labels if picked is None else np.where(picked, reference.sample.labels, -1)
    if held is None or not (varied or held.seasonal is not None):
        return moments_of(rows, labels, reference.source_priors)
    moments = moments_of(rows, labels, reference.source_priors, held.fold_of_sample)
    some = labels >= 0
    blocks = BlockSums.reduced(rows[some], labels[some], held.of_sample[some], held, classes)
    return replace(moments, blocks=blocks)


def _posterior(sample: HoldOut, y: int, counts: Vector) -> SortedColumn:
    # Calibrated by sums whose last bits depend on how many events there are: compared in single precision.
    order = np.argsort(sample.posteriors[:, y], kind="stable")
    values = np.ascontiguousarray(sample.posteriors[order, y])
    labels, missing = sample.labels[order], np.zeros(counts.size)
    return SortedColumn.of(f"posterior {y}", values, labels, counts, missing, resolution=SINGLE)
