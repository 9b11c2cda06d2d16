"""What every prior estimator takes and returns: the estimate, and the parts of a reference that it may use."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.arrays import Flags, Labels, Matrix, Vector, column_sums
from monitor.errors import InputError
from monitor.limits import CHECKED_ROWS, MAP_BLOCK_VALUES
from monitor.tolerances import POSTERIOR_SUM
from monitor.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class PriorEstimate:
    """How much of each class a window holds, how sure that is, and how the method got there.

    Used as an array it is its priors. Where a method has no honest interval (it is biased, or it was not given the
    reference's counts) the interval is [0, 1]: nothing is claimed.
    """

    method: str
    priors: Vector
    lower: Vector
    upper: Vector
    events: int
    """Rows that were used."""
    iterations: int
    converged: bool
    gap: float
    """Certified bound on the shortfall of the objective; 0 for methods that solve exactly."""
    stop_reason: str
    unique: bool
    dropped: int = 0
    """Rows that could not be used: all zero, negative, or not finite."""
    log_likelihood: float | None = None
    """Mean log-likelihood above that of the source priors, for the methods that maximise it."""
    deficit: float | None = None
    """Share that no class of the reference explains; only the soft methods know it."""
    deficit_error: float | None = None
    """Standard error of the deficit under label shift alone."""
    standard_errors: Vector | None = None
    """Per class; None where no interval is claimed."""
    bias: Vector | None = None
    """What of the standard errors is due to another estimate that contradicts this one beyond chance."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.priors, dtype=dtype) if copy or dtype is not None else self.priors


def frozen(values: Vector) -> Vector:
    """The same array, read-only: for arrays that the caller has just made."""
    values.flags.writeable = False
    return values


def no_events(method: str, priors: Vector, dropped: int) -> PriorEstimate:
    """The answer to a window without usable rows: nothing moved, and nothing is known."""
    return PriorEstimate(
        method=method,
        priors=frozen(np.array(priors)),
        lower=frozen(np.zeros(priors.size)),
        upper=frozen(np.ones(priors.size)),
        events=0,
        iterations=0,
        converged=False,
        gap=0.0,
        stop_reason="no events",
        unique=False,
        dropped=dropped,
    )


def without_interval(method: str, priors: Vector, events: int, *, dropped: int = 0, **how: Any) -> PriorEstimate:
    """An estimate that claims no interval; `how` overrides the account of a closed-form solution."""
    account: dict[str, Any] = {
        "iterations": 1,
        "converged": True,
        "gap": 0.0,
        "stop_reason": "closed form",
        "unique": True,
    } | how
    return PriorEstimate(
        method=method,
        priors=frozen(np.array(priors, dtype=np.float64)),
        lower=frozen(np.zeros(priors.size)),
        upper=frozen(np.ones(priors.size)),
        events=events,
        dropped=dropped,
        **account,
    )


def usable_rows(posteriors: ArrayLike) -> tuple[Matrix, int]:
    """The rows that mean something, and how many do not. Rows that do not sum to one are made to.

    A clean matrix is passed on as it is: a million events are not copied to be checked.
    """
    matrix = np.asarray(posteriors, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(f"posteriors: want shape (events, classes), got {matrix.shape}")
    if all(_clean(matrix[begin : begin + CHECKED_ROWS]) for begin in range(0, matrix.shape[0], CHECKED_ROWS)):
        return matrix, 0
    good = usable(matrix)
    kept = matrix[good]
    # By the largest first: the sum of tiny numbers has no inverse, and that of huge ones is infinite.
    kept /= kept.max(axis=1, keepdims=True, initial=0.0)
    kept /= kept.sum(axis=1, keepdims=True)
    return kept, int(matrix.shape[0] - good.sum())


def usable_in(window: Window) -> tuple[Matrix, int]:
    """`usable_rows` of a window, which every estimator asks for."""
    return window.once("usable rows", usable_rows)


def usable(posteriors: Matrix) -> Flags:
    """Which rows mean something: neither all zero, nor negative, nor infinite, nor not a number."""
    with np.errstate(invalid="ignore"):
        return np.asarray(
            (posteriors >= 0).all(axis=1) & (posteriors < np.inf).all(axis=1) & (posteriors > 0).any(axis=1)
        )


def _clean(block: Matrix) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        sums = block @ np.ones(block.shape[1])
    near = 2.0 * POSTERIOR_SUM
    return bool(sums.min() > 1.0 - near and sums.max() < 1.0 + near and block.min() >= 0)


def positive_priors(priors: ArrayLike, classes: int, name: str = "source_priors") -> Vector:
    """Priors that sum to one; a class without any is an error that names it."""
    vector = np.asarray(priors, dtype=np.float64)
    if vector.shape != (classes,):
        raise InputError(f"{name}: want shape ({classes},), got {vector.shape}")
    if not (np.isfinite(vector).all() and (vector > 0).all()):
        bad = np.flatnonzero(~(np.isfinite(vector) & (vector > 0)))
        raise InputError(f"{name}: want every class above 0, got {vector[bad[0]]} for class {bad[0]}")
    return np.asarray(vector / vector.sum())


Statistics = Mapping[str, "Vector | Matrix"]


@dataclass(frozen=True, slots=True, eq=False)
class HoldOut:
    """Labelled hold-out events with out-of-sample calibrated posteriors: what a reference is reduced from."""

    posteriors: Matrix
    labels: Labels
    features: Matrix | None
    seed: int


def labelled_rows(hold_out: HoldOut) -> tuple[Matrix, Labels, Vector]:
    """Posteriors and labels of the hold-out rows whose label is known, and how many there are of each class."""
    known = hold_out.labels >= 0
    labels = hold_out.labels[known]
    counts = np.bincount(labels, minlength=hold_out.posteriors.shape[1]).astype(np.float64)
    return hold_out.posteriors[known], labels, counts


def beside_rows(window: Window, name: str) -> tuple[Vector, int]:
    """What the events whose rows were left out add to the sum of an image over all events, and how many they are."""
    return (np.zeros(1), 0) if window.left_out is None else (window.left_out.sum(name), window.left_out.events)


def sum_of(window: Window, image: "Image") -> Vector:
    """The sum of an image over a window's usable rows, a cache-sized block at a time."""

    def summed(_: Matrix) -> Vector:
        g = usable_in(window)[0]
        blocks = (image.apply({}, g[begin:end]) for begin, end in row_blocks(*g.shape))
        return np.asarray(sum(map(column_sums, blocks)))

    return window.once(image.name, summed)


def row_blocks(rows: int, width: int) -> Iterator[tuple[int, int]]:
    """Rows whose images have this width, a cache-sized block at a time."""
    size = max(MAP_BLOCK_VALUES // max(width, 1), 16)
    return ((begin, min(begin + size, rows)) for begin in range(0, rows, size))


def nothing(_hold_out: HoldOut) -> Statistics:
    """No statistics: for estimators that keep nothing of the reference, or that read what another one keeps."""
    return {}


class ReferenceView(Protocol):
    """The parts of a reference that an estimator may use; `monitor.reference.classifier.Reference` satisfies it."""

    def __hash__(self) -> int: ...

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


@dataclass(frozen=True, slots=True, eq=False)
class CalibratedView:
    """A `ReferenceView` by value, for windows that are calibrated already."""

    classes: tuple[str, ...]
    source_priors: Vector
    class_counts: Vector
    statistics: Mapping[str, Statistics]

    def prepare(self, window: Window) -> Window:
        return window


Answers = Callable[[str], PriorEstimate]
"""The answer of the estimator of this name to the window at hand."""


class Image(Protocol):
    """What an event is turned into before it is added up."""

    @property
    def name(self) -> str: ...
    @property
    def apply(self) -> Callable[[Statistics, Matrix], Matrix]: ...


@dataclass(frozen=True, slots=True)
class Estimator:
    """A registry entry: what is kept of the hold-out data, and how a prepared window is estimated from it."""

    name: str
    summarise: Callable[[HoldOut], Statistics]
    estimate: Callable[[Window, ReferenceView], PriorEstimate]
    binary_only: bool = False
    needs_features: bool = False
    always: bool = False
    """A few milliseconds a window at most: every window reports it, whatever its reference has chosen."""
    most_rows: int | None = None
    """More hold-out rows than these are not worth their time: a stratified sample of them is summarised."""
    building_on: "Callable[[Window, ReferenceView, Answers], PriorEstimate] | None" = None
    """`estimate` for one that needs the answers of others: a caller who has them, or wants them too, passes them."""
    summed: Image | None = None
    """Of a calibrated posterior; where it needs no more of a window than its sum, it needs no rows (`beside_rows`)."""

    def __call__(self, window: Window, reference: ReferenceView) -> PriorEstimate:
        self.check_applies(len(reference.classes), window.has_features, "the window")
        return self.estimate(reference.prepare(window), reference)

    def check_applies(self, classes: int, features: bool, where: str) -> None:
        """Raise where `applies_to` says no; `where` features are looked for, in words."""
        if not self.applies_to(classes, features):
            wanted = "two classes" if self.binary_only and classes != 2 else f"features in {where}"
            raise InputError(f"{self.name}: want {wanted}; the reference has {classes} classes")

    @property
    def needs(self) -> tuple[str, ...]:
        """What a reference must have beyond posteriors, in words."""
        wanted = {"two classes": self.binary_only, "features": self.needs_features}
        return tuple(name for name, needed in wanted.items() if needed)

    def applies_to(self, classes: int, features: bool) -> bool:
        """Whether it can be used with that many classes, and with or without features."""
        return (classes == 2 or not self.binary_only) and (features or not self.needs_features)
