"""Every event of a stream once more as it comes, corrected by the latest recalibration that its stream has published.

Exact: every event that was accepted comes once, in the same commit as the progress past its record, and its posteriors
are corrected by the recalibration of the window that it names. A window is published before any event that names
it. Not determined by the events alone: *which* window that is, since it depends on when the window was published; so
the event says it.

A recalibration counts if it is for the reference that the stream has now. As in the client it stays in force until a
window contradicts it (`settled`), and as in the feed nothing is applied while labels show that the estimates are off.
The feed holds one message for each stream, so after a restart this begins with the last window. Late events are
corrected like any other. A late labelled copy of an earlier event is none; one that is not late counts as an event.

Whatever is corrected is committed with the turn of the loop that read it: behind the windows that are being assessed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags
from monitor.errors import ConfigurationError, ConnectorError
from monitor.events import Scored
from monitor.ports import Message, ReadBack, Sink
from monitor.recalibration import Recalibration, Validity, corrected_rows, identity, settled
from monitor.recalibration.decoding import decoded, parsed
from monitor.reference import FiledReference
from monitor.service.corrected_events import messages
from monitor.service.publishing import Watched, feed_key
from monitor.windows import Window, WindowKey


@dataclass(slots=True)
class InForce:
    """What corrects the events of one stream just now."""

    nothing: Recalibration
    """What is done while nothing is known, for the reference that the stream has."""
    latest: Recalibration | None = None
    """Of the last window, after hysteresis."""
    window: str | None = None
    """Whose recalibration is applied; None where none is."""

    def hear(self, message: Recalibration) -> None:
        """The next window of the stream has been published."""
        if message.validity.reference != self.nothing.validity.reference:
            return
        self.latest = settled(self.latest, message)
        if message.apply:
            self.window = message.validity.window
        elif not self.latest.apply:
            self.window = None

    def read_back(self, message: Recalibration) -> None:
        """Begin with what the feed has, unless it has nothing newer: it may show a commit a little later."""
        if self.latest is None or message.validity.end > self.latest.validity.end:
            self.latest = self.window = None
            self.hear(message)


class Correcting:
    """The streams with `corrected = "live"`. Others cost nothing."""

    def __init__(self, watched: Mapping[str, Watched], sink: Sink) -> None:
        live = {name: stream.reference for name, stream in watched.items() if stream.corrected == "live"}
        self._classes = {name: reference.schema.classes for name, reference in live.items()}
        self._states = {name: InForce(_nothing(reference)) for name, reference in live.items()}
        self._by_key = {feed_key(WindowKey(name)): state for name, state in self._states.items()}
        self._kept = _kept(sink, live)

    def begin(self) -> None:
        """Read back what is in force: at the start, and when partitions came that others may have read meanwhile."""
        if self._kept is None:
            return
        latest, unreadable = {}, None
        for value in self._kept.read_back("recalibrations"):
            try:
                message = decoded(parsed(value))
            except ValueError as error:
                unreadable = error
                continue
            unreadable = None
            if not message.validity.segment:
                latest[message.validity.stream] = message
        if unreadable is not None:
            raise ConnectorError(f"the last recalibration cannot be read back: {unreadable}") from unreadable
        for name, state in self._states.items():
            if name in latest:
                state.read_back(latest[name])

    def published(self, messages: Iterable[Message]) -> None:
        """These have been committed."""
        if not self._states:
            return
        for message in messages:
            if message.channel == "recalibrations" and message.key in self._by_key:
                self._by_key[message.key].hear(decoded(parsed(message.value)))

    def corrected(self, scored: Mapping[str, Scored], fresh: Mapping[str, Flags]) -> Iterator[Message]:
        """The events of a batch that are `fresh`, by stream: read for the first time, and no copies of earlier ones."""
        for name, state in self._states.items():
            if name in scored:
                rows = scored[name].rows
                some = Window(rows.posteriors, timestamps=rows.timestamps, ids=rows.ids).take(fresh[name])
                after = corrected_rows(some.posteriors, state.latest or state.nothing)
                yield from messages(
                    some,
                    after,
                    stream=name,
                    classes=self._classes[name],
                    corrected=state.window is not None,
                    window=state.window,
                )


def _nothing(reference: FiledReference) -> Recalibration:
    """No correction; margins are calibrated even so."""
    classes = reference.schema.classes
    validity = Validity(reference=reference.version)
    return identity(classes, np.full(len(classes), 1 / len(classes)), validity, margins=reference.margin_map)


def _kept(sink: Sink, streams: Collection[str]) -> ReadBack | None:
    """Where the recalibrations of these streams are read back; None where there are no such streams."""
    if not streams:
        return None
    if isinstance(sink, ReadBack) and sink.keeps("recalibrations"):
        return sink
    raise ConfigurationError(
        [f"streams.{stream}: live correction wants a sink that publishes recalibrations" for stream in streams]
    )
