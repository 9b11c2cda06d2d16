"""Estimates that labels do not bear out: said in outcomes, and nothing is corrected by them any more."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from connectors.memory import MemoryLog, MemorySink
from monitor.assessment.message import Versions
from monitor.labels.outcome_message import LabelCounts, OutcomeResult, Realised
from monitor.labels.trust import Shown, judged, shown
from monitor.windows.by_time import TimePlan
from tests.labels.streams import told
from tests.labels.test_outcomes import SECOND, outcomes_in, service
from tests.service.streams import SECOND_MS, START_MS, scores

PLAN = TimePlan(size=500 * SECOND, slide=500 * SECOND, lateness=0, most=10_000)


@cache
def published(share_of_wrong_labels: float) -> MemoryLog:
    """Sixty per cent positives, where the reference has thirty; and labels, some of them the other way round."""
    rng = np.random.default_rng(1)
    posteriors, labels = scores(8_000, 0.6, seed=9)
    records: list[bytes | None] = []
    for number, (row, label) in enumerate(zip(posteriors.tolist(), labels.tolist(), strict=True)):
        when, name = START_MS + number * SECOND_MS, f"e{number}"
        records.append(json.dumps({"stream": "s", "id": name, "timestamp": when, "posteriors": row}).encode())
        wrong = label == 1 and rng.random() < share_of_wrong_labels
        records.append(told(name, ["no", "yes"][0 if wrong else label], when))
    with TemporaryDirectory() as folder:
        sink = MemorySink()
        service({"p": records}, sink, Path(folder) / "labels.sqlite", plan=PLAN, wait=600 * SECOND).run()
        return sink.log


WINDOW_ITSELF = {"prior-shift", "not-told-apart"}
"""Causes that a window of 500 events can give by itself here."""


def test_labels_that_bear_the_estimates_out_change_nothing() -> None:
    log = published(0.0)
    said = [json.loads(value) for value in log.values("recalibrations")]
    assert {one["cause"] for one in said} <= WINDOW_ITSELF
    assert sum(one["apply"] for one in said) >= len(said) - 2
    outcomes = outcomes_in(log.values("results"))
    assert all(one["trusted"] for one in outcomes)
    assert all(one["applied"] for one in outcomes)  # by the pool, whatever the window itself says
    assert sum(one["brier"]["after"] for one in outcomes) < sum(one["brier"]["before"] for one in outcomes)


def test_estimates_that_are_off_again_and_again_are_no_longer_applied() -> None:
    log = published(0.5)
    outcomes = outcomes_in(log.values("results"))
    doubted = [one for one in outcomes if not one["trusted"]]
    assert len(doubted) >= len(outcomes) - 3
    assert doubted[-1]["doubt"].startswith("labels show that the estimate was off: the interval of ")
    said = [json.loads(value) for value in log.values("recalibrations")]
    assert said[0]["apply"]
    assert not said[-1]["apply"]
    assert said[-1]["reason"].startswith("labels show")
    assert said[-1]["multipliers"] == [1.0, 1.0]
    # A window's own result says what the window itself shows, until labels show that the concept has changed.
    windows = [json.loads(value) for value in log.values("results") if b"window.v1" in value]
    verdicts = [one["verdict"] for one in windows]
    since = verdicts.index("concept-shift")
    assert verdicts[since:] == ["concept-shift"] * (len(windows) - since)
    by_themselves = [one["recalibration"] for one in windows[:since]]
    assert {one["cause"] for one in by_themselves} <= WINDOW_ITSELF
    assert sum(one["apply"] for one in by_themselves) >= len(by_themselves) - 2
    assert not any(one["recalibration"]["apply"] for one in windows[since:])


def outcome(covered: bool, labels: int = 500, selective: bool = False) -> Shown:
    counts = LabelCounts(labels, 0, 0, 0, 0, 0, 0)
    classes = {"yes": Realised(0.5, 0.4, 0.6, 0.5 if covered else 0.9, 0.0 if covered else -0.4, covered)}
    return shown(
        OutcomeResult(
            "v1", "s", "", "w", "", "", "stable", labels, True, counts, selective, classes, None, False, None, None,
            True, "", Versions("", ""),
        )
    )  # fmt: skip


def test_one_miss_in_twenty_is_what_intervals_promise_and_five_are_too_many() -> None:
    assert not judged([outcome(True)] * 19 + [outcome(False)])
    assert judged([outcome(True)] * 15 + [outcome(False)] * 5)


def test_few_labels_and_selected_ones_do_not_judge() -> None:
    assert not judged([outcome(False, labels=50)] * 20)
    assert not judged([outcome(False, selective=True)] * 20)
