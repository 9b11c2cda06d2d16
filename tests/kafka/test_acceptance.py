"""`shiftwatch run` between real topics: killed, crowded, cut off, overtaken, poisoned and locked out.

A short form runs everywhere; with `-m chaos` a million events and thirty kills, a minute of members that come, go,
freeze and die, and brokers that are stopped and killed under a transaction.
"""

import json
import random
import signal
import time
from pathlib import Path

import pytest

from tests.kafka.apache import Cluster
from tests.kafka.conftest import require_apache
from tests.kafka.topics import Broker, unique
from tests.kafka.world import (
    START_MS,
    Feed,
    Member,
    Setup,
    World,
    compare,
    setup_of,
)
from tests.marks import in_chaos
from tests.processes import wait_until


@pytest.fixture
def broker(apache_kafka: Cluster) -> Broker:
    return Broker(apache_kafka)


@pytest.mark.parametrize(
    ("events", "kills", "seconds"), [(40_000, 1, 2.0), in_chaos(1_000_000, 30, 60.0)], ids=["short", "long"]
)
def test_a_member_that_is_killed_again_and_again_says_everything_once(
    broker: Broker, tmp_path: Path, events: int, kills: int, seconds: float
) -> None:
    window = "100s" if events < 100_000 else "250s"
    world = World(["s0", "s0", "s0", "s1", "s1", "s1", "s2", "s2"], events, window)
    setup = setup_of(broker, world, tmp_path, instance="only")
    feed, rng = Feed(broker, setup.topic, world, seconds), random.Random(1)
    for number in range(kills):
        member = setup.member()
        if number % 5 < 4:
            member.wait_until_reading()
        time.sleep(rng.uniform(0.0, seconds / kills))
        member.check_alive()
        member.kill()
    feed.finish()
    compare(setup, [setup.member()])


@pytest.mark.chaos
@pytest.mark.parametrize("strategy", ["cooperative", "range"])
def test_members_that_join_leave_freeze_and_die_say_everything_once(
    broker: Broker, tmp_path: Path, strategy: str
) -> None:
    world = World([f"s{number}" for number in range(8)], 400_000)
    setup = setup_of(broker, world, tmp_path, strategy=strategy)
    feed, rng = Feed(broker, setup.topic, world, 60.0), random.Random(2)
    members: dict[int, Member] = {}
    names = iter(range(100))
    while feed.running:
        slot = rng.randrange(3)
        if slot not in members:
            members[slot] = setup.member(f"m{next(names)}")
        else:
            disturb(members, slot, rng)
        time.sleep(rng.uniform(0.5, 4.0))
    compare(setup, [*members.values()] or [setup.member()])


@pytest.mark.chaos
def test_partitions_that_a_dead_member_holds_until_its_session_ends_cost_no_window(
    broker: Broker, tmp_path: Path
) -> None:
    setup = setup_of(broker, World(["s0", "s0"], 40_000, window="100s"), tmp_path)
    feed, first = Feed(broker, setup.topic, setup.world, 20.0), setup.member("first")
    wait_until(lambda: len(setup.published()) >= 2, "two windows", 120)
    second = setup.member("second")
    second.wait_until_reading()
    first.kill()
    wait_until(lambda: len(second.shares) == 1, "the other half of the stream comes to a member that is dead", 5)
    feed.finish()
    compare(setup, [second])


def disturb(members: dict[int, Member], slot: int, rng: random.Random) -> None:
    """Something happens to a member; after a freeze longer than its session it is a zombie that does not know it."""
    member = members[slot]
    member.check_alive()
    match rng.choice(["kill", "leave", "freeze"]):
        case "kill":
            members.pop(slot).kill()
        case "leave":
            members.pop(slot).stop()
        case "freeze":
            member.process.send_signal(signal.SIGSTOP)
            time.sleep(rng.uniform(0.0, 9.0))
            member.process.send_signal(signal.SIGCONT)


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_brokers_that_stop_and_die_cost_nothing(tmp_path: Path) -> None:
    require_apache()
    replicated = dict.fromkeys(("offsets.topic.replication.factor", "transaction.state.log.replication.factor"), 2)
    cluster = Cluster(tmp_path / "brokers", brokers=2, settings=replicated)
    try:
        # A stream a partition: three members share four partitions, and a stream is to come to one of them.
        broker, world = Broker(cluster), World(["s0", "s1", "s2", "s3"], 100_000)
        world.save_references(tmp_path)
        broker.create("events", partitions=4, replicas=2)
        setup = Setup(broker, world, tmp_path, "events", "g", replicas=2).create()
        feed, members = Feed(broker, setup.topic, world, 24.0), [setup.member()]
        for each, how in ((cluster.brokers[1], signal.SIGTERM), (cluster.brokers[0], signal.SIGKILL)):
            time.sleep(4.0)
            members.append(setup.member(f"joins-as-{each.node}-goes"))
            time.sleep(1.0)  # it looks for its coordinator about now
            each.stop(how)
            time.sleep(3.0)
            each.start()
        feed.finish()
        compare(setup, members)
    finally:
        cluster.close()


