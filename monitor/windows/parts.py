"""Parts of windows: what one worker knows of some of a window's events, in a form that travels and can be merged.

Merging is associative and commutative, and a part that is merged twice counts once: it says which records of which
partitions it has looked at. Above the maximum it holds the rows with the smallest seeded digests, which are those that
the window would have kept had all its rows been in one place, and a tally of the others. So however records are dealt
out to workers, and in whatever order their parts come together, `closed` gives the same window.

What is late has been judged before, by whoever read the partition in its order (`Windowing.release`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from monitor.errors import InputError
from monitor.windows.by_time import TimePlan, as_window
from monitor.windows.tally import Tally, compact
from monitor.windows.window import Segments, Window, WindowCounts, merge, sampled

VERSION = 2
"""The first had no tallies."""
NOTHING_COUNTED = WindowCounts()

_COLUMNS = ("posteriors", "features", "labels", "predictions", "targets", "timestamps")


@dataclass(frozen=True, slots=True)
class PartitionRead:
    """What a part has looked at of one partition."""

    records: tuple[tuple[int, int], ...]
    """Offsets from and to which it was read, without overlaps and ascending."""
    clock: int
    """The newest event time up to there; `NEVER` before the first event."""

    @property
    def read(self) -> int:
        """The record after the last one."""
        return self.records[-1][1]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some of the events of one stream that lie in one pane, and what there is to count beside them."""

    stream: str
    pane: int
    """Where its stretch of event time begins; microseconds. A tumbling window is one pane."""
    seen: Mapping[str, PartitionRead]
    """By partition."""
    rows: Window | None = None
    """None: there are no events, and it says only how far its partitions have come."""
    counts: WindowCounts = NOTHING_COUNTED
    """Without those of the rows."""

    @property
    def empty(self) -> bool:
        """Whether no window would be another one without it."""
        return self.rows is None and self.counts == NOTHING_COUNTED

    def encoded(self) -> bytes:
        """Its bytes."""
        return msgspec.msgpack.encode(
            _PartForm(
                VERSION,
                self.stream,
                self.pane,
                {name: (list(seen.records), seen.clock) for name, seen in sorted(self.seen.items())},
                _counts(self.counts),
                None if self.rows is None else _rows_form(self.rows),
            )
        )

    @classmethod
    def decoded(cls, data: bytes) -> "Part":
        """The inverse of `encoded`; InputError where the bytes are none that this release can read."""
        try:
            version = msgspec.msgpack.decode(data, type=_PartVersion).version
            if version not in range(1, VERSION + 1):
                raise InputError(f"a part of a window has version {version}, and this release reads {VERSION}")
            return _part(msgspec.msgpack.decode(data, type=_PartForm))
        except (msgspec.DecodeError, TypeError, ValueError) as error:
            raise InputError(f"not a part of a window: {error}") from error


def merged(parts: Sequence[Part], plan: TimePlan) -> Part:
    """One part of all; those whose records others have looked at, too, count once."""
    first = parts[0]
    if any((part.stream, part.pane) != (first.stream, first.pane) for part in parts):
        raise InputError(f"parts: want those of one pane of {first.stream!r}, got several")
    seen: dict[str, PartitionRead] = {}
    kept = []
    for part in sorted(parts, key=_largest_first):
        known, records = _shared(part.seen, seen), _records(part.seen)
        if 0 < known < records:
            raise InputError(
                f"parts of {part.stream!r} at {part.pane}: they share {known} of {records} records, so that "
                "nobody knows what to count once; merge parts that were made of whole batches"
            )
        if not known:
            kept.append(part)
        seen = _joined(seen, part.seen)
    chunks = [part.rows for part in kept if part.rows is not None]
    return replace(
        first,
        seen=seen,
        rows=sampled(_in_one(chunks, first), plan.most, plan.seed, plan.tally) if chunks else None,
        counts=sum((part.counts for part in kept), NOTHING_COUNTED),
    )


def closed(parts: Sequence[Part], plan: TimePlan, start: int, because: str = "watermark") -> Window | None:
    """The window that begins here, of all parts of its panes; None if it has no events."""
    by_pane: dict[int, list[Part]] = {pane: [] for pane in plan.panes(start)}
    for part in parts:
        by_pane[part.pane].append(part)
    whole = [merged(some, plan) for some in by_pane.values() if some]
    chunks = [part.rows for part in whole if part.rows is not None]
    if not chunks:
        return None
    rows = _in_one(chunks, whole[0])
    counted = replace(rows, counts=sum((part.counts for part in whole), rows.counts))
    partitions = (name for part in whole if not part.empty for name in part.seen)
    return as_window(counted, plan.key(whole[0].stream, start), plan, because, partitions)


def _in_one(chunks: Sequence[Window], of: Part) -> Window:
    """The rows of them all, if they were made with references of the same shape."""
    for columns in ([rows.posteriors for rows in chunks], [rows.features for rows in chunks]):
        widths = {column.shape[1] for column in columns if column is not None}
        if len(widths) > 1:
            raise InputError(
                f"parts of {of.stream!r} at {of.pane}: their events have {sorted(widths)} scores or features: the "
                "reference became another while windows were open"
            )
    return merge(chunks)


def _largest_first(part: Part) -> tuple[int, list[tuple[str, int]]]:
    """Then by what they begin with, so that neighbours come one after another."""
    return -_records(part.seen), sorted((name, seen.records[0][0]) for name, seen in part.seen.items())


