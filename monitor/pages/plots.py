"""Marks of drawings as SVG path data: all that turns values into coordinates. Colours and text are the page's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class DrawnPath(NamedTuple):
    """One path of a drawing."""

    style: str
    """Its class in the style sheet."""
    path: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle, in units of the drawing, that shows x from 0 to `right` and y from `low` at its foot to `high`."""

    width: float
    height: float
    right: float = 1.0
    low: float = 0.0
    high: float = 1.0

    def x(self, value: float) -> str:
        """The coordinate of a value."""
        return f"{self.width * value / self.right:.1f}"

    def y(self, value: float) -> str:
        """The coordinate of a value; what lies beyond the frame is drawn at its edge."""
        inside = min(max(value, self.low), self.high)
        return f"{self.height * (self.high - inside) / (self.high - self.low):.1f}"

    def line(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """A line through points; a single one is a dot."""
        points = self._points(xs, ys)
        return f"M{'L'.join(points)}{'h0' if len(points) == 1 else ''}"

    def dots(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """Points alone: lines of no length, which round caps make visible."""
        return "".join(f"M{point}h0" for point in self._points(xs, ys))

    def band(self, xs: Iterable[float], lower: Iterable[float], upper: Iterable[float]) -> str:
        """The area between two lines."""
        along = list(xs)
        back = reversed(self._points(along, lower))
        return f"M{'L'.join([*self._points(along, upper), *back])}Z"

    def bar(self, left: float, right: float, low: float, high: float) -> str:
        """A rectangle from one x to another and from one y to another."""
        return f"M{self.x(left)} {self.y(high)}H{self.x(right)}V{self.y(low)}H{self.x(left)}Z"

    def steps(self, edges: Sequence[float], heights: Iterable[float]) -> str:
        """A histogram as an outline that ends on the ground."""
        return f"M{self.x(edges[0])} {self.y(0)}{self._tops(edges, heights)}V{self.y(0)}Z"

    def stairs(self, edges: Sequence[float], heights: Iterable[float]) -> str:
        """The tops of a histogram, without its sides."""
        tops = self._tops(edges, heights)
        return f"M{self.x(edges[0])} {tops.partition('H')[0].removeprefix('V')}{tops}"

    def level(self, value: float) -> str:
        """A line across the frame."""
        return self.line((0, self.right), (value, value))

    def diagonal(self) -> str:
        """Where both axes say the same."""
        end = min(self.right, self.high)
        return self.line((0, end), (0, end))

    def _tops(self, edges: Sequence[float], heights: Iterable[float]) -> str:
        return "".join(f"V{self.y(height)}H{self.x(edge)}" for height, edge in zip(heights, edges[1:], strict=True))

    def _points(self, xs: Iterable[float], ys: Iterable[float]) -> list[str]:
        return [f"{self.x(x)} {self.y(y)}" for x, y in zip(xs, ys, strict=True)]
