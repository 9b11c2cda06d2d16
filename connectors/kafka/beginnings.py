"""Where reading begins in partitions that come, and where it goes on if records are gone before they were read."""

import logging
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from connectors.kafka.driver import CommittedOffset, Partition, Reader
from connectors.kafka.progress import from_metadata
from connectors.kafka.settings import SourceSettings, start_time
from monitor.errors import ConnectorError
from monitor.ports import Checkpoint, Progress, RawBatch

log = logging.getLogger(__name__)


class Beginnings:
    """Of the partitions of one source, as far as is known what the group, or a checkpoint, says of them."""

    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self.checkpoint: Checkpoint | None = None
        """Where a source without a group goes on."""
        self._committed: dict[Partition, CommittedOffset] = {}
        self._gone: dict[Partition, int] = {}
        """Records that are gone, of which the service has not been told yet."""
        self.skipped = 0
        """All of them, since the start of the process."""

    def committed(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        """This is what the group's commit says now."""
        self._committed |= offsets

    def commit_of(self, partition: Partition) -> CommittedOffset | None:
        """What the group's commit says of a partition, as far as we know."""
        return self._committed.get(partition)

    def forget(self, partition: Partition) -> None:
        """A partition is not ours any more."""
        self._gone.pop(partition, None)

    def moved(self, reader: Reader, partitions: Collection[Partition]) -> frozenset[Partition]:
        """The partitions that somebody else has committed since we did."""
        if self._settings.group is None:
            return frozenset()
        committed = reader.committed(partitions)
        return frozenset(
            partition for partition in partitions if committed.get(partition) != self._committed.get(partition)
        )

    def progress(self, reader: Reader, partitions: Collection[Partition]) -> dict[Partition, Progress]:
        """Where each goes on: at its commit, or where the settings say."""
        known = self._known(reader, partitions)
        fresh = [partition for partition in partitions if partition not in known]
        return known | {partition: Progress(offset) for partition, offset in self._starts(reader, fresh).items()}

    def positions(self, reader: Reader, progress: Mapping[Partition, Progress]) -> dict[Partition, int]:
        """Where reading is sent for that, past records that are gone."""
        earliest = reader.earliest(progress.keys())
        positions = {partition: each.offset for partition, each in progress.items()}
        return positions | self.overtaken(
            {partition: at for partition, at in positions.items() if at < earliest[partition]}, earliest
        )

    def overtaken(self, positions: Mapping[Partition, int], earliest: Mapping[Partition, int]) -> dict[Partition, int]:
        """Retention has deleted what should be read next: stop, or go on where records begin, as configured."""
        if not positions:
            return {}
        lost = "; ".join(
            f"{partition.name}: wanted {at}, the topic now begins at {earliest[partition]}"
            for partition, at in sorted(positions.items())
        )
        if self._settings.overtaken == "stop":
            raise ConnectorError(
                f"records were deleted before they were read ({lost}). Give the topic a longer retention; to go on"
                ' without them, set overtaken = "skip"'
            )
        log.error("records were deleted before they were read, going on without them: %s", lost)
        for partition, at in positions.items():
            count = max(0, earliest[partition] - at)
            self._gone[partition] = self._gone.get(partition, 0) + count
            self.skipped += count
        return {partition: earliest[partition] for partition in positions}

    def gone(self, positions: Mapping[Partition, int]) -> Iterator[RawBatch]:
        """Says where reading goes on after records that are gone, before any other record comes."""
        gone, self._gone = self._gone, {}
        for partition, count in sorted(gone.items()):
            yield RawBatch(partition.name, [], np.empty(0, dtype=np.int64), positions[partition], skipped=count)

    def _known(self, reader: Reader, partitions: Collection[Partition]) -> dict[Partition, Progress]:
        if self._settings.group is None:
            known = self.checkpoint.progress if self.checkpoint is not None else {}
            return {partition: known[partition.name] for partition in partitions if partition.name in known}
        committed = reader.committed(partitions)
        for partition in partitions:
            self._committed.pop(partition, None)
        self._committed |= committed
        return {
            partition: from_metadata(partition.name, each.offset, each.metadata)
            for partition, each in committed.items()
        }

    def _starts(self, reader: Reader, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        start = self._settings.start
        moment = start_time(start)
        if moment is not None:
            return reader.at_time(partitions, moment)
        return reader.earliest(partitions) if start == "earliest" else reader.latest(partitions)