def _records(seen: Mapping[str, PartitionRead]) -> int:
    return sum(stop - start for each in seen.values() for start, stop in each.records)


def _shared(some: Mapping[str, PartitionRead], others: Mapping[str, PartitionRead]) -> int:
    """How many records both have."""
    return sum(
        max(0, min(stop, its_stop) - max(start, its_start))
        for name in some.keys() & others.keys()
        for start, stop in some[name].records
        for its_start, its_stop in others[name].records
    )


def _joined(some: Mapping[str, PartitionRead], others: Mapping[str, PartitionRead]) -> dict[str, PartitionRead]:
    return dict(some) | {
        name: seen
        if name not in some
        else PartitionRead(tuple(_coalesced([*some[name].records, *seen.records])), max(some[name].clock, seen.clock))
        for name, seen in others.items()
    }


def _coalesced(stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ascending, those that adjoin or overlap as one."""
    begun: tuple[int, int] | None = None
    for start, stop in sorted(stretches):
        if begun is not None and start <= begun[1]:
            begun = (begun[0], max(begun[1], stop))
            continue
        if begun is not None:
            yield begun
        begun = (start, stop)
    if begun is not None:
        yield begun


class _ColumnForm(msgspec.Struct, array_like=True):
    """An array, as its bytes."""

    kind: str
    shape: tuple[int, ...]
    data: bytes


class _RowsForm(msgspec.Struct, array_like=True):
    columns: dict[str, _ColumnForm]
    counts: tuple[int, int, int]
    ids: list[str | None] | None
    segments: tuple[_ColumnForm, tuple[str, ...]] | None
    left_out: "_TallyForm | None" = None


class _TallyForm(msgspec.Struct, array_like=True):
    """Numbers in the smallest type that holds them, as nearly all are small."""

    rows: int
    events: int
    basis: str
    numbers: dict[str, _ColumnForm]


class _PartForm(msgspec.Struct, array_like=True):
    """MessagePack: short, and arrays in it stay the bytes that they are."""

    version: int
    stream: str
    pane: int
    seen: dict[str, tuple[list[tuple[int, int]], int]]
    counts: tuple[int, int, int]
    rows: _RowsForm | None


class _PartVersion(msgspec.Struct, array_like=True):
    version: int


def _part(form: _PartForm) -> Part:
    for name, (records, _) in form.seen.items():
        bounds = [offset for stretch in records for offset in stretch]
        if not bounds or any(stop <= start for start, stop in pairwise(bounds)):
            raise ValueError(f"want ascending records of {name}, got {records}")
    return Part(
        form.stream,
        form.pane,
        {name: PartitionRead(tuple(records), clock) for name, (records, clock) in form.seen.items()},
        None if form.rows is None else _rows(form.rows),
        WindowCounts(*form.counts),
    )


def _counts(counts: WindowCounts) -> tuple[int, int, int]:
    return counts.late, counts.rejected, counts.sampled_out


def _rows_form(rows: Window) -> _RowsForm:
    known = {name: getattr(rows, name) for name in _COLUMNS}
    return _RowsForm(
        {name: _column_form(column) for name, column in known.items() if column is not None},
        _counts(rows.counts),
        None if rows.ids is None else rows.ids.tolist(),
        None if rows.segments is None else (_column_form(rows.segments.codes), rows.segments.names),
        None if rows.left_out is None else _tally_form(rows.left_out),
    )


def _rows(form: _RowsForm) -> Window:
    columns: dict[str, Any] = {name: _column(column) for name, column in form.columns.items()}
    ids = None if form.ids is None else np.array(form.ids, dtype=np.object_)
    segments = None if form.segments is None else Segments(_column(form.segments[0]), form.segments[1])
    left_out = None if form.left_out is None else _tally(form.left_out)
    by_row = [*columns.values(), ids, None if segments is None else segments.codes]
    if not columns.keys() <= set(_COLUMNS):
        raise ValueError(f"want columns among {_COLUMNS}, got {sorted(columns)}")
    if len({len(column) for column in by_row if column is not None}) != 1:
        raise ValueError("want as many rows in each column")
    if segments is not None and not np.isin(segments.codes, range(len(segments.names))).all():
        raise ValueError("want a name for each segment")
    return Window(**columns, ids=ids, segments=segments, counts=WindowCounts(*form.counts), left_out=left_out)


def _tally_form(tally: Tally) -> _TallyForm:
    numbers = {name: _column_form(compact(column)) for name, column in sorted(tally.numbers.items())}
    return _TallyForm(tally.rows, tally.events, tally.basis, numbers)


def _tally(form: _TallyForm) -> Tally:
    numbers = {name: _column(column) for name, column in form.numbers.items()}
    if any(column.dtype.kind not in "iu" for column in numbers.values()):
        raise TypeError("a tally of other than whole numbers")
    return Tally(form.rows, form.events, form.basis, {name: each.astype(np.int64) for name, each in numbers.items()})


def _column_form(column: Any) -> _ColumnForm:
    return _ColumnForm(column.dtype.str, column.shape, np.ascontiguousarray(column).tobytes())


def _column(form: _ColumnForm) -> Any:
    if re.fullmatch(r"[<>|][fiu][1248]", form.kind) is None:  # numpy would parse more, such as records of several
        raise TypeError(f"want numbers in a column, got {form.kind!r}")
    return np.frombuffer(form.data, dtype=np.dtype(form.kind)).reshape(form.shape)
