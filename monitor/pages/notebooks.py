"""A window in a notebook: as a data frame and as a picture, by pandas and Matplotlib where these are installed."""

from importlib import import_module
from typing import Any

from monitor.errors import InputError
from monitor.pages.distributions import distribution
from monitor.pages.messages import SketchRead, WindowRead

ACROSS = 3
"""Charts in a row of a picture,"""
WIDE, HIGH = 4.0, 2.3
"""of so many inches."""


def frame(window: WindowRead) -> Any:
    """Every feature as a row of a pandas data frame: whether and how it moved, by how much, and what is missing."""
    columns = ("moved", "kind", "distance", "adjusted_p_value", "missing_rate", "expected_missing_rate", "reason")
    rows = [[getattr(feature, column) for column in columns] for feature in window.features.values()]
    return _installed("pandas", "pandas").DataFrame(rows, index=list(window.features), columns=columns)


def picture(window: WindowRead) -> Any:
    """A Matplotlib figure of the distributions of scores and features: bars now, the outline of the reference, and
    dashed at the new class mix."""
    drawn = window.drawn
    charts = [*((f"{name} (score)", chart) for name, chart in drawn.scores.items()), *drawn.features.items()]
    rows = max(-(-len(charts) // ACROSS), 1)
    made = _installed("matplotlib.figure", "shiftwatch[plot]").Figure(
        figsize=(ACROSS * WIDE, rows * HIGH), layout="constrained"
    )
    for at, (name, sketch) in enumerate(charts, start=1):
        _draw(made.add_subplot(rows, ACROSS, at), name, sketch)
    return made


def _draw(axes: Any, name: str, sketch: SketchRead) -> None:
    cells = distribution(sketch).cells
    edges = [at - 0.5 for at in range(len(cells) + 1)]
    axes.bar(range(len(cells)), [cell.now for cell in cells], color="#2563a8", alpha=0.55)
    axes.stairs([cell.reference for cell in cells], edges, color="#5b636e")
    axes.stairs([cell.expected for cell in cells], edges, color="#1d2126", linestyle="--")
    shown = range(len(cells)) if len(cells) <= 6 else range(0, len(cells), max(len(cells) // 3, 1))
    axes.set_xticks(list(shown), [cells[at].label for at in shown], fontsize=7)
    axes.set_title(name, fontsize=9)
    axes.tick_params(axis="y", labelsize=7)


def _installed(module: str, package: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"{module} is not installed: pip install '{package}'") from error
