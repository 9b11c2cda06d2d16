"""Learning in the service: windows settle as labels come, and the feed carries what they have taught."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.events.decoding import Decoder
from monitor.labels.values import Awaited
from monitor.recalibration import Recalibration, pooled_rows
from monitor.recalibration.decoding import decoded
from monitor.service.corrected_events import Corrected
from monitor.service.loop import Pace, Service
from monitor.service.publishing import Watched
from monitor.state.records import read
from monitor.tolerances import PRIOR_WEIGHTS
from monitor.windows.by_time import TimePlan
from tests.labels.streams import told
from tests.service.streams import ONLY_MIX, START_MS, reference, scores

SECOND = 1_000_000
MINUTE_MS = 60_000
PLAN = TimePlan(size=60 * SECOND, slide=60 * SECOND, lateness=5 * SECOND, most=10_000)
EACH, WINDOWS = 150, 40
"""Events of a window, and windows."""
WAIT = 10
LATE = 3
"""Windows."""


@dataclass(frozen=True)
class Published:
    feed: list[Recalibration]
    outcomes: list[dict[str, Any]]
    corrected: list[dict[str, Any]]
    log: MemoryLog


def records(flipped: float) -> list[bytes | None]:
    """Labels come three windows late, of half of the events; of so many events they are of the other class."""
    rng = np.random.default_rng(80)
    posteriors, labels = scores(EACH * WINDOWS, 0.3, seed=8)
    labels = np.where(rng.random(labels.size) < flipped, 1 - labels, labels)
    lines: list[tuple[int, bytes]] = []
    for number, (row, label) in enumerate(zip(posteriors.tolist(), labels.tolist(), strict=True)):
        sent = START_MS + number * MINUTE_MS // EACH
        event = {"stream": "s", "id": f"e{number}", "timestamp": sent, "posteriors": row}
        lines.append((sent, json.dumps(event).encode()))
        if rng.random() < 0.5:
            came = sent + LATE * MINUTE_MS
            lines.append((came, told(f"e{number}", ["no", "yes"][label], came)))
    return [line for _, line in sorted(lines)]


def published(
    folder: Path,
    flipped: float = 0.25,
    batch: int = 200,
    lines: list[bytes | None] | None = None,
    corrected: Corrected = "window",
) -> Published:
    sink = MemorySink()
    awaited = Awaited(wait=WAIT * 60 * SECOND, most=1_000_000, store=folder / f"labels-{batch}.sqlite")
    watched = {"s": Watched(reference(), PLAN, awaited=awaited, corrected=corrected, declared=ONLY_MIX)}
    source = MemorySource({"p": records(flipped) if lines is None else lines}, batch=batch)
    decoder = Decoder([reference().schema], identified=["s"])
    Service(watched, decoder, source, sink, pace=Pace(poll=0.0)).run()
    log = sink.log
    tables = [json.loads(value) for value in log.values("results")]
    return Published(
        [decoded(json.loads(value)) for value in log.values("recalibrations")],
        [table for table in tables if table["schema"] == "shiftwatch.outcome.v1"],
        [json.loads(value) for value in log.values("events")],
        log,
    )


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Published:
    return published(tmp_path_factory.mktemp("learned"))


def test_the_feed_carries_a_pool_that_labels_weigh_once_they_have_settled(learned: Published) -> None:
    pools = [message.experts for message in learned.feed][:WINDOWS]
    assert all(len(pool) == 3 for pool in pools)
    first = next(number for number, pool in enumerate(pools) if pool[0].weight != PRIOR_WEIGHTS[0])
    assert WAIT <= first <= WAIT + 4  # the first outcome says how long labels take
    assert "until labels come" in learned.feed[0].reason
    assert pools[WINDOWS - 1][0].weight < 0.3
    assert "labels of earlier windows weigh the scores as they were" in learned.feed[WINDOWS - 1].reason


def test_what_the_window_says_by_itself_stays_as_it_was(learned: Published, tmp_path: Path) -> None:
    alone = published(tmp_path, lines=[line for line in records(0.25) if line is None or b"posteriors" in line])
    for with_labels, without in zip(learned.feed[:10], alone.feed[:10], strict=True):
        assert (with_labels.apply, with_labels.multipliers) == (without.apply, without.multipliers)
    assert all(message.experts[0].weight == pytest.approx(PRIOR_WEIGHTS[0]) for message in alone.feed[:10])


def test_labels_make_scores_better_where_the_concept_has_changed(learned: Published) -> None:
    late = [one for one in learned.outcomes if one["labels"]["joined"]][20:]
    before, after = (np.mean([one["brier"][when] for one in late]) for when in ("before", "after"))
    assert after < before - 0.01
    assert all(one["applied"] for one in late)
    assert all((LATE - 1) * 60 < one["labels_within"] <= LATE * 60 for one in late)


def test_corrected_events_are_what_the_pool_makes_of_them(learned: Published) -> None:
    message = learned.feed[WINDOWS - 1]
    events = [event for event in learned.corrected if event["window"] == message.validity.window]
    assert len(events) == EACH
    original, corrected = (np.array([[e[k]["no"], e[k]["yes"]] for e in events]) for k in ("original", "posteriors"))
    np.testing.assert_allclose(corrected, pooled_rows(original, message.experts), rtol=1e-9)
    assert all(event["corrected"] for event in events)


def test_events_are_corrected_live_by_the_pool_of_the_window_that_they_name(tmp_path: Path) -> None:
    live = published(tmp_path, corrected="live")
    feed = {message.validity.window: message for message in live.feed}
    assert [message.experts for message in feed.values()][-1]
    assert len(live.corrected) == EACH * WINDOWS
    pooled = [event for event in live.corrected if event["window"] is not None]
    assert len(pooled) > EACH * (WINDOWS - 4)
    for window in sorted({event["window"] for event in pooled}):
        events = [event for event in pooled if event["window"] == window]
        original, after = (np.array([[e[k]["no"], e[k]["yes"]] for e in events]) for k in ("original", "posteriors"))
        assert feed[window].experts
        np.testing.assert_allclose(after, pooled_rows(original, feed[window].experts), rtol=1e-9)
        assert all(event["corrected"] for event in events)
    before = [event for event in live.corrected if event["window"] is None]
    assert all(event["posteriors"] == event["original"] and not event["corrected"] for event in before)


def test_a_threshold_of_the_message_is_that_of_its_pool(learned: Published) -> None:
    message = learned.feed[WINDOWS - 1]
    row = np.array([[1 - message.thresholds["yes"], message.thresholds["yes"]]])
    assert pooled_rows(row, message.experts)[0, 1] == pytest.approx(0.5, abs=1e-9)


def test_few_copies_are_needed_once_it_is_known_how_long_labels_take(learned: Published) -> None:
    concerns = Watched(reference(), PLAN, awaited=Awaited(1, 1, Path())).concerns
    records = [message.value for message in learned.log.messages if message.channel == "states"]
    state = read(records, {"s": concerns})["s", ""].states["learned"]
    assert 0 < sum(copy.rounds > 1 for copy in state.known.copies) <= LATE + 2
    assert len(state.delays) > 1


def test_batches_change_no_byte(learned: Published, tmp_path: Path) -> None:
    other = published(tmp_path, batch=37)
    for channel in ("results", "recalibrations", "events"):
        assert other.log.values(channel) == learned.log.values(channel)


def test_a_changed_concept_is_a_verdict_and_the_feed_then_recommends_nothing_but_what_labels_taught(
    learned: Published,
) -> None:
    results = [json.loads(value) for value in learned.log.values("results")]
    windows = [each for each in results if each["schema"] == "shiftwatch.window.v1"]
    shifted = [each for each in windows if each["verdict"] == "concept-shift"]
    assert WAIT <= windows.index(shifted[0]) <= WAIT + 3
    assert shifted[-1] is windows[-1]
    assert "labels follow the scores less closely" in shifted[0]["reasons"][0]
    assert shifted[0]["tests"]["concept"]["significant"]
    assert shifted[0]["baselines"]["reference"]["verdict"] == "concept-shift"
    assert learned.outcomes[-1]["concept"] == windows[-1]["reasons"][0]
    by_window = {message.validity.window: message for message in learned.feed}
    messages = [by_window[each["window"]] for each in shifted]
    assert all(not message.apply and message.cause == "other-shift" and message.experts for message in messages[1:])


def test_labels_that_follow_the_scores_are_no_concept_shift(tmp_path: Path) -> None:
    calm = published(tmp_path, flipped=0.0)
    results = [json.loads(value) for value in calm.log.values("results")]
    windows = [each for each in results if each["schema"] == "shiftwatch.window.v1"]
    assert not any(each["verdict"] == "concept-shift" for each in windows)
    assert windows[-1]["tests"]["concept"]["events"] > 0
    assert calm.outcomes[-1]["concept"] == ""
