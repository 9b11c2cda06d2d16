"""Offsets of a refused commit: they are gone with it, and no later commit brings them along."""

import pytest
from kafka import ConsumerGroupMetadata

from connectors.kafka.driver import CommittedOffset, Partition, Record
from connectors.kafka.python_driver import reader, writer
from connectors.kafka.settings import sink_settings, source_settings
from monitor.errors import CommitRefusedError
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, unique


def test_offsets_of_a_refused_commit_are_not_committed_with_the_next_one(apache_kafka: Cluster) -> None:
    """kafka-python 3.0.12 keeps them: windows of a partition that had moved to another member would be lost."""
    broker, topic, results, group = Broker(apache_kafka), unique("events"), unique("results"), unique("g")
    broker.create(topic, partitions=2)
    broker.create(results)
    kept, moved = Partition(topic, 0), Partition(topic, 1)
    writing = writer(sink_settings({"bootstrap": broker.bootstrap, "results": results}), unique("w"))
    as_left = ConsumerGroupMetadata(group, 99, "a member of long ago", None)
    as_is = ConsumerGroupMetadata(group, -1, "", None)
    try:
        writing.begin()
        writing.send([Record(results, b"k", b"refused", ())])
        with pytest.raises(CommitRefusedError):
            writing.commit({kept: CommittedOffset(10, ""), moved: CommittedOffset(10, "")}, as_left)
        writing.begin()
        writing.send([Record(results, b"k", b"committed", ())])
        writing.commit({kept: CommittedOffset(5, "")}, as_is)
    finally:
        writing.close()
    reading = reader(source_settings({"bootstrap": broker.bootstrap, "topics": topic, "group": group}))
    try:
        assert reading.committed([kept, moved]) == {kept: CommittedOffset(5, "")}
    finally:
        reading.close()
