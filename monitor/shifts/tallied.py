"""What of a window can be counted event by event, in whole numbers: it adds up, and no row of it is needed any more.

The places of numbers among the reference's values say all that the Kolmogorov-Smirnov distance and the ranks of the
feature map need of them; how often each category occurs, and how much is missing, all that the other tests of columns
do. Posteriors and cosines are added up in fixed point.
"""

import numpy as np

from monitor.arrays import Labels, Matrix
from monitor.shifts.columns import KnownColumns
from monitor.shifts.prepared import Prepared
from monitor.shifts.resolution import SINGLE, coarsened, coarsened_table
from monitor.windows import Window, fixed_sums


def tallied(window: Window, reference: Prepared, rows: int) -> dict[str, Labels]:
    """The counts of the first rows of a window with comparable posteriors.

    All of its rows are mapped: products of matrices may round a row otherwise in other company, and whoever wants the
    same numbers always fills windows up to one size.
    """
    scores, table = coarsened(window.posteriors, SINGLE)[:rows], _table(window, reference)
    joint = np.zeros((rows, 0), dtype=np.float32)
    if reference.projections is not None:
        joint = reference.projections(reference.projections.standardised(table))[:rows]
    table = table[:rows]
    return {
        "scores": reference.posteriors.places.counted(np.ascontiguousarray(scores.T)),
        **fixed_sums("score sums", window.posteriors[:rows]),
        "numbers": reference.features.places.counted(np.ascontiguousarray(table.T[reference.features.numbers_at])),
        "categories": np.concatenate([_NONE, *category_counts(reference.features, table).values()]),
        "missing": np.asarray(np.isnan(table).sum(axis=0)),
        **fixed_sums("joint sums", joint),
    }


def category_counts(columns: KnownColumns, table: Matrix) -> dict[int, Labels]:
    """How often each value of each category occurs, by column; the last count is that of unknown values."""
    counted = {}
    for j, feature in columns.categories.items():
        present, cells = table[~np.isnan(table[:, j]), j], feature.counts.shape[1]
        counted[j] = np.bincount(np.clip(present, 0, cells - 1).astype(np.int64), minlength=cells)
    return counted


def _table(window: Window, reference: Prepared) -> Matrix:
    """The features at the reference's resolution; all missing where the window has none."""
    if window.features is None:
        return np.full((window.events, len(reference.features)), np.nan)
    return coarsened_table(window.features, reference.resolution.features)


_NONE: Labels = np.zeros(0, dtype=np.int64)
