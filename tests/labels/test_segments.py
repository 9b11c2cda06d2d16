"""Outcomes of segments: each from the labels of its own events, once, after that of its window."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.memory import MemorySink
from monitor.observers import History, facts
from monitor.service.publishing import Watched
from monitor.windows.by_time import TimePlan
from tests.labels.streams import country, told
from tests.labels.test_outcomes import (
    MINUTES,
    OF_COUNTRIES,
    SECOND,
    event,
    outcomes_in,
    results,
    service,
    uninterrupted,
)
from tests.service.streams import SECOND_MS, START_MS, reference, scores

SEGMENTS = ["", "country=BE", "country=FR", "(other)"]


def by_window() -> list[list[dict[str, Any]]]:
    """The outcomes of each window: its own, and those of its segments."""
    found = outcomes_in(uninterrupted(MINUTES, segments=True))
    return [list(each) for _, each in groupby(found, key=lambda one: one["end"])]


def test_each_window_has_one_outcome_and_then_one_of_each_segment_that_was_watched_apart() -> None:
    windows = [json.loads(value) for value in uninterrupted(MINUTES, segments=True) if b"window.v1" in value]
    outcomes = [one for each in by_window() for one in each]
    assert [(one["segment"], one["window"]) for one in outcomes] == [(one["segment"], one["window"]) for one in windows]
    assert [one["segment"] for one in by_window()[0]] == SEGMENTS


def test_the_segments_of_a_window_have_its_events_and_its_labels_among_them() -> None:
    for whole, *segments in by_window():
        assert sum(one["events"] for one in segments) == whole["events"]
        for count in ("missing", "duplicate", "contradicting", "early"):
            assert sum(one["labels"][count] for one in segments) == whole["labels"][count], count
        joined = [one["labels"]["joined"] for one in segments]
        assert sum(joined) == whole["labels"]["joined"] - whole["labels"]["stateless"]
        assert {one["labels"]["unknown"] for one in segments} == {0}


def test_the_realised_share_of_a_segment_is_that_of_its_own_labels() -> None:
    first = {name: label for name, label in OF_COUNTRIES.truth.items() if int(name[1:]) < 20}
    _, belgium, *_ = by_window()[0]
    labels = [label for name, label in first.items() if country(int(name[1:])) == "BE"]
    assert belgium["labels"]["joined"] == len(labels)
    assert belgium["classes"]["yes"]["realised"] == pytest.approx(np.mean(labels))
    assert belgium["classes"]["yes"]["error"] == belgium["classes"]["yes"]["estimate"] - np.mean(labels)


def test_a_window_that_lost_its_events_still_has_the_outcomes_of_its_segments() -> None:
    records = [event(f"e{second}", second, segment={"country": country(second)}) for second in range(200)]
    found = outcomes_in(results({"p": records}, wait=600 * SECOND, most=130, segments=True))
    assert [(one["segment"], one["kept"]) for one in found[:4]] == [(name, False) for name in SEGMENTS]
    assert found[1]["labels"]["missing"] == found[1]["events"] == 8


def published(folder: Path) -> tuple[MemorySink, History]:
    """Sixty per cent positives; in one of two countries half of their labels are of the other class."""
    rng = np.random.default_rng(1)
    posteriors, labels = scores(16_000, 0.6, seed=9)
    records: list[bytes | None] = []
    for number, (row, label) in enumerate(zip(posteriors.tolist(), labels.tolist(), strict=True)):
        when, name, place = START_MS + number * SECOND_MS // 2, f"e{number}", ["BE", "FR"][number % 2]
        scored = {"stream": "s", "id": name, "timestamp": when, "posteriors": row, "segment": {"country": place}}
        records.append(json.dumps(scored).encode())
        wrong = place == "FR" and label == 1 and rng.random() < 0.5
        records.append(told(name, ["no", "yes"][0 if wrong else label], when))
    plan, sink = TimePlan(size=500 * SECOND, slide=500 * SECOND, lateness=0, most=10_000), MemorySink()
    history = History({"s": facts("s", Watched(reference(), plan))})
    service(
        {"p": records}, sink, folder / "labels.sqlite", plan=plan, wait=600 * SECOND, observers=[history], segments=True
    ).run()
    return sink, history


@pytest.fixture(scope="module")
def doubted(tmp_path_factory: pytest.TempPathFactory) -> tuple[MemorySink, History]:
    return published(tmp_path_factory.mktemp("labels"))


def test_labels_that_speak_against_the_estimates_of_a_segment_withhold_its_corrections_alone(
    doubted: tuple[MemorySink, History],
) -> None:
    feed = [json.loads(value) for value in doubted[0].log.values("recalibrations")]
    last = {one["validity"]["segment"]: one for one in feed}
    assert last["country=FR"]["cause"] == "labels-disagree"
    assert last["country=BE"]["cause"] != "labels-disagree"
    outcomes = {one["segment"]: one for one in outcomes_in(doubted[0].log.values("results"))}
    assert not outcomes["country=FR"]["trusted"]
    assert outcomes["country=BE"]["trusted"]


def test_how_good_the_model_is_in_a_segment_is_not_estimated_while_labels_of_its_stream_speak_against_the_scores(
    doubted: tuple[MemorySink, History],
) -> None:
    windows = [json.loads(value) for value in doubted[0].log.values("results") if b"window.v1" in value]
    whole = {one["end"] for one in windows if not one["segment"] and one["verdict"] == "concept-shift"}
    during = [one for one in windows if one["end"] in whole and one["segment"] == "country=BE"]
    assert during
    assert {one["verdict"] for one in during} & {"stable", "prior-shift"}
    assert not any(one["performance"]["figures"] for one in during)
    assert all("labels" in one["performance"]["withheld"] for one in during)


def test_what_is_looked_at_from_outside_has_the_outcomes_of_segments(doubted: tuple[MemorySink, History]) -> None:
    tracks = doubted[1].snapshot.tracks["s"]
    assert {name: track.outcomes[-1].segment for name, track in tracks.items()} == {name: name for name in tracks}
    assert doubted[1].snapshot.outcome_count["s"] == len(tracks[""].outcomes)
