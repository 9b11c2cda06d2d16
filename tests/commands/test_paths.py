"""What the commands refuse to write over, and what they say of places."""

from pathlib import Path

import pytest

from monitor.commands.check import check
from monitor.commands.run import replay
from monitor.errors import ConfigurationError
from tests.service.streams import reference
from tests.settings.test_config import GOOD, written


@pytest.mark.parametrize(
    ("out", "complaint"),
    [
        *(
            (name, "what the replay reads")
            for name in ("events.jsonl", "fraud.ref", "shiftwatch.toml", "sub/../fraud.ref")
        ),
        *((".", "not a file"), ("/dev/full", "not a file"), ("none/r.jsonl", "no such folder")),
    ],
)
def test_a_replay_does_not_write_over_what_it_reads_nor_over_what_is_no_file(
    tmp_path: Path, out: str, complaint: str
) -> None:
    config = written(tmp_path, GOOD)
    (tmp_path / "sub").mkdir()
    (tmp_path / "events.jsonl").write_bytes(b"precious")
    with pytest.raises(ConfigurationError, match=complaint):
        replay(config, tmp_path / out, overwrite=True)
    assert (tmp_path / "events.jsonl").read_bytes() == b"precious"


def test_a_check_shows_brackets_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference().save(tmp_path / "fraud.ref")
    assert check(written(tmp_path, GOOD.replace("events.jsonl", "[red].jsonl"))) == 0
    shown = capsys.readouterr().out
    assert "read events from   jsonl:[red].jsonl" in shown
    assert "set dead_letters in [sink]" in shown
