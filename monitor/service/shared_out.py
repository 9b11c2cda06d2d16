"""Whether windows are whole where members of a group share a source out, and what becomes of those that are not.

A stream whose events come to several members has no whole window anywhere: none is published, and a notice says what to
do. With `spread = "parts"` each member publishes its part, under a key of its own, and nothing is recommended by it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from monitor.errors import ConnectorError
from monitor.events import DecodedBatch
from monitor.ports import Message, SharedOut, Source
from monitor.service.notices import Happening, StreamsSpread, WindowRefused
from monitor.service.publishing import Spread
from monitor.windows import Gap, Window


class WholeWindows:
    """Asks a source that is shared out; any other has every window whole."""

    def __init__(self, source: Source, policies: Mapping[str, Spread], tell: Callable[[Happening], None]) -> None:
        """`policies`: by stream, what is done with parts of its windows."""
        self._source = source if isinstance(source, SharedOut) else None
        self._policies = policies
        self._tell = tell
        self._told: frozenset[str] = frozenset()

    @property
    def known(self) -> bool:
        """Whether windows may be closed: it is known which of them are whole."""
        return self._source is None or self._source.known

    def saw(self, partition: str, decoded: DecodedBatch) -> None:
        """The source has to know which streams a batch brought, and of what time."""
        if self._source is not None:
            spans = [scored.streams.spans(scored.rows.times) for scored in decoded.together]
            self._source.saw(partition, {stream: span for group in spans for stream, span in group.items()})

    def ours(self, streams: Collection[str]) -> Collection[str]:
        """Which of these streams come to this member."""
        return streams if self._source is None else self._source.brings(streams)

    def check_waiting(self, awaiting: Collection[str]) -> None:
        """At the start: windows that wait for labels do so on this process's disk; their partitions must stay here."""
        if awaiting and self._source is not None and self._source.handed_out:
            raise ConnectorError(
                f"windows of {', '.join(awaiting)} wait for their labels on this process's disk, and the group shares "
                "partitions out to other members: where one moves, its waiting windows are lost. Name the partitions "
                "of each member (`partitions = [0, 2]` in [source]), or run one member"
            )

    def publishable(self, window: Window) -> Window | None:
        """The window, or the part that it is; None if that is not to be published."""
        key = window.key
        if self._source is None:
            return window
        if Gap.SPREAD not in window.origin.gaps and not self._source.elsewhere(key.stream, key.start, key.end):
            return window
        if self._policies[key.stream] == "refuse":
            self._tell(WindowRefused(key, window.events))
            return None
        origin = replace(window.origin.lacking([Gap.SPREAD]), member=self._source.member)
        return replace(window, origin=origin, key=replace(key, part=",".join(origin.partitions)))

    def signed(self, message: Message, window: Window) -> Message:
        """A result with who made it out of what, in headers: whoever makes it, its bytes are the same."""
        if self._source is None or message.channel != "results":
            return message
        made = (("member", self._source.member.encode()), ("partitions", ",".join(window.origin.partitions).encode()))
        return replace(message, headers=(*message.headers, *made))

    def look(self) -> None:
        """Say of which streams others get events, whenever those are others than before."""
        if self._source is None:
            return
        spread = frozenset(self._source.spread & self._policies.keys())
        if spread != self._told:
            self._told = spread
            self._tell(StreamsSpread(spread, frozenset(s for s in spread if self._policies[s] == "refuse")))
