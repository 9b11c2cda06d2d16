"""Where parts that workers made of one stream's windows become windows, by the rules of `assembly` and `by_time`.

Parts stay encoded in a store, which whoever runs this keeps together with `progress`: of the rows no more than one
window's are in memory. All partitions are read by somebody for good, so that none leaves without a trace.
"""

from collections.abc import Collection, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from monitor.errors import InputError
from monitor.ports import NEVER
from monitor.windows.by_time import TimePlan
from monitor.windows.origin import Gap, Stretch
from monitor.windows.panes import THINNING_FACTOR
from monitor.windows.parts import Part, closed, merged
from monitor.windows.window import Window

VERSION = 1


class _Pane(msgspec.Struct, array_like=True):
    """Which parts of a pane are in the store, and how many rows they have."""

    first: int = 0
    next: int = 0
    rows: int = 0


class _PartProgress(msgspec.Struct, array_like=True):
    """All that is not in the store."""

    version: int = VERSION
    clocks: dict[str, int] = {}
    read: dict[str, int] = {}
    panes: dict[int, _Pane] = {}
    closed: int = NEVER
    """Windows whose end plus allowed lateness is not after this are done."""
    lacks: tuple[int, int] | None = None
    """The stretch of event time in which events came too late, because their partition had been idle."""
    cut: tuple[int, int, int] | None = None
    """Size, slide and lateness of the windows, for which parts and what is closed hold; at first it was not kept."""


class _ProgressVersion(msgspec.Struct, array_like=True):
    version: int


@dataclass(slots=True)
class PartWindows:
    """The open windows of one stream."""

    stream: str
    plan: TimePlan
    store: MutableMapping[str, bytes]
    """Parts by a name that is nobody else's."""
    _known: _PartProgress = field(default_factory=_PartProgress)

    @classmethod
    def begun(
        cls, stream: str, plan: TimePlan, store: MutableMapping[str, bytes], progress: bytes | None
    ) -> "PartWindows":
        """Take up the windows where their progress was kept, or fresh."""
        cut = (plan.size, plan.slide, plan.lateness)
        if progress is None:
            return cls(stream, plan, store, _PartProgress(cut=cut))
        try:
            version = msgspec.msgpack.decode(progress, type=_ProgressVersion).version
            if version != VERSION:
                raise InputError(
                    f"{stream}: its windows were kept in version {version}, and this release reads {VERSION}"
                )
            known = msgspec.msgpack.decode(progress, type=_PartProgress)
        except msgspec.DecodeError as error:
            raise InputError(f"{stream}: what was kept of its windows cannot be read: {error}") from error
        if known.cut is not None and known.cut != cut:
            raise InputError(
                f"{stream}: its open windows were cut by size, slide and lateness {_seconds(known.cut)}, and cannot be "
                f"cut anew by {_seconds(cut)}: keep `window` as it was, or begin without what was kept"
            )
        known.cut = cut
        return cls(stream, plan, store, known)

    @property
    def progress(self) -> bytes:
        """What has to be kept beside the store."""
        return msgspec.msgpack.encode(self._known)

    def take(self, parts: Sequence[tuple[Part, bytes]]) -> int:
        """Put in all parts that were made of some records, with their bytes: how many events came too late for them.

        They come together: the clock that one of them tells may close a window that another belongs to.
        """
        missed = 0
        for part, data in parts:
            for name, seen in part.seen.items():
                self._known.clocks[name] = max(self._known.clocks.get(name, NEVER), seen.clock)
                self._known.read[name] = max(self._known.read.get(name, 0), seen.read)
            if part.pane + self.plan.held <= self._known.closed:
                missed += self._miss(part)
            elif not part.empty:
                self._add(part, data)
        return missed

    def read(self, partition: str) -> int:
        """Up to which record a partition has come here."""
        return self._known.read.get(partition, 0)

    def reached(self, partition: str) -> int:
        """The newest event time of a partition, or what was closed if that is newer; `NEVER` if it has had no event."""
        clock = self._known.clocks.get(partition, NEVER)
        return NEVER if clock == NEVER else max(clock, self._known.closed)

    def close(self, partitions: Collection[str], idle: Collection[str], idle_mark: int | None) -> Iterator[Window]:
        """The windows that are due, in their order; each waits for every partition that is not idle."""
        clocks = (self._known.clocks.get(partition, NEVER) for partition in partitions if partition not in idle)
        mark = min(clocks, default=idle_mark)
        if not partitions or mark is None or mark == NEVER:
            return
        for _, start in self.plan.due(self._known.panes, mark):
            if start + self.plan.held > self._known.closed:
                window = closed(list(self._stored(start)), self.plan, start)
                if window is not None:
                    yield self._lacking(window)
        self._known.closed = max(self._known.closed, mark)
        for pane in [pane for pane in self._known.panes if pane + self.plan.held <= mark]:
            self._drop(pane)
            del self._known.panes[pane]
        if self._known.lacks is not None and self._known.lacks[1] + 2 * self.plan.held <= mark:
            self._known.lacks = None

    def _add(self, part: Part, data: bytes) -> None:
        pane = self._known.panes.setdefault(part.pane, _Pane())
        pane.rows += 0 if part.rows is None else part.rows.events
        self.store[_name(part.pane, pane.next)] = data
        pane.next += 1
        if pane.rows > THINNING_FACTOR * self.plan.most:
            thinned = merged(list(self._parts(part.pane)), self.plan)
            self._drop(part.pane)
            self.store[_name(part.pane, pane.next)] = thinned.encoded()
            pane.first, pane.next = pane.next, pane.next + 1
            pane.rows = 0 if thinned.rows is None else thinned.rows.events

    def _miss(self, part: Part) -> int:
        """Its windows had been closed, as its partition was idle: the next window that is open has to say so."""
        if part.rows is None:
            return 0
        still_open = self._known.closed - self.plan.lateness
        at = max(still_open, *(seen.clock for seen in part.seen.values()))
        first, last = self._known.lacks or (at, at)
        self._known.lacks = min(first, at), max(last, at)
        return part.rows.events

    def _lacking(self, window: Window) -> Window:
        lacks, key = self._known.lacks, window.key
        if lacks is None or not Stretch(Gap.IDLE, self.stream, *lacks).touches(key.stream, key.start, key.end):
            return window
        return replace(window, origin=window.origin.lacking([Gap.IDLE]))

    def _stored(self, start: int) -> Iterator[Part]:
        for pane in self.plan.panes(start):
            yield from self._parts(pane)

    def _parts(self, pane: int) -> Iterator[Part]:
        known = self._known.panes.get(pane, _Pane())
        yield from (Part.decoded(self.store[_name(pane, number)]) for number in range(known.first, known.next))

    def _drop(self, pane: int) -> None:
        known = self._known.panes[pane]
        for number in range(known.first, known.next):
            del self.store[_name(pane, number)]


def _seconds(cut: tuple[int, ...]) -> str:
    return "/".join(f"{microseconds / 1e6:g}s" for microseconds in cut)


def _name(pane: int, number: int) -> str:
    return f"{pane}/{number}"
