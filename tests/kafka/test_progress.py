"""Progress as the metadata of an offset: nothing is lost, and it stays small."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.progress import (
    MAX_BYTES,
    NOTED_STREAMS,
    from_metadata,
    shared_with,
    table_from_metadata,
    table_to_metadata,
    to_metadata,
)
from monitor.errors import ConnectorError
from monitor.ports import NEVER, Counted, Progress

_numbers = st.integers(-(2**62), 2**62)
_counts = st.integers(0, 2**40)
_progress = st.builds(
    Progress,
    offset=_counts,
    running_max=_numbers,
    read=_counts,
    closed=_numbers,
    counted=st.dictionaries(st.text(max_size=12), st.builds(Counted, _counts, _counts, _counts), max_size=4),
)


@given(_progress)
def test_what_is_committed_is_what_is_read_back(progress: Progress) -> None:
    assert from_metadata(progress.offset, to_metadata(progress)) == progress


@given(st.dictionaries(st.text(max_size=10), _progress, max_size=3))
def test_a_table_of_partitions_is_read_back(table: dict[str, Progress]) -> None:
    assert table_from_metadata(table_to_metadata(table)) == table


def test_progress_without_count_windows_takes_few_bytes() -> None:
    assert len(to_metadata(Progress(10**12, 1_763_456_400_000_000, 10**12, 1_763_456_400_000_000))) < 100


@pytest.mark.parametrize("metadata", ["", "set by hand", "{}", '{"max":"x"}'])
def test_an_offset_set_by_another_tool_begins_fresh_there(metadata: str) -> None:
    assert from_metadata(77, metadata) == Progress(offset=77, running_max=NEVER, read=77, closed=NEVER)


@given(st.sets(st.text(max_size=8), max_size=200), st.sets(st.text(max_size=8), min_size=1, max_size=200))
def test_partitions_that_bring_the_same_streams_show_it(others: set[str], ours: set[str]) -> None:
    noted = to_metadata(Progress(0, 0, 0, 0), others)
    assert shared_with(noted, ours) <= ours & others
    if len(others) <= NOTED_STREAMS:
        assert shared_with(noted, ours) == ours & others
    assert shared_with(to_metadata(Progress(0, 0, 0, 0), ours), ours), "however many there are"
    assert len(noted) < 100 + 12 * NOTED_STREAMS


def test_a_foreign_commit_shares_nothing() -> None:
    assert shared_with("set by hand", {"a"}) == frozenset()


def test_what_kafka_would_refuse_is_refused_in_words() -> None:
    counted = {f"stream-number-{number}": Counted(1, 2, 3) for number in range(300)}
    with pytest.raises(ConnectorError, match=f"300 count-window streams, and Kafka keeps {MAX_BYTES}"):
        to_metadata(Progress(0, 0, 0, 0, counted))
