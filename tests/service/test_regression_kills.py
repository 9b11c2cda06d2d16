"""SIGKILL at random instants, with labels that come late: what was killed and restarted publishes the same bytes."""

import json
from collections import deque

import pytest

from connectors.regression_worlds import RegressionPeriod, RegressionTimetable, RegressionWorld
from connectors.synthetic import RegressionEncoder, SyntheticOptions
from monitor.reference.regressor import RegressionReference
from tests.processes import finished, killed_again_and_again, started

PERIODS = (RegressionPeriod("calm", 20_000), RegressionPeriod("moved", 20_000, slopes=1.6))
LATER = 1_500
"""Events after which a label comes: a minute and a half."""

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:{results}.jsonl"
recalibrations = "{results}-feed.jsonl"

[streams.prices]
reference = "prices.ref"
window = {{ size = "2m", lateness = "2s" }}
evidence = "6m"
"""

AWAITING = """
segments = ["half"]
corrected = "window"
labels = {{ wait = "4m", store = "{results}.sqlite" }}
"""
"""Each window waits for its own labels, too."""


def lines():
    """Events as a producer writes them: each other label comes in a record of its own."""
    options = SyntheticOptions(disorder=1_500_000)
    encoder, waiting = RegressionEncoder(RegressionTimetable(RegressionWorld(seed=5), PERIODS), options), deque()
    for number in range(encoder.timetable.events // 1_000):
        for record in encoder.block(number):
            event = {**json.loads(record), "segment": {"half": "odd" if number % 2 else "even"}}
            later = {"stream": "prices", "id": event["id"], "timestamp": event["timestamp"]}
            if "label" in event and len(waiting) % 2:
                later["label"] = event.pop("label")
            waiting.append(later)
            yield event
            if len(waiting) > LATER and "label" in (due := waiting.popleft()):
                yield {**due, "timestamp": event["timestamp"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    with (folder / "events.jsonl").open("w") as file:
        file.writelines(json.dumps(one) + "\n" for one in lines())
    world = RegressionWorld(seed=5)
    drawn = world.holdout(2_000)
    reference = RegressionReference.fit(
        drawn.predictions, drawn.targets, drawn.features, feature_names=world.features, stream=world.stream
    )
    reference.save(folder / "prices.ref")
    for results in ("whole", "killed", "awaited", "awaited-killed"):
        configuration = CONFIGURATION.format(results=results)
        if "awaited" in results:
            configuration = configuration.replace('-feed.jsonl"', f'-feed.jsonl"\nevents = "{results}-events.jsonl"')
            configuration += AWAITING.format(results=results)
        (folder / f"{results}.toml").write_text(configuration, encoding="utf-8")
    return folder


@pytest.mark.chaos
def test_a_run_that_is_killed_again_and_again_publishes_what_an_uninterrupted_one_does(folder):
    finished(started(folder, "whole.toml"))
    kills = killed_again_and_again(lambda: started(folder, "killed.toml"), 4, (0.0, 0.2), folder / "killed.jsonl")
    assert kills > 1
    finished(started(folder, "killed.toml"))
    for name in ("{}.jsonl", "{}-feed.jsonl"):
        assert (folder / name.format("killed")).read_bytes() == (folder / name.format("whole")).read_bytes()
    told = [json.loads(line) for line in (folder / "whole.jsonl").read_text().splitlines()]
    assert {one["verdict"] for one in told[1:9]} == {"stable"}
    assert {one["verdict"] for one in told[-8:-1]} == {"relation-shift"}
    assert told[-2]["reasons"][0].startswith("all slopes multiplied by 1.")


@pytest.fixture(scope="module")
def awaited(folder):
    """What an uninterrupted run publishes whose windows wait for their own labels: by the end of its files' names."""
    finished(started(folder, "awaited.toml"))
    return {name: (folder / f"awaited{name}").read_bytes() for name in (".jsonl", "-feed.jsonl", "-events.jsonl")}


def test_outcomes_tell_by_labels_that_came_late_that_the_correction_helped(folder, awaited):
    told = [json.loads(line) for line in awaited[".jsonl"].splitlines()]
    found = [one for one in told if one["schema"] == "shiftwatch.regression-outcome.v1"]
    windows = [one["window"] for one in told if one["schema"] == "shiftwatch.regression-window.v1"]
    assert [one["window"] for one in found] == windows
    whole = [one for one in found if not one["segment"]]
    labels = sum("label" in json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines())
    assert sum(one["labels"]["joined"] for one in whole) == labels
    assert {one["correction"]["finding"] for one in whole[:8]} == {"not-recommended"}
    assert {one["correction"]["finding"] for one in whole[-8:-1]} == {"helped"}
    assert whole[-2]["performance"]["rmse"]["realised"] > 1.1 * whole[2]["performance"]["rmse"]["realised"]


@pytest.mark.chaos  # crashes of the same run, in process: tests/labels/test_regression_outcomes.py
def test_outcomes_come_once_and_say_the_same_however_often_a_run_is_killed(folder, awaited):
    results = folder / "awaited-killed.jsonl"
    assert killed_again_and_again(lambda: started(folder, "awaited-killed.toml"), 6, (0.0, 0.3), results)
    finished(started(folder, "awaited-killed.toml"))
    assert {name: (folder / f"awaited-killed{name}").read_bytes() for name in awaited} == awaited
