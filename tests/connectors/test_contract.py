"""What every source and every sink promises; see `connectors.protocols`."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.protocols import Checkpoint, Message
from tests.connectors.harness import (
    SINKS,
    SOURCES,
    SinkCase,
    SourceCase,
    batches,
    checkpoint,
    nothing,
    opened,
    positions,
    read_all,
)


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> SourceCase:
    return SOURCES[request.param](tmp_path)


@pytest.fixture(params=SINKS)
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> SinkCase:
    return SINKS[request.param](tmp_path)


def test_a_source_yields_every_record_of_every_partition_in_order(source: SourceCase) -> None:
    found = read_all(opened(source.open()))
    assert {name: found.get(name, []) for name in source.records} == {n: list(r) for n, r in source.records.items()}


def test_offsets_rise_within_a_partition_and_each_batch_ends_where_the_next_begins(source: SourceCase) -> None:
    last: dict[str, int] = {}
    for batch in batches(opened(source.open())):
        assert len(batch.records) == len(batch.offsets) > 0
        assert (np.diff(batch.offsets) > 0).all()
        assert last.get(batch.partition, 0) <= batch.offsets[0]
        assert batch.offsets[-1] < batch.next_offset
        last[batch.partition] = batch.next_offset


def test_a_source_goes_on_from_any_record(source: SourceCase) -> None:
    whole = opened(source.open())
    for name, offsets in positions(batches(whole)).items():
        for number in {0, 1, len(offsets) // 3, len(offsets) // 2, len(offsets) - 1}:
            again = read_all(opened(source.open(), {name: int(offsets[number])}))
            assert again[name] == list(source.records[name][number:])


def test_a_source_goes_on_after_any_batch(source: SourceCase) -> None:
    before: dict[str, int] = dict.fromkeys(source.records, 0)
    ends: dict[str, int] = {}
    for batch in batches(opened(source.open())):
        before[batch.partition] += len(batch.records)
        ends[batch.partition] = batch.next_offset
        again = read_all(opened(source.open(), ends))
        for name in ends:
            assert again.get(name, []) == list(source.records[name][before[name] :])


def test_a_source_is_finished_once_all_is_read_and_stays_so(source: SourceCase) -> None:
    reading = opened(source.open())
    assert not reading.finished
    total = sum(len(batch.records) for batch in batches(reading))
    assert total == sum(map(len, source.records.values()))
    assert reading.finished
    assert reading.partitions() == []
    assert reading.poll(0.0) == []


def test_a_partition_waits_until_it_is_read(source: SourceCase) -> None:
    reading = opened(source.open())
    full = [name for name, records in source.records.items() if records]
    assert [name for name in full if reading.waiting(name)] == full
    batches(reading)
    assert not any(reading.waiting(name) for name in full)


def test_nothing_comes_of_held_partitions_and_they_wait(source: SourceCase) -> None:
    reading = opened(source.open())
    held = next(name for name, records in source.records.items() if records)
    others = sum(len(records) for name, records in source.records.items() if name != held)
    found = []
    for _ in range(200):
        found += reading.poll(0.0, [held])
    assert sum(len(batch.records) for batch in found) == others
    assert held not in {batch.partition for batch in found}
    assert reading.waiting(held)
    assert sum(len(batch.records) for batch in batches(reading)) == len(source.records[held])


def test_partitions_that_do_not_change_are_not_reassigned(source: SourceCase) -> None:
    reading = opened(source.open())
    assert reading.reassigned(nothing) is None
    batches(reading)
    assert reading.reassigned(nothing) is None


def test_two_readings_are_the_same_bytes_and_positions(source: SourceCase) -> None:
    one, two = (batches(opened(source.open())) for _ in range(2))
    assert [(b.partition, list(b.records), b.offsets.tolist()) for b in one] == [
        (b.partition, list(b.records), b.offsets.tolist()) for b in two
    ]


def messages(channel: str, *values: str) -> list[Message]:
    return [Message(channel, b"k", value.encode()) for value in values]  # type: ignore[arg-type]


def test_a_new_sink_has_no_checkpoint(sink: SinkCase) -> None:
    with sink.reopened() as (_, found):
        assert found is None


def test_what_is_committed_is_published_in_order_with_its_checkpoint(sink: SinkCase) -> None:
    with sink.reopened() as (writing, _):
        for message in (*messages("results", "1", "2"), *messages("events", "x"), *messages("results", "3")):
            writing.write(message)
        writing.commit(checkpoint({"a": 30}))
    assert sink.published() == {"results": [b"1", b"2", b"3"], "recalibrations": [], "events": [b"x"]}
    with sink.reopened() as (_, found):
        assert found == checkpoint({"a": 30})


def test_what_is_not_committed_is_taken_back(sink: SinkCase) -> None:
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


def test_a_crash_before_the_first_commit_starts_afresh(sink: SinkCase) -> None:
    with sink.reopened() as (writing, _):
        writing.write(messages("results", "1")[0])
    with sink.reopened() as (_, found):
        assert found is None
    assert sink.published() == {"results": [], "recalibrations": [], "events": []}


def test_a_commit_without_messages_moves_the_checkpoint(sink: SinkCase) -> None:
    with sink.reopened() as (writing, _):
        writing.commit(checkpoint({"a": 1}))
        writing.commit(checkpoint({"a": 2, "b": 9}))
    with sink.reopened() as (_, found):
        assert found == checkpoint({"a": 2, "b": 9})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["write", "write", "commit", "crash"]), max_size=25))
@pytest.mark.parametrize("kind", SINKS)
def test_any_course_of_writes_commits_and_crashes_publishes_what_was_committed(
    kind: str, tmp_path_factory: pytest.TempPathFactory, course: list[str]
) -> None:
    case = SINKS[kind](tmp_path_factory.mktemp("course"))
    writing = case.open()
    writing.recover()
    committed: list[bytes] = []
    pending: list[bytes] = []
    last: Checkpoint | None = None
    for number, step in enumerate(course):
        if step == "write":
            pending.append(str(number).encode())
            writing.write(Message("results", b"k", pending[-1]))
        elif step == "commit":
            last = checkpoint({"a": number})
            writing.commit(last)
            committed, pending = committed + pending, []
        else:
            writing.close()
            writing, pending = case.open(), []
            assert writing.recover() == last
        assert case.published()["results"] == committed
    writing.close()
