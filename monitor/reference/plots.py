"""Small plots as SVG text: everything that knows how to place a mark on a unit square. Colours come from the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 300, 230, 48, 34, 10, 10


@dataclass(frozen=True, slots=True)
class Plot:
    """An axes frame; both axes start at 0."""

    title: str
    x_label: str
    y_label: str
    x_max: float = 1.0
    y_max: float = 1.0

    def x(self, value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * value / self.x_max, 2)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * min(value, self.y_max) / self.y_max, 2)

    def draw(self, *marks: str) -> str:
        """The whole figure around its marks."""
        ticks = []
        for i in range(5):
            at_x, at_y = self.x_max * i / 4, self.y_max * i / 4
            ticks.append(
                f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(at_y)}" y2="{self.y(at_y)}"/>'
            )
            ticks.append(f'<text x="{self.x(at_x)}" y="{HEIGHT - BOTTOM + 13}" text-anchor="middle">{at_x:.4g}</text>')
            ticks.append(f'<text x="{LEFT - 5}" y="{self.y(at_y) + 3}" text-anchor="end">{at_y:.3g}</text>')
        middle, centre = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        return (
            f'<figure><figcaption>{escape(self.title)}</figcaption><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-label="{escape(self.title)}">{"".join(ticks)}'
            f'<text class="axis" x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{escape(self.x_label)}</text>'
            f'<text class="axis" transform="translate(10 {centre}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.y_label)}</text>{''.join(marks)}</svg></figure>"
        )

    def diagonal(self) -> str:
        """Where both axes say the same."""
        end = min(self.x_max, self.y_max)
        return f'<line class="diagonal" x1="{self.x(0)}" y1="{self.y(0)}" x2="{self.x(end)}" y2="{self.y(end)}"/>'

    def line(self, xs: Sequence[float], ys: Sequence[float], style: str) -> str:
        """A line through points, with a dot on each."""
        points = [(self.x(x), self.y(y)) for x, y in zip(xs, ys, strict=True)]
        path = " ".join(f"{x},{y}" for x, y in points)
        dots = "".join(f'<circle class="dot {style}" cx="{x}" cy="{y}" r="2.4"/>' for x, y in points)
        return f'<polyline class="line {style}" points="{path}"/>{dots}'

    def dots(self, xs: Sequence[float], ys: Sequence[float], style: str) -> str:
        """Points alone."""
        return "".join(
            f'<circle class="dot faint {style}" cx="{self.x(x)}" cy="{self.y(y)}" r="2.6"/>'
            for x, y in zip(xs, ys, strict=True)
        )

    def steps(self, edges: Sequence[float], heights: Sequence[float], style: str) -> str:
        """A histogram as a filled outline."""
        corners = [(self.x(edges[0]), self.y(0))]
        for left, right, height in zip(edges[:-1], edges[1:], heights, strict=True):
            corners += [(self.x(left), self.y(height)), (self.x(right), self.y(height))]
        corners.append((self.x(edges[-1]), self.y(0)))
        return f'<polygon class="area {style}" points="{" ".join(f"{x},{y}" for x, y in corners)}"/>'
