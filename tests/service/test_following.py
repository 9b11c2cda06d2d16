"""Who follows the states that others publish tells of each window once, whatever comes in between."""

from functools import partial
from pathlib import Path

import pytest

from monitor.commands.streams import decoder_of, watched_now
from monitor.ports import Message
from monitor.service import FollowedStates, PartMaker, PartMerger, Remembered, WindowPublished
from monitor.settings import load
from monitor.state import WINDOWS, StateRecords
from monitor.state.records import forgotten
from tests.flink.world import STREAM, config
from tests.service.test_parts import MOST, Workers, batches, world

Published = list[Message]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> tuple[PartMaker, PartMerger]:
    folder = tmp_path_factory.mktemp("followed")
    world().save(folder)
    path = folder / "job.toml"
    path.write_text("[server]\n" + config('url = "jsonl:events"', 'url = "jsonl:unused.jsonl"', MOST))
    return two(path)


def two(path: Path) -> tuple[PartMaker, PartMerger]:
    settings = load(path)
    streams = watched_now(settings)
    return PartMaker(streams, partial(decoder_of, settings, streams), settings.dead_letters), PartMerger(streams, 8.0)


@pytest.fixture(scope="module")
def published(stages: tuple[PartMaker, PartMerger]) -> Published:
    """What goes to the channel of states, in its order."""
    workers = Workers(lambda: stages)
    for batch in batches(1, 300):
        workers.take(batch)
        workers.tell()
    for _ in range(12):
        workers.tell()
    return [message for message in workers.said if message.channel == "states"]


def told(states: FollowedStates, records: Published) -> list[str]:
    """The windows that are told of with these records, by their id."""
    states.take(message.value for message in records)
    return [each.reading.key.id for each in states.news() if isinstance(each, WindowPublished)]


def test_what_was_there_at_first_is_old_and_each_window_after_it_is_told_once(
    stages: tuple[PartMaker, PartMerger], published: Published
) -> None:
    concerns = {STREAM: stages[1].watched[STREAM].concerns}
    records = StateRecords(concerns)
    records.take(message.value for message in published)
    whole = {
        whose: [each.key.id for each in of.entries(WINDOWS)] for whose, of in records.known(records.owners).items()
    }
    everything = sorted(window for windows in whole.values() for window in windows)
    assert len(whole) == 4, "the stream and its segments"
    ends = {each.key.id: each.key.end for of in records.known(records.owners).values() for each in of.entries(WINDOWS)}
    half = len(published) // 2

    states = FollowedStates()
    states.begin(concerns)
    assert told(states, published[:half]) == []
    new = [window for message in published[half:] for window in told(states, [message])]
    assert len(new) == len(set(new))
    assert 0 < len(new) < len(everything)
    assert set(new) < set(everything)

    states.begin(concerns)  # after an outage
    assert told(states, published) == []

    fresh = FollowedStates()
    fresh.begin(concerns)
    assert told(fresh, []) == []
    at_once = told(fresh, published)
    assert sorted(at_once) == everything
    assert at_once == sorted(everything, key=lambda window: (ends[window], window))
    assert fresh.news() == [], "nothing has come since"


def test_windows_after_a_reset_are_told(stages: tuple[PartMaker, PartMerger], published: Published) -> None:
    concerns = {STREAM: stages[1].watched[STREAM].concerns}
    states = FollowedStates()
    states.begin(concerns)
    told(states, published)
    gone = [message for _, message in forgotten((each.value for each in published), STREAM) if message.value]
    states.take(message.value for message in gone)
    (remembered,) = states.news()
    assert isinstance(remembered, Remembered)
    assert remembered.known == {STREAM: {}}
    assert len(told(states, published)) == sum(message.value.count(b'"concern":"windows"') for message in published)


def test_a_job_that_is_submitted_anew_tells_no_window_twice(
    stages: tuple[PartMaker, PartMerger], published: Published
) -> None:
    """It publishes all states again, from the first window on."""
    states = FollowedStates()
    states.begin({STREAM: stages[1].watched[STREAM].concerns})
    assert told(states, []) == []
    once = [window for message in published for window in told(states, [message])]
    again = [window for message in published for window in told(states, [message])]
    assert len(once) > 10
    assert again == []
