"""`shiftwatch state`: an operator sees what is known over windows, also while it runs, and lets a stream begin anew."""

import json
from pathlib import Path
from zlib import crc32

import pytest

from monitor.commands.cli import BAD_CONFIGURATION, FAILURE, SUCCESS, main
from tests.service import streams

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
[sink]
url = "jsonl:results.jsonl"
[server]
port = 0
[pace]
workers = 0
[streams.s]
reference = "s.ref"
window = { count = 500 }
segments = ["country"]
[streams.other]
reference = "s.ref"
window = { count = 500 }
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A run over 1,500 events of one stream is over."""
    streams.reference().save(tmp_path / "s.ref")
    records = streams.lines(1_500, 0.7, segment=True)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(one for one in records if one) + b"\n")
    (tmp_path / "shiftwatch.toml").write_text(CONFIGURATION, encoding="utf-8")
    assert main(["run", str(tmp_path / "shiftwatch.toml")]) == SUCCESS
    return tmp_path / "shiftwatch.toml"


def said(config: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["state", "show", str(config), *arguments]) == SUCCESS
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_what_is_known_is_shown_by_segment(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, *segments = said(config, capsys, "s")
    assert whole["segment"] == ""
    assert whole["states"]["alarms"]["alarm"]  # type: ignore[index]
    assert whole["states"]["windows"] == {"remembered": 3}  # type: ignore[index]
    assert [one["segment"] for one in segments] == ["country=BE", "country=FR"]
    assert said(config, capsys, "s", "--segment", "country=BE") == segments[:1]


def test_a_stream_that_is_reset_begins_anew_and_its_results_stay(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = (config.parent / "results.jsonl").read_bytes()
    assert main(["state", "reset", str(config), "s", "--segment", "country=BE"]) == SUCCESS
    assert [one["segment"] for one in said(config, capsys, "s")] == ["", "country=FR"]
    assert main(["state", "reset", str(config), "s"]) == SUCCESS
    assert said(config, capsys, "s") == []
    assert main(["run", str(config)]) == SUCCESS
    assert (config.parent / "results.jsonl").read_bytes() == results


def test_a_state_of_a_newer_release_can_be_reset_as_its_refusal_advises(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config.parent / "results.jsonl.states"
    before = path.read_bytes()
    newer = b"".join(resealed(line) for line in before.splitlines())
    assert newer != before
    path.write_bytes(newer)
    capsys.readouterr()
    assert main(["run", str(config)]) == FAILURE
    assert "let the stream begin anew with `shiftwatch state reset`" in capsys.readouterr().err
    assert main(["state", "reset", str(config), "s"]) == SUCCESS
    assert main(["run", str(config)]) == SUCCESS


def resealed(line: bytes) -> bytes:
    """With alarms in a version that this release does not know."""
    key, _, record = line.partition(b"\t")
    text = record.partition(b" ")[2].replace(b'"alarms":[1,', b'"alarms":[9,')
    return b"%b\t%08x %b\n" % (key, crc32(text), text)


def test_nothing_known_and_no_such_stream_are_said(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "reset", str(config), "other"]) == SUCCESS
    assert "other: nothing was known" in capsys.readouterr().out
    assert main(["state", "show", str(config), "nix"]) == BAD_CONFIGURATION
    assert "want one of other, s" in capsys.readouterr().err
