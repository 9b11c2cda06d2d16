"""A topic that is keyed by the id of events, and three members of a group: nobody publishes a part for the whole.

events of s0    partition 0   partition 1   partition 2
keyed by id     a third       a third       a third        windows 0 to 9: refused
keyed anew      all           none          none           from then on: whole
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.deploy.parts import Prometheus, need, prometheus
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, unique
from tests.kafka.world import START_MS, Member, Setup, World
from tests.processes import free_port, wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

STEP_MS = 50
WINDOW_MS = 100_000
BEGIN_MS = START_MS // WINDOW_MS * WINDOW_MS
BY_ID = range(20_000)
ANEW = range(20_000, 40_000)
"""Numbers of events: ten windows each."""


def event(number: int) -> bytes:
    score = 0.1 + 0.8 * (number % 97) / 97
    return b'{"stream":"s0","timestamp":%d,"posteriors":[%.4f,%.4f]}' % (BEGIN_MS + number * STEP_MS, 1 - score, score)


@contextmanager
def three_members(
    broker: Broker, folder: Path, policy: str = "refuse"
) -> Iterator[tuple[Setup, list[Member], list[str]]]:
    """A group on a topic with three partitions, each member with an address."""
    world = World(["s0"], 4, window="100s")
    world.save_references(folder)
    topic, name, ports = unique("events"), unique("g"), [free_port() for _ in range(3)]
    broker.create(topic, partitions=3)
    setup = Setup(broker, world, folder, topic, name).create()
    members = []
    for port in ports:
        path = replace(setup, port=port).config(str(port))
        path.write_text(path.read_text().replace("[streams.s0]", f'[streams.s0]\nspread = "{policy}"'))
        members.append(Member(path))
        members[-1].wait_until_reading()
    yield setup, members, [f"http://127.0.0.1:{port}" for port in ports]
    for member in members:
        member.check_alive()
        member.stop()


def produce(setup: Setup, numbers: Sequence[int], partitions: int) -> None:
    events: dict[int, list[bytes]] = {}
    for number in numbers:
        events.setdefault(number % partitions, []).append(event(number))
    setup.broker.produce(setup.topic, events)


def firing(server: Prometheus) -> set[str]:
    return {one["metric"]["alertname"] for one in server.query('ALERTS{alertstate="firing"}')}


def test_no_wrong_window_is_published_one_sentence_says_why_and_the_alert_ends_when_the_topic_is_keyed_anew(
    apache_kafka: Cluster, tmp_path: Path
) -> None:
    need("prometheus")
    with three_members(Broker(apache_kafka), tmp_path) as (setup, members, urls):
        with prometheus(tmp_path, urls, rules=True) as server:
            produce(setup, BY_ID, 3)
            loud = re.compile(r"stream s0 comes to several members of the group.*Key the topic by stream")
            wait_until(lambda: all(loud.search(member.said) for member in members), "each member says it", 60)
            wait_until(lambda: "ShiftwatchStreamSpread" in firing(server), "the alert fires", 60)
            unready = [httpx.get(url + "/readyz") for url in urls]
            assert [one.status_code for one in unready] == [503] * 3
            assert "no windows of it are published" in httpx.get(urls[0] + "/").text
            wait_until(lambda: all("window not published" in member.said for member in members), "windows close", 60)
            assert setup.published() == {}
            assert all(len(loud.findall(member.said)) == 1 for member in members)

            produce(setup, ANEW, 1)
            setup.wait_for(8, 60, members)
            wait_until(lambda: "ShiftwatchStreamSpread" not in firing(server), "the alert ends", 120)
            assert [httpx.get(url + "/readyz").status_code for url in urls] == [200] * 3
        published = {key: json.loads(value) for key, (value,) in setup.published().items()}
        first = min(result["window"] for result in published.values())
        assert int(first.split("/")[2]) >= (BEGIN_MS + len(BY_ID) * STEP_MS) * 1000
        assert all(result["complete"] and result["events"]["used"] == 2_000 for result in published.values())


def test_members_publish_their_parts_where_that_is_asked_for(apache_kafka: Cluster, tmp_path: Path) -> None:
    with three_members(Broker(apache_kafka), tmp_path, "parts") as (setup, members, _):
        produce(setup, BY_ID, 3)
        setup.wait_for(24, 60, members)
        published = setup.published()
    assert all(len(values) == 1 for values in published.values())
    windows: dict[str, int] = {}
    for (value,) in published.values():
        told = json.loads(value)
        assert not told["complete"]
        assert not told["recalibration"]["apply"]
        assert told["window"].endswith("@" + ",".join(told["partitions"]))
        windows[told["start"]] = windows.get(told["start"], 0) + told["events"]["used"]
    assert set(windows.values()) <= {2_000, 1_333, 1_334, 667, 666}
    assert sorted(windows.values())[len(windows) // 2] == 2_000
