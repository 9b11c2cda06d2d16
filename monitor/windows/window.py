"""What a window is: frozen columns of events with an identity. Everything that makes, merges or orders one.

A window is algebra: `merge` is associative and commutative up to the order of rows, and `ordered` puts the rows
into an order that depends on the rows alone, so any batching and any arrival order gives the same bytes downstream.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor.arrays import (
    UNLABELLED,
    Flags,
    Labels,
    Matrix,
    Vector,
    frozen_labels,
    frozen_matrix,
    frozen_vector,
    present,
)
from monitor.errors import InputError
from monitor.windows.frame import Columns, is_frame
from monitor.windows.origin import WHOLE, Origin
from monitor.windows.tally import Tally

OTHER_SEGMENTS = "(other)"

Rows = NDArray[np.int64] | Flags | slice
_Item = TypeVar("_Item", bound=np.generic)
_Table = TypeVar("_Table", Matrix, Columns)
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class WindowKey:
    """The identity of a window; times are microseconds since the epoch, `end` exclusive."""

    stream: str = ""
    segment: str = ""
    start: int = 0
    end: int = 0
    number: int = 0
    """Count windows are numbered from 1: two of them may cover the same time."""
    part: str = ""
    """The partitions of one member's part, where a stream is spread over the members of a group."""

    @property
    def id(self) -> str:
        """The same for the same window after any restart: what results are keyed by."""
        numbered = f"/{self.number}" if self.number else ""
        return f"{self.stream}/{self.segment}/{self.start}/{self.end}{numbered}{self.of_part}"

    @property
    def of_part(self) -> str:
        """What sets the keys of a part apart from those of other parts; empty for whole windows."""
        return f"@{self.part}" if self.part else ""


