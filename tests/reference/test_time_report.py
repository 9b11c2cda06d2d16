"""Blocks of a hold-out file, and what the preflight says of them."""

import csv
import json

import numpy as np
import pytest

from monitor.commands.cli import main
from monitor.errors import InputError
from monitor.reference import time_report
from monitor.reference.blocks import cut
from monitor.reference.building import build
from monitor.reference.classifier import Reference
from monitor.reference.holdout import Wanted
from tests.assessment.worlds import cheaply
from tests.reference.test_blocks import SCHEMA, fitted, world

DAY = 86_400_000


def rows(number=1_200, odd=5):
    """A hundred events a day in no order; on one day `b` is another."""
    g, labels, x = world(number)
    x = np.nan_to_num(x)
    x[odd * 100 : (odd + 1) * 100, 1] += 3.0
    days = 1_750_032_000_000 + np.arange(number) // 100 * DAY + np.arange(number) % 100
    for k in np.random.default_rng(0).permutation(number).tolist():
        yield int(days[k]), g[k].tolist(), str(labels[k]), x[k, :2].tolist()


def lines(path, times=True):
    """Scored events as JSON."""
    with path.open("w") as file:
        for moment, g, label, (a, b) in rows():
            event = {"posteriors": g, "label": label, "features": {"a": a, "b": b}}
            file.write(json.dumps(event | ({"timestamp": moment} if times else {})) + "\n")
    return path


def test_a_file_is_cut_by_the_times_of_its_events_and_the_odd_day_is_named(tmp_path) -> None:
    reference, report = build(lines(tmp_path / "h.jsonl"), Wanted(), block="1d")
    assert reference.blocks.number == 12
    assert reference.blocks.timed
    assert reference.blocks.events.tolist() == [100] * 12
    found = report["blocks"]
    assert found["varies"]
    assert found["odd"][0]["why"] == "b"
    assert found["odd"][0]["when"].startswith("2025-06-21T00:00")
    said = {advice["title"]: advice for advice in report["advice"]}
    assert "differ" in said["The hold-out over time"]["text"]
    assert "20 or more" in said["The hold-out over time"]["text"]
    assert "2025-06-21" in said["Odd blocks"]["text"]
    assert "standard deviation" in said["Visible beside natural change"]["text"]


@pytest.mark.parametrize("written", ["{}", "rfc"])
def test_a_table_has_its_times_in_a_column(tmp_path, written) -> None:
    with (tmp_path / "h.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["timestamp", "posteriors.0", "posteriors.1", "posteriors.2", "label", "a", "b"])
        for moment, g, label, x in rows():
            text = moment if written == "{}" else f"{np.datetime64(moment, 'ms')}Z"
            out.writerow([text, *g, label, *x])
    reference, _ = build(tmp_path / "h.csv", Wanted(), block="1d")
    assert reference.blocks.number == 12
    assert "timestamp" not in [profile.feature.name for profile in reference.features]


def test_a_duration_without_times_is_refused_and_a_number_takes_the_order_of_the_file(tmp_path) -> None:
    path = lines(tmp_path / "h.jsonl", times=False)
    with pytest.raises(InputError, match="not all events have times"):
        build(path, Wanted(), block="1d")
    reference, _ = build(path, Wanted(), block=100)
    assert reference.blocks.number == 12
    assert not reference.blocks.timed


def test_the_command_takes_a_length_or_the_windows_of_a_configuration(tmp_path, capsys) -> None:
    lines(tmp_path / "h.jsonl")
    (tmp_path / "shiftwatch.toml").write_text(
        '[source]\nurl = "memory:"\n[sink]\nurl = "memory:"\n'
        '[streams.a]\nreference = "a.ref"\nwindow = { size = "1d", lateness = "0s" }\n'
    )
    for said in ("1d", str(tmp_path / "shiftwatch.toml")):
        out = tmp_path / "a.ref"
        given = ["reference", "build", str(tmp_path / "h.jsonl"), "-o", str(out), "--estimator", "em", "--block", said]
        assert main(given) == 0
        assert Reference.load(out).blocks.length == "1d"
    assert "12 blocks of 1d" in capsys.readouterr().out


def test_the_command_takes_a_season_and_says_how_much_goes_with_it(tmp_path, capsys) -> None:
    lines(tmp_path / "h.jsonl")
    given = ["reference", "build", str(tmp_path / "h.jsonl"), "-o", str(tmp_path / "a.ref"), "--estimator", "em"]
    assert main([*given, "--season", "4d"]) == 1
    assert "say --block too" in capsys.readouterr().err
    assert main([*given, "--season", "4d", "--block", "1d"]) == 0
    season = Reference.load(tmp_path / "a.ref").blocks.season
    assert (season.length, len(season.starts)) == (4 * 86_400_000_000, 12)
    assert (
        "of how the class mix varies between windows goes with the time in the season of 4d" in capsys.readouterr().out
    )


def test_the_command_has_inputs_follow_the_season_too(tmp_path, capsys) -> None:
    lines(tmp_path / "h.jsonl")
    given = ["reference", "build", str(tmp_path / "h.jsonl"), "-o", str(tmp_path / "a.ref"), "--season-inputs"]
    assert main([*given, "--block", "1d"]) == 1
    assert "say --season too" in capsys.readouterr().err
    assert main([*given, "--block", "1d", "--season", "2d"]) == 0
    assert 0 <= Reference.load(tmp_path / "a.ref").blocks.inputs_explained < 0.1
    assert "they hardly follow it, and are held against the whole hold-out" in " ".join(capsys.readouterr().out.split())


def test_inputs_of_a_regressor_that_are_to_follow_a_season_are_refused_in_words(tmp_path, capsys) -> None:
    (tmp_path / "h.jsonl").write_text('{"prediction": 1.5, "label": 1.0, "features": {"x": 2.0}}\n' * 200)
    given = ["reference", "build", str(tmp_path / "h.jsonl"), "-o", str(tmp_path / "a.ref"), "--season-inputs"]
    assert main([*given, "--block", "1d", "--season", "2d"]) == 1
    assert "--season-inputs: of classifiers only" in capsys.readouterr().err


def test_shorter_blocks_in_place_of_few_are_said() -> None:
    found = time_report.measured(fitted(1_000))
    assert (found["number"], found["parts"]) == (21, 7)
    text = time_report.advice(found)[0][2]
    assert "21 blocks of a 7th part of 1000 (about 143 events each)" in text
    assert "only 3 times 1000 long" in text


def test_too_few_blocks_are_said() -> None:
    g, labels, x = world(150)
    found = time_report.measured(cheaply(SCHEMA, g, labels, x, cut(100, 150)))
    assert found["number"] == 2
    [(verdict, title, text)] = time_report.advice(found)
    assert (verdict, title) == ("mind", "Too few blocks")
    assert "6 are needed" in text
    assert time_report.measured(fitted()) is None
