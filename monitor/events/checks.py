"""From plain arrays to columns that can be trusted: every check that only numbers allow, on whole columns at once.

The first check that an event fails names its fault.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self, TypeVar
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import UNLABELLED, Flags, Labels, Matrix, Vector
from monitor.events.extraction import BAD_LABEL, Extract
from monitor.events.likely_scores import likely_scores, sum_tolerance
from monitor.events.reasons import Reason
from monitor.events.timestamps import (
    LIKELY_MICROSECONDS,
    LIKELY_NANOSECONDS,
    LIKELY_SECONDS,
    NO_TIME,
    WITHOUT_OFFSET,
    Times,
    from_rfc3339,
)
from monitor.limits import LARGEST_MARGIN, SEGMENT_LENGTH
from monitor.ports.schema import StreamSchema
from monitor.windows import Segments, Streams, Window

_Item = TypeVar("_Item", bound=np.generic)
_Text = TypeVar("_Text", str, "str | None")


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Scored events of one stream, or of several that are read alike, in the order of their records."""

    index: Labels
    """Which record of the batch each row came from; the events of an array share one."""
    rows: Window
    """Always with timestamps; with features, ids and segments if the stream has them."""
    streams: Streams

    def of_each(self) -> Iterator[tuple[str, Self]]:
        """The events of each stream that has any."""
        if self.streams.codes is None:
            yield self.streams.names[0], self
            return
        for name, rows in self.streams.apart(self.index.size):
            yield name, replace(self, index=self.index[rows], rows=self.rows.take(rows), streams=Streams((name,)))


@dataclass(frozen=True, slots=True, eq=False)
class LateLabels:
    """Label events of one stream, or of several that are read alike: what earlier scored events were."""

    index: Labels
    timestamps: Times
    """`NO_TIME` where neither event nor record has one: a label joins by id."""
    labels: Labels
    """Class numbers; in a regression stream all `UNLABELLED`."""
    targets: Vector | None
    """What the regressor should have said; only in a regression stream."""
    ids: NDArray[np.object_] | None
    """None unless ids are asked for."""
    streams: Streams

    def of_each(self) -> Iterator[tuple[str, Self]]:
        """The labels of each stream that has any."""
        if self.streams.codes is None:
            yield self.streams.names[0], self
            return
        for name, rows in self.streams.apart(self.index.size):
            yield (
                name,
                replace(
                    self,
                    index=self.index[rows],
                    timestamps=self.timestamps[rows],
                    labels=self.labels[rows],
                    targets=None if self.targets is None else self.targets[rows],
                    ids=None if self.ids is None else self.ids[rows],
                    streams=Streams((name,)),
                ),
            )


@dataclass(frozen=True, slots=True)
class Misfit:
    """An event that failed a check."""

    index: int
    """Which record of the batch."""
    stream: str
    position: int | None
    """Its place in the record's array; None when no record is an array."""
    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True, eq=False)
class _Check:
    reason: Reason
    failed: Flags
    detail: Callable[[int], str]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedEvents:
    """The events of streams that are read alike in one batch."""

    scored: Scored | None
    late_labels: LateLabels | None
    misfits: Sequence[Misfit]


def judge(
    extracts: Sequence[Extract],
    schema: StreamSchema,
    names: tuple[str, ...],
    horizon: int,
    zone: ZoneInfo | None = None,
) -> JudgedEvents:
    """Tell the events that pass from those that do not; an event later than `horizon` does not.

    `names` are of the streams, all with this schema; `zone` is that of times without an offset.
    """
    classes = len(schema.classes)
    whole = _joined(extracts, zone)
    streams = Streams(names, whole.streams)
    times = from_rfc3339(whole.times, zone) if isinstance(whole.times, str) else whole.times
    sums = row_sums(whole.answers)
    answered = ~np.isnan(sums)
    segments = None if whole.segments is None else _segments(whole.segments)
    passed, misfits = _verdicts(
        whole,
        streams,
        [
            *(() if answered.all() else _absence_checks(whole, answered, schema)),
            *_time_checks(times, answered, horizon),
            *(_score_checks(schema, whole.answers, sums, answered)),
            *_label_checks(whole.labels),
            *_segment_checks(segments),
        ],
    )
    with np.errstate(all="ignore"):  # rows that failed may divide by zero; they are left out below
        scores = whole.answers if schema.margins else whole.answers / sums[:, None]
        posteriors = scores if classes else np.empty((times.size, 0))
    rows = Window(
        posteriors=posteriors,
        features=whole.features,
        labels=whole.labels,
        predictions=None if classes else whole.answers[:, 0],
        targets=whole.targets,
        timestamps=times,
        ids=None if whole.ids is None else _objects(whole.ids),
        segments=segments,
    )
    return JudgedEvents(
        _scored(whole.index, rows, streams, passed & answered),
        _late_labels(whole.index, rows, streams, passed & ~answered),
        misfits,
    )


