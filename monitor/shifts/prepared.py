"""What the tests need of a reference, worked out once and kept while the reference lives.

Everything here follows from the reference alone; a window only looks things up. The feature map
turns an event into numbers whose means are compared: per column the first two Legendre polynomials of its rank in the
reference, the posteriors themselves, shares of categories, and cosines of random projections of all numeric
features together, which see what no single column shows.

Notation. Phi(x) the map; mu_y = E[Phi | y] (rows of `means`); S_y = Cov[Phi | y] (`within`); n_y rows of class y.
Every coordinate is divided by its pooled within-class standard deviation.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector, present
from monitor.limits import CATEGORIES_IN_MAP, COLUMNS_IN_MAP
from monitor.priors import HoldOut
from monitor.shifts import ks, novelty
from monitor.shifts import ranks as placing
from monitor.shifts.blocks import Blocks, BlockSums
from monitor.shifts.comparable import ShiftReference, comparable_sample, reference_written
from monitor.shifts.moments import CoordinateBlock, Moments, moments_of
from monitor.shifts.novelty import Landscape
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.projections import Projections, fitted
from monitor.shifts.ranks import PlacedValues, Places
from monitor.shifts.resolution import EXACT, SINGLE, Resolution, coarsened
from monitor.tolerances import (
    CLASSES_RANKED,
    FEWEST_BLOCKS,
    RARE_SHARE,
)


@dataclass(frozen=True, slots=True, eq=False)
class SortedColumn:
    """One sorted numeric column of the reference, a feature or a posterior, with the class of each value."""

    name: str
    values: Vector
    """At the resolution that a window is compared at,"""
    exact: Vector
    """and as they came."""
    labels: Labels
    places: Places
    class_counts: Vector
    """Events of each class that have a value."""
    missing: Vector
    """Share of each class's events without one."""
    per_kept: Vector
    """What one kept value of each class weighs at a prior of 1: 1 / (kept values of the class)."""
    as_kept: Vector
    """F_r before the first and at every distinct value when every kept value weighs the same."""

    @classmethod
    def of(
        cls, name: str, exact: Vector, labels: Labels, class_counts: Vector, missing: Vector, *, resolution: int = EXACT
    ) -> "SortedColumn":
        """The column of these ascending values."""
        values = coarsened(exact, resolution)
        ranks = placing.places(values)
        per_kept = 1.0 / np.maximum(np.bincount(labels, minlength=class_counts.size), 1)
        as_kept = ranks.upto / max(values.size, 1)
        return cls(name, values, exact, labels, ranks, class_counts, missing, per_kept, as_kept)

    def weights(self, priors: Vector) -> Vector:
        """The weight of each sorted value when the classes have these priors."""
        return np.asarray((np.maximum(priors, 0.0) * (1 - self.missing) * self.per_kept)[self.labels])

    def rising(self, priors: Vector) -> Vector:
        """F_r before the first and at every distinct value when the classes have these priors."""
        steps = ks.steps(self.weights(priors))
        return steps if self.places.size == self.values.size else steps.take(self.places.upto)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A reference, ready for windows."""

    source_priors: Vector
    class_counts: Vector
    """Rows of each class in the sample."""
    posteriors: tuple[SortedColumn, ...]
    features: tuple[SortedColumn | FeatureProfile, ...]
    """In the schema's order: numbers as columns, categories and booleans as they are kept in the reference."""
    resolution: Resolution
    """At which all of this is."""
    blocks: tuple[CoordinateBlock, ...]
    projections: Projections | None
    moments: Moments
    landscape: Landscape | None
    rows: Matrix
    """The mapped sample, before scaling, and its"""
    labels: Labels
    standardised: NDArray[np.float32] | None
    untested: tuple[int, ...]
    """Features that are in no test."""
    hold_out: Blocks | None
    """The hold-out in time order; None where it was not cut into blocks enough."""

    def feature_name(self, number: int) -> str:
        """The name of a column of the features."""
        feature = self.features[number]
        return feature.name if isinstance(feature, SortedColumn) else feature.feature.name


