"""Who owns a partition: every way of losing one, against a driver that is a table in memory.

generation      1        2           3
member A     p0 p1       p0         p0 p1
member B                 p1          -
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytest

from connectors.kafka.driver import CommittedOffset, Fetched, OwnershipChange, Partition, PositionLostError
from connectors.kafka.progress import to_metadata
from connectors.kafka.settings import Connection, SourceSettings
from connectors.kafka.topic_source import KafkaSource
from connectors.kafka.watchdog import Guard
from monitor.errors import ConnectorError
from monitor.ports import Checkpoint, Progress
from monitor.ports.options import Duration
from tests.connectors.harness import nothing

SECOND = 1_000_000
P0, P1 = Partition("t", 0), Partition("t", 1)
BOTH = frozenset({P0, P1})


class TableReader:
    """A cluster of one topic with two partitions of ten records, and a group, as plain tables."""

    errors = 0

    def __init__(self) -> None:
        self.log: dict[Partition, list[bytes]] = {
            partition: [b"%d" % number for number in range(10)] for partition in (P0, P1)
        }
        self.first = dict.fromkeys(self.log, 0)
        self.group: dict[Partition, CommittedOffset] = {}
        self.at: dict[Partition, int] = {}
        self.pending: list[OwnershipChange] = []
        self.generation: int | None = 1
        self.held: frozenset[Partition] = frozenset()
        self.closed = False

    def partitions(self, topic: str) -> frozenset[int]:
        return frozenset({0, 1})

    def subscribe(self, topics: Sequence[str]) -> None:
        self.topics = topics

    def assign(self, partitions: Collection[Partition]) -> None:
        self.pending.append(OwnershipChange("assigned", frozenset(partitions)))

    def changes(self) -> Sequence[OwnershipChange]:
        found, self.pending = self.pending, []
        return found

    def changed(self) -> bool:
        return bool(self.pending)

    def seek(self, positions: Mapping[Partition, int]) -> None:
        self.at |= positions

    def poll(self, timeout: float) -> Sequence[Fetched]:
        found = []
        for partition in sorted(set(self.at) - self.held):
            at = self.at[partition]
            if at < self.first[partition]:
                raise PositionLostError({partition: at})
            records = self.log[partition][at : at + 4]
            if records:
                self.at[partition] = at + len(records)
                offsets = np.arange(at, at + len(records))
                found.append(Fetched(partition, records, offsets, offsets * 1000))
        return found

    def hold(self, partitions: Collection[Partition]) -> None:
        self.held = frozenset(partitions)

    def committed(self, partitions: Collection[Partition]) -> Mapping[Partition, CommittedOffset]:
        return {partition: self.group[partition] for partition in partitions if partition in self.group}

    def earliest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        return {partition: self.first[partition] for partition in partitions}

    def latest(self, partitions: Collection[Partition]) -> Mapping[Partition, int]:
        return {partition: len(self.log[partition]) for partition in partitions}

    def at_time(self, partitions: Collection[Partition], milliseconds: int) -> Mapping[Partition, int]:
        return dict.fromkeys(partitions, 5)

    def position(self, partition: Partition) -> int | None:
        return self.at.get(partition)

    def highwater(self, partition: Partition) -> int | None:
        return len(self.log[partition])

    def membership(self) -> object | None:
        return self.generation

    def outsider(self) -> object:
        return "g"

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        self.group |= offsets

    def close(self) -> None:
        self.closed = True

    def rebalance(self, kind: str, partitions: frozenset[Partition]) -> None:
        self.pending.append(OwnershipChange(kind, partitions))  # type: ignore[arg-type]
        for partition in partitions if kind != "assigned" else ():
            self.at.pop(partition, None)


def source_on(reader: TableReader, **settings: object) -> KafkaSource:
    made = SourceSettings(Connection(("-",)), ("t",), **({"group": "g"} | settings))  # type: ignore[arg-type]
    source = KafkaSource(made, lambda _: reader, Guard())
    source.start(None)
    return source


def member(reader: TableReader) -> KafkaSource:
    """A member that owns both partitions and has read the first four records of each."""
    source = source_on(reader)
    reader.rebalance("assigned", BOTH)
    assert source.reassigned(nothing) is not None
    assert [(batch.partition, batch.next_offset) for batch in source.poll(0)] == [("t-0", 4), ("t-1", 4)]
    return source


def progress(offset: int) -> Progress:
    return Progress(offset)


def test_nothing_is_yielded_before_the_assignment_is_fetched() -> None:
    reader = TableReader()
    source = source_on(reader)
    reader.rebalance("assigned", BOTH)
    reader.at = {P0: 0, P1: 0}
    assert source.poll(0) == ()
    assert source.partitions() == []
    change = source.reassigned(nothing)
    assert change is not None
    assert change.came == {"t-0": progress(0), "t-1": progress(0)}
    assert [batch.offsets.tolist() for batch in source.poll(0)] == [[0, 1, 2, 3], [0, 1, 2, 3]]


def test_a_partition_goes_on_at_its_commit_with_its_progress() -> None:
    reader = TableReader()
    committed = Progress(3, "as the service has written it")
    reader.group[P0] = CommittedOffset(3, to_metadata(committed))
    source = source_on(reader)
    reader.rebalance("assigned", frozenset({P0}))
    change = source.reassigned(nothing)
    assert change is not None
    assert change.came == {"t-0": committed}
    assert source.poll(0)[0].offsets.tolist() == [3, 4, 5, 6]


def test_a_revoked_partition_goes_and_the_other_loses_and_repeats_nothing() -> None:
    reader = TableReader()
    source = member(reader)
    reader.poll(0)  # what was fetched while the change came in is dropped by poll...
    reader.rebalance("revoked", frozenset({P1}))
    assert source.poll(0) == ()
    change = source.reassigned(nothing)
    assert change is not None
    assert (change.gone, change.came) == (frozenset({"t-1"}), {})
    assert [(batch.partition, batch.offsets.tolist()) for batch in source.poll(0)] == [("t-0", [4, 5, 6, 7])]


def test_a_partition_that_was_away_and_came_back_begins_at_its_commit() -> None:
    reader = TableReader()
    source = member(reader)
    reader.rebalance("revoked", frozenset({P1}))
    reader.group[P1] = CommittedOffset(2, to_metadata(progress(2)))
    reader.rebalance("assigned", frozenset({P1}))
    change = source.reassigned(nothing)
    assert change is not None
    assert (change.gone, change.came) == (frozenset({"t-1"}), {"t-1": progress(2)})


def test_lost_is_counted_apart_from_revoked() -> None:
    reader = TableReader()
    source = member(reader)
    reader.rebalance("lost", BOTH)
    change = source.reassigned(nothing)
    assert change is not None
    assert change.gone == {"t-0", "t-1"}
    assert (source.statistics.lost, source.statistics.revoked, source.statistics.rebalances) == (2, 0, 1)


def test_a_commit_by_someone_else_in_a_generation_that_went_unnoticed_is_noticed() -> None:
    reader = TableReader()
    source = member(reader)
    reader.group[P1] = CommittedOffset(8, to_metadata(progress(8)))
    reader.generation = 3
    assert source.poll(0) == ()
    assert source.membership is None, "nothing may be committed before the partition has begun again"
    change = source.reassigned(nothing)
    assert change is not None
    assert (change.gone, change.came) == (frozenset({"t-1"}), {"t-1": progress(8)})
    assert source.membership == 3


def test_a_new_generation_without_any_change_costs_nothing() -> None:
    reader = TableReader()
    source = member(reader)
    reader.generation = 2
    assert len(source.poll(0)) == 2
    assert source.reassigned(nothing) is None
    assert source.membership == 2


def test_after_a_refused_commit_everything_begins_again() -> None:
    reader = TableReader()
    source = member(reader)
    source.refused()
    assert source.poll(0) == ()
    change = source.reassigned(nothing)
    assert change is not None
    assert change.gone == {"t-0", "t-1"}
    assert change.came == {"t-0": progress(0), "t-1": progress(0)}
    assert [batch.offsets.tolist() for batch in source.poll(0)] == [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert source.statistics.restarted == 1


def test_records_that_come_twice_are_handed_on_once() -> None:
    reader = TableReader()
    source = member(reader)
    reader.at[P0] = 2  # as after an eager rebalance
    assert [batch.offsets.tolist() for batch in source.poll(0) if batch.partition == "t-0"] == [[4, 5]]


def test_held_partitions_are_not_fetched_and_come_back() -> None:
    reader = TableReader()
    source = member(reader)
    assert [batch.partition for batch in source.poll(0, held={"t-0"})] == ["t-1"]
    assert source.statistics.partitions[P0].held
    assert [batch.partition for batch in source.poll(0)] == ["t-0", "t-1"]


@pytest.mark.parametrize(("start", "offset"), [("earliest", 3), ("latest", 10), ("2026-11-18T09:00:00Z", 5)])
def test_a_partition_without_a_commit_begins_where_the_settings_say(start: str, offset: int) -> None:
    reader = TableReader()
    reader.first[P0] = 3
    source = source_on(reader, start=start)
    reader.rebalance("assigned", frozenset({P0}))
    change = source.reassigned(nothing)
    assert change is not None
    assert change.came == {"t-0": progress(offset)}


def test_retention_that_overtook_a_stopped_consumer_is_an_error_that_says_so() -> None:
    reader = TableReader()
    reader.group[P0] = CommittedOffset(2, to_metadata(progress(2)))
    reader.first[P0] = 6
    source = source_on(reader)
    reader.rebalance("assigned", frozenset({P0}))
    with pytest.raises(
        ConnectorError, match=r"deleted before they were read \(t-0: wanted 2, the topic now begins at 6"
    ):
        source.reassigned(nothing)


def test_retention_may_be_accepted_and_is_counted() -> None:
    reader = TableReader()
    reader.group[P0] = CommittedOffset(2, to_metadata(progress(2)))
    reader.first[P0] = 6
    source = source_on(reader, overtaken="skip")
    reader.rebalance("assigned", frozenset({P0}))
    change = source.reassigned(nothing)
    assert change is not None
    assert change.came["t-0"] == Progress(6)
    assert source.statistics.skipped == 4


@pytest.mark.parametrize("overtaken", ["stop", "skip"])
def test_retention_that_overtakes_a_slow_consumer_is_not_silent_either(overtaken: str) -> None:
    reader = TableReader()
    source = source_on(reader, overtaken=overtaken)
    reader.rebalance("assigned", frozenset({P0}))
    source.reassigned(nothing)
    reader.first[P0] = 7
    if overtaken == "stop":
        with pytest.raises(ConnectorError, match="wanted 0, the topic now begins at 7"):
            source.poll(0)
    else:
        assert not source.poll(0)
        assert source.poll(0)[0].offsets.tolist() == [7, 8, 9]
        assert source.statistics.skipped == 7


def test_without_a_group_the_sink_s_checkpoint_says_where_to_begin() -> None:
    reader = TableReader()
    source = source_on(reader, group=None)
    source.start(Checkpoint({"t-0": progress(4), "gone-7": progress(1)}))
    change = source.reassigned(nothing)
    assert change is not None
    assert change.came == {"t-0": progress(4), "t-1": progress(0)}
    assert source.reassigned(nothing) is None
    assert source.statistics.alone


def test_a_stream_that_comes_to_two_members_is_said_loudly_and_once(caplog: pytest.LogCaptureFixture) -> None:
    reader, now = TableReader(), [0.0]
    settings = SourceSettings(Connection(("-",)), ("t",), group="g", stall_timeout=Duration(10_000 * SECOND))
    source = KafkaSource(settings, lambda _: reader, Guard(), clock=lambda: now[0])
    source.start(None)
    reader.rebalance("assigned", frozenset({P0}))
    source.reassigned(nothing)
    source.saw("t-0", ["orders", "fraud"])
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), ["fraud", "returns"]))
    for now[0] in (10.0, 70.0, 140.0):
        source.poll(0)
    assert source.report().spread == ("fraud",)
    assert [record.args[0] for record in caplog.records if record.levelname == "ERROR"] == ["fraud"]  # type: ignore[index]
    reader.rebalance("assigned", frozenset({P1}))
    source.reassigned(nothing)
    now[0] = 210.0
    source.poll(0)
    assert source.report().spread == (), "whoever reads everything has every window whole"


def test_what_a_partition_brings_is_forgotten_with_it() -> None:
    reader = TableReader()
    source = member(reader)
    source.saw("t-1", ["fraud"])
    assert source.streams(P1) == {"fraud"}
    reader.rebalance("revoked", frozenset({P1}))
    source.reassigned(nothing)
    source.saw("t-1", ["fraud"])
    assert source.streams(P1) == ()


def test_what_is_under_way_is_settled_while_the_partitions_still_are_our_own() -> None:
    reader = TableReader()
    source = member(reader)
    seen: list[object] = []
    reader.rebalance("revoked", frozenset({P1}))
    reader.generation = 2
    source.reassigned(lambda: seen.extend([source.membership, *sorted(source.by_name())]))
    assert seen == [1, "t-0", "t-1"]
    assert (source.membership, list(source.by_name())) == (2, ["t-0"])
    source.reassigned(lambda: seen.append("without a reason"))
    assert "without a reason" not in seen


def test_what_is_refused_while_it_is_settled_begins_again() -> None:
    reader = TableReader()
    source = member(reader)
    reader.rebalance("revoked", frozenset({P1}))
    change = source.reassigned(source.refused)
    assert change is not None
    assert change.gone == {"t-0", "t-1"}
    assert list(change.came) == ["t-0"]


def test_waiting_is_only_denied_where_the_end_is_known() -> None:
    reader = TableReader()
    source = member(reader)
    assert source.waiting("t-0")
    source.poll(0)
    source.poll(0)
    assert not source.waiting("t-0")
    assert not source.waiting("elsewhere-0")
    source.close()
    assert reader.closed


def test_never_becoming_a_member_ends_with_an_error() -> None:
    reader, now = TableReader(), [0.0]
    reader.generation = None
    settings = SourceSettings(Connection(("-",)), ("t",), group="g", assignment_timeout=Duration(60 * SECOND))
    source = KafkaSource(settings, lambda _: reader, Guard(), clock=lambda: now[0])
    source.start(None)
    source.poll(0)
    now[0] = 59
    assert source.report().unassigned == 59
    now[0] = 61
    with pytest.raises(ConnectorError, match="no member of group g for 1m"):
        source.poll(0)


def test_a_partition_that_brings_nothing_although_records_wait_ends_with_an_error() -> None:
    reader, now = TableReader(), [0.0]
    settings = SourceSettings(Connection(("-",)), ("t",), group="g", stall_timeout=Duration(60 * SECOND))
    source = KafkaSource(settings, lambda _: reader, Guard(), clock=lambda: now[0])
    source.start(None)
    reader.rebalance("assigned", frozenset({P0}))
    source.reassigned(nothing)
    reader.poll = lambda timeout: []  # type: ignore[method-assign]
    for now[0] in (5.0, 35.0):
        source.poll(0)
        stalled = source.report().stalled
    assert stalled == 30
    now[0] = 70.0
    with pytest.raises(ConnectorError, match="no record from t-0 for 1m although records wait there"):
        source.poll(0)
