"""Progress as the metadata of an offset: nothing is lost, it stays small, and nothing strange is taken for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka.progress import (
    ALWAYS,
    MAX_BYTES,
    NOTED_STREAMS,
    Notes,
    Span,
    from_metadata,
    hashed,
    notes_of,
    table_from_metadata,
    table_to_metadata,
    to_metadata,
)
from monitor.errors import ConnectorError
from monitor.ports import Progress
from monitor.windows import PartitionProgress
from monitor.windows.progress import to_stored

_progress = st.builds(Progress, offset=st.integers(0, 2**40), state=st.text(max_size=80))
_times = st.integers(-(2**33), 2**33)
_spans = st.tuples(_times, _times).map(lambda pair: Span(min(pair), max(pair))) | st.just(ALWAYS)
_notes = st.builds(Notes, st.dictionaries(st.text(max_size=8).map(hashed), _spans, max_size=90), st.integers(-1, 2**40))


@given(_progress, _notes)
def test_what_is_committed_is_what_is_read_back(progress: Progress, notes: Notes) -> None:
    assert from_metadata("t-0", progress.offset, to_metadata(progress, notes)) == progress


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


@given(_progress, _notes)
def test_the_streams_with_the_smallest_hashes_are_noted_as_far_as_there_is_room(
    progress: Progress, notes: Notes
) -> None:
    noted = notes_of(to_metadata(progress, notes))
    assert noted.streams == {name: notes.streams[name] for name in sorted(notes.streams)[: len(noted.streams)]}
    assert len(noted.streams) == min(len(notes.streams), NOTED_STREAMS)
    assert noted.read == notes.read


def test_notes_make_room_for_the_progress() -> None:
    full = Progress(0, "x" * (MAX_BYTES - 100))
    noted = notes_of(to_metadata(full, Notes({number: Span(0, 9) for number in range(50)}, 77)))
    assert 1 <= len(noted.streams) < 50
    assert noted.read == 77


@pytest.mark.parametrize(
    "metadata",
    ["", "set by hand", "shiftwatch/2 x\n", "shiftwatch/2 @x\n", "shiftwatch/2 1:x+2\n", "shiftwatch/9 other\n"],
)
def test_a_foreign_commit_notes_nothing(metadata: str) -> None:
    assert notes_of(metadata) == Notes()


def test_what_kafka_would_refuse_is_refused_in_words() -> None:
    with pytest.raises(ConnectorError, match=f"and Kafka keeps {MAX_BYTES}"):
        to_metadata(Progress(0, "x" * MAX_BYTES))
    with pytest.raises(ConnectorError, match=rf"the positions of 60 partitions takes .* and Kafka keeps {MAX_BYTES}"):
        table_to_metadata({f"file-{number}": Progress(0, "x" * 80) for number in range(60)})
