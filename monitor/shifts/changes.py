"""Over many windows: change points. The only part of the shifts that remembers anything.

River's detectors watch the series of what windows said (or raw scores, by hand: they take one number at a time), and
our own prior-shift test is one of them. `monitor.observers.alarms` runs them in the service.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from river import base, drift
from scipy.special import ndtr

from monitor.arrays import Vector
from monitor.errors import InputError
from monitor.priors import em
from monitor.priors.estimate import Statistics
from monitor.tolerances import VERDICT_LEVEL


class BoundedADWIN(drift.ADWIN):
    """ADWIN for standardised values: its bound is for 0..1, so it sees the normal law's share below z / 3, which is all
    but straight up to 3 and tells levels apart up to 8."""

    def update(self, x: float) -> None:
        """Take one value."""
        super().update(float(ndtr(x / 3)))  # type: ignore[no-untyped-call]


# All take standardised values, one a window: 0 with a standard deviation of 1 while nothing moves. River's defaults are
# for other scales.
DETECTORS: dict[str, Callable[[], base.DriftDetector]] = {
    # By default ADWIN waits for 32 values between checks. Its bound is loose: with the default delta of 0.002 it takes
    # half as long again, and with 0.05 its false alarms still stay far below one in twenty.
    "adwin": lambda: BoundedADWIN(delta=0.05, clock=1, grace_period=5, min_window_length=3),  # type: ignore[no-untyped-call]
    # A sum that drifts back by half a deviation a window comes up to 10 by chance once in some 20,000 windows.
    "page-hinkley": lambda: drift.PageHinkley(min_instances=10, delta=0.5, threshold=10.0),
    # KSWIN draws at random: the seed is part of its definition here.
    "kswin": lambda: drift.KSWIN(alpha=0.001, window_size=60, stat_size=20, seed=0),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A series has another level since about this window."""

    series: str
    window: str
    detector: str


@dataclass(slots=True)
class ChangePoints:
    """Watches several series of standardised numbers, one value a window, with one detector each."""

    detector: str = "adwin"
    watched: dict[str, base.DriftDetector] = field(default_factory=dict)

    def update(self, window: str, values: Mapping[str, float]) -> list[Change]:
        """Take the values of one window; a series that is new starts here, a value that is not finite is skipped."""
        found = []
        for series, value in sorted(values.items()):
            if not np.isfinite(value):
                continue
            if series not in self.watched:
                self.watched[series] = detector(self.detector)
            self.watched[series].update(value)
            if self.watched[series].drift_detected:
                found.append(Change(series, window, self.detector))
        return found


def detector(name: str) -> base.DriftDetector:
    """A fresh detector by name."""
    if name not in DETECTORS:
        raise InputError(f"detector: want one of {sorted(DETECTORS)}, got {name!r}")
    return DETECTORS[name]()


class PriorShiftDetector(base.DriftDetector):
    """Has the class mix moved? The likelihood-ratio test over the last events, for River's users.

    Takes one posterior vector, or the positive class's posterior of two, at a time; every `step` events it tests
    the last `size` against the source priors. After a detection it starts over, as River's detectors do.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> detector = PriorShiftDetector([0.9, 0.1], size=500, step=100)
    >>> def scores(rate, n):
    ...     z = rng.normal(size=n) + 2.0 * (rng.random(n) < rate)
    ...     return 1 / (1 + np.exp(-(2 * z - 2 + np.log(0.1 / 0.9))))
    >>> detected = []
    >>> for i, score in enumerate(np.concatenate([scores(0.1, 2000), scores(0.3, 2000)])):
    ...     detector.update(score)
    ...     if detector.drift_detected:
    ...         detected.append(i)
    >>> detected[0] > 2000
    True
    """

    def __init__(
        self,
        source_priors: ArrayLike,
        size: int = 1_000,
        step: int = 100,
        level: float = VERDICT_LEVEL,
        null: Statistics | None = None,
    ) -> None:
        super().__init__()
        self.source_priors = source_priors
        self.size = size
        self.step = step
        self.level = level
        self.null = null
        self.priors: Vector = np.asarray(source_priors, dtype=np.float64)
        """The class mix of the last test."""
        self.p_value = 1.0
        self._last: deque[Vector] = deque(maxlen=size)
        self._since = 0

    def update(self, x: Any) -> None:
        """Take one event's posterior."""
        if self.drift_detected:
            self._reset()
            self._last.clear()
            self._since = 0
        posterior = np.atleast_1d(np.asarray(x, dtype=np.float64))
        self._last.append(np.array([1 - posterior[0], posterior[0]]) if posterior.size == 1 else posterior)
        self._since += 1
        if len(self._last) < self.size or self._since < self.step:
            return
        self._since = 0
        rows = np.array(self._last)
        tested = em.likelihood_ratio(rows, self.source_priors, self.null)
        self.p_value = tested.p_value
        self.priors = em.maximum_likelihood(rows, self.source_priors).priors
        self._drift_detected = tested.p_value < self.level
