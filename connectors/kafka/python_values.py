"""Places and offsets in kafka-python's own types, and what its reader and its writer have in common."""

from collections.abc import Collection, Mapping
from typing import Any

from kafka import TopicPartition
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from connectors.kafka.driver import CommittedOffset, Partition

MOVED_ON = (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
"""The group has gone on without this member."""

# close() otherwise waits for request_timeout_ms (30 s) when it meets a rebalance; the others notice a member that
# went without a word by its session timeout.
CLOSE_MILLISECONDS = 1000


def as_partitions(given: Collection[Any]) -> frozenset[Partition]:
    return frozenset(Partition(*each) for each in given)


def as_topic_partition(partition: Partition) -> Any:
    return TopicPartition(*partition)


def as_offsets(offsets: Mapping[Partition, CommittedOffset]) -> dict[Any, Any]:
    return {
        as_topic_partition(partition): OffsetAndMetadata(each.offset, each.metadata, -1)
        for partition, each in offsets.items()
    }