@lru_cache(maxsize=64)
def prepare(reference: ShiftReference, resolution: Resolution | None = None) -> Prepared:
    """Everything that windows will be held against; about a tenth of a second, once per reference and resolution."""
    if resolution is None:
        return prepare(reference, reference_written(reference).base)
    sample = comparable_sample(reference, resolution)
    cut = None if reference.blocks is None or reference.blocks.number < FEWEST_BLOCKS else reference.blocks
    classes = sample.posteriors.shape[1]
    counts = np.bincount(sample.labels, minlength=classes).astype(np.float64)
    features = tuple(
        column_of(profile, at) for profile, at in zip(reference.features, resolution.features, strict=True)
    )
    posteriors = tuple(_posterior(sample, y, counts) for y in range(classes))
    chosen, projections = np.zeros(0, dtype=np.int64), None
    if sample.features is not None:
        frequent = np.array([not _rare(column, sample.labels, classes) for column in sample.features.T], dtype=np.bool_)
        frequent[[*reference.calendar, *reference.ignored]] = False
        chosen = _in_map(features, sample.features, sample.labels, classes, frequent)
        projections = fitted(sample.features, reference.features, frequent)
    parts, blocks = [], []
    start = 0
    for name, kind, index, part in _coordinates(sample, features, posteriors, projections, chosen):
        parts.append(part)
        blocks.append(CoordinateBlock(name, kind, index, slice(start, start + part.shape[1])))
        start += part.shape[1]
    mapped = np.concatenate(parts, axis=1)
    standardised = None
    if projections is not None and sample.features is not None:
        standardised = projections.standardised(sample.features)
    return Prepared(
        source_priors=reference.source_priors,
        class_counts=counts,
        posteriors=posteriors,
        features=features,
        resolution=resolution,
        blocks=tuple(blocks),
        projections=projections,
        moments=replace(
            moments_of(mapped, sample.labels, reference.source_priors, None if cut is None else cut.fold_of_sample),
            blocks=None if cut is None else _sums(cut, mapped, sample.labels, reference),
        ),
        landscape=None if standardised is None else novelty.landscape(standardised, sample.labels, classes),
        rows=mapped,
        labels=sample.labels,
        standardised=standardised,
        untested=(*reference.calendar, *reference.ignored),
        hold_out=cut,
    )


def _sums(cut: Blocks, mapped: Matrix, labels: Labels, reference: ShiftReference) -> BlockSums:
    """The blocks' own; of the sample's rows where the map is another one, because of columns that a stream leaves out
    or that no longer vary at a coarser resolution."""
    if not reference.ignored and cut.sums.shape[2] == mapped.shape[1]:
        return cut.mapped
    return BlockSums.reduced(mapped, labels, cut.of_sample, cut.stretch, reference.source_priors.size)


@lru_cache(maxsize=64)
def part(reference: Prepared, coordinates: tuple[int, ...]) -> Moments:
    """The moments of some of the map's coordinates, kept with what follows from them."""
    return reference.moments.at(np.array(coordinates, dtype=np.int64))


@lru_cache(maxsize=256)
def without(reference: Prepared, columns: frozenset[int]) -> tuple[Labels, Moments]:
    """What is left of features and cosines when some columns are not looked at, and its moments.

    The coordinates come first as positions in the full map (features), then all of the cosines.
    """
    kept = [b for b in reference.blocks if b.kind == "feature" and b.index not in columns]
    at = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(b.at.start, b.at.stop) for b in kept)])
    rows = reference.rows[:, at]
    if reference.projections is not None and reference.standardised is not None:
        blind = reference.projections.without(columns)(reference.standardised)
        rows = np.concatenate([rows, blind.astype(np.float64)], axis=1)
    return at, _sampled_moments(rows, reference, slice(None))


@lru_cache(maxsize=256)
def blind_landscape(reference: Prepared, column: int) -> tuple[Labels, Landscape] | None:
    """Where the classes lie without a feature, and the other features' positions among the standardised ones; None
    where there is no other."""
    others = np.flatnonzero(present(reference.projections, "projections").columns != column)
    if not others.size:
        return None
    rows = np.ascontiguousarray(present(reference.standardised, "standardised features")[:, others])
    return others, novelty.landscape(rows, reference.labels, reference.class_counts.size)


