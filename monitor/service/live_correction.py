"""Every event of a stream once more as it comes, corrected by what is in force for its stream (`state.in_force`).

Exact: every event that was accepted comes once, in the same commit as the progress past its record, and its posteriors
are corrected by the recalibration of the window that it names. A window is published before any event that names
it. Not determined by the events alone: *which* window that is, since it depends on when the window was published; so
the event says it.

Late events are corrected like any other. A late labelled copy of an earlier event is none; one that is not late counts
as an event. Whatever is corrected is committed with the turn of the loop that read it: behind the windows that are
being assessed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from monitor.arrays import Flags
from monitor.events import Scored
from monitor.ports import Message
from monitor.recalibration import Recalibration, Validity, identity
from monitor.reference import FiledReference
from monitor.service.corrected_events import messages
from monitor.service.publishing import Watched
from monitor.state import InForce, Known
from monitor.windows import Window


class Correcting:
    """The streams with `corrected = "live"`. Others cost nothing."""

    def __init__(self, watched: Mapping[str, Watched], committed: Callable[[str], Known]) -> None:
        """`committed` is what is known of a stream after the last window that has been published."""
        self._nothing = {
            name: _nothing(stream.reference) for name, stream in watched.items() if stream.corrected == "live"
        }
        self._watched = watched
        self._committed = committed

    def corrected(self, events: Iterable[tuple[Scored, Flags]]) -> Iterator[Message]:
        """The events of a batch that are new: read for the first time, and no copies of earlier ones."""
        new = {
            name: scored.rows.take(rows[news[rows]])
            for scored, news in events
            if not self._nothing.keys().isdisjoint(scored.streams.names)
            for name, rows in scored.streams.apart(news.size)
        }
        for name, nothing in self._nothing.items():
            if name in new:
                rows = new[name]
                some = rows if rows.predictions is not None else _without_features(rows)
                now = self._in_force(name)
                yield from messages(
                    some,
                    self._watched[name].feature_names,
                    now.latest or nothing,
                    stream=name,
                    corrected=now.window is not None,
                    window=now.window,
                )

    def _in_force(self, name: str) -> InForce:
        """What was in force for another reference corrects nothing."""
        known = self._committed(name)
        return known.state(InForce) if known.reference == self._nothing[name].validity.reference else InForce()


def _without_features(rows: Window) -> Window:
    """All that posteriors are corrected by, which is less to copy."""
    return Window(rows.posteriors, timestamps=rows.timestamps, ids=rows.ids)


def _nothing(reference: FiledReference) -> Recalibration:
    """No correction; margins are calibrated even so."""
    classes = reference.schema.classes
    validity = Validity(reference=reference.version)
    return identity(classes, [1 / len(classes) for _ in classes], validity, margins=reference.margin_map)
