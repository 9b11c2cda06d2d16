"""Shiftwatch: has the class mix of a scored stream moved, how far, and what to do about it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor.assessment import Assessment, RegressionAssessment, Verdict, assess, assess_regression
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
    "Assessment": "monitor.assessment",
    "Reference": "monitor.reference",
    "RegressionAssessment": "monitor.assessment",
    "RegressionReference": "monitor.reference",
    "Verdict": "monitor.assessment",
    "Window": "monitor.windows",
    "__version__": "monitor.version",
    "assess": "monitor.assessment",
    "assess_regression": "monitor.assessment",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used: `import monitor` must not cost the numeric stack."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