def shares_inside(reference: Prepared, threshold: float) -> Vector:
    """The share of each class within a distance of the classes, with half an event more: none is quite outside."""
    counts = np.bincount(reference.labels[_near(reference, threshold)], minlength=reference.class_counts.size)
    return np.asarray((counts + 0.5) / (reference.class_counts + 0.5))


def _near(reference: Prepared, threshold: float) -> Flags:
    """The sample's rows within a distance of the classes, in the landscape of `novelty`."""
    return np.asarray(present(reference.landscape, "distances of the reference's rows").by_row <= threshold)


def inside(reference: Prepared, threshold: float) -> Moments:
    """The moments of the sample's rows within a distance of the classes."""
    near = _near(reference, threshold)
    return _sampled_moments(reference.rows[near], reference, near)


def mapped_rows(rows: HoldOut, reference: Prepared) -> Matrix:
    """The map of other rows at the reference's resolution, before scaling."""
    chosen = np.array([block.index for block in reference.blocks if block.kind == "feature"], dtype=np.int64)
    parts = _coordinates(rows, reference.features, reference.posteriors, reference.projections, chosen)
    return np.concatenate([part for *_, part in parts], axis=1)


def rank_polynomials(twice_mid_ranks: Labels, reference_size: int) -> Matrix:
    """The first two normalised Legendre polynomials of mid-ranks u in the reference, one in each row.

    sqrt(3) (2u - 1) and sqrt(5) (6u^2 - 6u + 1): uncorrelated, mean 0 and variance 1 where u is uniform.
    """
    centred = twice_mid_ranks * (1.0 / max(reference_size, 1)) - 1.0
    return np.stack([np.sqrt(3.0) * centred, np.sqrt(5.0) * (1.5 * centred * centred - 0.5)])


def polynomial_sums(placed: PlacedValues, places: Places) -> Vector:
    """Both polynomials, summed over a window's values; a missing value counts as 0.

    With r twice a value's mid-rank, of m: sum (r/m - 1)^2 = sum r^2 / m^2 - 2 sum r / m + n; whole numbers, exact.
    """
    m, n, ranks = max(int(places.upto[-1]), 1), placed.n, 2 * places.upto
    first, second = int(placed.counts @ ranks), int(placed.counts @ ranks**2)
    if placed.tied is not None:
        # A tied value was counted at the place behind its equal; its own rank lies halfway over it.
        upon = places.upto[1:] + places.upto[:-1]
        first += int(placed.tied @ (upon - ranks[1:]))
        second += int(placed.tied @ (upon**2 - ranks[1:] ** 2))
    return np.array(
        [np.sqrt(3.0) * (first / m - n), np.sqrt(5.0) * (1.5 * (second / m**2 - 2 * first / m + n) - n / 2)]
    )


def ranked_posteriors(classes: int) -> range:
    """The posteriors that enter the map by rank: one says all of two classes, and many would crowd out the rest."""
    if classes == 2:
        return range(1, 2)
    return range(classes) if classes <= CLASSES_RANKED else range(0)


def category_cells(profile: FeatureProfile) -> Labels:
    """The categories that enter the map: the most frequent ones but the last, whose share follows from the others."""
    totals = profile.counts.sum(axis=0)
    seen = np.flatnonzero(totals > 0)
    frequent = seen[np.argsort(-totals[seen], kind="stable")]
    return np.sort(frequent[: min(CATEGORIES_IN_MAP, max(seen.size - 1, 0))])


def _coordinates(
    sample: HoldOut,
    features: tuple[SortedColumn | FeatureProfile, ...],
    posteriors: tuple[SortedColumn, ...],
    projections: Projections | None,
    chosen: Labels,
) -> list[tuple[str, str, int, Matrix]]:
    """Name, kind, column and mapped rows of every block, in the order of the map."""
    classes = len(posteriors)
    blocks: list[tuple[str, str, int, Matrix]] = [
        ("posteriors", "posterior", -1, np.asarray(sample.posteriors[:, : classes - 1]))
    ]
    blocks += [
        (posteriors[y].name, "posterior", y, _mapped_rows(posteriors[y], coarsened(sample.posteriors[:, y], SINGLE)))
        for y in ranked_posteriors(classes)
    ]
    if sample.features is None:
        return blocks
    for j in chosen:
        profile, values = features[j], sample.features[:, j]
        if isinstance(profile, SortedColumn):
            blocks.append((profile.name, "feature", int(j), _mapped_rows(profile, values)))
        else:
            cells = category_cells(profile)
            rows = (values[:, None] == cells).astype(np.float64)
            blocks.append((profile.feature.name, "feature", int(j), rows))
    if projections is not None:
        mapped = projections(projections.standardised(sample.features)).astype(np.float64)
        blocks.append(("all features together", "joint", -1, mapped))
    return blocks


