"""Which inputs moved, and how: tests against the reference and explanations of what they find."""

from typing import TYPE_CHECKING, Any

from monitor.shifts.balancing import balancing_weights, worth
from monitor.shifts.blocks import Blocks, BlockSums, elsewhere
from monitor.shifts.columns import KnownColumns, SortedColumn, column_of
from monitor.shifts.comparable import (
    ShiftReference,
    common_features,
    common_resolution,
    comparable_posteriors,
    features_written,
    reference_written,
)
from monitor.shifts.correction import holm
from monitor.shifts.covariates import Explanation
from monitor.shifts.detector_value import DetectorValue
from monitor.shifts.diagnosis import Diagnosis, diagnose, one_mix_explains
from monitor.shifts.evidence import SeriesEvidence, windows_to_notice
from monitor.shifts.feature_tests import Move
from monitor.shifts.fit import Match, Tested, alike_neighbours, cohen_w, explained
from monitor.shifts.novelty import Novelty, UnknownEvents, unknown_events
from monitor.shifts.outline import Outline, follow
from monitor.shifts.phases import Mates
from monitor.shifts.prepared import Prepared, mapped_rows, out_of_inside, prepare, shares_inside
from monitor.shifts.profile import FeatureProfile, compact, profile_of, values_kept
from monitor.shifts.resolution import SINGLE, Resolution, WrittenColumn, coarsened_table
from monitor.shifts.season import Season, often_enough, phases_of_inputs
from monitor.shifts.seasonal_columns import SeasonalColumns, cells
from monitor.shifts.sketches import Sketch, SketchedColumns, Sketches, sketched
from monitor.shifts.tallied import tallied
from monitor.shifts.told_apart import label_shift_odds, left_by_one_feature, scores_alone
from monitor.shifts.value_quality import ColumnQuality, qualities
from monitor.shifts.variation import Law
from monitor.shifts.window_profile import Lens, WindowProfile, lens

if TYPE_CHECKING:
    from monitor.shifts.trees import VersatileForestClassifier, VersatileTreeClassifier

__all__ = [
    "SINGLE",
    "BlockSums",
    "Blocks",
    "ColumnQuality",
    "DetectorValue",
    "Diagnosis",
    "Explanation",
    "FeatureProfile",
    "KnownColumns",
    "Law",
    "Lens",
    "Match",
    "Mates",
    "Move",
    "Novelty",
    "Outline",
    "Prepared",
    "Resolution",
    "Season",
    "SeasonalColumns",
    "SeriesEvidence",
    "ShiftReference",
    "Sketch",
    "SketchedColumns",
    "Sketches",
    "SortedColumn",
    "Tested",
    "UnknownEvents",
    "VersatileForestClassifier",
    "VersatileTreeClassifier",
    "WindowProfile",
    "WrittenColumn",
    "alike_neighbours",
    "balancing_weights",
    "cells",
    "coarsened_table",
    "cohen_w",
    "column_of",
    "common_features",
    "common_resolution",
    "compact",
    "comparable_posteriors",
    "diagnose",
    "elsewhere",
    "explained",
    "features_written",
    "follow",
    "holm",
    "label_shift_odds",
    "left_by_one_feature",
    "lens",
    "mapped_rows",
    "often_enough",
    "one_mix_explains",
    "out_of_inside",
    "phases_of_inputs",
    "prepare",
    "profile_of",
    "qualities",
    "reference_written",
    "scores_alone",
    "shares_inside",
    "sketched",
    "tallied",
    "unknown_events",
    "values_kept",
    "windows_to_notice",
    "worth",
]


def __getattr__(name: str) -> Any:
    """The trees come when they are asked for: they bring scikit-learn with them, half a second of import."""
    if name in {"VersatileForestClassifier", "VersatileTreeClassifier"}:
        from monitor.shifts import trees  # noqa: PLC0415 - see above

        return getattr(trees, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
