"""Which inputs moved, and how: tests against the reference and explanations of what they find."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from monitor.shifts.trees import VersatileForestClassifier, VersatileTreeClassifier

__all__ = ["VersatileForestClassifier", "VersatileTreeClassifier"]


def __getattr__(name: str) -> Any:
    """The trees come when they are asked for: they bring scikit-learn with them, half a second of import."""
    if name in __all__:
        from monitor.shifts import trees  # noqa: PLC0415 - see above

        return getattr(trees, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
