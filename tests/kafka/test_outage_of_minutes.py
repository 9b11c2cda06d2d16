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


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("driver", ["python", "fast"])
@pytest.mark.parametrize("seconds", [30.0, 130.0], ids=["short", "minutes"])
def test_it_goes_on_through_an_outage_in_the_middle_and_at_the_start(
    tmp_path: Path, driver: str, seconds: float
) -> None:
    require_apache()
    cluster = Cluster(tmp_path / "kafka")
    try:
        world = World(["s0", "s1"], 40_000, window="100s")
        setup = setup_of(Broker(cluster), world, tmp_path, driver=driver)
        setup = replace(setup, sink={"driver": driver})
        feed, member = Feed(setup.broker, setup.topic, world, seconds + 10.0), setup.member()
        wait_until(lambda: bool(setup.published()), "the first windows")
        away(cluster, seconds, member)
        member.check_alive()
        member.stop()
        # Before the next one begins: it finds nobody.
        cluster.brokers[0].stop(signal.SIGKILL)
        member = setup.member()
        wait_until(lambda: WARNED in member.said, "it tells of the outage", 90)
        time.sleep(seconds)
        member.check_alive()
        assert not ready(member)
        assert member.said.count(WARNED) <= 2 + seconds / 60
        cluster.brokers[0].start()
        feed.finish()
        compare(replace(setup, source={"driver": driver}), [member])
    finally:
        cluster.close()


def away(cluster: Cluster, seconds: float, member: Member) -> None:
    """The broker dies, and comes back."""
    cluster.brokers[0].stop(signal.SIGKILL)
    time.sleep(seconds)
    member.check_alive()
    cluster.brokers[0].start()
    wait_until(lambda: ready(member), "ready again", 60)


def ready(member: Member) -> bool:
    try:
        with urllib.request.urlopen(f"{member.address}/readyz", timeout=5) as answer:  # noqa: S310 - our own
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False
