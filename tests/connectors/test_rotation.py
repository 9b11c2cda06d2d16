"""A log that rotates, in every way in which logs do, read by processes that end at any moment."""

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.jsonl import JsonlOptions, JsonlSource
from connectors.rotation import RotatedLog
from monitor.errors import ConnectorError
from monitor.ports import Checkpoint, Progress

NAME = "events.jsonl"


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked for with every read. (Those that `Writer` has written are old enough to be over.)"""
    monkeypatch.setattr("connectors.rotation.LOOK_EVERY", -1.0)


class Writer:
    """Writes numbered lines, and rotates."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.path.touch()
        self.lines: list[bytes] = []
        self._clock = 1_000_000_000

    def write(self, count: int, *, ended: bool = True) -> None:
        """`ended` is whether the last line has its line feed."""
        new = [b"line %06d" % number for number in range(len(self.lines), len(self.lines) + count)]
        self.lines += new
        with self.path.open("ab") as file:
            file.write(b"\n".join(new) + (b"\n" if ended else b""))
        self._age(self.path)

    def rename(self) -> None:
        self._shift()
        self.path.rename(self._numbered(1))
        self.path.touch()

    def copy_and_truncate(self) -> None:
        self._shift()
        shutil.copy(self.path, self._numbered(1))
        self._age(self._numbered(1))
        os.truncate(self.path, 0)

    def replace(self, lines: int) -> None:
        """By a new file, so that the old one is nowhere."""
        new = self.path.with_name(".new")
        new.touch()
        new.replace(self.path)
        self.write(lines)

    def pack(self) -> None:
        """As logrotate does with `delaycompress`."""
        plain = self._numbered(2)
        if plain.exists():
            packed = plain.with_name(plain.name + ".gz")
            packed.write_bytes(gzip.compress(plain.read_bytes()))
            shutil.copystat(plain, packed)
            plain.unlink()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{NAME}.{number}")

    def _shift(self) -> None:
        for number in range(20, 0, -1):
            for suffix in ("", ".gz"):
                older = self.path.with_name(f"{NAME}.{number}{suffix}")
                if older.exists():
                    older.rename(self.path.with_name(f"{NAME}.{number + 1}{suffix}"))

    def _age(self, path: Path) -> None:
        self._clock += 1
        os.utime(path, (self._clock, self._clock))


