"""What can be said about a Kafka connector at one instant, for whoever exports metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from connectors.kafka.driver import Partition


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """Where reading and committing stand in one partition that is ours."""

    position: int
    """The next record to read."""
    committed: int | None
    """Where a restart would begin; None before anybody's first commit."""
    end: int | None
    """Where the next record will be written, as far as fetches have told."""
    held: bool
    """Not fetched for now, because the service has enough of it."""

    @property
    def lag(self) -> int | None:
        """Records not read yet."""
        return None if self.end is None else max(0, self.end - self.position)

    @property
    def commit_lag(self) -> int | None:
        """Records that a restart would read."""
        return None if self.end is None or self.committed is None else max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """A Kafka source: totals count since the start of the process."""

    partitions: Mapping[Partition, PartitionStatistics] = field(default_factory=dict)
    records: int = 0
    polls: int = 0
    assigned: int = 0
    """Partitions that came."""
    revoked: int = 0
    """Partitions that were handed over in good order."""
    lost: int = 0
    """Partitions that were taken away because the group had given this member up."""
    rebalances: int = 0
    restarted: int = 0
    """How often everything began again at the committed offsets because a commit was refused."""
    skipped: int = 0
    """Records that retention deleted before they were read, where the configuration says to go on."""
    last_poll: float = 0.0
    """When the last poll returned; the source's monotonic clock."""
    alone: bool = True
    """Whether this process reads every partition of its topics."""


@dataclass(frozen=True, slots=True)
class SinkStatistics:
    """A Kafka sink: totals count since the start of the process."""

    messages: Mapping[str, int] = field(default_factory=dict)
    """By channel, as committed."""
    commits: int = 0
    aborted: int = 0
    """Transactions that were begun and given up."""
    refused: int = 0
    """Commits that the group refused: nothing was published, and the work was done again."""
    truncated: int = 0
    """Dead letters longer than Kafka takes, of which only the beginning was kept."""
    commit_seconds: float = 0.0
    """Time spent in commits."""
