"""What one batch of a partition holds: the events and labels of its streams, what was rejected, what no window took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Vector
from monitor.windows.panes import Arrivals
from monitor.windows.streams import Streams
from monitor.windows.window import Window

NO_OFFSETS: Labels = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class StreamRows:
    """Events of one stream in a batch, or of several together: their columns, and the offset of each one's record."""

    streams: Streams
    rows: Window
    offsets: Labels

    @classmethod
    def of(cls, stream: str, rows: Window, offsets: Labels) -> Self:
        """All are of this stream."""
        return cls(Streams((stream,)), rows, offsets)


@dataclass(frozen=True, slots=True, eq=False)
class LabelTimes:
    """The label events of one stream in a batch: where their records stand, and when they became known."""

    offsets: Labels
    times: Labels
    """`NEVER` where neither event nor record says."""
    ids: NDArray[np.object_] | None = None
    """None where the stream does not keep them."""
    targets: Vector | None = None
    """What a regressor should have said; only in a regression stream."""


@dataclass(frozen=True, slots=True)
class RejectedAt:
    """Where a record was rejected, and for which stream if that could be read."""

    offset: int
    stream: str | None


@dataclass(frozen=True, slots=True, eq=False)
class LeftOut:
    """What a batch held beside the events that went into windows, by stream."""

    late: dict[str, Labels] = field(default_factory=dict)
    """Offsets of events older than the partition's running maximum minus the allowed lateness."""
    late_after_idle: dict[str, Labels] = field(default_factory=dict)
    """In time by their own partition, but their window was closed while that was set aside as idle, or not there."""
    copies: dict[str, Arrivals] = field(default_factory=dict)
    """Late events with a label, of streams that await labels: they say what an earlier event really was."""
    copied: dict[str, Flags] = field(default_factory=dict)
    """Which of the stream's events they are."""
    label_marks: Mapping[str, Labels] = field(default_factory=dict)
    """The partition's running maximum with each label event included."""


def interleaved(parts: Sequence[tuple[Labels, Labels]]) -> tuple[Labels, Labels, Labels]:
    """Offsets and times of all streams' events in the order of their records, and each event's place in it."""
    if len(parts) == 1:
        return *parts[0], np.arange(parts[0][0].size)
    offsets = np.concatenate([NO_OFFSETS, *(part for part, _ in parts)])
    times = np.concatenate([NO_OFFSETS, *(part for _, part in parts)])
    order = np.argsort(offsets, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return offsets[order], times[order], rank


def first_of_record(offsets: Labels) -> Labels:
    """The number of the first event of each event's record: a record may carry many events."""
    numbers = np.arange(offsets.size)
    numbers[1:][offsets[1:] == offsets[:-1]] = 0
    return np.maximum.accumulate(numbers)
