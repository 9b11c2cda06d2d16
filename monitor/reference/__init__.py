"""What the model looked like on labelled hold-out data: built, saved, loaded, described."""

from monitor.reference.atoms import largest_atom
from monitor.reference.base import FiledReference
from monitor.reference.blocks import Seasonal
from monitor.reference.building import build
from monitor.reference.building_regressor import build_regression
from monitor.reference.classifier import Reference
from monitor.reference.description import differences, explain
from monitor.reference.feature_columns import Kinds
from monitor.reference.holdout import Wanted, holds_predictions
from monitor.reference.regressor import LineCount, RegressionReference

__all__ = [
    "FiledReference",
    "Kinds",
    "LineCount",
    "Reference",
    "RegressionReference",
    "Seasonal",
    "Wanted",
    "build",
    "build_regression",
    "differences",
    "explain",
    "holds_predictions",
    "largest_atom",
]
