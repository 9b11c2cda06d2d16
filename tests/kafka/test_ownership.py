"""Who owns a partition: every way of losing one, against a driver that is a table in memory.

generation      1        2           3
member A     p0 p1       p0         p0 p1
member B                 p1          -
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytest

from connectors.kafka.driver import CommittedOffset, Fetched, OwnershipChange, Partition, PositionLostError
from connectors.kafka.progress import NOTED_STREAMS, Notes, Span, hashed, to_metadata
from connectors.kafka.settings import Connection, SourceSettings
from connectors.kafka.sharing import REBALANCE
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
        return frozenset(partition.partition for partition in self.log)

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
                found.append(Fetched(partition, records, offsets, offsets * 1000, lambda: ()))
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
    assert change.came["t-0"] == Progress(2), "until the service knows of the loss, a commit must not forget it"
    assert source.statistics.skipped == 4
    first, second = source.poll(0)
    assert (first.skipped, len(first.records), first.next_offset) == (4, 0, 6)
    assert (second.skipped, second.offsets.tolist()) == (0, [6, 7, 8, 9])


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
        assert [(batch.skipped, batch.next_offset) for batch in source.poll(0)] == [(7, 7)]
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


PUT_OUT = 10.0 + REBALANCE
"""Seconds after which nobody has a partition any more that a dead member had, by the settings' defaults."""
FRAUD = {hashed("fraud"): Span(40, 90)}
READ = Notes(FRAUD, 10)
"""To the end."""


def shared(reader: TableReader, now: list[float]) -> KafkaSource:
    """A member that has the first partition, with events of fraud from the 50th second to the 100th."""
    settings = SourceSettings(Connection(("-",)), ("t",), group="g", stall_timeout=Duration(10_000 * SECOND))
    source = KafkaSource(settings, lambda _: reader, Guard(), clock=lambda: now[0])
    source.start(None)
    reader.rebalance("assigned", frozenset({P0}))
    source.reassigned(nothing)
    source.saw("t-0", {"orders": (0, 100 * SECOND), "fraud": (50 * SECOND, 100 * SECOND)})
    return source


def test_a_stream_that_others_get_is_known_with_the_first_poll_after_the_assignment() -> None:
    reader = TableReader()
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    source = shared(reader, [0.0])
    source.poll(0)
    assert source.report().spread == ("fraud",)
    assert source.elsewhere("fraud", 80 * SECOND, 100 * SECOND)
    assert not source.elsewhere("fraud", 20 * SECOND, 40 * SECOND), "before they had any"
    assert not source.elsewhere("orders", 80 * SECOND, 100 * SECOND)


@pytest.mark.parametrize("alive", [True, False])
def test_windows_wait_until_whoever_else_has_events_of_them_is_heard_of_or_put_out_of_the_group(alive: bool) -> None:
    reader, now = TableReader(), [0.0]
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), Notes(FRAUD, 6)))
    source = shared(reader, now)
    source.poll(0)
    now[0] += PUT_OUT - 2
    assert not source.known, "a member that died may have it, and it may be ours when that is noticed"
    if alive:
        reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    now[0] += 1 if alive else 3
    assert source.known
    reader.rebalance("assigned", frozenset())
    source.reassigned(nothing)
    source.poll(0)
    assert not source.known, "partitions were handed out anew"


def test_windows_wait_for_no_member_that_has_other_streams_or_other_times() -> None:
    reader = TableReader()
    notes = Notes({hashed("returns"): Span(40, 90), hashed("orders"): Span(-90, -40)}, 10)
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), notes))
    source = shared(reader, [0.0])
    source.poll(0)
    assert source.known


def test_windows_wait_until_it_is_known_what_unread_partitions_bring_but_not_for_ever() -> None:
    reader, now = TableReader(), [0.0]
    source = shared(reader, now)
    source.poll(0)
    assert not source.known, "there are records in the other partition, and nobody has committed any"
    now[0] += 2 * PUT_OUT + 1
    assert source.known
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3)))
    source = shared(reader, now)
    source.poll(0)
    assert not source.known, "its owner has not come to a stream yet"
    reader.group[P1] = CommittedOffset(10, to_metadata(progress(10)))
    now[0] += 2
    source.poll(0)
    assert source.known, "it was read to its end"
    reader.log[P1].append(b"more")
    now[0] += 2
    assert not source.known, "records came of which nobody has noted anything"
    reader.group[P1] = CommittedOffset(11, to_metadata(progress(11), Notes({}, 11)))
    now[0] += 2
    assert source.known


