"""Times are read as what they are, or not at all; and the past can be read at leisure."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from monitor import Reference
from monitor.commands.cli import main

START = datetime(2026, 1, 10, 8, tzinfo=UTC)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "my.ref"
    labels = np.random.default_rng(0).random(3_000) < 0.3
    Reference.fit(scores(labels), labels.astype(int)).save(path)
    return path


def scores(labels: np.ndarray) -> np.ndarray:
    return np.where(labels, 0.8, 0.2) + np.random.default_rng(1).uniform(-0.15, 0.15, labels.size)


def events(written: Callable[[datetime], Any], count: int = 600) -> list[dict[str, Any]]:
    """One event a second, with times as some producer writes them."""
    labels = np.random.default_rng(2).random(count) < 0.3
    moments = [START + timedelta(seconds=second) for second in range(count)]
    said = scores(labels).tolist()
    return [
        {"id": f"tx-{i}", "timestamp": written(moment), "posteriors": [1 - p, p]}
        for i, (moment, p) in enumerate(zip(moments, said, strict=True))
    ]


def as_lines(some: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(one) + "\n" for one in some)


def replayed(folder: Path, reference: Path, some: list[dict[str, Any]], stream: str = "") -> list[dict[str, Any]]:
    """The results of a replay; dead letters stop it where too many records are rejected."""
    (folder / "events.jsonl").write_text(as_lines(some))
    (folder / "my.toml").write_text(
        f"""
        [source]
        url = "jsonl:events.jsonl"
        [sink]
        url = "jsonl:unused.jsonl"
        [pace]
        workers = 0
        [streams.mine]
        reference = "{reference}"
        window = {{ size = "5m", lateness = "0s" }}
        {stream}
        """
    )
    code = main(["replay", str(folder / "my.toml"), "-o", str(folder / "results.jsonl"), "--force"])
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()] if code == 0 else []


def epoch(unit: float) -> Callable[[datetime], float]:
    return lambda moment: moment.timestamp() * unit


@pytest.mark.parametrize(
    ("written", "likely"),
    [
        (epoch(1), 'seconds since the epoch? Milliseconds are expected; if so, say times = "seconds" for the stream'),
        (epoch(1e6), 'microseconds since the epoch? Milliseconds are expected; if so, say times = "microseconds"'),
        (epoch(1e9), 'nanoseconds since the epoch? Milliseconds are expected; if so, say times = "nanoseconds"'),
        (lambda m: m.strftime("%Y-%m-%d %H:%M:%S"), 'a time without an offset; if it is UTC, say times = "utc"'),
        (lambda m: m.strftime("%Y-%m-%dT%H:%M:%S.%f"), 'a time without an offset; if it is UTC, say times = "utc"'),
    ],
)
def test_a_time_in_doubt_is_rejected_with_what_it_probably_is(
    tmp_path: Path, reference: Path, capsys: pytest.CaptureFixture[str], written: Callable[[datetime], Any], likely: str
) -> None:
    assert replayed(tmp_path, reference, events(written)) == []
    said = capsys.readouterr()
    assert "bad-timestamp" in said.err
    assert f"first bad-timestamp: {likely}" in said.out
    (tmp_path / "holdout.jsonl").write_text(as_lines([one | {"label": i % 2} for i, one in enumerate(events(written))]))
    assert main(["reference", "build", str(tmp_path / "holdout.jsonl"), "-o", str(tmp_path / "x.ref")]) == 1
    assert f"line 1: bad-timestamp: {likely}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (epoch(1), "seconds"),
        (epoch(1e3), ""),
        (epoch(1e3), "milliseconds"),
        (epoch(1e6), "microseconds"),
        (epoch(1e9), "nanoseconds"),
        (lambda m: m.strftime("%Y-%m-%d %H:%M:%S"), "utc"),
        (lambda m: m.strftime("%Y-%m-%dT%H:%M:%S.%f"), "UTC"),
        (lambda m: (m + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S"), "Europe/Brussels"),
        (lambda m: m.astimezone().isoformat(), ""),
    ],
)
def test_the_stream_can_say_how_times_are_written(
    tmp_path: Path, reference: Path, written: Callable[[datetime], Any], said: str
) -> None:
    results = replayed(tmp_path, reference, events(written), f'times = "{said}"' if said else "")
    assert [one["start"] for one in results] == ["2026-01-10T08:00:00.000000Z", "2026-01-10T08:05:00.000000Z"]
    assert [one["events"]["used"] for one in results] == [300, 300]


def test_the_last_century_is_read_where_the_stream_says_milliseconds(tmp_path: Path, reference: Path) -> None:
    long_ago = [one | {"timestamp": 1_000.0 * i} for i, one in enumerate(events(epoch(1)))]
    assert replayed(tmp_path, reference, long_ago) == []
    results = replayed(tmp_path, reference, long_ago, 'times = "milliseconds"')
    assert results[0]["start"] == "1970-01-01T00:00:00.000000Z"


def test_a_zone_that_there_is_not_is_a_problem_of_the_configuration(
    tmp_path: Path, reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(tmp_path, reference, [], 'times = "Europe/Brusels"') == []
    assert (
        "or a zone such as \"Europe/Brussels\" for texts without an offset, got 'Europe/Brusels'"
        in capsys.readouterr().err
    )


def test_a_reference_can_be_built_from_such_times_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = [one | {"label": int(one["posteriors"][1] > 0.5)} for one in events(epoch(1))]
    (tmp_path / "holdout.jsonl").write_text(as_lines(some))
    arguments = [
        "reference",
        "build",
        str(tmp_path / "holdout.jsonl"),
        "-o",
        str(tmp_path / "x.ref"),
        "--estimator",
        "em",
    ]
    assert main([*arguments, "--times", "seconds"]) == 0


def test_a_silence_while_the_past_is_read_makes_no_label_missing(tmp_path: Path, reference: Path) -> None:
    """Old events are read, then the file grows no more for longer than the patience for idleness; then labels come."""
    some = events(epoch(1e3))
    (tmp_path / "events.jsonl").write_text(as_lines(some))
    (tmp_path / "my.toml").write_text(
        f"""
        [source]
        url = "jsonl:events.jsonl"
        follow = true
        [sink]
        url = "jsonl:results.jsonl"
        [pace]
        idle = "1s"
        workers = 0
        [streams.mine]
        reference = "{reference}"
        window = {{ size = "5m", lateness = "0s" }}
        labels = {{ wait = "1h" }}
        """
    )
    results = tmp_path / "results.jsonl"
    with subprocess.Popen(
        [sys.executable, "-m", "monitor", "run", "my.toml"], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as service:
        wait_for(lambda: results.exists() and "shiftwatch.window" in results.read_text())
        time.sleep(3.0)
        assert "shiftwatch.outcome" not in results.read_text()
        told = [
            {"id": one["id"], "label": int(one["posteriors"][1] > 0.5), "timestamp": one["timestamp"] + 600_000}
            for one in some
        ]
        with (tmp_path / "events.jsonl").open("a") as file:
            # Two hours later all is known that will be.
            file.write(as_lines([*told, some[-1] | {"id": "last", "timestamp": some[-1]["timestamp"] + 7_200_000}]))
        wait_for(lambda: results.read_text().count("shiftwatch.outcome") == 2)
        service.send_signal(signal.SIGTERM)
    outcomes = [json.loads(line) for line in results.read_text().splitlines() if "shiftwatch.outcome" in line]
    assert [one["labels"]["joined"] for one in outcomes] == [300, 300]
    assert [one["labels"]["missing"] for one in outcomes] == [0, 0]


def wait_for(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "did not happen in time"
        time.sleep(0.1)