def _joined(extracts: Sequence[Extract], zone: ZoneInfo | None) -> Extract:
    """One extract of all."""
    if len(extracts) == 1:
        return extracts[0]
    sizes = [part.index.size for part in extracts]
    parts = [part.times for part in extracts]
    lines = [part for part in parts if isinstance(part, str)]
    times: str | Times = "\n".join(lines)
    if len(lines) < len(parts):
        times = np.concatenate([from_rfc3339(part, zone) if isinstance(part, str) else part for part in parts])
    return Extract(
        index=np.concatenate([part.index for part in extracts]),
        streams=_filled([part.streams for part in extracts], sizes, 0),
        position=_filled([part.position for part in extracts], sizes, 0),
        answers=np.concatenate([part.answers for part in extracts]),
        times=times,
        labels=_filled([part.labels for part in extracts], sizes, UNLABELLED),
        targets=_filled([part.targets for part in extracts], sizes, np.nan),
        features=_filled([part.features for part in extracts], sizes, np.nan),
        ids=_chained([part.ids for part in extracts]),
        segments=_chained([part.segments for part in extracts]),
    )


def _filled(parts: Sequence[NDArray[_Item] | None], sizes: Sequence[int], absent: float) -> NDArray[_Item] | None:
    known = next((part for part in parts if part is not None), None)
    if known is None:
        return None
    return np.concatenate(
        [
            np.full((size, *known.shape[1:]), absent, dtype=known.dtype) if part is None else part
            for part, size in zip(parts, sizes, strict=True)
        ]
    )


def _chained(parts: Sequence[Sequence[_Text] | None]) -> Sequence[_Text] | None:
    """Every part has it or none has."""
    known = [part for part in parts if part is not None]
    return list(chain.from_iterable(known)) if known else None


def row_sums(matrix: Matrix) -> Vector:
    """Column after column: several times faster than along short rows, and the same sum whatever the other rows."""
    sums = np.zeros(matrix.shape[0])
    for column in matrix.T:
        sums += column
    return sums


def _objects(values: Sequence[str | None]) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=np.object_)
    array[:] = values
    return array


def _segments(names: Sequence[str]) -> Segments:
    known = sorted(set(names))
    codes = {name: code for code, name in enumerate(known)}
    return Segments(np.fromiter(map(codes.__getitem__, names), np.int32, len(names)), tuple(known))


def _scored(index: Labels, rows: Window, streams: Streams, which: Flags) -> Scored | None:
    if which.all():
        return Scored(index, rows.take(slice(None)), streams) if which.size else None  # `take` makes arrays read-only
    return Scored(index[which], rows.take(which), streams.take(which)) if which.any() else None


def _late_labels(index: Labels, rows: Window, streams: Streams, which: Flags) -> LateLabels | None:
    if not which.any():
        return None
    late = rows.take(which)
    return LateLabels(
        index=index[which],
        timestamps=late.times,
        labels=np.full(late.events, UNLABELLED) if late.labels is None else late.labels,
        targets=late.targets,
        ids=late.ids,
        streams=streams.take(which),
    )


def _absence_checks(whole: Extract, answered: Flags, schema: StreamSchema) -> Iterable[_Check]:
    """Events without an answer should say what an earlier one was."""
    labelled = np.zeros(answered.size, dtype=np.bool_)
    if whole.labels is not None:
        labelled |= whole.labels != UNLABELLED
    if whole.targets is not None:
        labelled |= ~np.isnan(whole.targets)
    part = ~np.isnan(whole.answers).all(axis=1) & ~answered
    yield _Check(Reason.WRONG_CLASSES, part, lambda _: "some of the classes have no score")
    missing = Reason.MISSING_POSTERIORS if schema.classes else Reason.MISSING_PREDICTION
    yield _Check(missing, ~answered & ~labelled, lambda _: f"neither {_wanted(schema)} nor a label")
    if whole.ids is not None:
        nameless = np.array([name is None for name in whole.ids])
        yield _Check(Reason.BAD_ID, nameless & ~answered, lambda _: "a label without an id joins nothing")


