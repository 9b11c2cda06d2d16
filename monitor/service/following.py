"""What others publish of the states of streams, followed by a process that only looks on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monitor.service.notices import Remembered, WindowPublished
from monitor.state import WINDOWS, AnyConcern, Known, Ring, StateRecords, Whose


class FollowedStates:
    """What is known of the streams that others watch; it lives on through outages and renewals of references."""

    def __init__(self) -> None:
        self._begun = False
        self._windows: dict[Whose, int] = {}
        """How many windows there had been when it was last looked."""

    def begin(self, concerns: Mapping[str, Sequence[AnyConcern]]) -> None:
        """All records come once more, the oldest first."""
        self._records = StateRecords(concerns)
        self._known: dict[Whose, Known] = {}
        self._changed: frozenset[Whose] = frozenset()
        self._streams = concerns.keys()

    def take(self, records: Iterable[bytes]) -> None:
        """Take more records."""
        self._changed |= self._records.take(records)

    def news(self) -> list[WindowPublished | Remembered]:
        """What is new since it was last asked, once all has come that there is; at first everything is old."""
        changed, self._changed = self._changed, frozenset()
        new = self._records.known(changed)
        for whose in changed - new.keys():
            self._known.pop(whose, None)
            self._windows.pop(whose, None)
        self._known |= new
        windows = [reading for whose, known in new.items() for reading in self._unseen(whose, known)]
        windows.sort(key=lambda reading: (reading.key.end, reading.key.id))
        if not changed and self._begun:
            return []
        self._begun = True
        return [*map(WindowPublished, windows), Remembered(self._by_stream())]

    def _unseen(self, whose: Whose, known: Known) -> tuple[Any, ...]:
        """Readings."""
        ring = known.rings.get(WINDOWS, Ring())
        before = self._windows.get(whose, 0)
        self._windows[whose] = ring.count
        if not self._begun:
            return ()
        return ring.entries[max(len(ring.entries) - (ring.count - before), 0) :]

    def _by_stream(self) -> dict[str, dict[str, Known]]:
        found: dict[str, dict[str, Known]] = {stream: {} for stream in self._streams}
        for stream, segment in self._records.owners:
            found[stream][segment] = self._known[stream, segment]
        return found
