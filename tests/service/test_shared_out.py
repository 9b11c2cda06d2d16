"""A source that is shared out: a window of which others have events is refused in words, or published as a part."""

import json
from collections.abc import Collection, Mapping

import pytest

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.events import Decoder
from monitor.observers.logs import log
from monitor.ports import Message
from monitor.service.loop import Pace, Service
from monitor.service.notices import Happening, StreamsSpread, WindowRefused
from monitor.service.publishing import Spread, Watched
from monitor.windows import TimePlan
from tests.service.streams import START_MS, lines, reference

MINUTE = 60_000_000
PLAN = TimePlan(size=MINUTE, slide=MINUTE, lateness=10_000_000, most=10_000)
CHANGED = START_MS // 60_000 * MINUTE + 3 * MINUTE
"""Until then others get events of the stream, too."""


class OneMembersShare(MemorySource):
    """Of a topic that is keyed anew after some minutes."""

    member = "one"
    handed_out = False

    def __init__(self, records: Mapping[str, list[bytes | None]], unknown: int = 0) -> None:
        super().__init__(records, batch=50)
        self._unknown = unknown
        self._newest = 0

    @property
    def known(self) -> bool:
        self._unknown -= 1
        return self._unknown < 0

    @property
    def spread(self) -> frozenset[str]:
        return frozenset({"s", "nobody watches this one"}) if 0 < self._newest < CHANGED else frozenset()

    def saw(self, partition: str, streams: Mapping[str, tuple[int, int]]) -> None:
        assert partition == "p"
        self._newest = max(self._newest, *(newest for _, newest in streams.values()))

    def brings(self, streams: Collection[str]) -> Collection[str]:
        return streams

    def elsewhere(self, stream: str, start: int, end: int) -> bool:
        return stream == "s" and start < CHANGED < 2**62 and end > 0


def run(spread: Spread, unknown: int = 0) -> tuple[MemoryLog, list[Happening]]:
    happenings: list[Happening] = []
    sink = MemorySink()
    Service(
        {"s": Watched(reference(), PLAN, spread=spread)},
        Decoder([reference().schema]),
        OneMembersShare({"p": lines(400)}, unknown),
        sink,
        observers=[happenings.append, log],
        pace=Pace(poll=0.0),
    ).run()
    return sink.log, happenings


def results(kept: MemoryLog) -> list[Message]:
    return [message for message in kept.messages if message.channel == "results"]


def test_windows_that_others_have_events_of_are_refused_in_one_loud_sentence(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "shiftwatch"):
        kept, happenings = run("refuse")
    published = [json.loads(message.value) for message in results(kept)]
    assert all(one["complete"] and not one["gaps"] and one["partitions"] == [] for one in published)
    refused = [one for one in happenings if isinstance(one, WindowRefused)]
    assert len(published) > 2
    assert len(refused) > 2
    assert sum(one["events"]["used"] for one in published) + sum(one.events for one in refused) == 400
    (loud,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert 'Key the topic by stream, or set `spread = "parts"` in [streams.s]' in loud.getMessage()
    told = [one for one in happenings if isinstance(one, StreamsSpread)]
    assert [(set(one.streams), set(one.refused)) for one in told] == [({"s"}, {"s"}), (set(), set())]


def test_parts_have_keys_of_their_own_and_recommend_nothing() -> None:
    kept, _ = run("parts")
    parts = [message for message in results(kept) if b"@p" in message.key]
    whole = [message for message in results(kept) if b"@p" not in message.key]
    assert len(parts) > 2
    assert len(whole) > 2
    for message in parts:
        told = json.loads(message.value)
        assert told["window"] == message.key.decode()
        assert (told["complete"], told["gaps"]) == (False, ["spread-over-members"])
        assert (told["member"], told["partitions"]) == ("one", ["p"])
        assert told["recalibration"]["complete"] is False
        assert (told["recalibration"]["apply"], told["recalibration"]["cause"]) == (False, "incomplete")
        assert "key the topic by stream" in told["reasons"][-1]
    assert {message.key for message in kept.messages if message.channel == "recalibrations"} == {b"s@p", b"s"}
    assert not any(b"@p" in message.key for message in kept.messages if message.channel == "states")


def test_a_result_says_beside_its_bytes_who_made_it_out_of_what() -> None:
    kept, _ = run("parts")
    assert {message.headers for message in results(kept)} == {(("member", b"one"), ("partitions", b"p"))}


def test_no_window_is_closed_before_it_is_known_which_are_whole() -> None:
    kept, happenings = run("refuse", unknown=4)
    again, others = run("refuse")
    assert [message.value for message in results(kept)] == [message.value for message in results(again)]
    first = next(number for number, one in enumerate(happenings) if isinstance(one, WindowRefused))
    before = next(number for number, one in enumerate(others) if isinstance(one, WindowRefused))
    assert first > before
