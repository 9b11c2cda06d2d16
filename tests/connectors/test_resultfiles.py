"""Results in files: nothing lost, nothing twice, whatever happens to the process or the files."""

import io
import os
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import msgspec
import pytest

from connectors.resultfiles import ResultFileOptions, ResultFiles, StandardOutput
from monitor.commands.connectors import open_sink
from monitor.errors import ConfigurationError, ConnectorError
from monitor.ports import Message
from tests.connectors.harness import checkpoint
from tests.processes import Process, finished, killed_again_and_again

WRITER = """
import sys
from pathlib import Path
from monitor.ports import Checkpoint, Message, Progress
from connectors.resultfiles import ResultFileOptions, ResultFiles

last = int(sys.argv[2])
sink = ResultFiles(Path(sys.argv[1]), ResultFileOptions(dead_letters=Path("dead.jsonl")), Path(sys.argv[1]).parent)
recovered = sink.recover()
at = recovered.progress["p"].offset if recovered else 0
print("ready", flush=True)
while at < last:
    for number in range(at, min(at + 7, last)):
        sink.write(Message("results", b"", b'{"number":%d,"pad":"%s"}' % (number, b"x" * 3000)))
        sink.write(Message("dead-letters", b"", b"%d" % number))
    at = min(at + 7, last)
    sink.commit(Checkpoint({"p": Progress(at)}))
sink.close()
"""


def test_a_writer_that_is_killed_again_and_again_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    results, last = tmp_path / "results.jsonl", 6_000

    def writer() -> Process:
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(results), str(last)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        return process

    assert killed_again_and_again(writer, 6, (0.0, 0.08)) > 2
    finished(writer())
    numbers = [msgspec.json.decode(line)["number"] for line in results.read_bytes().splitlines()]
    assert numbers == list(range(last))
    letters = [int(msgspec.json.decode(line)["record"]) for line in (tmp_path / "dead.jsonl").read_bytes().splitlines()]
    assert letters == list(range(last))


def refuses(sink: ResultFiles, why: str) -> None:
    """The sink does not recover."""
    with closing(sink), pytest.raises(ConnectorError, match=why):
        sink.recover()


class Crash(Exception):  # noqa: N818 - it stands for no error
    """Stands for the process's end."""


def test_a_crash_at_any_step_of_a_commit_leaves_the_old_state_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = set()
    for deadly in range(1, 12):
        path = tmp_path / str(deadly) / "r"
        path.parent.mkdir()
        sink = ResultFiles(path)
        sink.recover()
        sink.write(Message("results", b"", b"1"))
        sink.commit(checkpoint({"p": 1}))
        sink.write(Message("results", b"", b"2"))
        steps = iter(range(1, 100))
        with monkeypatch.context() as patched:
            for name in ("fsync", "replace", "open"):
                patched.setattr(os, name, _mortal(getattr(os, name), steps, deadly))
            with suppress(Crash):
                sink.commit(checkpoint({"p": 2}))
        sink.close()
        again = ResultFiles(path)
        state = again.recover()
        again.close()
        assert (state, path.read_bytes()) in (
            (checkpoint({"p": 1}), b"1\n"),
            (checkpoint({"p": 2}), b"1\n2\n"),
        )
        outcomes.add(path.read_bytes())
    assert len(outcomes) == 2


def _mortal(call, steps, deadly: int):
    def attempt(*args, **kwargs):
        if next(steps) == deadly:
            raise Crash
        return call(*args, **kwargs)

    return attempt


def test_contents_without_a_checkpoint_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"precious\n")
    refuses(ResultFiles(tmp_path / "r"), r"it has contents, but there is no r.checkpoint")
    assert (tmp_path / "r").read_bytes() == b"precious\n"


def test_a_new_channel_does_not_overwrite_a_file_that_was_there(tmp_path: Path) -> None:
    sink = ResultFiles(tmp_path / "r")
    sink.recover()
    sink.commit(checkpoint({}))
    sink.close()
    (tmp_path / "d").write_bytes(b"precious\n")
    refuses(ResultFiles(tmp_path / "r", ResultFileOptions(dead_letters=tmp_path / "d")), r"d: it has contents")
    assert (tmp_path / "d").read_bytes() == b"precious\n"


