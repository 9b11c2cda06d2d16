"""What every prior estimator takes and returns: the estimate, and the parts of a reference that it may use."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from monitor.arrays import Labels, Matrix, Vector
from monitor.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class PriorEstimate:
    """How much of each class a window holds, how sure that is, and how the method got there."""

    method: str
    priors: Vector
    lower: Vector
    upper: Vector
    events: int
    iterations: int
    converged: bool
    gap: float
    """Certified bound on the shortfall of the objective; 0 for methods that solve exactly."""
    stop_reason: str
    unique: bool


Statistics = Mapping[str, "Vector | Matrix"]


@dataclass(frozen=True, slots=True, eq=False)
class HoldOut:
    """Labelled hold-out events with out-of-sample calibrated posteriors: what a reference is reduced from."""

    posteriors: Matrix
    labels: Labels
    features: Matrix | None
    seed: int


class ReferenceView(Protocol):
    """The parts of a reference that an estimator may use; `monitor.reference.Reference` satisfies it."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def source_priors(self) -> Vector: ...

    @property
    def class_counts(self) -> Vector: ...

    @property
    def statistics(self) -> Mapping[str, Statistics]: ...

    def prepare(self, window: Window) -> Window:
        """The window with calibrated posteriors, as the statistics were computed from."""
        ...


@dataclass(frozen=True, slots=True)
class Estimator:
    """A registry entry: what is kept of the hold-out data, and how a prepared window is estimated from it."""

    name: str
    summarise: Callable[[HoldOut], Statistics]
    estimate: Callable[[Window, ReferenceView], PriorEstimate]

    def __call__(self, window: Window, reference: ReferenceView) -> PriorEstimate:
        return self.estimate(reference.prepare(window), reference)
