"""`shiftwatch run` as a member of a group on Apache Kafka: how partitions are shared out, and what a scrape tells."""

import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, unique
from tests.kafka.world import Feed, World, compare, setup_of
from tests.marks import in_chaos
from tests.processes import free_port, wait_until


@pytest.fixture
def broker(apache_kafka: Cluster) -> Broker:
    return Broker(apache_kafka)


@pytest.mark.parametrize("strategy", ["range", in_chaos("cooperative")])
def test_members_share_the_partitions_out_and_a_static_one_keeps_its_own_through_a_restart(
    broker: Broker, tmp_path: Path, strategy: str
) -> None:
    world = World([f"s{number}" for number in range(4)], 24_000, window="100s")
    setup = setup_of(broker, world, tmp_path, strategy=strategy, session_timeout="20s")
    one = setup.member("one", instance="one")
    feed = Feed(broker, setup.topic, world, 6.0)
    wait_until(lambda: len(one.shares) == 4, "the first one has all partitions")
    two = setup.member("two", instance="two")
    wait_until(lambda: len(one.shares) == len(two.shares) == 2, "each has two partitions")
    assert not one.shares & two.shares
    before, changes = two.shares, one.said.count("partitions changed")
    two.kill()
    two = setup.member("two", instance="two")
    wait_until(lambda: two.shares == before, "the restarted member has its own partitions again")
    assert one.said.count("partitions changed") == changes, "a restart within the session is no rebalance"
    feed.finish()
    compare(setup)
    for member in (one, two):
        member.check_alive()
        member.stop()


def test_a_scrape_tells_how_a_running_member_stands(broker: Broker, tmp_path: Path) -> None:
    port = free_port()
    world, feed = World(["s0", "s0"], 8_000, window="100s"), unique("feed")
    broker.create(feed)
    setup = replace(setup_of(broker, world, tmp_path), sink={"recalibrations": feed}, port=port)
    member = setup.member()
    member.wait_until_reading()
    broker.produce(setup.topic, world.records)
    setup.wait_for(len(world.windows), 30, [member])
    time.sleep(2.5)  # a report a second
    found = scraped(port)
    assert found["transactions_committed_total"] >= 1
    assert found["rebalances_total"] >= 1
    assert found["partitions_assigned"] == 2
    for name in ("transactions_aborted_total", "fetch_errors_total", "unassigned_seconds", "stalled_seconds"):
        assert found[name] == 0, name
    for number in range(2):
        labels = f'{{partition="{setup.topic}-{number}",topic="{setup.topic}"}}'
        assert found[f"lag_records{labels}"] == 0
        assert 0 < found[f"commit_lag_records{labels}"] < 4_000
        assert found[f"position_offset{labels}"] >= 4_000
    assert f"topic {feed} is not compacted (cleanup.policy=delete)" in member.said
    member.stop()


def scraped(port: int) -> dict[str, float]:
    """Every sample, its labels sorted."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    found = {}
    for line in lines:
        name, value = line.removeprefix("shiftwatch_").rsplit(" ", 1)
        name, _, labels = name.partition("{")
        found[name + ("{" + ",".join(sorted(labels[:-1].split(","))) + "}" if labels else "")] = float(value)
    return found
