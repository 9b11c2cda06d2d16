"""What others publish of the states of streams, followed by a process that only looks on."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from monitor.service.notices import Remembered, WindowPublished
from monitor.state import WINDOWS, AnyConcern, Known, Ring, StateRecords, Whose


class FollowedStates:
    """What is known of the streams that others watch; it lives on through outages and renewals of references."""

    def __init__(self) -> None:
        self._begun = False
        self._told: dict[Whose, tuple[int, str]] = {}
        """The end and the id of the last window that was told. A job that is submitted anew publishes others again."""

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
            self._told.pop(whose, None)
        self._known |= new
        windows = [reading for whose, known in new.items() for reading in self._unseen(whose, known)]
        windows.sort(key=lambda reading: (reading.key.end, reading.key.id))
        if not changed and self._begun:
            return []
        self._begun = True
        return [*map(WindowPublished, windows), Remembered(self._by_stream())]

    def _unseen(self, whose: Whose, known: Known) -> tuple[Any, ...]:
        """Readings."""
        entries, before = known.rings.get(WINDOWS, Ring()).entries, self._told.get(whose)
        if entries:
            self._told[whose] = max(_when(entries[-1]), before or _when(entries[-1]))
        if not self._begun:
            return ()
        return tuple(reading for reading in entries if before is None or _when(reading) > before)

    def _by_stream(self) -> dict[str, dict[str, Known]]:
        found: dict[str, dict[str, Known]] = {stream: {} for stream in self._streams}
        for stream, segment in self._records.owners:
            found[stream][segment] = self._known[stream, segment]
        return found


def _when(reading: Any) -> tuple[int, str]:
    return reading.key.end, reading.key.id
