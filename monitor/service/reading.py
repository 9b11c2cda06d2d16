"""From records to events: decoded as they are, or joined before where request and response come as two records."""

from collections.abc import Mapping
from dataclasses import replace

from monitor.errors import ConnectorError
from monitor.events import DecodedBatch, Decoder, Joiner, JoinRule, Place
from monitor.ports import NEVER, RawBatch
from monitor.windows import PartitionProgress, WindowCheckpoint


class EventReading:
    """Decodes batches, and says from where a restart has to read."""

    def __init__(self, decoder: Decoder, join: JoinRule | None = None) -> None:
        self._decoder = decoder
        self._joiner = None if join is None else Joiner(join, decoder.limits)

    def begin(self, partition: str, progress: PartitionProgress | None) -> None:
        """Take up a partition where it was committed, or fresh."""
        if self._joiner is None:
            _refuse_unjoined(partition, progress)
            return
        self._joiner.forget(partition)
        if progress is not None:
            self._joiner.begin(partition, progress.offset, Place(*(progress.reread or (progress.offset, NEVER))))

    def forget(self, partition: str) -> None:
        """Somebody else reads it now."""
        if self._joiner is not None:
            self._joiner.forget(partition)

    def decoded(self, batch: RawBatch, now: int) -> tuple[RawBatch, DecodedBatch]:
        """The batch with the records that the events are of, and what it holds."""
        if self._joiner is None:
            return batch, self._decoder.decode(batch, now)
        joined, unjoined = self._joiner.join(batch, now)
        decoded = self._decoder.decode(joined, now)
        rejected = sorted((*decoded.rejected, *unjoined), key=lambda bad: bad.index)
        return joined, replace(decoded, rejected=tuple(rejected))

    def holding(self, checkpoint: WindowCheckpoint) -> WindowCheckpoint:
        """The checkpoint, with the places from which on a restart has to read again."""
        if self._joiner is None:
            return checkpoint
        progress = {name: self._holding(self._joiner, name, each) for name, each in checkpoint.progress.items()}
        return WindowCheckpoint(progress)

    def committed(self, progress: Mapping[str, PartitionProgress]) -> None:
        """No restart begins before it."""
        if self._joiner is not None:
            for partition, each in progress.items():
                self._joiner.committed(partition, each.offset)

    def _holding(self, joiner: Joiner, partition: str, progress: PartitionProgress) -> PartitionProgress:
        place = joiner.reread(partition, progress.offset)
        return progress if place is None else replace(progress, reread=(place.offset, place.time))


def _refuse_unjoined(partition: str, progress: PartitionProgress | None) -> None:
    """Without joining, each of two records that wait for each other would be rejected, and its event be lost."""
    if progress is None or progress.reread is None or progress.reread[0] >= progress.offset:
        return
    raise ConnectorError(
        f"{partition}: up to offset {progress.offset} requests and responses were joined, and some from offset "
        f"{progress.reread[0]} on may still wait for each other, but the configuration joins none: put [source.join] "
        "back, or the preset that joins (events that are one record pass it as they are), or begin elsewhere afresh "
        "(another group, another results file)"
    )
