"""Over many windows: change points. The only part of the shifts that remembers anything.

River's detectors watch the series of what windows said (or raw scores, by hand: they take one number at a time), and
our own prior-shift test is one of them. `monitor.state.changes` runs them in the service.
"""

import random
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from river import base, drift
from scipy.special import ndtr

from monitor.arrays import Vector
from monitor.errors import InputError
from monitor.priors import Statistics, em
from monitor.shifts.detector_value import DetectorValue
from monitor.tolerances import VERDICT_LEVEL

MADE_BY = f"river {version('river')}"
"""What the values of its detectors hold for: what their bytes mean is River's own affair."""


class Detector(Protocol):
    """A detector that can be put down as a value, and go on from there as if nothing had been."""

    @property
    def drift_detected(self) -> bool: ...

    def update(self, x: Any) -> None: ...

    def value(self) -> DetectorValue:
        """What it knows, unless it has just detected something: then it starts over with the next value."""
        ...

    def go_on(self, value: DetectorValue) -> None:
        """Go on from what an earlier process knew."""
        ...


class BoundedADWIN(drift.ADWIN):
    """ADWIN for standardised values: its bound is for 0..1, so it sees the normal law's share below z / 3, which is all
    but straight up to 3 and tells levels apart up to 8."""

    def update(self, x: float) -> None:
        """Take one value."""
        super().update(float(ndtr(x / 3)))  # type: ignore[no-untyped-call]

    def value(self) -> DetectorValue:
        """The detector's buckets, as River packs them."""
        return DetectorValue(data=self._helper.__getstate__())

    def go_on(self, value: DetectorValue) -> None:
        """Go on from what an earlier process knew."""
        self._helper.__setstate__(value.data)


class SteadyPageHinkley(drift.PageHinkley):
    """Page and Hinkley's sums."""

    SUMS = ("_sum_increase", "_sum_decrease", "_min_increase", "_max_decrease")

    def value(self) -> DetectorValue:
        """The count, the mean, and four sums."""
        sums = vars(self)
        return DetectorValue((self._x_mean.n, self._x_mean.get(), *(sums[name] for name in self.SUMS)))

    def go_on(self, value: DetectorValue) -> None:
        """Go on from what an earlier process knew."""
        count, mean, *sums = value.numbers
        self._x_mean.update(mean, w=count)
        vars(self).update(zip(self.SUMS, sums, strict=True))


class RepeatableKSWIN(drift.KSWIN):
    """KSWIN draws at random; here what it draws depends on how many values there were, so that a detector that goes
    on draws as the one that was never interrupted."""

    def update(self, x: float) -> None:
        """Take one value."""
        if self.drift_detected:
            self._reset()  # type: ignore[no-untyped-call]
        self._rng = random.Random(self.n)  # noqa: S311 - no secret hangs on it
        super().update(x)  # type: ignore[no-untyped-call]

    def value(self) -> DetectorValue:
        """How many values there have been, and the last of them."""
        return DetectorValue((self.n, *self.window))

    def go_on(self, value: DetectorValue) -> None:
        """Go on from what an earlier process knew."""
        count, *window = value.numbers
        self.n = int(count)
        self.window.extend(window)


# All take standardised values, one a window: 0 with a standard deviation of 1 while nothing moves. River's defaults are
# for other scales.
DETECTORS: dict[str, Callable[[], Detector]] = {
    # By default ADWIN waits for 32 values between checks. Its bound is loose: with the default delta of 0.002 it takes
    # half as long again, and with 0.05 its false alarms still stay far below one in twenty.
    "adwin": lambda: BoundedADWIN(delta=0.05, clock=1, grace_period=5, min_window_length=3),  # type: ignore[no-untyped-call]
    # A sum that drifts back by half a deviation a window comes up to 10 by chance once in some 20,000 windows.
    "page-hinkley": lambda: SteadyPageHinkley(min_instances=10, delta=0.5, threshold=10.0),
    "kswin": lambda: RepeatableKSWIN(alpha=0.001, window_size=60, stat_size=20),
}


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A series has another level since about this window."""

    series: str
    window: str
    detector: str


@dataclass(slots=True)
class ChangePoints:
    """Watches several series of standardised numbers, one value a window, with one detector each."""

    detector: str = "adwin"
    watched: dict[str, Detector] = field(default_factory=dict)

    def update(self, window: str, values: Mapping[str, float]) -> list[LevelChange]:
        """Take the values of one window; a series that is new starts here, a value that is not finite is skipped."""
        changes = []
        for series, value in sorted(values.items()):
            if not np.isfinite(value):
                continue
            if series not in self.watched:
                self.watched[series] = detector(self.detector)
            self.watched[series].update(value)
            if self.watched[series].drift_detected:
                changes.append(LevelChange(series, window, self.detector))
        return changes


def detector(name: str) -> Detector:
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

    def value(self) -> DetectorValue:
        """The posteriors that the next test looks back on, in single precision."""
        return DetectorValue((self._since, len(self._last)), np.array(self._last, dtype=np.float32).tobytes())

    def go_on(self, value: DetectorValue) -> None:
        """Go on from what an earlier process knew."""
        since, rows = map(int, value.numbers)
        self._since = since
        if rows:
            self._last.extend(np.frombuffer(value.data, dtype=np.float32).reshape(rows, -1).astype(np.float64))
