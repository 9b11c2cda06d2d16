"""`shiftwatch run` through an outage of the brokers, in the middle and at the start: it waits, says so, and goes on."""

import signal
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from tests.kafka.apache import Cluster
from tests.kafka.conftest import require_apache
from tests.kafka.topics import Broker
from tests.kafka.world import Feed, Member, World, compare, setup_of
from tests.processes import wait_until

WARNED = "outage: trying again until it is over"
SECONDS = 130.0


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_both_drivers_go_on_through_two_minutes_of_outage_in_the_middle_and_at_the_start(tmp_path: Path) -> None:
    require_apache()
    cluster = Cluster(tmp_path / "kafka")
    try:
        broker, world = Broker(cluster), World(["s0", "s1"], 40_000, window="100s")
        setups = [
            replace(setup_of(broker, world, tmp_path, driver=driver), sink={"driver": driver})
            for driver in ("python", "fast")
        ]
        feeds = [Feed(one.broker, one.topic, world, SECONDS + 10.0) for one in setups]
        members = [one.member() for one in setups]
        for one in setups:
            wait_until(lambda one=one: bool(one.published()), "the first windows")
        away(cluster, members)
        for member in members:
            member.stop()
        # Before the next ones begin: they find nobody.
        cluster.brokers[0].stop(signal.SIGKILL)
        members = [one.member() for one in setups]
        for member in members:
            wait_until(lambda member=member: WARNED in member.said, "it tells of the outage", 90)
        time.sleep(SECONDS)
        for member in members:
            member.check_alive()
            assert not ready(member)
            assert member.said.count(WARNED) <= 2 + SECONDS / 60
        cluster.brokers[0].start()
        for feed, one, member in zip(feeds, setups, members, strict=True):
            feed.finish()
            compare(one, [member])
    finally:
        cluster.close()


def away(cluster: Cluster, members: list[Member]) -> None:
    """The broker dies, and comes back."""
    cluster.brokers[0].stop(signal.SIGKILL)
    time.sleep(SECONDS)
    for member in members:
        member.check_alive()
    cluster.brokers[0].start()
    for member in members:
        wait_until(lambda member=member: ready(member), "ready again", 60)


def ready(member: Member) -> bool:
    try:
        with urllib.request.urlopen(f"{member.address}/readyz", timeout=5) as answer:  # noqa: S310 - our own
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False