def test_results_that_became_shorter_or_were_edited_are_an_error(tmp_path: Path) -> None:
    sink = ResultFiles(tmp_path / "r")
    sink.recover()
    sink.write(Message("results", b"", b"12345"))
    sink.commit(checkpoint({}))
    sink.close()
    (tmp_path / "r").write_bytes(b"12\n")
    refuses(ResultFiles(tmp_path / "r"), r"6 bytes were committed, and only 3 are left")
    (tmp_path / "r").write_bytes(b"12\n345678\n")
    refuses(ResultFiles(tmp_path / "r"), r"6 bytes were committed, and no line ends there")


@pytest.mark.parametrize("other", ["r", "sub/../r", "r.checkpoint"])
def test_two_outputs_cannot_share_a_file(tmp_path: Path, other: str) -> None:
    with pytest.raises(ConfigurationError, match="want a file for each output"):
        ResultFiles(tmp_path / "r", ResultFileOptions(dead_letters=Path(other)), tmp_path)


@pytest.mark.parametrize(
    ("contents", "message"),
    [(b"{", "cannot be read"), (b'{"format":9,"lengths":{},"checkpoint":null}', "has format 9")],
)
def test_a_checkpoint_that_cannot_be_understood_is_an_error(tmp_path: Path, contents: bytes, message: str) -> None:
    (tmp_path / "r.checkpoint").write_bytes(contents)
    refuses(ResultFiles(tmp_path / "r"), message)


def test_two_processes_cannot_write_the_same_results(tmp_path: Path) -> None:
    sink = ResultFiles(tmp_path / "r")
    sink.recover()
    refuses(ResultFiles(tmp_path / "r"), r"another process is writing")
    sink.close()


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    refuses(ResultFiles(tmp_path / "no" / "r"), r"cannot be written")


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    full = Path("/dev/full")
    sink = ResultFiles(tmp_path / "r", ResultFileOptions(dead_letters=full))
    sink.recover()
    sink.write(Message("dead-letters", b"", b"1"))
    with pytest.raises(ConnectorError, match="/dev/full: cannot be written: No space left"):
        sink.commit(checkpoint({}))
    sink.close()


def test_a_dead_letter_keeps_any_bytes_and_its_headers(tmp_path: Path) -> None:
    sink = ResultFiles(tmp_path / "r", ResultFileOptions(dead_letters=tmp_path / "d"))
    sink.recover()
    for value in (b'{"a":\n1}', b"\xff\xfe"):
        sink.write(Message("dead-letters", b"k", value, (("reason", b"not-json"), ("offset", b"7"))))
    sink.commit(checkpoint({}))
    sink.close()
    letters = [msgspec.json.decode(line) for line in (tmp_path / "d").read_bytes().splitlines()]
    assert letters == [
        {"reason": "not-json", "offset": "7", "record": '{"a":\n1}'},
        {"reason": "not-json", "offset": "7", "record_base64": "//4="},
    ]


def test_the_files_may_move_together(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    sink = open_sink("jsonl:r", {"dead_letters": "d"}, old)
    sink.recover()
    sink.write(Message("results", b"", b"1"))
    sink.commit(checkpoint({"p": 1}))
    sink.close()
    old.rename(new)
    with closing(open_sink("jsonl:r", {"dead_letters": "d"}, new)) as again:
        assert again.recover() == checkpoint({"p": 1})


def test_standard_output_shows_results_at_their_commit_and_nothing_else() -> None:
    file = io.BytesIO()
    sink = StandardOutput(file)
    assert sink.recover() is None
    sink.write(Message("results", b"", b"1"))
    sink.write(Message("dead-letters", b"", b"?"))
    assert file.getvalue() == b""
    sink.commit(checkpoint({}))
    sink.commit(checkpoint({}))
    assert file.getvalue() == b"1\n"


def test_standard_output_that_nobody_reads_any_more_is_an_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    file = os.fdopen(write_end, "wb")
    sink = StandardOutput(file)
    sink.write(Message("results", b"", b"1"))
    with pytest.raises(ConnectorError, match="standard output"):
        sink.commit(checkpoint({}))
    with pytest.raises(BrokenPipeError):
        file.close()


def test_standard_output_takes_no_options(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="takes no options"):
        open_sink("jsonl:-", {"events": "x"}, tmp_path)
