"""What the model looked like on labelled hold-out data: built, saved, loaded, described."""

from monitor.reference.atoms import largest_atom
from monitor.reference.base import FiledReference
from monitor.reference.classifier import Reference
from monitor.reference.regressor import RegressionReference

__all__ = [
    "FiledReference",
    "Reference",
    "RegressionReference",
    "largest_atom",
]
