"""Events of many streams that wait together, undivided, until a window of one of them may close.

To put a batch into the windows of a stream has its cost, however few of the events are the stream's. What has to be
said of a batch at once (which events are late, where a restart would have to read again) needs no division: it is the
same arithmetic on all rows. So rows are divided once for many batches, and what a batch costs depends on its events.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Labels
from monitor.limits import UNDIVIDED_ROWS
from monitor.ports import NEVER
from monitor.windows.by_time import MissedArrivals, TimePlan, TimeWindows
from monitor.windows.panes import Arrivals, Mark
from monitor.windows.streams import Streams
from monitor.windows.window import merge


@dataclass(frozen=True, slots=True, eq=False)
class _Plans:
    """The plans of streams, one row of numbers each."""

    lateness: Labels
    slide: Labels
    size: Labels


class Undivided:
    """The events of time windows; those of each group of streams, which always come together, apart."""

    def __init__(self, timed: Mapping[str, TimeWindows]) -> None:
        self._timed = timed
        self._plans: dict[tuple[str, ...], _Plans] = {}
        self._waiting: dict[tuple[str, ...], list[tuple[Arrivals, Streams]]] = {}
        self._marks: dict[str, Mark] = {}
        self._arrived = 0
        self.rows = 0
        """How many events wait for their windows."""
        self.due: int | None = None
        """When the first window closes that any of them belongs to."""

    def add(self, arrivals: Arrivals, streams: Streams, closed: int) -> tuple[MissedArrivals, dict[str, int]]:
        """Take in events, but for those of published windows; says where each stream's earliest window begins."""
        plans, codes = self._of(streams.names), streams.codes
        lateness, slide, size = plans.lateness[codes], plans.slide[codes], plans.size[codes]
        late = arrivals.timestamps < arrivals.marks_after - lateness
        panes = np.where(late, arrivals.marks_after, arrivals.timestamps) // slide * slide
        published = panes + size + lateness <= closed
        missed = MissedArrivals(late & ~published, published, None)
        if published.all():
            return missed, {}
        kept = ~published
        # The first window that holds a pane ends where the pane does.
        due = int((panes + slide + lateness)[kept].min())
        self.due = due if self.due is None else min(self.due, due)
        some, own = (arrivals, streams) if not published.any() else (arrivals.take(kept), streams.take(kept))
        self._marks.setdefault(arrivals.partition, Mark(int(some.offsets[0]), int(some.marks_before[0])))
        self._waiting.setdefault(streams.names, []).append((some, own))
        self._arrived += some.offsets.size
        self.rows += int(np.count_nonzero(kept & ~late))
        return missed, {name: first for name, (first, _) in own.spans((panes - size + slide)[kept]).items()}

    @property
    def full(self) -> bool:
        """Whether so many wait that to divide them costs little for each."""
        return self._arrived > UNDIVIDED_ROWS * sum(map(len, self._waiting))

    def divide(self) -> None:
        """Put every event into its stream's windows."""
        for group in self._waiting.values():
            for partition in sorted({arrivals.partition for arrivals, _ in group}):
                arrivals, streams = _joined([one for one in group if one[0].partition == partition])
                for name, rows in streams.apart(arrivals.offsets.size):
                    self._timed[name].add(arrivals.take(rows), NEVER)
        self._waiting, self._marks, self._arrived, self.rows, self.due = {}, {}, 0, 0, None

    def mark(self, partition: str) -> Mark | None:
        """Where a restart would have to read this partition again, if anywhere."""
        return self._marks.get(partition)

    def _of(self, names: tuple[str, ...]) -> _Plans:
        if names not in self._plans:
            # Among the names may be streams whose events never come here.
            plans = [self._timed[name].plan if name in self._timed else TimePlan(1, 1, 0, 1) for name in names]
            self._plans[names] = _Plans(
                np.array([plan.lateness for plan in plans]),
                np.array([plan.slide for plan in plans]),
                np.array([plan.size for plan in plans]),
            )
        return self._plans[names]


def _joined(parts: list[tuple[Arrivals, Streams]]) -> tuple[Arrivals, Streams]:
    """Arrivals of one partition as one, in their order."""
    arrivals = [some for some, _ in parts]
    codes = [some.codes for _, some in parts if some.codes is not None]
    whole = Arrivals(
        arrivals[0].partition,
        merge([some.rows for some in arrivals]),
        np.concatenate([some.offsets for some in arrivals]),
        np.concatenate([some.marks_before for some in arrivals]),
        np.concatenate([some.marks_after for some in arrivals]),
    )
    return whole, Streams(parts[0][1].names, np.concatenate(codes))