def _unit(name: str) -> str:
    return f'{name} since the epoch? Milliseconds are expected; if so, say times = "{name}" for the stream'


_LIKELY = {
    LIKELY_SECONDS: _unit("seconds"),
    LIKELY_MICROSECONDS: _unit("microseconds"),
    LIKELY_NANOSECONDS: _unit("nanoseconds"),
    WITHOUT_OFFSET: 'a time without an offset; if it is UTC, say times = "utc" for the stream, or name its zone',
}


def _time_checks(times: Times, answered: Flags, horizon: int) -> Iterable[_Check]:
    yield _Check(
        Reason.BAD_TIMESTAMP,
        times < NO_TIME,
        lambda row: _LIKELY.get(int(times[row]), "want RFC 3339 with an offset, or milliseconds since the epoch"),
    )
    yield _Check(
        Reason.MISSING_TIMESTAMP,
        (times == NO_TIME) & answered,
        lambda _: "neither the event nor its record has a time",
    )
    yield _Check(
        Reason.FUTURE_TIMESTAMP,
        times > horizon,
        # No word of the clock: a record that is read again after a restart must give the same dead letter.
        lambda row: f"{np.datetime64(int(times[row]), 'us')}Z lies further ahead of the clock than allowed",
    )


def _wanted(schema: StreamSchema) -> str:
    """Where the answer of an event stands."""
    if not schema.classes:
        return "a prediction"
    field = "`scores`" if schema.margins else "`posteriors`"
    if schema.positive is not None:
        return f"{field} nor `score`"
    if len(schema.classes) == 2:
        return f"{field} (a `score` is not read: the reference was built without saying the positive class)"
    return field


def _score_checks(schema: StreamSchema, matrix: Matrix, sums: Vector, answered: Flags) -> Iterable[_Check]:
    if not schema.classes:
        return ()
    return _margin_checks(matrix, answered) if schema.margins else _posterior_checks(matrix, sums, answered)


def _margin_checks(matrix: Matrix, answered: Flags) -> Iterable[_Check]:
    large = answered & ~(np.abs(matrix) <= LARGEST_MARGIN).all(axis=1)
    yield _Check(Reason.BAD_POSTERIORS, large, lambda _: f"a margin beyond {LARGEST_MARGIN:.0e}")


def _posterior_checks(matrix: Matrix, sums: Vector, answered: Flags) -> Iterable[_Check]:
    if matrix.size and not matrix.min() >= 0:
        negative = np.asarray((matrix < 0).any(axis=1))
        yield _Check(
            Reason.NEGATIVE,
            negative,
            lambda row: f"the smallest posterior is {matrix[row].min():.6g}{likely_scores(matrix[row])}",
        )
    yield _Check(
        Reason.POSTERIOR_SUM,
        answered & (np.abs(sums - 1.0) > sum_tolerance(matrix.shape[1])),
        lambda row: f"posteriors sum to {sums[row]:.6g}{likely_scores(matrix[row])}",
    )


def _label_checks(labels: Labels | None) -> Iterable[_Check]:
    if labels is not None:
        yield _Check(Reason.BAD_LABEL, labels == BAD_LABEL, lambda _: "the label is not one of the classes")


def _segment_checks(segments: Segments | None) -> Iterable[_Check]:
    if segments is not None:
        long = np.array([len(name) > SEGMENT_LENGTH for name in segments.names])
        yield _Check(Reason.BAD_SEGMENT, long[segments.codes], lambda _: f"longer than {SEGMENT_LENGTH} characters")


def _verdicts(whole: Extract, streams: Streams, checks: Iterable[_Check]) -> tuple[Flags, list[Misfit]]:
    """Which events pass every check, and for each of the others the first that it failed."""
    passed = np.ones(whole.index.size, dtype=np.bool_)
    misfits: dict[int, Misfit] = {}
    for check in checks:
        if check.failed.any():
            passed &= ~check.failed
            for row in np.flatnonzero(check.failed).tolist():
                if row not in misfits:
                    position = None if whole.position is None else int(whole.position[row])
                    stream = streams.names[0 if streams.codes is None else int(streams.codes[row])]
                    misfits[row] = Misfit(int(whole.index[row]), stream, position, check.reason, check.detail(row))
    return passed, [misfits[row] for row in sorted(misfits)]
