"""What every source and every sink promises; see `monitor.ports`. Whoever has a connector inherits the tests.

A subclass has a fixture: `source` for sources, `sink` for sinks.
"""

import numpy as np
import pytest

from monitor.assessment.message import encode
from monitor.ports import Checkpoint, Message, ReadBack
from monitor.recalibration import Validity, identity
from monitor.recalibration.decoding import decoded, parsed
from tests.connectors.harness import (
    SinkCase,
    SourceCase,
    batches,
    checkpoint,
    nothing,
    opened,
    positions,
    read_all,
)


class SourceContract:
    """For a source that ends."""

    def test_it_yields_every_record_of_every_partition_in_order(self, source: SourceCase) -> None:
        found = read_all(opened(source.open()))
        assert {name: found.get(name, []) for name in source.records} == {n: list(r) for n, r in source.records.items()}

    def test_offsets_rise_within_a_partition_and_each_batch_ends_where_the_next_begins(
        self, source: SourceCase
    ) -> None:
        last: dict[str, int] = {}
        for batch in batches(opened(source.open())):
            assert len(batch.records) == len(batch.offsets) > 0
            assert (np.diff(batch.offsets) > 0).all()
            assert last.get(batch.partition, 0) <= batch.offsets[0]
            assert batch.offsets[-1] < batch.next_offset
            last[batch.partition] = batch.next_offset

    def test_it_goes_on_from_any_record(self, source: SourceCase) -> None:
        whole = opened(source.open())
        for name, offsets in positions(batches(whole)).items():
            for number in {0, 1, len(offsets) // 3, len(offsets) // 2, len(offsets) - 1}:
                again = read_all(opened(source.open(), {name: int(offsets[number])}))
                assert again[name] == list(source.records[name][number:])

    def test_it_goes_on_after_any_batch(self, source: SourceCase) -> None:
        before: dict[str, int] = dict.fromkeys(source.records, 0)
        ends: dict[str, int] = {}
        for batch in batches(opened(source.open())):
            before[batch.partition] += len(batch.records)
            ends[batch.partition] = batch.next_offset
            again = read_all(opened(source.open(), ends))
            for name in ends:
                assert again.get(name, []) == list(source.records[name][before[name] :])

    def test_it_is_finished_once_all_is_read_and_stays_so(self, source: SourceCase) -> None:
        reading = opened(source.open())
        assert not reading.finished
        total = sum(len(batch.records) for batch in batches(reading))
        assert total == sum(map(len, source.records.values()))
        assert reading.finished
        assert reading.partitions() == []
        assert reading.poll(0.0) == []

    def test_a_partition_waits_until_it_is_read(self, source: SourceCase) -> None:
        reading = opened(source.open())
        full = [name for name, records in source.records.items() if records]
        assert [name for name in full if reading.waiting(name)] == full
        batches(reading)
        assert not any(reading.waiting(name) for name in full)

    def test_nothing_comes_of_held_partitions_and_they_wait(self, source: SourceCase) -> None:
        reading = opened(source.open())
        held = next(name for name, records in source.records.items() if records)
        others = [name for name in source.records if name != held]
        found = []
        while any(reading.waiting(name) for name in others):
            found += reading.poll(0.01, [held])
        assert sum(len(batch.records) for batch in found) == sum(len(source.records[name]) for name in others)
        assert held not in {batch.partition for batch in found}
        assert reading.waiting(held)
        assert sum(len(batch.records) for batch in batches(reading)) == len(source.records[held])

    def test_partitions_that_do_not_change_are_not_reassigned(self, source: SourceCase) -> None:
        reading = opened(source.open())
        assert reading.reassigned(nothing) is None
        batches(reading)
        assert reading.reassigned(nothing) is None

    def test_two_readings_are_the_same_bytes_at_the_same_positions(self, source: SourceCase) -> None:
        one, two = (batches(opened(source.open())) for _ in range(2))
        places, again = positions(one), positions(two)
        assert {name: at.tolist() for name, at in places.items()} == {name: at.tolist() for name, at in again.items()}
        for name in places:
            records, same = ([r for b in read if b.partition == name for r in b.records] for read in (one, two))
            assert records == same


def messages(channel: str, *values: str) -> list[Message]:
    return [Message(channel, b"k", value.encode()) for value in values]  # type: ignore[arg-type]


class SinkContract:
    """For a sink and what its readers see."""

    def test_a_new_one_has_no_checkpoint(self, sink: SinkCase) -> None:
        with sink.reopened() as (_, found):
            assert found is None

    def test_what_is_committed_is_published_in_order_with_its_checkpoint(self, sink: SinkCase) -> None:
        with sink.reopened() as (writing, _):
            for message in (*messages("results", "1", "2"), *messages("events", "x"), *messages("results", "3")):
                writing.write(message)
            writing.commit(checkpoint({"a": 30}))
        assert sink.published() == {"results": [b"1", b"2", b"3"], "recalibrations": [], "events": [b"x"]}
        with sink.reopened() as (_, found):
            assert found == checkpoint({"a": 30})

    def test_what_is_not_committed_is_taken_back(self, sink: SinkCase) -> None:
        with sink.reopened() as (writing, _):
            writing.write(messages("results", "1")[0])
            writing.commit(checkpoint({"a": 1}))
            for message in (*messages("results", "2"), *messages("events", "x")):
                writing.write(message)
        with sink.reopened() as (writing, found):
            assert found == checkpoint({"a": 1})
            writing.write(messages("results", "two")[0])
            writing.commit(checkpoint({"a": 2}))
        assert sink.published() == {"results": [b"1", b"two"], "recalibrations": [], "events": []}

    def test_a_crash_before_the_first_commit_starts_afresh(self, sink: SinkCase) -> None:
        with sink.reopened() as (writing, _):
            writing.write(messages("results", "1")[0])
        with sink.reopened() as (_, found):
            assert found is None
        assert sink.published() == {"results": [], "recalibrations": [], "events": []}

    def test_a_commit_without_messages_moves_the_checkpoint(self, sink: SinkCase) -> None:
        with sink.reopened() as (writing, _):
            writing.commit(checkpoint({"a": 1}))
            writing.commit(checkpoint({"a": 2, "b": 9}))
        with sink.reopened() as (_, found):
            assert found == checkpoint({"a": 2, "b": 9})

    def test_the_last_committed_recalibration_of_a_stream_is_read_back(self, sink: SinkCase) -> None:
        with sink.reopened() as (writing, _):
            assert isinstance(writing, ReadBack)
            assert writing.keeps("recalibrations")
            assert not list(writing.read_back("recalibrations"))
            for window in ("w1", "w2"):
                writing.write(recalibration("s", window))
            writing.write(recalibration("t", "w3"))
            writing.commit(checkpoint({"a": 1}))
            assert last_window(writing, "s") == "w2"
            writing.write(recalibration("s", "w4"))
        with sink.reopened() as (writing, _):
            assert isinstance(writing, ReadBack)
            assert last_window(writing, "s") == "w2"
            writing.write(recalibration("s", "w5"))
            writing.commit(checkpoint({"a": 2}))
            assert last_window(writing, "s") == "w5"

    @pytest.mark.parametrize("course", ["wwcwxwcxcwwc", "cxwxwwwxccwc"])
    def test_what_was_committed_is_published_whatever_was_written_and_lost_in_between(
        self, sink: SinkCase, course: str
    ) -> None:
        assert_published(sink, course)


def recalibration(stream: str, window: str) -> Message:
    """What a window says, as it is published."""
    said = identity(("no", "yes"), (0.7, 0.3), Validity(stream=stream, window=window))
    return Message("recalibrations", stream.encode(), encode(said))


def last_window(sink: ReadBack, stream: str) -> str:
    """Whose recalibration is the stream's last."""
    messages = [decoded(parsed(value)) for value in sink.read_back("recalibrations")]
    return [message.validity.window for message in messages if message.validity.stream == stream][-1]


def assert_published(case: SinkCase, course: str) -> None:
    """Write (w), commit (c) and crash (x) in this order: readers see what was committed."""
    writing = case.open()
    assert writing.recover() is None
    committed: list[bytes] = []
    pending: list[bytes] = []
    last: Checkpoint | None = None
    for number, step in enumerate(course):
        if step == "w":
            pending.append(str(number).encode())
            writing.write(Message("results", b"k", pending[-1]))
        elif step == "c":
            last = checkpoint({"a": number})
            writing.commit(last)
            committed, pending = committed + pending, []
        else:
            writing.close()
            writing, pending = case.open(), []
            assert writing.recover() == last
    writing.close()
    assert case.published()["results"] == committed
