"""`shiftwatch flink check`: what a job cannot do is said before it is submitted, all of it and in words."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from monitor import Reference, RegressionReference
from monitor.commands.cli import BAD_CONFIGURATION, FAILURE, SUCCESS, main
from monitor.commands.run import server_now

SOURCE = 'url = "kafka://127.0.0.1:9/events"\ngroup = "g"'
SINK = 'url = "kafka://127.0.0.1:9/results"'
WINDOW = 'window = { size = "60s", lateness = "2s" }'


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("references"), np.random.default_rng(0)
    scores = rng.random(400)
    labels = (rng.random(400) < scores).astype(int)
    Reference.fit(np.column_stack([1 - scores, scores]), labels, classes=["no", "yes"]).save(folder / "c.ref")
    inputs = rng.normal(size=(400, 1))
    targets = inputs[:, 0] + rng.normal(size=400)
    RegressionReference.fit(inputs[:, 0], targets, inputs).save(folder / "r.ref")
    return folder


def check(folder: Path, stream: str, source: str = SOURCE, sink: str = SINK, pace: str = "") -> int:
    path = folder / "shiftwatch.toml"
    path.write_text(f"[source]\n{source}\n[sink]\n{sink}\n[pace]\n{pace}\n[streams.s]\n{stream}\n", encoding="utf-8")
    return main(["flink", "check", str(path)])


def test_what_a_job_can_do_is_said_in_one_line(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(references, f'reference = "c.ref"\n{WINDOW}\ncorrected = "window"', pace='idle = "5s"') == SUCCESS
    assert capsys.readouterr().out.endswith("fine. A job would read events and write to results\n")


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        ('reference = "c.ref"\nwindow = { count = 100 }', "windows by `count` follow the order of arrival"),
        (f'reference = "r.ref"\n{WINDOW}', "regressors are judged by labels of earlier windows"),
        (f'reference = "c.ref"\n{WINDOW}\ndead_letter_late = true', "counts late events and does not keep them"),
        (f'reference = "c.ref"\n{WINDOW}\nlabels = {{ wait = "1h" }}', "late labels wait on the disk of one process"),
    ],
)
def test_streams_that_a_job_cannot_have(
    references: Path, stream: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(references, stream, sink=f'{SINK}\nstates = "states"') == BAD_CONFIGURATION
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ends", "reason"),
    [
        (('url = "jsonl:events.jsonl"', 'url = "jsonl:results.jsonl"', ""), "wants both in Kafka"),
        ((f'{SOURCE}\nstart = "latest"', SINK, ""), 'want "earliest"'),
        ((f'{SOURCE}\novertaken = "skip"', SINK, ""), 'want "stop"'),
        ((f"{SOURCE}\npartitions = [0]", SINK, ""), "reads all partitions"),
        ((f'{SOURCE}\n[source.format]\nkind = "cloudevents"', SINK, ""), "a job reads JSON alone"),
        ((SOURCE, f'{SINK}\ndelivery = "at-least-once"', ""), "publishes exactly once"),
        ((SOURCE, SINK, 'idle = "1s"'), 'want 5s or more, or "0s"'),
    ],
)
def test_ends_that_a_job_cannot_have(
    references: Path, ends: tuple[str, str, str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(references, f'reference = "c.ref"\n{WINDOW}', *ends) == BAD_CONFIGURATION
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sink", "server", "reason"),
    [
        (SINK, "[server]", "sink.states: page and metrics of a job come from this topic"),
        (f'{SINK}\nstates = "states"', "", "server: name a [server] or an [otlp]"),
    ],
)
def test_what_following_a_job_needs_is_said(
    references: Path, sink: str, server: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check(references, f'reference = "c.ref"\n{WINDOW}\n{server}', sink=sink)
    assert main(["flink", "watch", str(references / "shiftwatch.toml")]) == BAD_CONFIGURATION
    assert reason in capsys.readouterr().err


def test_the_settings_of_the_server_are_renewed_without_a_look_at_the_references(tmp_path: Path) -> None:
    for token in ("before", "after"):
        server = f'[server]\ntoken = "{token}"'
        assert check(tmp_path, f'reference = "is-being-moved.ref"\n{WINDOW}\n{server}') == BAD_CONFIGURATION
        now = server_now(tmp_path / "shiftwatch.toml")
        assert now is not None
        assert now.token == token


@pytest.mark.skipif(find_spec("pyflink") is not None, reason="PyFlink is here")
def test_where_pyflink_is_missing_it_is_said_how_to_get_it(
    references: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(references, f'reference = "c.ref"\n{WINDOW}')
    assert main(["flink", "submit", str(references / "shiftwatch.toml")]) == FAILURE
    assert "No module named 'pyflink': submit from an environment of its own" in capsys.readouterr().err


def test_live_correction_is_refused(references: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = f'{SINK}\nevents = "events-again"\nrecalibrations = "feed"\nstates = "states"'
    stream = f'reference = "c.ref"\n{WINDOW}\ncorrected = "live"'
    assert check(references, stream, sink=sink) == BAD_CONFIGURATION
    assert '"live" would need results in front of the events' in capsys.readouterr().err
