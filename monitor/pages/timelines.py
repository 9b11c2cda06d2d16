"""What changes over a period as drawings: verdicts as a strip, a value with its interval as a line.

Coordinates run from 0 to 1000 along the period and from 0 to 100 upwards, and stretch with the page. Text stands
beside them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import isfinite
from statistics import fmean, median
from typing import NamedTuple, TypeVar

from monitor.pages.plots import DrawnPath, Frame
from monitor.pages.words import moment

WIDE, TALL, STRIP = 1000, 100, 24
MOST_POINTS = 240
"""More are averaged: a screen is not much wider."""
RARE = 0.3
"""Shares that stay below are drawn from zero: a third more of little is little."""
DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """The period that all drawings of a report share; microseconds."""

    begin: int
    until: int

    @property
    def length(self) -> int:
        """At least one."""
        return max(self.until - self.begin, 1)

    @property
    def ticks(self) -> tuple[str, ...]:
        """Times at equal distances under the drawings."""
        pattern = "%H:%M" if self.length <= DAY else "%d %b %H:%M" if self.length <= 7 * DAY else "%d %b"
        return tuple(moment(self.begin + self.length * part // 4, pattern) for part in range(5))


class ColouredStretch(NamedTuple):
    """Part of the period in one colour."""

    begin: int
    until: int
    style: str


class Point(NamedTuple):
    """A value with its interval; NaN where there is none."""

    begin: int
    until: int
    value: float
    lower: float
    upper: float
    smoothed: float = float("nan")


PartT = TypeVar("PartT", ColouredStretch, Point)


@dataclass(frozen=True, slots=True)
class Drawing:
    """Marks, and what its edges stand for."""

    label: str
    marks: tuple[DrawnPath, ...]
    low: float = 0.0
    high: float = 1.0


def strip(span: TimeSpan, stretches: Sequence[ColouredStretch], label: str) -> Drawing:
    """Colours over time; what touches and is alike is one mark, and is never too thin to be seen."""
    frame, thinnest = Frame(WIDE, STRIP, right=span.length), span.length / 500
    paths: dict[str, str] = {}
    for style, run in groupby(stretches, key=lambda stretch: stretch.style):
        for part in _touching(list(run)):
            left = part[0].begin - span.begin
            right = max(part[-1].until - span.begin, left + thinnest)
            paths[style] = paths.get(style, "") + frame.bar(left, right, 0, 1)
    return Drawing(label, tuple(DrawnPath(style, path) for style, path in paths.items()))


def values(
    span: TimeSpan,
    points: Sequence[Point],
    truths: Sequence[tuple[int, float]],
    usual: float | None,
    label: str,
    *,
    widest: float = 1.0,
) -> Drawing | None:
    """A line with its interval, what it usually is, and the truth where labels tell; None where there is no value.

    An interval as wide as the `widest`, of shares from 0 to 1, says nothing.
    """
    points = [point for point in _thinned(points) if isfinite(point.value)]
    if not points:
        return None
    known = [point for point in points if isfinite(point.lower) and point.upper - point.lower < widest]
    drawn = [x for point in known for x in (point.lower, point.upper)] + [point.value for point in points]
    drawn += [truth for _, truth in truths] + ([] if usual is None else [usual])
    low, high = _range(min(drawn), max(drawn))
    frame = Frame(WIDE, TALL, right=span.length, low=low, high=high)
    marks = [] if usual is None else [DrawnPath("source", frame.level(usual))]
    for piece in _touching(points):
        xs = [(point.begin + point.until) / 2 - span.begin for point in piece]
        if len(piece) > 1 and all(isfinite(point.lower) for point in piece):
            marks.append(DrawnPath("band", frame.band(xs, [p.lower for p in piece], [p.upper for p in piece])))
        smoothed = [(x, point.smoothed) for x, point in zip(xs, piece, strict=True) if isfinite(point.smoothed)]
        if smoothed:
            marks.append(DrawnPath("smoothed", frame.line(*zip(*smoothed, strict=True))))
        marks.append(DrawnPath("line", frame.line(xs, [point.value for point in piece])))
    if truths:
        marks.append(DrawnPath("truth", frame.dots([at - span.begin for at, _ in truths], [y for _, y in truths])))
    return Drawing(label, tuple(marks), low, high)


def _range(low: float, high: float) -> tuple[float, float]:
    room = 0.06 * (high - low) or max(abs(high), 1e-6) * 0.1
    return (0.0, high + room) if low >= 0 and high < RARE else (max(low - room, min(low, 0.0)), high + room)


def _touching(parts: Sequence[PartT]) -> Iterator[list[PartT]]:
    """Parts with no more than half of one missing between them."""
    usual = median(part.until - part.begin for part in parts) if parts else 0
    piece: list[PartT] = []
    for part in parts:
        if piece and part.begin - piece[-1].until > usual / 2:
            yield piece
            piece = []
        piece.append(part)
    if piece:
        yield piece


def _thinned(points: Sequence[Point]) -> list[Point]:
    each = -(-len(points) // MOST_POINTS)
    groups = (points[at : at + each] for at in range(0, len(points), max(each, 1)))
    return [
        Point(group[0].begin, group[-1].until, *(fmean(column) for column in list(zip(*group, strict=True))[2:]))
        for group in groups
    ]
