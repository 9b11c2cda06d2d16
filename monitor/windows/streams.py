"""Which stream each row of some columns is of, where the events of many streams are handled together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import compress
from typing import Self

import numpy as np

from monitor.arrays import Flags, Labels


@dataclass(frozen=True, slots=True, eq=False)
class Streams:
    """Row `i` is of `names[codes[i]]`."""

    names: tuple[str, ...]
    codes: Labels | None = field(default=None)
    """None where all rows are of the only stream."""

    def take(self, rows: Flags | Labels) -> Self:
        """Of these rows only."""
        return self if self.codes is None else type(self)(self.names, self.codes[rows])

    def apart(self, rows: int) -> Iterator[tuple[str, Labels]]:
        """Each stream that has any of so many rows, and which they are, in their order."""
        if self.codes is None:
            yield self.names[0], np.arange(rows)
            return
        order = np.argsort(self.codes, kind="stable")
        counts = np.bincount(self.codes, minlength=len(self.names))
        ends = np.cumsum(counts)
        for code in np.flatnonzero(counts).tolist():
            yield self.names[code], order[ends[code] - counts[code] : ends[code]]

    def among(self, names: frozenset[str]) -> Flags | None:
        """Which rows are of these streams; None if none of them can be."""
        if self.codes is None or names.isdisjoint(self.names):
            return None
        return np.array([name in names for name in self.names])[self.codes]

    def present(self) -> list[str]:
        """The streams that have rows; there are some."""
        if self.codes is None:
            return [self.names[0]]
        here = np.bincount(self.codes, minlength=len(self.names)) > 0
        return list(self.names) if here.all() else list(compress(self.names, here.tolist()))

    def counts(self, rows: Flags) -> dict[str, int]:
        """How many of these rows each stream has that has any at all."""
        if self.codes is None:
            return {self.names[0]: int(np.count_nonzero(rows))}
        among = np.bincount(self.codes[rows], minlength=len(self.names))
        here = np.flatnonzero(np.bincount(self.codes, minlength=len(self.names)))
        return {self.names[code]: count for code, count in zip(here.tolist(), among[here].tolist(), strict=True)}

    def spans(self, times: Labels) -> dict[str, tuple[int, int]]:
        """The first and the last time of each stream's rows."""
        if self.codes is None:
            return {self.names[0]: (int(times.min()), int(times.max()))}
        order = np.lexsort((times, self.codes))
        last = np.cumsum(np.bincount(self.codes))
        here = np.flatnonzero(np.diff(last, prepend=0))
        ends = np.concatenate([[0], last[here]])
        first, newest = times[order[ends[:-1]]].tolist(), times[order[ends[1:] - 1]].tolist()
        names = [self.names[code] for code in here.tolist()]
        return dict(zip(names, zip(first, newest, strict=True), strict=True))