class Reader:
    """Reads on where an earlier one was when it committed, and knows which lines it saw at which offsets."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self.log = self._opened()
        self.log.start()
        self.lines: list[tuple[int, bytes]] = []
        self.gaps = 0
        self._committed: tuple[int, str, int] | None = None

    def read(self) -> None:
        for batch in iter(self.log.read, None):
            self.gaps += batch.skipped
            self.lines += zip(batch.offsets.tolist(), batch.records, strict=True)

    def commit(self, back: int) -> None:
        """Some lines before the last one are needed again."""
        needed = max(0, len(self.lines) - 1 - back, self._committed[2] if self._committed else 0)
        if needed < len(self.lines):
            offset = self.lines[needed][0]
            self._committed = offset, self.log.mark(offset), needed

    def kill(self) -> None:
        if self._committed is None:
            return
        self.log.close()
        offset, mark, needed = self._committed
        del self.lines[needed:]
        self.log = self._opened()
        self.log.resume(offset, mark)

    def _opened(self) -> RotatedLog:
        return RotatedLog(self._path, longest=100, chunk=64)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 12)),
        st.tuples(st.sampled_from(["rename", "copy_and_truncate", "pack", "read", "kill"]), st.none()),
        st.tuples(st.just("commit"), st.integers(0, 30)),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_whatever_is_renamed_or_copied_and_cut_each_line_is_read_once_in_order_and_at_one_place(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int | None]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    writer, reader = Writer(folder), Reader(folder)
    writer.write(3)
    reader.read()
    reader.commit(0)
    for step, number in steps:
        by = writer if hasattr(writer, step) else reader
        getattr(by, step)(*([] if number is None else [number]))
    writer.write(1)
    reader.read()
    reader.log.close()
    assert [line for _, line in reader.lines] == writer.lines
    # One number after the other, through all files: a line of eleven characters and its line feed take twelve.
    assert [offset for offset, _ in reader.lines] == [12 * number for number in range(len(writer.lines))]
    assert reader.gaps == 0


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    writer = Writer(tmp_path)
    writer.write(3)
    return writer


@pytest.fixture
def reader(writer: Writer, tmp_path: Path) -> Iterator[Reader]:
    """It has read three lines, and will need the third one again."""
    reader = Reader(tmp_path)
    reader.read()
    reader.commit(0)
    yield reader
    reader.log.close()


def test_a_file_that_is_replaced_is_read_to_its_end_by_whoever_has_it_open(writer: Writer, reader: Reader) -> None:
    writer.write(2)
    writer.replace(4)
    reader.read()
    assert [line for _, line in reader.lines] == writer.lines
    assert (reader.gaps, reader.log.skipped) == (0, 0)


def test_a_file_that_was_replaced_while_nothing_ran_is_a_gap_that_is_told_once(
    writer: Writer, reader: Reader, caplog: pytest.LogCaptureFixture
) -> None:
    writer.write(2)
    writer.replace(4)
    reader.kill()
    reader.read()
    # From the place on that the open windows needed. What follows has places of its own.
    assert [line for _, line in reader.lines] == [*writer.lines[:2], *writer.lines[5:]]
    assert [offset for offset, _ in reader.lines[2:]] == [36, 48, 60, 72]
    assert (reader.gaps, reader.log.skipped) == (1, 1)
    assert "what followed byte 24 of a rotated file is nowhere" in caplog.text


def test_a_file_that_is_cut_without_a_copy_is_a_gap(writer: Writer, reader: Reader) -> None:
    os.truncate(writer.path, 0)
    writer.write(9)  # by now it is longer than what was read of it
    reader.read()
    assert [line for _, line in reader.lines] == writer.lines
    assert reader.gaps == 1


def test_the_rest_of_a_file_that_is_written_to_after_it_was_renamed_belongs_to_it(
    writer: Writer, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.rotation.time.time", lambda: 1_000_000_001.0)  # of the last write, by its clock
    held = writer.path.open("ab", buffering=0)
    writer.rename()
    writer.write(1)
    reader.read()
    assert len(reader.lines) == 3  # not the new file: somebody may still write to the old one
    held.write(b"still here!\n")
    held.close()
    reader.read()
    assert [line for _, line in reader.lines[3:]] == [b"still here!"]
    monkeypatch.undo()
    monkeypatch.setattr("connectors.rotation.GRACE", -1.0)
    monkeypatch.setattr("connectors.rotation.LOOK_EVERY", -1.0)
    reader.read()
    assert [line for _, line in reader.lines[4:]] == [b"line 000003"]


def test_a_last_line_without_line_feed_is_not_put_before_the_first_of_the_next_file(
    writer: Writer, reader: Reader
) -> None:
    writer.write(1, ended=False)
    reader.read()
    assert len(reader.lines) == 3
    writer.rename()
    writer.write(1)
    reader.read()
    assert [line for _, line in reader.lines] == writer.lines


def test_files_that_were_rotated_before_the_first_start_are_history(writer: Writer, tmp_path: Path) -> None:
    writer.rename()
    (tmp_path / "events.jsonl.lock").write_bytes(b"no file of the log\n")
    (tmp_path / "other.jsonl.1").write_bytes(b"of another log\n")
    reader = Reader(tmp_path)
    reader.read()
    assert reader.lines == []
    writer.write(1)
    reader.read()
    writer.rename()
    writer.write(1)
    reader.read()
    assert [line for _, line in reader.lines] == writer.lines[3:]
    reader.log.close()


def test_a_start_between_two_files_of_a_log_reads_the_old_one_and_waits_for_the_new(
    writer: Writer, reader: Reader, tmp_path: Path
) -> None:
    writer.write(1)
    mark = reader.log.mark(24)
    writer.rename()
    writer.path.unlink()
    source = JsonlSource(writer.path, JsonlOptions(follow=True))
    assert source.start(Checkpoint({NAME: Progress(24, "", mark)})) == set()
    assert [list(batch.records) for batch in source.poll(0)] == [writer.lines[2:]]
    writer.write(1)
    assert [list(batch.records) for batch in source.poll(0)] == [writer.lines[4:]]
    assert source.report().skipped == 0
    source.close()


def test_what_a_release_kept_that_followed_no_rotation_is_found_under_its_new_name(
    writer: Writer, tmp_path: Path
) -> None:
    before = JsonlSource(writer.path)
    before.start(None)
    mark = before.mark(NAME, 24)
    writer.rename()
    writer.write(2)
    for kept in (mark, ""):
        log = RotatedLog(writer.path, 100, 64)
        log.resume(24, kept)
        found = [line for batch in iter(log.read, None) for line in batch.records]
        # Without a hash, any file in which a line begins there will do.
        assert found == (writer.lines[2:] if kept else [])
        log.close()


def test_a_file_that_begins_alike_and_goes_on_differently_is_refused(writer: Writer, reader: Reader) -> None:
    first, mark = b"x" * 5_000 + b"\n", ""
    writer.path.write_bytes(first + b"one\ntwo\n")
    log = RotatedLog(writer.path, 100, 64)
    log.start()
    list(iter(log.read, None))
    mark = log.mark(5_005)
    log.close()
    for changed, message in [(first + b"eno\ntwo\n", "though it begins like it"), (first, "now has only 5001")]:
        writer.path.write_bytes(changed)
        with pytest.raises(ConnectorError, match=message):
            RotatedLog(writer.path, 100, 64).resume(5_005, mark)
