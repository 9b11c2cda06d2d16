"""The class mix that is usual at this time of the day, of the week or of the year: what a window's mix is held against.

By day other classes come than by night. A window is then no shift because it is not as the whole hold-out was, but
where it is not as the hold-out was at the same time.

Notation. P is the length of the season, l that of a window. The windows' lengths b of the hold-out have class shares
p_b, n_b events, and the phase f(b) = floor((t_b mod P) / l), t_b their middle. K_f of the K lengths have phase f, of F
phases. With m_f the shares of all events of a phase, m their mean over the phases and pi the hold-out's, phases of
which little is known are drawn to what is usual at any time (James and Stein):

    pi_f = pi + B (m_f - m),   B = max(0, 1 - mean_f (s^2 / K_f) / v)
    s^2 = sum_b |p_b - m_f(b)|^2 / (K - F),   v = sum_f |m_f - m|^2 / (F - 1)

A hold-out whose mix does not follow the season has B near 0, and then nothing changes. Each block of the hold-out is
held against the other blocks of its phase (leave one out).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.shifts.phases import Mates, Phases
from monitor.tolerances import FEWEST_OF_PHASE, INPUT_PHASES, KNOWN_TIME


@dataclass(frozen=True, slots=True, eq=False)
class UsualMix:
    """The class mix that is usual at some time."""

    shares: Vector
    events: float
    """Of the hold-out, at this time."""


@dataclass(frozen=True, eq=False)
class Season:
    """The class mix of the hold-out by phase. Times are microseconds."""

    length: int
    """P."""
    window: int
    """l."""
    starts: Labels
    """Of every window's length of the hold-out, also of those that are kept as no block."""
    counts: Matrix
    """n_by, (windows' lengths, classes)."""

    @classmethod
    def of(cls, length: int, window: int, window_of_row: Labels, labels: Labels, classes: int) -> Self:
        """From the window's length in which each row of the hold-out lies, as a number since the epoch."""
        numbers, number = np.unique(window_of_row, return_inverse=True)
        counts = np.bincount(number * classes + labels, minlength=numbers.size * classes)
        return cls(length, window, numbers * window, counts.reshape(-1, classes).astype(np.float64))

    def usual(self, start: int, end: int) -> UsualMix:
        """At the time of a window."""
        phase = int(self._phase((start + end) // 2))
        known = np.flatnonzero(self._phases == phase)
        if not known.size:
            return UsualMix(self._overall, float(self.counts.sum()))
        at = self._number[known[0]]
        return UsualMix(self._drawn(self._mixes[at] - self._mean), float(self._of_phase[at].sum()))

    def usual_of_others(self, moments: Labels) -> Matrix:
        """At the time of each window's length of the hold-out that holds such a moment, by the others of its phase."""
        at = np.searchsorted(self.starts, moments // self.window * self.window)
        left = self._of_phase[self._number[at]] - self.counts[at]
        events = left.sum(axis=1, keepdims=True)
        # Of a phase that came once the others know nothing: what is usual at any time.
        return self._drawn(np.where(events > 0, (left + self._overall) / (events + 1) - self._mean, 0.0))

    @property
    def phases(self) -> Phases:
        """Of inputs, of which less is known than of the class mix: there are fewer."""
        return phases_of_inputs(self.length, self.window)

    def mates(self, starts: Labels, stretch: Labels) -> Mates:
        """Blocks with such starts by the phase of inputs."""
        slot = starts // self.window
        phase = self.phases.of(slot * self.window + self.window // 2)
        return Mates(np.where(often_enough(phase, slot * self.window // self.length), phase, -1), stretch,
                     self.phases.number)  # fmt: skip

    def when(self, start: int, end: int, known: Flags) -> Vector | None:
        """How much of a window's events lies in each phase of inputs, as usual; None where it does not say when it was,
        or too much of it lies where nothing is known."""
        if end <= start:
            return None
        events = self.phases.overlap(start, end) * self._traffic
        inside = float(events[known].sum())
        if inside <= 0 or inside < KNOWN_TIME * float(events.sum()):
            return None
        return np.asarray(np.where(known, events, 0.0) / inside)

    @property
    def explained(self) -> float:
        """How much of the variance of the mix between windows' lengths goes with the phase."""
        shares = self._shares
        total = float(((shares - shares.mean(axis=0)) ** 2).sum())
        free = max(len(shares) - len(self._mixes), 1)
        return max(1 - self._within / free / (total / max(len(shares) - 1, 1)), 0.0) if total > 0 else 0.0

    def described(self) -> dict[str, int]:
        """What a file's header says of it."""
        return {"length": self.length, "window": self.window}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds of it; `from_arrays` is the way back."""
        return {"season_starts": self.starts, "season_counts": self.counts}

    @classmethod
    def from_arrays(cls, described: Mapping[str, int], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `described` and `to_arrays` wrote."""
        return cls(described["length"], described["window"], arrays["season_starts"], arrays["season_counts"])

    def _phase(self, middle: Labels | int) -> Labels:
        return np.asarray(middle % self.length // self.window, dtype=np.int64)

    @cached_property
    def _phases(self) -> Labels:
        """f(b)."""
        return self._phase(self.starts + self.window // 2)

    @cached_property
    def _number(self) -> Labels:
        """Which of the phases that occur each of them is."""
        return np.unique(self._phases, return_inverse=True)[1]

    @cached_property
    def _traffic(self) -> Vector:
        """Events by phase of inputs."""
        phase = self.phases.of(self.starts + self.window // 2)
        return np.asarray(
            np.bincount(phase, weights=self.counts.sum(axis=1), minlength=self.phases.number), dtype=np.float64
        )

    @cached_property
    def _of_phase(self) -> Matrix:
        """Events of each class, by phase."""
        summed = np.zeros((int(self._number.max()) + 1, self.counts.shape[1]))
        np.add.at(summed, self._number, self.counts)
        return summed

    @cached_property
    def _overall(self) -> Vector:
        """pi."""
        return np.asarray(self.counts.sum(axis=0) / self.counts.sum())

    @cached_property
    def _mixes(self) -> Matrix:
        """m_f, with one event of the hold-out more: no class is out of the question at any time."""
        return np.asarray((self._of_phase + self._overall) / (self._of_phase.sum(axis=1, keepdims=True) + 1))

    @cached_property
    def _mean(self) -> Vector:
        """m."""
        return np.asarray(self._mixes.mean(axis=0))

    @cached_property
    def _shares(self) -> Matrix:
        """p_b."""
        return np.asarray(self.counts / self.counts.sum(axis=1, keepdims=True))

    @cached_property
    def _within(self) -> float:
        """sum_b |p_b - m_f(b)|^2."""
        return float(((self._shares - self._mixes[self._number]) ** 2).sum())

    @cached_property
    def _believed(self) -> float:
        """B."""
        phases = len(self._mixes)
        free = len(self._number) - phases
        between = float(((self._mixes - self._mean) ** 2).sum()) / max(phases - 1, 1)
        if free <= 0 or between <= 0:
            return 0.0
        noise = self._within / free * float((1 / np.bincount(self._number)).mean())
        return max(1 - noise / between, 0.0)

    def _drawn(self, away: NDArray[np.float64]) -> NDArray[np.float64]:
        """pi + B (m_f - m) on the simplex, and inside of it."""
        least = self._overall / (float(self.counts.sum()) + 1)
        mix = np.maximum(self._overall + self._believed * away, least)
        return np.asarray(mix / mix.sum(axis=-1, keepdims=True))


def phases_of_inputs(length: int, window: int) -> Phases:
    """As long as a window at least, and not too many to have some blocks each."""
    return Phases(length, min(length // window, INPUT_PHASES))


def often_enough(phase: Labels, season: Labels) -> Flags:
    """Which blocks lie in a phase that enough seasons had a block of."""
    seasons = np.unique(np.stack([phase, season]), axis=1)[0]
    return np.asarray(np.bincount(seasons, minlength=int(phase.max(initial=0)) + 1)[phase] >= FEWEST_OF_PHASE)