@pytest.mark.parametrize("overtaken", ["stop", in_chaos("skip")])
def test_retention_that_overtakes_a_stopped_member_is_never_silent(
    broker: Broker, tmp_path: Path, overtaken: str
) -> None:
    world = World(["s0"], 60_000, window="100s", poisoned=10**9)
    world.save_references(tmp_path)
    topic = unique("short")
    # Kafka's smallest segments; a segment goes as soon as it is neither the last one nor needed for the size.
    broker.create(topic, segment_bytes="1048576", retention_bytes="1048576")
    setup = Setup(broker, world, tmp_path, topic, unique("g"), {"overtaken": overtaken, "instance": "only"}).create()
    broker.produce(topic, {0: world.records[0][:5_000]})
    member = setup.member()
    setup.wait_for(3, 30, [member])
    member.stop()
    for start in range(5_000, 60_000, 5_000):  # a batch that is as long as a segment could not be split
        broker.produce(topic, {0: world.records[0][start : start + 5_000]})
    deadline = time.monotonic() + 90
    while broker.first(topic) < 6_000:
        assert time.monotonic() < deadline, "retention does not come"
        time.sleep(0.1)
    member = setup.member()
    if overtaken == "stop":
        assert member.ended() != 0
        assert "records were deleted before they were read" in member.said
        assert 'overtaken = "skip"' in member.said
    else:
        last = max(world.windows, key=lambda window: int(window.split("/")[2])).encode()
        deadline = time.monotonic() + 90
        while last not in setup.published():
            member.check_alive()
            assert time.monotonic() < deadline, "the member does not go on"
            time.sleep(0.2)
        assert "records were deleted before they were read, going on without them" in member.said
        member.stop()


GOOD = b'{"stream":"s0","timestamp":%d,"posteriors":[0.5,0.5]}'
POISON: dict[str, bytes | None] = {
    "empty": None,
    "not-json": b'{"stream":"s0","timestamp":1',
    "not-finite": GOOD.replace(b"[0.5,", b"[NaN,") % START_MS,
    "not-an-event": b'"s0"',
    "unknown-stream": GOOD.replace(b"s0", b"s9") % START_MS,
    "wrong-classes": GOOD.replace(b"[0.5,0.5]", b'{"yes":0.5,"perhaps":0.5}') % START_MS,
    "negative": GOOD.replace(b"[0.5,0.5]", b"[-0.5,1.5]") % START_MS,
    "posterior-sum": GOOD.replace(b"[0.5,0.5]", b"[0.5,0.6]") % START_MS,
    "future-timestamp": GOOD % 9_000_000_000_000,
    "too-large": b'{"stream":"s0","timestamp":%d,"posteriors":[0.5,0.5],"pad":"%b"}' % (START_MS, b"x" * 1_048_600),
    "bad-timestamp": GOOD.replace(b"%d", b'"tomorrow"'),
    "missing-posteriors": b'{"stream":"s0","timestamp":%d}' % START_MS,
}


def test_poison_costs_no_good_record_and_ends_among_the_dead_letters(broker: Broker, tmp_path: Path) -> None:
    world = World(["s0"], 4_000, window="100s", poisoned=10**9)
    world.save_references(tmp_path)
    topic = unique("events")
    broker.create(topic, max_message_bytes="2000000")
    setup = Setup(broker, world, tmp_path, topic, unique("g")).create()
    records = list[bytes | None](world.records[0])
    for number, bad in enumerate(POISON.values()):
        records.insert(100 * (number + 1), bad)
    broker.produce(topic, {0: records})
    member = setup.member()
    setup.wait_for(len(world.windows), 30, [member])
    member.stop()
    used = [json.loads(each)["events"]["used"] for values in setup.published().values() for each in values]
    assert sum(used) == sum(world.windows.values())
    dead = {dict(each.headers)["reason"].decode(): each for each in setup.dead()}
    assert dead.keys() == POISON.keys()
    assert len(setup.dead()) == len(POISON)
    for number, (reason, bad) in enumerate(POISON.items()):
        headers = dict(dead[reason].headers)
        assert headers["partition"] == f"{topic}-0".encode()
        assert int(headers["offset"]) == 100 * (number + 1)
        if reason == "too-large":
            assert bad is not None
            assert bad.startswith(dead[reason].value or b"-")
            assert int(headers["truncated-from"]) == len(bad)
        else:
            assert dead[reason].value == (bad or b"")