@dataclass(frozen=True, slots=True)
class WindowCounts:
    """What happened to the records of a window, beyond the rows that it holds."""

    late: int = 0
    rejected: int = 0
    sampled_out: int = 0
    """Events above the maximum, left out by the reservoir."""

    def __add__(self, other: Self) -> Self:
        return replace(
            self,
            late=self.late + other.late,
            rejected=self.rejected + other.rejected,
            sampled_out=self.sampled_out + other.sampled_out,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """Which segment each row belongs to: `names[codes[i]]`."""

    codes: NDArray[np.int32]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Unread:
    """What of a window only a reference can read, as it knows the order of classes and the kinds of features."""

    classes: tuple[str, ...] | None = None
    """Which class each column of the posteriors belongs to; None where they are in the reference's order, or are one
    column: the posterior of the reference's positive class."""
    features: Columns | None = None
    """In place of the window's features."""

    def take(self, rows: Rows) -> Self:
        """The same with only these rows."""
        return replace(self, features=None if self.features is None else self.features.take(rows))


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The events of one window, as columns. NaN in `features` is a missing value."""

    posteriors: Matrix
    """As the model says them; where its reference is of margins these, until the reference has calibrated them."""
    features: Matrix | None = None
    labels: Labels | None = None
    """Class numbers, `UNLABELLED` where not known; None when no event of the window is labelled."""
    predictions: Vector | None = None
    """A regressor's outputs; the posteriors of a regression stream have no columns."""
    targets: Vector | None = None
    """What a regressor should have said, NaN where not known."""
    timestamps: Labels | None = None
    happened: Labels | None = None
    """Of evidence: when its events happened, where `timestamps` say when their labels came."""
    ids: NDArray[np.object_] | None = None
    segments: Segments | None = None
    evidence: Self | None = None
    """Labelled rows to judge a regressor by: this window's, and of as many before it as were needed."""
    key: WindowKey = WindowKey()
    counts: WindowCounts = WindowCounts()
    closed_because: str = ""
    origin: Origin = WHOLE
    unread: Unread | None = None
    """What came as data frames, until a reference reads it; windows of the service have none."""
    left_out: Tally | None = None
    """What is known of the events above the maximum, where somebody counts them."""

    _of_posteriors: dict[str, Any] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, posteriors: Any, features: Any = None, labels: ArrayLike | None = None) -> Self:
        """A window from posteriors (events, classes), features (events, features) and class numbers.

        Posteriors and features may be arrays or data frames. Of a frame the reference finds the columns by name: its
        classes, or its features, which may be text. Arrays are in its order. A vector of posteriors is that of the
        positive class. A reference of margins wants margins in the place of posteriors.
        """
        matrix, classes = _scores(posteriors)
        inputs, columns = _table(features, matrix.shape[0])
        unread = Unread(classes, columns) if classes or columns is not None or matrix.shape[1] == 1 else None
        return cls(
            posteriors=matrix,
            features=inputs,
            labels=None if labels is None else frozen_labels(labels, "labels", matrix.shape[0]),
            unread=unread,
        )

    @classmethod
    def of_predictions(cls, predictions: ArrayLike, features: Any = None, targets: ArrayLike | None = None) -> Self:
        """A regressor's window. `features` may be a data frame; `targets` are NaN where the truth is not known."""
        said = frozen_vector(predictions, "predictions")
        table, columns = _table(features, said.size)
        return cls(
            posteriors=frozen_matrix(np.empty((said.size, 0)), "posteriors"),
            features=table,
            predictions=said,
            targets=None if targets is None else frozen_vector(targets, "targets", said.size),
            unread=None if columns is None else Unread(features=columns),
        )

    @property
    def events(self) -> int:
        """How many rows the window holds."""
        return int(self.posteriors.shape[0])

    @property
    def has_features(self) -> bool:
        """Whether the events came with features, in whatever form."""
        return self.features is not None or (self.unread is not None and self.unread.features is not None)

    @property
    def times(self) -> Labels:
        """The timestamps of events that have them, as all have that the decoder made."""
        return present(self.timestamps, "timestamps of a window")

    @property
    def labelled(self) -> Flags:
        """Which rows carry their truth: a class, or a number."""
        known = np.zeros(self.events, dtype=np.bool_)
        if self.labels is not None:
            known |= self.labels != UNLABELLED
        if self.targets is not None:
            known |= ~np.isnan(self.targets)
        return known

    def take(self, rows: Rows) -> Self:
        """The same window with only these rows, in this order."""
        return replace(
            self,
            posteriors=_read_only(self.posteriors[rows]),
            features=_picked(self.features, rows),
            labels=_picked(self.labels, rows),
            predictions=_picked(self.predictions, rows),
            targets=_picked(self.targets, rows),
            timestamps=_picked(self.timestamps, rows),
            happened=_picked(self.happened, rows),
            ids=_picked(self.ids, rows),
            segments=None
            if self.segments is None
            else Segments(_read_only(self.segments.codes[rows]), self.segments.names),
            unread=None if self.unread is None else self.unread.take(rows),
        )

    def once(self, name: str, work: Callable[[Matrix], _Made]) -> _Made:
        """What this makes of its posteriors: worked out once, by whoever asks first."""
        if name not in self._of_posteriors:
            self._of_posteriors[name] = work(self.posteriors)
        known: _Made = self._of_posteriors[name]
        return known

    def alone(self) -> Self:
        """Its rows as if they were all of its events."""
        return self if self.left_out is None else replace(self, left_out=None)


Counting = Callable[[Window], Tally]
"""Counts rows that are about to be let go."""


def merge(windows: Sequence[Window]) -> Window:
    """All rows and counts of several parts of one window; the key and the closing reason are the first part's."""
    first = windows[0]
    if len(windows) == 1:
        return first
    sizes = [part.events for part in windows]
    return replace(
        first,
        posteriors=_read_only(np.concatenate([part.posteriors for part in windows])),
        features=_joined([part.features for part in windows], sizes, np.nan),
        labels=_joined([part.labels for part in windows], sizes, UNLABELLED),
        predictions=_joined([part.predictions for part in windows], sizes, np.nan),
        targets=_joined([part.targets for part in windows], sizes, np.nan),
        timestamps=_joined([part.timestamps for part in windows], sizes, 0),
        happened=_joined([part.happened for part in windows], sizes, 0),
        ids=_joined([part.ids for part in windows], sizes, None),
        segments=_joined_segments(windows),
        counts=sum((part.counts for part in windows), WindowCounts()),
        left_out=_added_up([part.left_out for part in windows]),
    )


