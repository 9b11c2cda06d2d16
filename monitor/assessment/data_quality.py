"""What of a window is plainly wrong, in shares: rejected records, missing values, values that no reference has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from monitor.limits import FEATURES_OF_QUALITY
from monitor.shifts import ColumnQuality
from monitor.windows import WindowCounts


@dataclass(frozen=True, slots=True)
class FeatureQuality:
    """One feature with values that no hold-out event had."""

    outside_range: float
    """The share of its values below or above all of the reference's."""
    new_categories: float
    """The share of its values that the reference does not know."""


@dataclass(frozen=True, slots=True)
class DataQuality:
    """Shares of a window; 0 where nothing of the kind was looked at."""

    rejected: float = 0.0
    """Of the records. Of a segment it is not known, and 0."""
    missing: float = 0.0
    """Of the feature values."""
    outside_range: float = 0.0
    """Of the numbers: below or above all of the reference's."""
    new_categories: float = 0.0
    """Of all other values: those that the reference does not know."""
    constant: tuple[str, ...] = ()
    """Features with one value only, where the reference has many."""
    features: Mapping[str, FeatureQuality] = field(default_factory=dict)
    """Those with values that no hold-out event had, the most first; twenty at most."""


NOTHING_WRONG = DataQuality()


def rejected_share(rows: int, counts: WindowCounts) -> float:
    """Of the records of a window with so many usable rows."""
    return counts.rejected / max(rows + counts.late + counts.rejected + counts.sampled_out, 1)


def data_quality(
    names: Sequence[str], columns: Sequence[ColumnQuality], events: int, missing: int, rejected: float
) -> DataQuality:
    """Of so many usable events, with so many missing values, in these columns."""
    numbers = sum(column.values for column in columns if column.number)
    others = sum(column.values for column in columns) - numbers
    apart = {
        name: FeatureQuality(column.outside / column.values, column.new / column.values)
        for name, column in zip(names, columns, strict=False)
        if column.outside or column.new
    }
    most = sorted(apart, key=lambda name: (-apart[name].outside_range - apart[name].new_categories, name))
    return DataQuality(
        rejected=rejected,
        missing=missing / (events * len(columns)) if events and columns else 0.0,
        outside_range=sum(column.outside for column in columns) / max(numbers, 1),
        new_categories=sum(column.new for column in columns) / max(others, 1),
        constant=tuple(name for name, column in zip(names, columns, strict=False) if column.constant),
        features={name: apart[name] for name in most[:FEATURES_OF_QUALITY]},
    )
