"""The verdict against one of the things that a window is held against: the reference, or what was normal lately."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from monitor.assessment.verdict import Verdict
from monitor.shifts import Move


class Compared(Protocol):
    """A feature that was compared with the reference."""

    @property
    def move(self) -> Move: ...


@dataclass(frozen=True, slots=True)
class Baseline:
    """How a window stands against one of the things that it is held against."""

    verdict: Verdict
    reasons: tuple[str, ...]
    moved: tuple[str, ...] = ()
    """The features that differ, those that differ the most first."""


def baselines(
    verdict: Verdict, reasons: tuple[str, ...], features: Mapping[str, Compared], recent: Baseline | None = None
) -> Mapping[str, Baseline]:
    """Against the `reference`, and against the `recent` normal where one is known."""
    moves = [(name, shift.move) for name, shift in features.items() if shift.move.moved]
    moves.sort(key=lambda pair: -pair[1].distance)
    against_reference = Baseline(verdict, reasons, tuple(name for name, _ in moves))
    return {"reference": against_reference} | ({} if recent is None else {"recent": recent})