def ordered(window: Window) -> Window:
    """The rows by event time and, where that ties, by content: rows that tie in both are the same row."""
    if window.timestamps is None:
        return window.take(np.argsort(row_digests(window), kind="stable"))
    order = np.argsort(window.timestamps, kind="stable")
    times = window.timestamps[order]
    same = np.concatenate([[False], times[1:] == times[:-1], [False]])
    tied = np.flatnonzero(same[1:] | same[:-1])  # digests cost more than all the rest: only these need one
    if tied.size:
        digests = row_digests(window.take(order[tied]))
        order[tied] = order[tied][np.lexsort((digests, times[tied]))]
    return window if np.array_equal(order, np.arange(order.size)) else window.take(order)


def sampled(window: Window, most: int, seed: int = 0, tally: Counting | None = None) -> Window:
    """At most `most` rows: those with the smallest seeded digests (bottom-k sampling). `tally` counts the others.

    The digest depends on the row alone, so the sample is the same whatever the batching, and sampling parts before
    merging them loses nothing: the smallest of the whole are among the smallest of each part.
    """
    surplus = window.events - most
    if surplus <= 0:
        return window
    order = np.argpartition(row_digests(window, seed), most - 1)
    counts = window.counts + WindowCounts(sampled_out=surplus)
    counted = None if tally is None else tally(window.take(order[most:]))
    left_out = _added_up([window.left_out, counted])
    return replace(window.take(np.sort(order[:most])), counts=counts, left_out=left_out)


def without_copies(window: Window) -> Window:
    """Each event once: one that came again with its label, under the same id and time, is one labelled event."""
    labelled = window.labelled
    if window.ids is None or window.timestamps is None or not labelled.any():
        return window
    names = list(zip(window.ids.tolist(), window.timestamps.tolist(), strict=True))
    first = {names[row]: row for row in np.flatnonzero(labelled)[::-1].tolist()}
    kept = np.array([name[0] is None or first.get(name, row) == row for row, name in enumerate(names)])
    return window if kept.all() else window.take(kept)


def by_segment(window: Window, most: int) -> list[Window]:
    """One window for each segment, the biggest `most` by name and the rest together as `OTHER_SEGMENTS`."""
    if window.segments is None:
        return []
    codes, names = window.segments.codes, window.segments.names
    sizes = np.bincount(codes, minlength=len(names))
    ranked = sorted((code for code in range(len(names)) if sizes[code]), key=lambda code: (-sizes[code], names[code]))
    groups = [(names[code], codes == code) for code in sorted(ranked[:most], key=lambda code: names[code])]
    if len(ranked) > most:
        groups.append((OTHER_SEGMENTS, np.isin(codes, ranked[most:])))
    told_apart = {name for name, _ in groups}
    return [
        replace(
            window.take(rows),
            key=replace(window.key, segment=name),
            evidence=None if window.evidence is None else _of_segment(window.evidence, name, told_apart),
            # What was late, rejected or left out cannot be told apart by segment: that stays with the stream's window.
            counts=WindowCounts(),
            left_out=None,
        )
        for name, rows in groups
    ]


def _of_segment(rows: Window, name: str, told_apart: Collection[str]) -> Window:
    """The rows of one segment, or of all that are not told apart."""
    if rows.segments is None:
        return rows.take(slice(0, 0))
    known = rows.segments.names
    wanted = [each not in told_apart if name == OTHER_SEGMENTS else each == name for each in known]
    return rows.take(np.array(wanted, dtype=np.bool_)[rows.segments.codes])


