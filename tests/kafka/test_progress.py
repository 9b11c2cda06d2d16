"""Progress as the metadata of an offset: nothing is lost, it stays small, and nothing strange is taken for it."""

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
from monitor.ports import Progress
from monitor.windows import PartitionProgress
from monitor.windows.progress import to_stored

_progress = st.builds(Progress, offset=st.integers(0, 2**40), state=st.text(max_size=80))
_streams = st.sets(st.text(max_size=8), max_size=200)


@given(_progress, _streams)
def test_what_is_committed_is_what_is_read_back(progress: Progress, streams: set[str]) -> None:
    assert from_metadata("t-0", progress.offset, to_metadata(progress, streams)) == progress


@given(st.dictionaries(st.text(max_size=10), _progress, max_size=3))
def test_a_table_of_partitions_is_read_back(table: dict[str, Progress]) -> None:
    assert table_from_metadata(table_to_metadata(table)) == table


def test_progress_without_count_windows_takes_few_bytes() -> None:
    progress = PartitionProgress(10**12, 1_763_456_400_000_000, 10**12, 1_763_456_400_000_000)
    assert len(to_metadata(to_stored(progress))) < 110


def test_an_offset_set_by_another_tool_begins_fresh_there() -> None:
    assert from_metadata("t-0", 77, "") == Progress(77)


@pytest.mark.parametrize("metadata", ["set by hand", "{}", '{"max":"x"}', "[]", "\0"])
def test_metadata_of_somebody_else_is_refused_in_words(metadata: str) -> None:
    with pytest.raises(ConnectorError, match=r"t-0: .* metadata that Shiftwatch has not written"):
        from_metadata("t-0", 77, metadata)
    with pytest.raises(ConnectorError, match="metadata that Shiftwatch has not written"):
        table_from_metadata(metadata)


def test_metadata_of_a_newer_release_is_refused_in_words() -> None:
    for read in (lambda text: from_metadata("t-0", 77, text), table_from_metadata):
        with pytest.raises(ConnectorError, match="format '3', and this release reads up to 2"):
            read("shiftwatch/3 12,34\nwhatever it is")


@given(_streams, st.sets(st.text(max_size=8), min_size=1, max_size=200))
def test_partitions_that_bring_the_same_streams_show_it(others: set[str], ours: set[str]) -> None:
    noted = to_metadata(Progress(0), others)
    assert shared_with(noted, ours) <= ours & others
    if len(others) <= NOTED_STREAMS:
        assert shared_with(noted, ours) == ours & others
    assert shared_with(to_metadata(Progress(0), ours), ours), "however many there are"
    assert len(noted) < 100 + 12 * NOTED_STREAMS


@pytest.mark.parametrize("metadata", ["set by hand", "shiftwatch/2 x\n", "shiftwatch/9 other\n"])
def test_a_foreign_commit_shares_nothing(metadata: str) -> None:
    assert shared_with(metadata, {"a"}) == frozenset()


def test_what_kafka_would_refuse_is_refused_in_words() -> None:
    with pytest.raises(ConnectorError, match=f"and Kafka keeps {MAX_BYTES}"):
        to_metadata(Progress(0, "x" * MAX_BYTES))
    with pytest.raises(ConnectorError, match=rf"the positions of 60 partitions takes .* and Kafka keeps {MAX_BYTES}"):
        table_to_metadata({f"file-{number}": Progress(0, "x" * 80) for number in range(60)})
