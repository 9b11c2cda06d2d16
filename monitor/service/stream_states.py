"""What is known over windows, of every stream and segment: the loop advances it, and commits it with the results.

States are values, so taking back what a refused commit held is to go back to the values that were committed last.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from monitor.assessment import MessagePart, encode
from monitor.ports import Message, ReadBack, Sink
from monitor.state import NOTHING, AnyConcern, Changed, Known, SeenT, Step, Whose, WindowSeen, advance, owner, surplus
from monitor.state.records import entry_record, gone_entries, gone_record, read, states_record

SCHEMA_ID = "shiftwatch.continuity.v1"


class Continuity(MessagePart, frozen=True):
    """Published with the first window that is compared with another reference: what becomes of each state."""

    schema: str
    stream: str
    segment: str
    window: str
    before: str
    """The versions of the references."""
    now: str
    concerns: Mapping[str, str]
    """By concern: `goes on` or `begins anew`."""


class StreamStates:
    """The states of streams with these concerns."""

    def __init__(self, concerns: Mapping[str, Sequence[AnyConcern]], sink: Sink | ReadBack) -> None:
        self._concerns = concerns
        self._kept = sink if isinstance(sink, ReadBack) and sink.keeps("states") else None
        self._known: dict[str, dict[str, Known]] = {}
        """By stream and segment."""
        self._committed: dict[Whose, Known] = {}

    def begin(self) -> None:
        """Take up what was committed: at the start, and when partitions came whose streams another member advanced."""
        if self._kept is not None:
            self._committed = read(self._kept.read_back("states"), self._concerns)
            self.refused()

    def of(self, stream: str, segment: str = "") -> Known:
        """What is known after the last window."""
        return self._known.get(stream, {}).get(segment, NOTHING)

    def committed_of(self, stream: str) -> Known:
        """What is known of a whole stream after the last window that has been published."""
        return self._committed.get((stream, ""), NOTHING)

    def all(self) -> Mapping[str, Mapping[str, Known]]:
        """Everything that is known, by stream and segment."""
        return {stream: dict(segments) for stream, segments in self._known.items()}

    def advance(self, seen: SeenT, changed: Changed) -> tuple[SeenT, Sequence[Message]]:
        """Show a window or an outcome to the concerns of its stream: what they make of it, and what they publish.

        Whatever has another state now goes to `changed`.
        """
        stream, segment = owner(seen)
        before = self.of(stream, segment)
        if segment and isinstance(seen, WindowSeen):
            seen = replace(seen, whole=self.of(stream).states)
        step = advance(before, self._concerns[stream], seen)
        self._known.setdefault(stream, {})[segment] = changed[stream, segment] = step.known
        return step.seen, [*self._published(before, step), *self._bound(stream, changed)]

    def _published(self, before: Known, step: Step[SeenT]) -> Iterator[Message]:
        seen, (stream, segment) = step.seen, owner(step.seen)
        yield from step.messages
        if isinstance(seen, WindowSeen) and step.continuity:
            yield _continuity(seen, before, step)
        for concern in self._concerns[stream]:
            if concern.name in step.remembered:
                yield entry_record((stream, segment), step.known, concern)

    def records(self, changed: Changed) -> Iterator[Message]:
        """What has changed, as it is to be committed."""
        for whose, known in changed.items():
            yield gone_record(whose) if known is None else states_record(whose, known, self._concerns[whose[0]])

    def committed(self, changed: Changed) -> None:
        """This is what a restart takes up from now on."""
        for whose, known in changed.items():
            if known is None:
                self._committed.pop(whose, None)
            else:
                self._committed[whose] = known

    def refused(self) -> None:
        """Go back to what was committed."""
        self._known = {}
        for (stream, segment), known in self._committed.items():
            self._known.setdefault(stream, {})[segment] = known

    def _bound(self, stream: str, changed: Changed) -> Iterator[Message]:
        segments = self._known[stream]
        oldest = surplus(segments)
        if oldest is not None:
            changed[stream, oldest] = None
            yield from gone_entries((stream, oldest), segments.pop(oldest), self._concerns[stream])


def _continuity(seen: WindowSeen, before: Known, step: Step[SeenT]) -> Message:
    """Beside the window's result, under a key of its own: a compacted topic keeps both."""
    key = seen.window.key
    said = Continuity(
        SCHEMA_ID, key.stream, key.segment, key.id, before.reference, step.known.reference, step.continuity
    )
    return Message("results", f"continuity/{key.id}".encode(), encode(said))
