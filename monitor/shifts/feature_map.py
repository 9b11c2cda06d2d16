"""The feature map: what an event is turned into before the means of windows are compared.

Per column the first two Legendre polynomials of its rank in the reference, the posteriors themselves, shares of
categories, and cosines of random projections of all numeric features together, which see what no single column shows.
"""

import numpy as np

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.limits import CATEGORIES_IN_MAP, COLUMNS_IN_MAP
from monitor.priors import HoldOut
from monitor.shifts.columns import Column, KnownColumns, SortedColumn
from monitor.shifts.profile import FeatureProfile
from monitor.shifts.projections import Projections
from monitor.shifts.resolution import SINGLE, coarsened
from monitor.tolerances import CLASSES_RANKED, RARE_SHARE


def rank_polynomials(twice_mid_ranks: Labels, reference_size: int) -> Matrix:
    """The first two normalised Legendre polynomials of mid-ranks u in the reference, one in each row.

    sqrt(3) (2u - 1) and sqrt(5) (6u^2 - 6u + 1): uncorrelated, mean 0 and variance 1 where u is uniform.
    """
    centred = twice_mid_ranks * (1.0 / max(reference_size, 1)) - 1.0
    return np.stack([np.sqrt(3.0) * centred, np.sqrt(5.0) * (1.5 * centred * centred - 0.5)])


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


def coordinates_of(
    sample: HoldOut,
    features: KnownColumns,
    posteriors: KnownColumns,
    projections: Projections | None,
    chosen: Labels,
) -> list[tuple[str, str, int, Matrix]]:
    """Name, kind, column and mapped rows of every block, in the order of the map."""
    classes = len(posteriors)
    blocks: list[tuple[str, str, int, Matrix]] = [
        ("posteriors", "posterior", -1, np.asarray(sample.posteriors[:, : classes - 1]))
    ]
    blocks += [
        (column.name, "posterior", y, _mapped_rows(column, coarsened(sample.posteriors[:, y], SINGLE)))
        for y, column in enumerate(posteriors.numbers)
        if y in ranked_posteriors(classes)
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


def rare(values: Vector, labels: Labels, classes: int) -> bool:
    """Whether a column is one and the same value within each class but for a few events; missing values apart.

    How many such events a window holds follows Poisson's law, and no normal one as the fit test has it: three flags
    where 0.3 were expected would be five standard deviations. Of a column that is the same in all classes no event at
    all was seen, which of 300 rows says little: the first one would be any number of them. The column is still tested
    by itself.
    """
    present = ~np.isnan(values)
    values, labels = values[present], labels[present]
    if np.unique(values).size <= 1:
        return True
    others = 0
    for y in range(classes):
        _, counts = np.unique(values[labels == y], return_counts=True)
        others += int(counts.sum() - counts.max(initial=0))
    return 0 < others < RARE_SHARE * values.size


def columns_in_map(features: KnownColumns, table: Matrix, labels: Labels, classes: int, frequent: Flags) -> Labels:
    """The features that get coordinates of their own: all, or those that tell the classes apart best."""
    usable = [j for j, f in enumerate(features) if frequent[j] and (not isinstance(f, SortedColumn) or f.values.size)]
    if len(usable) <= COLUMNS_IN_MAP:
        return np.array(usable, dtype=np.int64)
    separation = [_separation(features[j], table[:, j], labels, classes) for j in usable]
    best = np.argsort(-np.array(separation), kind="stable")[:COLUMNS_IN_MAP]
    return np.sort(np.array(usable)[best])


def _separation(feature: Column, values: Vector, labels: Labels, classes: int) -> float:
    """Share of the variance of the rank that lies between classes."""
    u = _mapped_rows(feature, values)[:, 0] if isinstance(feature, SortedColumn) else np.nan_to_num(values)
    counts = np.maximum(np.bincount(labels, minlength=classes), 1)
    means = np.bincount(labels, weights=u, minlength=classes) / counts
    total = float(u.var())
    return float((counts * (means - u.mean()) ** 2).sum() / (u.size * total)) if total > 0 else 0.0