def _mapped_rows(column: SortedColumn, values: Vector) -> Matrix:
    """Rank polynomials in the order of the rows, 0 for a missing value."""
    present = ~np.isnan(values)
    rows = np.zeros((values.size, 2))
    ranks = column.places.twice_mid_ranks(values[present])
    rows[present] = rank_polynomials(ranks, column.values.size).T
    return rows


def column_of(profile: FeatureProfile, resolution: int) -> SortedColumn | FeatureProfile:
    """A number's profile ready for comparisons at a resolution; other features are compared as they are."""
    if profile.feature.kind != "number":
        return profile
    name, missing = profile.feature.name, profile.missing
    return SortedColumn.of(name, profile.values, profile.labels, profile.class_counts, missing, resolution=resolution)


def _posterior(sample: HoldOut, y: int, counts: Vector) -> SortedColumn:
    # Calibrated by sums whose last bits depend on how many events there are: compared in single precision.
    order = np.argsort(sample.posteriors[:, y], kind="stable")
    values = np.ascontiguousarray(sample.posteriors[order, y])
    labels, missing = sample.labels[order], np.zeros(counts.size)
    return SortedColumn.of(f"posterior {y}", values, labels, counts, missing, resolution=SINGLE)


def _rare(values: Vector, labels: Labels, classes: int) -> bool:
    """Whether a column is one and the same value (or missing) within each class but for a few events.

    How many such events a window holds follows Poisson's law, and no normal one as the fit test has it: three flags
    where 0.3 were expected would be five standard deviations. The column is still tested by itself.
    """
    others = 0
    for y in range(classes):
        _, counts = np.unique(values[labels == y], return_counts=True)
        others += int(counts.sum() - counts.max(initial=0))
    return 0 < others < RARE_SHARE * values.size


def _in_map(
    features: tuple[SortedColumn | FeatureProfile, ...], table: Matrix, labels: Labels, classes: int, frequent: Flags
) -> Labels:
    """The features that get coordinates of their own: all, or those that tell the classes apart best."""
    usable = [j for j, f in enumerate(features) if frequent[j] and (not isinstance(f, SortedColumn) or f.values.size)]
    if len(usable) <= COLUMNS_IN_MAP:
        return np.array(usable, dtype=np.int64)
    separation = [_separation(features[j], table[:, j], labels, classes) for j in usable]
    best = np.argsort(-np.array(separation), kind="stable")[:COLUMNS_IN_MAP]
    return np.sort(np.array(usable)[best])


def _separation(feature: SortedColumn | FeatureProfile, values: Vector, labels: Labels, classes: int) -> float:
    """Share of the variance of the rank that lies between classes."""
    u = _mapped_rows(feature, values)[:, 0] if isinstance(feature, SortedColumn) else np.nan_to_num(values)
    counts = np.maximum(np.bincount(labels, minlength=classes), 1)
    means = np.bincount(labels, weights=u, minlength=classes) / counts
    total = float(u.var())
    return float((counts * (means - u.mean()) ** 2).sum() / (u.size * total)) if total > 0 else 0.0


def _sampled_moments(rows: Matrix, reference: Prepared, picked: Flags | slice) -> Moments:
    """The moments of mapped rows that are those of the sample, or some of them."""
    labels, classes, held = reference.labels[picked], reference.class_counts.size, reference.hold_out
    if held is None:
        return moments_of(rows, labels, reference.source_priors)
    moments = moments_of(rows, labels, reference.source_priors, held.fold_of_sample[picked])
    return replace(moments, blocks=BlockSums.reduced(rows, labels, held.of_sample[picked], held.stretch, classes))
