"""The first of two stages that may run on many machines: records of one partition become parts of windows.

What a worker has to know of a partition is its `Progress` alone, which is handed in and out with every batch, so that
any worker may go on with any partition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from monitor.events import Decoder
from monitor.ports import Message, Progress, RawBatch
from monitor.service.dead_letters import DeadLetterLimits, DeadLetterWatch, dead_letter
from monitor.service.placing import placed
from monitor.service.publishing import Watched
from monitor.windows import Windowing, from_stored


@dataclass(frozen=True, slots=True)
class MadeParts:
    """What became of a batch."""

    progress: Progress
    """How far its partition has come."""
    parts: Mapping[str, bytes]
    """For the second stage, by stream: each has some, be it only that the partition's clock has moved."""
    dead_letters: list[Message]


@dataclass
class PartMaker:
    """Any worker's. It may be sent to another process before it is used."""

    watched: Mapping[str, Watched]
    decoder: Callable[[], Decoder]
    limits: DeadLetterLimits = field(default_factory=DeadLetterLimits)

    def take(self, batch: RawBatch, before: Progress | None, now: int) -> MadeParts:
        """Decode a batch that follows upon `before`; `now` is in microseconds since the epoch."""
        decoded = self._decoder.decode(batch, now)
        self._watch.see(len(batch.records), decoded.rejected)
        windowing = Windowing({stream: each.plan for stream, each in self.watched.items()})
        windowing.begin(batch.partition, None if before is None else from_stored(batch.partition, before))
        placed(windowing, batch, decoded)
        first = int(batch.offsets[0]) if before is None else before.offset
        return MadeParts(
            parts={
                stream: msgspec.msgpack.encode([part.encoded() for part in parts])
                for stream, parts in windowing.release(batch.partition, first).items()
            },
            progress=windowing.checkpoint().stored().progress[batch.partition],
            dead_letters=[dead_letter(batch, bad) for bad in decoded.rejected],
        )

    @cached_property
    def _decoder(self) -> Decoder:
        return self.decoder()

    @cached_property
    def _watch(self) -> DeadLetterWatch:
        return DeadLetterWatch(self.limits)
