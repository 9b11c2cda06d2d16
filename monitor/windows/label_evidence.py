"""The labelled rows that a regression stream's windows are judged by: of this one, and of as many before as needed.

Nothing is carried from window to window: what a window's evidence is follows from the records of the span before its
end, which a restart reads again (the checkpoint holds back that far). So it does not depend on batches, interleaving
or restarts, for the same reasons as the windows themselves:

- a row has a time: its event's or, where a label came in a record of its own, the label's. A label that is older than
  the running maximum of its partition minus the allowed lateness counts where its partition's clock stands, as does
  a late event that carries its label. Rows lie in panes by that time, and no closed window's pane gets any more;
- a label joins the event of the span that has its id, whichever came first. The last of several holds;
- the newest windows count, only as far back as it takes to have enough labels: the less lies before a change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags, Labels, Vector
from monitor.limits import EVIDENCE_ROWS
from monitor.windows.panes import Arrivals, Collected, Mark
from monitor.windows.window import Window, merge, ordered, sampled


@dataclass(frozen=True, slots=True)
class EvidencePlan:
    """How far back labels count; microseconds."""

    span: int
    """A multiple of the window's size."""
    enough: int
    """Labels beyond which older windows are not looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class PlainLabels:
    """Labels that came in records of their own."""

    partition: str
    ids: NDArray[np.object_]
    targets: Vector
    times: Labels
    """When they became known, `NEVER` where nobody says."""
    offsets: Labels
    marks_before: Labels
    """The partition's running maximum before each one's record."""
    marks_after: Labels
    """The same with each of them included."""

    def at(self, times: Labels, rows: Flags) -> Self:
        """Some of them, at these times."""
        return replace(
            self,
            ids=self.ids[rows],
            targets=self.targets[rows],
            times=times[rows],
            offsets=self.offsets[rows],
            marks_before=self.marks_before[rows],
            marks_after=self.marks_after[rows],
        )


@dataclass(slots=True)
class _Kept:
    """What one partition has put into one pane."""

    labelled: Collected
    waiting: Collected
    """Rows without a label, for one that may come."""
    told: list[PlainLabels] = field(default_factory=list)

    @property
    def mark(self) -> Mark:
        return min(self.labelled.mark, self.waiting.mark)


class LabelEvidence:
    """The panes of one stream that still count for some window."""

    def __init__(self, plan: EvidencePlan, *, size: int, slide: int, lateness: int, most: int, seed: int) -> None:
        self.plan = plan
        self._size, self._slide, self._lateness, self._most, self._seed = size, slide, lateness, most, seed
        self._panes: dict[int, dict[str, _Kept]] = {}

    def add(self, arrivals: Arrivals, late: Flags, closed: int) -> None:
        """Scored events: those with a label, and those that have an id by which one may come."""
        labelled = arrivals.rows.labelled
        waiting = np.zeros_like(labelled)
        if arrivals.rows.ids is not None:
            waiting = ~labelled & ~late & np.array([name is not None for name in arrivals.rows.ids])
        if not (labelled | waiting).any():
            return
        times = np.where(late, arrivals.marks_after, arrivals.timestamps)
        panes = self._pane(times)
        counts = panes + self.plan.span + self._lateness > closed
        timed = replace(arrivals.rows, timestamps=times, happened=arrivals.timestamps, key=type(arrivals.rows.key)())
        for pane in np.unique(panes[(labelled | waiting) & counts]).tolist():
            for which, most in ((labelled, EVIDENCE_ROWS), (waiting, self._most)):
                rows = which & counts & (panes == pane)
                if rows.any():
                    first = int(np.argmax(rows))
                    mark = Mark(int(arrivals.offsets[first]), int(arrivals.marks_before[first]))
                    kept = self._kept(pane, arrivals.partition, mark)
                    part = kept.labelled if which is labelled else kept.waiting
                    part.add(timed.take(rows), most, self._seed)

    def tell(self, told: PlainLabels, closed: int) -> None:
        """Labels that came in records of their own."""
        times = np.where(told.times < told.marks_after - self._lateness, told.marks_after, told.times)
        panes = self._pane(times)
        counts = panes + self.plan.span + self._lateness > closed
        for pane in np.unique(panes[counts]).tolist():
            here = told.at(times, counts & (panes == pane))
            mark = Mark(int(here.offsets[0]), int(here.marks_before[0]))
            self._kept(pane, told.partition, mark).told.append(here)

    def gathered(self, end: int, deadline: int, closed: Mapping[str, int]) -> Window | None:
        """The evidence of the window that ends here, of the partitions that have not published it."""
        panes = [
            [kept for partition, kept in sorted(self._panes.get(pane, {}).items()) if closed[partition] < deadline]
            for pane in range(end - self.plan.span, end, self._slide)
        ]
        labels = _last_labels([labels for kept in panes for pane in kept for labels in pane.told])
        windows = [rows for kept in panes if (rows := self._of_pane(kept, labels)) is not None]
        if not windows:
            return None
        return ordered(sampled(self._newest(merge(windows), end), EVIDENCE_ROWS, self._seed))

    def prune(self, mark: int) -> None:
        """Drop the panes that no window to come will look at."""
        keep = mark - self.plan.span - self._lateness
        self._panes = {pane: parts for pane, parts in self._panes.items() if pane > keep}

    def forget(self, partition: str) -> None:
        """Drop everything that came from this partition."""
        for parts in self._panes.values():
            parts.pop(partition, None)
        self._panes = {pane: parts for pane, parts in self._panes.items() if parts}

    def marks(self, partition: str) -> Iterator[Mark]:
        """Where a restart would have to read this partition again, for each pane."""
        return (parts[partition].mark for parts in self._panes.values() if partition in parts)

    def _pane(self, times: Labels) -> Labels:
        return times // self._slide * self._slide

    def _kept(self, pane: int, partition: str, mark: Mark) -> _Kept:
        parts = self._panes.setdefault(pane, {})
        kept = parts.setdefault(partition, _Kept(Collected(mark), Collected(mark)))
        kept.labelled.mark = min(kept.mark, mark)
        return kept

    def _of_pane(self, kept: list[_Kept], labels: Mapping[str, tuple[int, float]]) -> Window | None:
        """The rows of one pane that have a label, from wherever it came."""
        parts = []
        for which, most in (("labelled", EVIDENCE_ROWS), ("waiting", self._most)):
            chunks = [chunk for pane in kept for chunk in getattr(pane, which).chunks]
            if chunks and (which == "labelled" or labels):
                whole = sampled(merge(chunks), most, self._seed)
                parts.append(_joined(whole, labels) if labels else whole)
        rows = [part for part in parts if part.events]
        return merge(rows) if rows else None

    def _newest(self, rows: Window, end: int) -> Window:
        """Whole windows, the newest first, until there are enough labels."""
        age = (end - 1 - rows.times) // self._size
        reached = np.cumsum(np.bincount(age)) >= self.plan.enough
        return rows.take(age <= int(np.argmax(reached))) if reached.any() else rows


def _last_labels(told: list[PlainLabels]) -> dict[str, tuple[int, float]]:
    """When each id was labelled, and with what: the last label holds, the larger of two at one time."""
    last: dict[str, tuple[int, float]] = {}
    for records in told:
        for name, label in zip(
            records.ids.tolist(), zip(records.times.tolist(), records.targets.tolist(), strict=True), strict=True
        ):
            last[name] = max(last.get(name, label), label)
    return last


def _joined(rows: Window, labels: Mapping[str, tuple[int, float]]) -> Window:
    """The rows with the labels that came for them, at the labels' times; those that have none are left out."""
    targets = np.full(rows.events, np.nan) if rows.targets is None else rows.targets.copy()
    times = rows.times.copy()
    if rows.ids is not None:
        for row, name in enumerate(rows.ids.tolist()):
            if name in labels:
                times[row], targets[row] = labels[name]
    labelled = replace(rows, targets=targets, timestamps=times)
    return labelled.take(~np.isnan(targets))
