"""Shiftwatch: has the class mix of a scored stream moved, how far, and what to do about it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor.assessment.classifier import Assessment, assess
    from monitor.assessment.regressor import RegressionAssessment, assess_regression
    from monitor.assessment.verdict import Verdict
    from monitor.reference import Reference, RegressionReference
    from monitor.version import __version__
    from monitor.windows import Window

__all__ = [
    "Assessment",
    "Reference",
    "RegressionAssessment",
    "RegressionReference",
    "Verdict",
    "Window",
    "__version__",
    "assess",
    "assess_regression",
]

_HOME = {
    "Assessment": "monitor.assessment.classifier",
    "Reference": "monitor.reference.classifier",
    "RegressionAssessment": "monitor.assessment.regressor",
    "RegressionReference": "monitor.reference.regressor",
    "Verdict": "monitor.assessment.verdict",
    "Window": "monitor.windows.window",
    "__version__": "monitor.version",
    "assess": "monitor.assessment.classifier",
    "assess_regression": "monitor.assessment.regressor",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used: `import monitor` must not cost the numeric stack."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
