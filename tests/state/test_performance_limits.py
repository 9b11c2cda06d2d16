"""Alarms on how good the model is: raised by whole intervals in enough windows, ended when they are within again."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from connectors.memory import MemoryLog
from monitor.assessment.message import FigurePart
from monitor.commands.streams import watched_now
from monitor.errors import ConfigurationError
from monitor.labels.outcome_message import Performed
from monitor.observers import Track
from monitor.performance import Limit, MeasureValue
from monitor.settings.config import load
from monitor.state import Seen, StatePlan, WindowSeen, concerns_of
from tests.service import regression_streams, streams
from tests.settings.test_config import GOOD, problems, written
from tests.state.test_states import run, taken_up
from tests.state.windows import outcome, seen

PLAN = StatePlan(limits={"roc_auc": Limit(below=0.8)}, awaiting=True)


def estimated(number: int, value: float, half: float = 0.02) -> WindowSeen:
    window = seen(number)
    figures = {"roc_auc": MeasureValue(value, value - half, value + half)}
    told = replace(window.assessment, performance=replace(window.assessment.performance, figures=figures))
    return replace(window, assessment=told, written=None)


def realised(number: int, value: float) -> Seen:
    one = outcome(number)
    performed = {"roc_auc": Performed(value, value - 0.02, value + 0.02, FigurePart(0.9, 0.88, 0.92))}
    start = f"2026-01-01T00:00:{number:02}Z"
    return replace(one, result=msgspec.structs.replace(one.result, performance=performed, start=start))


def alarms(log: MemoryLog) -> list[tuple[str, str, str]]:
    messages = [json.loads(each.value or b"") for each in log.messages if each.channel == "alarms"]
    return [(one["series"], one["state"], one["reason"]) for one in messages]


def shown(windows: list[Seen], cuts: list[int] | None = None) -> MemoryLog:
    return run(windows, concerns_of(PLAN, streams.reference()), cuts or [])


def test_two_of_three_windows_below_by_their_whole_intervals_raise_an_alarm_and_good_ones_end_it() -> None:
    values = [0.9, 0.7, 0.9, 0.7, 0.72, 0.9, 0.91]
    log = shown([estimated(number, value) for number, value in enumerate(values)])
    (series, state, why), (_, end, over) = alarms(log)
    assert (series, state, end) == ("estimated roc_auc", "raised", "resolved")
    assert why == "estimated roc_auc is below 0.8 in 2 of 3 windows by its interval: 0.7 in the last"
    assert over.startswith("estimated roc_auc is no longer below 0.8")


def test_a_window_that_knows_little_raises_nothing() -> None:
    assert not alarms(shown([estimated(number, 0.75, half=0.1) for number in range(6)]))


def test_windows_of_which_it_is_withheld_are_passed_over_and_labels_have_a_series_of_their_own() -> None:
    withheld = replace(seen(2), assessment=seen(2).assessment.without_performance("unknown"), written=None)
    log = shown([estimated(0, 0.7), withheld, realised(0, 0.7), realised(1, 0.71), estimated(3, 0.7)])
    assert [(series, state) for series, state, _ in alarms(log)] == [
        ("estimated roc_auc", "raised"),
        ("roc_auc by labels", "raised"),
    ]


def test_open_alarms_survive_a_restart_and_stand_among_those_of_the_stream() -> None:
    windows: list[Seen] = [estimated(number, 0.7) for number in range(4)]
    whole, cut = shown(windows), shown(windows, [1, 2])
    assert alarms(whole) == alarms(cut)
    track = Track(taken_up(whole, concerns_of(PLAN, streams.reference()))[0].of("s"), assessed_at=0.0)
    assert list(track.open_alarms) == ["estimated roc_auc"]
    assert track.beyond_limits["estimated roc_auc"].windows == 4


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("roc_auc = { below = 0.8 }", ""),
        ("roc_auc = {}", "want `below` or `above`"),
        ("auc = { below = 0.8 }", "did you mean"),
    ],
)
def test_limits_are_said_by_measure(tmp_path: Path, table: str, problem: str) -> None:
    text = f"{GOOD}\n[streams.fraud.performance]\nthreshold = 0.3\n{table}\n"
    if problem:
        assert any(problem in each for each in problems(tmp_path, text)), problems(tmp_path, text)
        return
    settings = load(written(tmp_path, text)).streams["fraud"].performance
    assert settings is not None
    assert settings.limits == {"roc_auc": Limit(below=0.8)}
    assert settings.decisions.threshold == 0.3


AWAITED = 'labels = { wait = "2m", store = "labels.sqlite" }'


@pytest.mark.parametrize(
    ("labels", "table", "problem"),
    [
        (AWAITED, "rmse = { above = 3.0 }\nbias = { below = -1.0, above = 1.0 }", ""),
        ("", "mae = { above = 3.0 }", "is known by labels alone"),
        (AWAITED, "roc_auc = { below = 0.8 }", "'roc_auc' is not measured of this stream; rmse, mae, bias are"),
        (AWAITED, "threshold = 0.5", "a threshold and costs are for two classes"),
    ],
)
def test_limits_of_a_regressor_are_those_of_its_errors(tmp_path: Path, labels: str, table: str, problem: str) -> None:
    regression_streams.reference().save(tmp_path / "prices.ref")
    path = tmp_path / "shiftwatch.toml"
    path.write_text(
        f"""
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:results.jsonl"

[streams.prices]
reference = "prices.ref"
window = {{ size = "1m", lateness = "1s" }}
{labels}

[streams.prices.performance]
{table}
""",
        encoding="utf-8",
    )
    if problem:
        with pytest.raises(ConfigurationError, match=problem):
            watched_now(load(path))
        return
    limits = watched_now(load(path))["prices"].states.limits
    assert limits == {"rmse": Limit(above=3.0), "bias": Limit(below=-1.0, above=1.0)}
