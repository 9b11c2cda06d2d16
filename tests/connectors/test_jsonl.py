"""Files, directories, gzip and standard input: what is theirs alone."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.jsonl import JsonlOptions, JsonlSource
from connectors.texts import StandardInput
from monitor.commands.connectors import open_source
from monitor.errors import ConfigurationError, ConnectorError
from monitor.ports import Checkpoint, Progress
from tests.connectors.harness import RedirectedSource, checkpoint, nothing, opened, read_all, small_lines


def drained(lines) -> list[tuple[int, bytes]]:
    """Every record with its offset."""
    found = []
    while (batch := lines.read()) is not None:
        found += zip(batch.offsets.tolist(), batch.records, strict=True)
    return found


@settings(max_examples=200)
@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=12),
    st.integers(1, 40),
    st.booleans(),
)
def test_any_chunking_cuts_the_same_lines_and_long_ones_are_cut_short(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], chunk: int, ended: bool
) -> None:
    path = tmp_path_factory.mktemp("lines") / "p"
    text = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    path.write_bytes(text)
    expected, offset = [], 0
    for line in lines:
        if line not in (b"", b"\r"):
            expected.append((offset, line))
        offset += len(line) + 1
    found = drained(small_lines(path, chunk=chunk, longest=10))
    assert [at for at, _ in found] == [at for at, _ in expected]
    for (_, record), (_, line) in zip(found, expected, strict=True):
        # A line within one chunk may come whole: the decoder rejects it as too large either way.
        assert record == line or (len(line) > 10 and line.startswith(record) and len(record) > 10)


def test_a_line_without_end_takes_no_more_memory_than_the_longest_allowed(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b'{"a":1}\n' + b"x" * 100_000 + b"\nnext\n")
    lines = small_lines(path, longest=50, chunk=64)
    found = drained(lines)
    assert found == [(0, b'{"a":1}'), (8, b"x" * 51), (100_009, b"next")]


def test_after_a_long_line_reading_goes_on_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"x" * 1000 + b"\nnext" * 40)
    lines = small_lines(path, longest=50, chunk=64)
    batch = lines.read()
    assert batch is not None
    again = small_lines(path, longest=50, chunk=64, offset=batch.next_offset)
    left = drained(again)
    assert left == drained(lines)
    assert set(left) >= {(1001 + 5 * 39, b"next")}


def test_a_followed_file_yields_a_line_only_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"one\ntw")
    source = opened(JsonlSource(path, JsonlOptions(follow=True)))
    assert [list(batch.records) for batch in source.poll(0)] == [[b"one"]]
    assert source.poll(0) == []
    assert not source.waiting("p")
    assert not source.finished
    assert source.partitions() == ["p"]
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    assert source.waiting("p")
    assert [list(batch.records) for batch in source.poll(0)] == [[b"two", b"three"]]
    source.close()


def test_a_new_file_in_a_followed_directory_comes_as_a_new_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"1\n")
    source = opened(JsonlSource(tmp_path, JsonlOptions(follow=True)))
    assert source.reassigned(nothing) is None
    (tmp_path / "b").write_bytes(b"2\n")
    monkeypatch.setattr("connectors.jsonl.LISTING", 0.0)  # the next look is due
    change = source.reassigned(nothing)
    assert change is not None
    assert dict(change.came) == {"b": None}
    assert change.gone == frozenset()
    assert source.partitions() == ["a", "b"]
    assert {batch.partition for _ in range(3) for batch in source.poll(0)} == {"a", "b"}


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n")
    assert set(JsonlSource(tmp_path).start(checkpoint({"a": 0, "old": 50}))) == {"old"}


@pytest.mark.parametrize(
    ("contents", "offset", "message"),
    [(b"short\n", 100, "has only 6"), (b"one line, longer\n", 5, "no line starts at byte 5")],
)
def test_a_file_that_is_not_the_one_that_was_read_is_an_error(
    tmp_path: Path, contents: bytes, offset: int, message: str
) -> None:
    (tmp_path / "a").write_bytes(contents)
    with pytest.raises(ConnectorError, match=message):
        opened(JsonlSource(tmp_path / "a"), {"a": offset})


def test_a_file_of_a_directory_that_is_replaced_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n")
    source = opened(JsonlSource(tmp_path, JsonlOptions(follow=True)))
    source.poll(0)
    other = tmp_path / ".other"
    other.write_bytes(b"other, and longer\n")
    other.replace(path)
    with pytest.raises(ConnectorError, match="replaced or cut"):
        source.poll(0)


def stopped_at(path: Path, offset: int) -> Progress:
    """What a commit keeps of a file that was read so far."""
    return Progress(offset, "", opened(JsonlSource(path)).mark(path.name, offset))


def test_a_file_that_was_replaced_while_nothing_ran_is_known_though_its_lines_are_as_long(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\nsix\n")
    kept = Checkpoint({"a": stopped_at(path, 8)})
    JsonlSource(path).start(kept)
    with path.open("ab") as file:
        file.write(b"ten\n")
    longer = JsonlSource(path)
    longer.start(kept)
    assert [record for _, record in drained(longer._lines["a"])] == [b"six", b"ten"]  # noqa: SLF001
    path.write_bytes(b"111\n222\n333\n444\n")
    with pytest.raises(ConnectorError, match="not the file that was read up to byte 8"):
        JsonlSource(path).start(kept)
    JsonlSource(path).start(Checkpoint({"a": Progress(8)}))  # as releases before have kept it


def test_a_file_that_was_taken_away_since_it_was_read_is_no_other_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo\n")
    source = opened(JsonlSource(path))
    path.rename(tmp_path / "a.1")
    path.write_bytes(b"111\n222\n333\n")
    with pytest.raises(ConnectorError, match="not the file"):
        JsonlSource(path).start(Checkpoint({"a": Progress(8, "", source.mark("a", 8))}))


def test_a_last_line_may_get_its_line_feed_and_company_later(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\n2")
    source = opened(JsonlSource(path))
    assert read_all(source) == {"a": [b"1", b"2"]}
    with path.open("ab") as file:
        file.write(b"\n3\n")
    assert read_all(opened(JsonlSource(path), {"a": 3})) == {"a": [b"3"]}


def test_a_damaged_gzip_file_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(os.urandom(5_000_000))[:-1_000])
    with pytest.raises(ConnectorError, match="damaged gzip file"):
        read_all(opened(JsonlSource(path)))


def test_a_gzip_file_that_became_shorter_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"1\n"))
    with pytest.raises(ConnectorError, match="has only 2"):
        opened(JsonlSource(tmp_path / "a.gz"), {"a.gz": 10})


def test_redirected_standard_input_goes_on_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n22\n333\n")
    assert read_all(opened(RedirectedSource(tmp_path / "a"))) == {"-": [b"1", b"22", b"333"]}
    assert read_all(opened(RedirectedSource(tmp_path / "a"), {"-": 2})) == {"-": [b"22", b"333"]}


def test_a_pipe_is_read_as_it_comes_and_cannot_be_read_again() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader:
        text = StandardInput(reader)
        assert (text.read(100), text.more(), text.ended) == (b"", False, False)
        os.write(write_end, b"1\n2")
        assert text.more()
        assert text.read(100) == b"1\n2"
        os.close(write_end)
        assert (text.read(100), text.ended) == (b"", True)
        with pytest.raises(ConnectorError, match="cannot be read again from byte 5"):
            StandardInput(reader).seek(5)


def test_a_path_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="there is no such file or directory"):
        JsonlSource(tmp_path / "nothing").start(None)


def test_options_are_checked_and_the_nearest_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'follow'"):
        open_source("jsonl:x", {"folow": True}, tmp_path)


def test_a_thousand_files_need_no_thousand_open_files(tmp_path: Path) -> None:
    for number in range(1200):
        (tmp_path / f"{number:04}").write_bytes(b"1\n")
    source = opened(JsonlSource(tmp_path))
    assert len(os.listdir("/dev/fd")) < 200
    assert sum(len(records) for records in read_all(source).values()) == 1200