@pytest.mark.parametrize("reads_on", [False, True])
def test_a_member_that_is_behind_is_taken_to_get_more_of_the_stream_until_it_has_read_all_or_stands_still(
    reads_on: bool,
) -> None:
    reader, now = TableReader(), [0.0]
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), Notes(FRAUD, 6)))
    source = shared(reader, now)
    source.poll(0)
    later = (300 * SECOND, 400 * SECOND)
    assert source.elsewhere("fraud", *later)
    if reads_on:
        now[0] += 2
        reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    else:
        now[0] += PUT_OUT + 1
    assert source.known, "windows are about to close, so it looks again"
    assert not source.elsewhere("fraud", *later)


def test_a_topic_that_is_keyed_anew_is_whole_again_from_then_on() -> None:
    reader, now = TableReader(), [0.0]
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    source = shared(reader, now)
    source.poll(0)
    assert source.spread == {"fraud"}
    returns = FRAUD | {hashed("returns"): Span(200, 300)}
    reader.group[P1] = CommittedOffset(9, to_metadata(progress(9), Notes(returns, 10)))
    source.saw("t-0", {"fraud": (200 * SECOND, 300 * SECOND)})
    now[0] += 11
    source.poll(0)
    assert source.spread == frozenset()
    assert not source.elsewhere("fraud", 200 * SECOND, 300 * SECOND)
    assert source.elsewhere("fraud", 0, 100 * SECOND), "what was spread then is so still"


def test_a_stream_that_does_not_come_any_more_is_not_spread_here() -> None:
    reader, now = TableReader(), [0.0]
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    source = shared(reader, now)
    source.poll(0)
    now[0] += 61
    source.poll(0)
    assert source.spread == frozenset()


def test_whoever_reads_everything_has_every_window_whole() -> None:
    reader, now = TableReader(), [0.0]
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    source = shared(reader, now)
    source.poll(0)
    reader.rebalance("assigned", frozenset({P1}))
    source.reassigned(nothing)
    source.poll(0)
    assert source.known
    assert source.spread == frozenset()
    assert not source.elsewhere("fraud", 80 * SECOND, 100 * SECOND)


def test_partitions_that_a_topic_gets_later_are_looked_at_too() -> None:
    reader, now, p2 = TableReader(), [0.0], Partition("t", 2)
    reader.group[P1] = CommittedOffset(10, to_metadata(progress(10)))
    source = shared(reader, now)
    source.poll(0)
    assert source.spread == frozenset()
    reader.log[p2], reader.first[p2] = [b"0"], 0
    reader.group[p2] = CommittedOffset(1, to_metadata(progress(1), Notes(FRAUD, 1)))
    reader.generation = 2  # whoever gets the partition joins the group anew, and so does everyone
    source.poll(0)
    now[0] += 0.1
    source.poll(0)
    assert source.spread == {"fraud"}


def test_streams_beyond_those_that_are_noted_go_the_way_of_those_that_are() -> None:
    reader, now, beyond = TableReader(), [0.0], "orders"
    notes = {number: Span(0, 100) for number in range(NOTED_STREAMS - 1)} | FRAUD
    assert hashed(beyond) > max(notes)
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), Notes(notes, 10)))
    source = shared(reader, now)
    source.poll(0)
    assert source.elsewhere(beyond, 50 * SECOND, 60 * SECOND)
    assert not source.elsewhere(beyond, 10 * SECOND, 20 * SECOND)


def test_brokers_that_do_not_answer_leave_what_is_known_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, now = TableReader(), [0.0]
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    source = shared(reader, now)
    source.poll(0)

    def silent(_: Collection[Partition]) -> Mapping[Partition, CommittedOffset]:
        raise ConnectorError("Kafka does not answer")

    monkeypatch.setattr(reader, "committed", silent)
    now[0] += 11
    source.poll(0)
    assert source.spread == {"fraud"}


def test_what_a_partition_brings_goes_with_it_and_with_its_commit() -> None:
    reader = TableReader()
    source = member(reader)
    source.saw("t-1", {"fraud": (50 * SECOND, 90 * SECOND)})
    assert source.notes(P1).streams == {hashed("fraud"): Span(50, 90)}
    reader.rebalance("revoked", frozenset({P1}))
    source.reassigned(nothing)
    source.saw("t-1", {"fraud": (50 * SECOND, 90 * SECOND)})
    assert source.notes(P1).streams == {}
    reader.group[P1] = CommittedOffset(3, to_metadata(progress(3), READ))
    reader.rebalance("assigned", frozenset({P1}))
    source.reassigned(nothing)
    source.saw("t-1", {"fraud": (95 * SECOND, 95 * SECOND)})
    assert source.notes(P1).streams == {hashed("fraud"): Span(40, 95)}
