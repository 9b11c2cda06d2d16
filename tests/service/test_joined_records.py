"""Events that come as a request and a response: the windows are those of the joined form, whatever the kills."""

import json
import random
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.errors import ConnectorError
from monitor.events import Decoder, EventMapping, JoinRule
from monitor.events.presets import JOINS
from monitor.ports import Message
from monitor.ports.options import Duration, read
from monitor.service import Pace, Service, Watched
from tests.service.streams import lines, reference
from tests.service.test_loop import MINUTES

MAPPING = EventMapping(
    stream="", timestamp="response.at", posteriors="response.posteriors", features="", score="", label="", segment=""
)
RULE = JoinRule(("id",), "kind", "asked", "answered", "at", Duration(20_000_000))


class Killed(Exception):  # noqa: N818 - no error: a way to end
    """The process is gone."""


class KilledSink(MemorySink):
    """Ends everything at a write or a commit; what was not committed is gone."""

    def __init__(self, log: MemoryLog, steps: int) -> None:
        super().__init__(log)
        self._left = steps

    def write(self, message: Message) -> None:
        self._step()
        super().write(message)

    def commit(self, checkpoint: object) -> None:
        self._step()
        super().commit(checkpoint)  # type: ignore[arg-type]
        self._step()

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed


def halves(events: int, seed: int) -> tuple[list[bytes | None], list[bytes | None]]:
    """Requests and responses, up to ten seconds apart in either order, some without the other, some twice; and what
    they are as one, each where the later one stands."""
    rng = random.Random(seed)
    placed: list[tuple[float, bytes]] = []
    asked, answered = {}, {}
    for number, line in enumerate(lines(events, seed=seed)):
        event = json.loads(line or b"")
        common = {"id": f"r-{number}", "at": event["timestamp"]}
        asked[number] = json.dumps({**common, "kind": "asked"}).encode()
        answered[number] = json.dumps({**common, "kind": "answered", "posteriors": event["posteriors"]}).encode()
        missing = rng.random()
        if missing > 0.02:
            placed.append((number + rng.uniform(0, 10), asked[number]))
        if missing < 0.98:
            placed.append((number + rng.uniform(0, 10), answered[number]))
        if rng.random() < 0.03:
            placed.append((number + rng.uniform(0, 15), rng.choice([asked, answered])[number]))
    records = [record for _, record in sorted(placed)]
    seen: dict[str, set[str]] = {}
    joined = []
    for record in records:
        half = json.loads(record)
        kinds = seen.setdefault(half["id"], set())
        both = len(kinds | {half["kind"]}) > len(kinds) == 1
        kinds.add(half["kind"])
        if both:
            number = int(half["id"][2:])
            joined.append(b'{"request":%b,"response":%b}' % (asked[number], answered[number]))
    return list(records), list(joined)


def service(records: Sequence[bytes | None], sink: MemorySink, batch: int, rule: JoinRule | None) -> Service:
    watched = {"s": Watched(reference(), MINUTES)}
    decoder = Decoder([reference().schema], mapping=MAPPING)
    pace = Pace(poll=0.0, commit=0.0)
    return Service(watched, decoder, MemorySource({"p": records}, batch=batch), sink, pace=pace, join=rule)


@cache
def uninterrupted(seed: int) -> MemoryLog:
    """What is published without any kill."""
    sink = MemorySink()
    service(halves(170, seed)[0], sink, 1000, RULE).run()
    return sink.log


@pytest.mark.parametrize("seed", [0, 1])
def test_windows_are_those_of_the_joined_form(seed: int) -> None:
    _, joined = halves(170, seed)
    native = MemorySink()
    service(joined, native, 1000, None).run()
    results = list(map(without_rejected, uninterrupted(seed).values("results")))
    assert results == list(map(without_rejected, native.log.values("results")))
    assert sum(result["events"]["used"] for result in results) == len(joined) > 150
    reasons = {dict(m.headers)["reason"] for m in uninterrupted(seed).messages if m.channel == "dead-letters"}
    assert reasons == {b"unmatched", b"repeated"}


@settings(max_examples=15, deadline=None)
@given(batch=st.integers(3, 100), seed=st.integers(0, 1), kills=st.lists(st.integers(0, 30), max_size=6))
def test_kills_change_nothing(batch: int, seed: int, kills: list[int]) -> None:
    records, _ = halves(170, seed)
    log = MemoryLog()
    for steps in kills:
        with suppress(Killed):
            service(records, KilledSink(log, steps), batch, RULE).run()
    service(records, MemorySink(log), batch, RULE).run()
    for channel in ("results", "dead-letters"):
        assert log.values(channel) == uninterrupted(seed).values(channel)


def test_a_configuration_that_joins_no_more_is_refused_while_records_wait_for_each_other() -> None:
    records, _ = halves(170, 0)
    log = MemoryLog()
    with suppress(Killed):
        service(records, KilledSink(log, 20), 10, RULE).run()
    with pytest.raises(ConnectorError, match=r"p: up to offset \d+ .* put \[source.join\] back"):
        service(records, MemorySink(log), 10, None).run()
    service(records, MemorySink(log), 10, RULE).run()
    assert log.values("results") == uninterrupted(0).values("results")


def without_rejected(result: bytes) -> Any:
    """All but the count of what found no partner."""
    said = json.loads(result)
    del said["events"]["rejected"], said["quality"]["rejected"]
    return said


def test_kserves_presets_have_a_rule_that_can_be_read() -> None:
    problems: list[str] = []
    for preset, table in JOINS.items():
        assert read(JoinRule, table, preset, problems) is not None
    assert problems == []
