"""How one column is distributed: a bar for each cell of its sketch, beside what the reference has there.

The bars are the window; the outline is the reference as it was, and the dashed one the reference at the window's class
mix, so that bars which follow the dashed line are explained by the mix alone. Cells hold equal parts of the reference
where there are values enough: any distribution can be read, whatever its tails. Text stands beside the drawing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

from monitor.pages.plots import DrawnPath, Frame
from monitor.pages.words import number

WIDE, TALL = 1000, 100
GAP = 0.06
HEADROOM = 1.05
EXPECTED_APART = 0.002
"""Of a share: less cannot be seen."""


class Sketched(Protocol):
    """One column of a window, cell by cell, as results carry it."""

    @property
    def edges(self) -> Sequence[float]: ...
    @property
    def categories(self) -> Sequence[str]: ...
    @property
    def counts(self) -> Sequence[int]: ...
    @property
    def reference(self) -> Sequence[float]: ...
    @property
    def expected(self) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of the chart, in words."""

    label: str
    now: float
    reference: float
    expected: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """A drawing in coordinates from 0 to 1000 and 0 to 100, and the words around it."""

    cells: tuple[Cell, ...]
    marks: tuple[DrawnPath, ...]
    ticks: tuple[tuple[float, str], ...]
    """Where along the foot a value stands, in percent of the width, and the value."""
    top: float
    """The share that the upper edge stands for."""
    values: int
    """Of the window."""

    @property
    def label(self) -> str:
        """For those who cannot see it: the cells that differ most from what is expected."""
        furthest = sorted(self.cells, key=lambda cell: -abs(cell.now - cell.expected))[:3]
        cells = "; ".join(f"{cell.label}: {cell.now:.1%}, expected {cell.expected:.1%}" for cell in furthest)
        return f"Distribution of {self.values:,} values. {cells}"


def distribution(sketch: Sketched) -> Distribution:
    """The chart of a sketch; cells at the ends that are empty on both sides are left out."""
    values = sum(sketch.counts)
    now = [count / values if values else 0.0 for count in sketch.counts]
    ranges = len(sketch.edges) > 0
    labels = _range_labels(sketch.edges) if ranges else _category_labels(sketch.categories)
    cells = [Cell(*cell) for cell in zip(labels, now, sketch.reference, sketch.expected, strict=True)]
    empty = [not (cell.now or cell.reference or cell.expected) for cell in cells]
    first = 1 if ranges and empty[0] else 0
    last = len(cells) - _trailing(empty, 1 if ranges else 2)
    shown = cells[first:last]
    top = max([*(max(cell.now, cell.reference, cell.expected) for cell in shown), 0.01]) * HEADROOM
    frame = Frame(WIDE, TALL, right=max(len(shown), 1), high=top)
    bars = "".join(frame.bar(at + GAP, at + 1 - GAP, 0, cell.now) for at, cell in enumerate(shown) if cell.now)
    along = range(len(shown) + 1)
    marks = [DrawnPath("now-bars", bars)]
    marks.append(DrawnPath("reference", frame.stairs(along, [cell.reference for cell in shown])))
    if any(abs(cell.expected - cell.reference) > EXPECTED_APART for cell in shown):
        marks.append(DrawnPath("expected", frame.stairs(along, [cell.expected for cell in shown])))
    ticks = _ticks(sketch.edges, first, len(shown)) if ranges else ()
    return Distribution(tuple(shown), tuple(marks), ticks, top, values)


def _trailing(empty: Sequence[bool], most: int) -> int:
    """How many cells at the end are empty, of so many that may be."""
    left_out = 0
    while left_out < most and empty[-1 - left_out]:
        left_out += 1
    return left_out


def _category_labels(categories: Sequence[str]) -> list[str]:
    return [*categories, "all others", "new"]


def _range_labels(edges: Sequence[float]) -> list[str]:
    between = [number(low) if low == high else f"{number(low)} to {number(high)}" for low, high in pairwise(edges)]
    return [f"below {number(edges[0])}", *between, f"above {number(edges[-1])}"]


def _ticks(edges: Sequence[float], first: int, shown: int) -> tuple[tuple[float, str], ...]:
    """Some of the edges, evenly: the cell before the first of them may be left out."""
    steps = len(edges) - 1
    picked = sorted({round(steps * part / 4) for part in range(5)})
    return tuple((100 * (at + 1 - first) / max(shown, 1), number(edges[at])) for at in picked)
