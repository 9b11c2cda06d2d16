"""The made-up regression stream and its demo: repeatable, and told right."""

import json

import numpy as np
import pytest

from connectors.regression_worlds import RegressionPeriod, RegressionTimetable, RegressionWorld, regression_tour
from connectors.synthetic import SyntheticOptions, SyntheticSource, source
from monitor.commands.cli import main
from monitor.errors import ConfigurationError, InputError

WORLD = RegressionWorld(seed=3)


def test_what_a_period_changes_is_all_that_changes():
    calm = RegressionTimetable(WORLD, [RegressionPeriod("calm", 2_000)])
    moved = RegressionTimetable(
        WORLD,
        [RegressionPeriod("calm", 1_000), RegressionPeriod("moved", 1_000, slopes=2.0, linear={"age": (1.0, 2.0)})],
    )
    np.testing.assert_array_equal(calm.block(0).population.targets, moved.block(0).population.targets)
    before, after = calm.block(1).population, moved.block(1).population
    np.testing.assert_allclose(after.features - before.features, np.tile([0.0, 0.0, 2.0], (1_000, 1)))
    np.testing.assert_array_equal(WORLD.predictions(after.features), after.predictions)
    assert np.std(after.targets) > 1.5 * np.std(before.targets)


def test_the_regressor_is_the_best_of_the_reference_and_labels_are_as_frequent_as_said():
    drawn = WORLD.holdout(20_000)
    assert np.mean(drawn.targets - drawn.predictions) == pytest.approx(0.0, abs=0.1)
    block = RegressionTimetable(WORLD, [RegressionPeriod("calm", 1_000, labelled=0.2)]).block(0)
    assert np.mean(block.labelled) == pytest.approx(0.2, abs=0.04)


def test_a_source_is_configured_like_any_other_and_starts_again_anywhere(tmp_path):
    table = {"regressor": {"seed": 3}, "regression": [{"name": "calm", "events": 500}], "interval": "1s"}
    made = source("", table, tmp_path)
    made.start(None)
    records = [record for dealt in iter(lambda: made.poll(0.0), []) for batch in dealt for record in batch.records]
    assert len(records) == 500
    assert set(json.loads(records[0])) - {"label"} == {"stream", "id", "timestamp", "prediction", "features"}
    again = SyntheticSource(SyntheticOptions(regressor=WORLD, regression=(RegressionPeriod("calm", 500),)))
    again.start(None)
    (batch,) = again.poll(0.0)
    assert json.loads(batch.records[7])["prediction"] == json.loads(records[7])["prediction"]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigurationError, match="together"):
        source("", {"regressor": {}}, None)
    with pytest.raises(InputError, match="want features among"):
        RegressionTimetable(WORLD, [RegressionPeriod("odd", 10, linear={"colour": (1.0, 0.0)})])
    with pytest.raises(InputError, match="at least one event"):
        RegressionTimetable(WORLD, [RegressionPeriod("empty", 0)])


def test_the_demo_ends_by_itself_says_what_was_injected_and_can_be_had_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("monitor.commands.regression_demo.HOLD_OUT_EVENTS", 1_500)
    monkeypatch.setattr("monitor.commands.regression_demo.regression_tour", lambda events: regression_tour(events)[:4])
    folder = tmp_path / "demo"
    assert main(["demo", "--regression", "--fast", "--out", str(folder)]) == 0
    told = capsys.readouterr().out
    assert "verdicts are what a perfect monitor would say" in told
    results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    wanted = [period.verdict for period in regression_tour(1)[:4] for _ in range(period.events)]
    assert len(results) == len(wanted)
    assert sum(one["verdict"] == verdict for one, verdict in zip(results, wanted, strict=True)) >= len(wanted) - 1
    assert any(one["reasons"][0].startswith("all slopes doubled; intercepts unchanged") for one in results)
    assert main(["replay", str(folder / "shiftwatch.toml"), "-o", str(tmp_path / "again.jsonl")]) == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (folder / "results.jsonl").read_bytes()
    capsys.readouterr()
    assert main(["check", str(folder / "shiftwatch.toml")]) == 0
    assert "prices" in capsys.readouterr().out
