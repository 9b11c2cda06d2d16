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

from connectors.kafka.driver import CommittedOffset, Place

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


def as_places(partitions: Collection[Any]) -> frozenset[Place]:
    return frozenset(Place(*partition) for partition in partitions)


def as_partition(place: Place) -> Any:
    return TopicPartition(*place)


def as_offsets(offsets: Mapping[Place, CommittedOffset]) -> dict[Any, Any]:
    return {as_partition(place): OffsetAndMetadata(each.offset, each.metadata, -1) for place, each in offsets.items()}