def _scores(posteriors: Any) -> tuple[Matrix, tuple[str, ...] | None]:
    """Posteriors as a matrix, and the names of its columns if they have any."""
    if not is_frame(posteriors):
        given = np.asarray(posteriors)
        return frozen_matrix(given[:, None] if given.ndim == 1 else given, "posteriors"), None
    columns = Columns.of(posteriors, "posteriors")
    return frozen_matrix(np.column_stack(columns.values), "posteriors"), columns.names


def _table(features: Any, rows: int) -> tuple[Matrix | None, Columns | None]:
    """Features as the matrix that they are, or as columns that the reference has to read."""
    if features is None:
        return None, None
    if not is_frame(features) and np.asarray(features).dtype.kind in "fiub":
        matrix = frozen_matrix(features, "features")
        return _as_long(matrix, matrix.shape[0], rows), None
    columns = Columns.of(features, "features")
    return None, _as_long(columns, columns.rows, rows)


def _as_long(features: _Table, found: int, rows: int) -> _Table:
    if found != rows:
        raise InputError(f"features: want {rows} rows, one for each event, got {found}")
    return features


def row_digests(window: Window, seed: int = 0) -> NDArray[np.uint64]:
    """A 64-bit digest of each row's content, vectorised (the finaliser of SplitMix64, column by column)."""
    digests = np.full(window.events, _mixed(np.array([seed], dtype=np.uint64))[0], dtype=np.uint64)
    for column in _columns(window):
        digests = _mixed(digests ^ column)
    return digests


def _columns(window: Window) -> Iterable[NDArray[np.uint64]]:
    for matrix in (window.posteriors, window.features):
        if matrix is not None:
            yield from (_bits(matrix[:, column]) for column in range(matrix.shape[1]))
    if window.predictions is not None:
        yield _bits(window.predictions)
        # A part without any label must digest as it would beside labelled parts.
        yield _bits(np.full(window.events, np.nan) if window.targets is None else window.targets)
    if window.timestamps is not None:
        yield _bits(window.timestamps)
    yield _bits(np.full(window.events, UNLABELLED) if window.labels is None else window.labels)
    if window.segments is not None:
        named = np.array([crc32(name.encode()) for name in window.segments.names], dtype=np.uint64)
        yield named[window.segments.codes]
    if window.ids is not None:
        yield np.array([crc32(str(event).encode()) for event in window.ids], dtype=np.uint64)


def _bits(column: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.uint64]:
    # Adding zero turns -0.0 into 0.0: equal numbers must have equal digests.
    return np.ascontiguousarray(column + 0).view(np.uint64)


def _mixed(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = state + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _read_only(array: NDArray[_Item]) -> NDArray[_Item]:
    array.flags.writeable = False
    return array


def _picked(array: NDArray[_Item] | None, rows: Rows) -> NDArray[_Item] | None:
    return None if array is None else _read_only(array[rows])


def _joined(parts: Sequence[NDArray[_Item] | None], sizes: Sequence[int], absent: Any) -> NDArray[_Item] | None:
    """One column from the parts' columns; a part without the column counts as `absent` in every row."""
    known = next((part for part in parts if part is not None), None)
    if known is None:
        return None
    shape = known.shape[1:]
    filled = [
        np.full((size, *shape), absent, dtype=known.dtype) if part is None else part
        for part, size in zip(parts, sizes, strict=True)
    ]
    return _read_only(np.concatenate(filled))


def _added_up(tallies: Sequence[Tally | None]) -> Tally | None:
    known = [tally for tally in tallies if tally is not None]
    return sum(known[1:], known[0]) if known else None


def _joined_segments(windows: Sequence[Window]) -> Segments | None:
    """Names sorted, so that the codes depend on the set of names and not on who came first."""
    parts = [part.segments or Segments(np.zeros(part.events, dtype=np.int32), ("",)) for part in windows]
    if all(part.segments is None for part in windows):
        return None
    names = sorted(set().union(*(part.names for part in parts)))
    number = {name: code for code, name in enumerate(names)}
    recoded = [np.array([number[name] for name in part.names], dtype=np.int32)[part.codes] for part in parts]
    return Segments(_read_only(np.concatenate(recoded)), tuple(names))
