"""What `check` says before anything runs, what `replay` says at its end, and names of all kinds."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pandas as pd
import pytest

from monitor import Reference
from monitor.commands.cli import main
from monitor.observers.history import History
from monitor.recalibration import RecalibrationClient
from monitor.settings.config import ServerSettings
from monitor.web.server import serving
from tests.first_hour.shop import Shop
from tests.web.made_up import Story, facts

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str], my_reference: Reference) -> Command:
    """`shiftwatch check` of one stream: the exit code, and all that was said."""
    my_reference.save(tmp_path / "my.ref")

    def command(stream: str, name: str = "mine", sink: str = "") -> tuple[int, str]:
        (tmp_path / "my.toml").write_text(
            f"""
            [source]
            url = "jsonl:events.jsonl"
            [sink]
            url = "jsonl:results.jsonl"
            {sink}
            [pace]
            workers = 0
            [streams."{name}"]
            reference = "my.ref"
            {stream}
            """
        )
        code = main(["check", str(tmp_path / "my.toml")])
        said = capsys.readouterr()
        return code, said.out + said.err

    return command


BY_TIME, BY_COUNT = 'window = { size = "5m", lateness = "30s" }', "window = { count = 5000 }"


def test_how_many_events_a_window_may_hold_is_said_of_windows_by_time_too(check: Command) -> None:
    code, said = check(BY_TIME)
    assert code == 0
    assert "windows of 5m may hold up to 400 events (1.33 a second)" in said
    code, said = check(BY_COUNT)
    assert code == 0
    assert "windows of 5,000 want a reference of 50,000 events; this one is good for 400" in said
    assert "want a reference" not in check("window = { count = 400 }")[1]


@pytest.mark.parametrize("mode", ["window", "live"])
def test_corrected_events_that_would_go_nowhere_are_noticed(check: Command, mode: str) -> None:
    _, said = check(f'{BY_TIME}\ncorrected = "{mode}"', sink='recalibrations = "r.jsonl"')
    assert "set `events` in [sink]" in said or "wants `events` in [sink]" in said
    sink = 'recalibrations = "r.jsonl"\nevents = "corrected.jsonl"'
    assert "`events`" not in check(f'{BY_TIME}\ncorrected = "{mode}"', sink=sink)[1]


def test_scores_alone_are_spoken_of_until_it_is_declared_that_only_the_class_mix_may_change(
    my_shop: Shop, check: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert "without features" not in check(BY_TIME)[1]
    Reference.fit(my_shop.scores(my_shop.frame), my_shop.labels).save(tmp_path / "my.ref")
    assert "without features only large windows" in check(BY_TIME)[1]
    code, said = check(BY_TIME + '\nmay = "change-mix"')
    assert code == 0
    assert "without features" not in said
    assert "nothing but the class mix" in said
    assert "change-mix" in check(BY_TIME + '\nmay = "change-all"')[1]


def test_long_names_and_slashes_in_names_are_spoken_of(check: Command) -> None:
    assert "has 300 bytes" in check(BY_TIME, name="x" * 300)[1]
    assert "its name has a slash: in addresses of the API and the page it is written %2F" in check(BY_TIME, "a/b")[1]
    assert "its name" not in check(BY_TIME)[1]


def test_a_feature_that_no_event_of_the_hold_out_has_is_spoken_of(
    my_shop: Shop, check: Command, tmp_path: Path
) -> None:
    frame = my_shop.frame[["amount"]].assign(shoe_size=np.nan, colour=None)
    reference = Reference.fit(my_shop.scores(my_shop.frame), my_shop.labels, frame)
    assert "shoe_size, colour: no hold-out event has a value" in repr(reference)
    code, _ = check(BY_TIME)
    reference.save(tmp_path / "my.ref")
    assert main(["check", str(tmp_path / "my.toml")]) == code == 0


@pytest.mark.parametrize("name", ["team/fraud", "team/windows", "100%", "a b?", "çà/ß", "a%2Fb"])
def test_a_stream_of_any_name_is_reached_by_the_api_the_page_and_the_client(name: str) -> None:
    story = Story(stream=name)
    story.busy()
    story.window(apply=True)
    with serving(ServerSettings(port=0), story.history) as url, httpx.Client(base_url=url, timeout=40) as client:
        in_path = quote(name, safe="")
        assert client.get(f"/api/streams/{in_path}").json()["stream"] == name
        assert client.get(f"/api/streams/{in_path}/windows").json()[0]["verdict"] == "stable"
        assert client.get(f"/streams/{in_path}").status_code == 200
        assert client.get(f"/api/streams/{in_path}x").status_code == 404
        feed = RecalibrationClient(url, name)
        assert feed.refresh().correcting, feed.status()


def test_the_page_of_several_streams_links_to_each() -> None:
    history = History({name: facts(name, 3, 4) for name in ("team/fraud", "team")})
    with serving(ServerSettings(port=0), history) as url:
        assert 'href="/streams/team%2Ffraud"' in httpx.get(url).text


def test_a_replay_ends_with_a_summary_wherever_its_output_goes(
    my_shop: Shop, check: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check("window = { count = 1000 }")
    scores = my_shop.scores(my_shop.frame)[:2_500]
    rows = [{"timestamp": 1_790_000_000_000 + i, "posteriors": row.tolist()} for i, row in enumerate(scores)]
    lines = [json.dumps(row) for row in rows]
    lines[7] = lines[7].replace("0.", "NaN", 1)
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    assert main(["replay", str(tmp_path / "my.toml"), "-o", str(tmp_path / "results.jsonl")]) == 0
    said = capsys.readouterr().out
    assert "results.jsonl: 3 windows of 2,499 events; 0 late, 1 rejected" in said
    assert "mine: 3 " in said


def test_a_nan_in_json_is_rejected_with_what_to_write_in_its_place(
    my_shop: Shop, check: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check("window = { count = 10 }", sink='dead_letters = "dead.jsonl"')
    event = {"timestamp": 1_790_000_000_000, "posteriors": [0.5, 0.5], "features": {"amount": float("nan")}}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    assert main(["run", str(tmp_path / "my.toml")]) == 0
    letter = json.loads((tmp_path / "dead.jsonl").read_text())
    assert letter["reason"] == "not-finite"
    assert "JSON has no NaN: write null for a missing value" in letter["detail"]


def test_what_needs_another_library_says_which(
    my_shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    my_shop.frame.to_parquet(tmp_path / "holdout.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert main(["reference", "build", str(tmp_path / "holdout.parquet"), "-o", str(tmp_path / "x.ref")]) == 1
    assert "pip install pyarrow" in capsys.readouterr().err


def test_a_table_with_an_index_of_rows_is_read_without_it(my_shop: Shop, tmp_path: Path) -> None:
    scores = my_shop.scores(my_shop.frame)
    table = pd.DataFrame({"score": scores[:, 0], "amount": my_shop.frame["amount"], "label": my_shop.labels})
    table.to_csv(tmp_path / "holdout.csv")  # writes the index as a column without a name
    arguments = ["reference", "build", str(tmp_path / "holdout.csv"), "-o", str(tmp_path / "my.ref")]
    assert main([*arguments, "--positive", "fraud", "--estimator", "em", "--no-report"]) == 0
    assert [f.name for f in Reference.load(tmp_path / "my.ref").schema.features] == ["amount"]
