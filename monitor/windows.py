"""What a window is: frozen columns of events with an identity. Everything that makes, merges or orders one.

A window is algebra: `merge` is associative and commutative, and `ordered` puts the rows into an order that
depends on the rows alone, so any batching and any arrival order gives the same bytes downstream.
"""

from dataclasses import dataclass
from typing import Self

from numpy.typing import ArrayLike

from monitor.arrays import Labels, Matrix, Vector, frozen_labels, frozen_matrix


@dataclass(frozen=True, slots=True)
class WindowKey:
    """The identity of a window; times are microseconds since the epoch, `end` exclusive."""

    stream: str = ""
    segment: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """What happened to the records of a window, beyond the rows that it holds."""

    late: int = 0
    rejected: int = 0
    sampled_out: int = 0
    """Events above the maximum that the reservoir left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The events of one window, as columns. NaN in `features` is a missing value."""

    posteriors: Matrix
    features: Matrix | None = None
    labels: Labels | None = None
    predictions: Vector | None = None
    key: WindowKey = WindowKey()
    counts: WindowCounts = WindowCounts()
    closed_because: str = ""

    @classmethod
    def of(
        cls,
        posteriors: ArrayLike,
        features: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> Self:
        """A window from plain arrays: posteriors (events, classes), features (events, features), class numbers."""
        matrix = frozen_matrix(posteriors, "posteriors")
        rows = matrix.shape[0]
        return cls(
            posteriors=matrix,
            features=None if features is None else frozen_matrix(features, "features"),
            labels=None if labels is None else frozen_labels(labels, "labels", rows),
        )

    @property
    def events(self) -> int:
        """How many rows the window holds."""
        return int(self.posteriors.shape[0])
