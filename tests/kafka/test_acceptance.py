"""`shiftwatch run` between real topics: killed, crowded, cut off, overtaken, poisoned and locked out.

Everywhere a short form runs; in CI (CI=true) the full one: a million events and thirty kills, a minute of members that
come, go, freeze and die, and brokers that are stopped and killed under a transaction.
"""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.kafka import open_pair, sink_settings, source_settings
from monitor.errors import ConnectorError
from tests.connectors.harness import nothing
from tests.kafka.apache import Cluster, Security
from tests.kafka.conftest import require_apache
from tests.kafka.topics import Broker, read, unique
from tests.kafka.world import (
    START_MS,
    Feed,
    Member,
    Setup,
    World,
    assert_each_poison_record_once,
    assert_exactly_once,
    uninterrupted,
)

FULL = os.environ.get("CI") == "true"

# Minutes of members and brokers that come and go: too long, and too easily late on a busy machine, to run every time.
only_in_chaos = pytest.mark.skipif(not os.environ.get("CHAOS"), reason="takes minutes: runs with CHAOS=1")


@pytest.fixture
def broker(apache_kafka: Cluster) -> Broker:
    return Broker(apache_kafka)


def setup_of(broker: Broker, world: World, folder: Path, **source: str) -> Setup:
    """A topic for the world, references, and the output topics of a group."""
    world.save_references(folder)
    topic = unique("events")
    broker.create(topic, partitions=len(world.owners))
    return Setup(broker, world, folder, topic, unique("g"), source=source).create()


def compare(setup: Setup, seconds: float = 90) -> None:
    """What the group has said by now, or says soon, is what an uninterrupted run says."""
    want = uninterrupted(replace(setup, name=unique("whole")))
    setup.wait_for(len(want), seconds)
    time.sleep(1.0)  # time for a second answer, if there were to be one
    assert_exactly_once(setup.published(), want)
    assert_each_poison_record_once(setup)


def test_a_member_that_is_killed_again_and_again_says_everything_once(broker: Broker, tmp_path: Path) -> None:
    events, kills, seconds = (1_000_000, 30, 60.0) if FULL else (40_000, 2, 4.0)
    world = World(["s0", "s0", "s0", "s1", "s1", "s1", "s2", "s2"], events, window="100s" if not FULL else "250s")
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
    last = setup.member()
    compare(setup)
    last.stop()


@only_in_chaos
@pytest.mark.parametrize("strategy", ["cooperative"])
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
    members = members or {0: setup.member("last")}
    compare(setup)
    for member in members.values():
        member.check_alive()
        member.stop()


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


@only_in_chaos
def test_brokers_that_stop_and_die_cost_nothing(tmp_path: Path) -> None:
    require_apache()
    replicated = dict.fromkeys(("offsets.topic.replication.factor", "transaction.state.log.replication.factor"), 2)
    cluster = Cluster(tmp_path / "brokers", brokers=2, settings=replicated)
    try:
        broker, world = Broker(cluster), World(["s0", "s0", "s1", "s1"], 100_000)
        world.save_references(tmp_path)
        broker.create("events", partitions=4, replicas=2)
        setup = Setup(broker, world, tmp_path, "events", "g", replicas=2).create()
        feed, member = Feed(broker, setup.topic, world, 24.0), setup.member()
        for each, how in ((cluster.brokers[1], signal.SIGTERM), (cluster.brokers[0], signal.SIGKILL)):
            time.sleep(4.0)
            each.stop(how)
            time.sleep(3.0)
            each.start()
        feed.finish()
        compare(setup)
        member.check_alive()
        member.stop()
    finally:
        cluster.close()


@pytest.mark.parametrize("overtaken", ["stop", "skip"] if FULL else ["stop"])
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
    deadline = time.monotonic() + 30
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
        deadline = time.monotonic() + 30
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


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A broker with passwords and permissions."""
    require_apache()
    security = Security(users={"admin": "right", "nobody": "right"}, superusers=("ANONYMOUS", "admin"))
    cluster = Cluster(tmp_path_factory.mktemp("guarded"), security=security)
    Broker(cluster).create("events", "results")
    yield cluster
    cluster.close()


LOCKED_OUT: list[tuple[dict[str, object], str]] = [
    ({"username": "admin", "password": "wrong"}, "the user name or the password is (probably )?wrong"),
    ({"username": "nobody"}, "topic (events|results) must not be seen by nobody"),
    ({"topics": "evnts", "results": "rslts"}, "topic (evnts|rslts) does not exist"),
]
if FULL:
    LOCKED_OUT += [
        ({"mechanism": "SCRAM-SHA-512", "password": "wrong"}, "the password is (probably )?wrong"),
        ({"tls": True}, "does not speak TLS"),
        ({"mechanism": None, "username": None, "password": None}, "perhaps this port wants TLS or SASL"),
        ({"bootstrap": "127.0.0.1:1"}, "nobody listens there"),
        ({"driver": "fast", "password": "wrong"}, "the password is (probably )?wrong"),
    ]


@pytest.mark.parametrize(("given", "complaint"), LOCKED_OUT)
def test_who_is_locked_out_is_told_why_at_the_start(guarded: Cluster, given: dict[str, object], complaint: str) -> None:
    login = {"mechanism": "PLAIN", "username": "admin", "password": "right", "connect_timeout": "1s"}
    options = {"bootstrap": guarded.secure_bootstrap} | login | given
    options = {key: value for key, value in options.items() if value is not None}
    only_source, only_sink = {"results"}, {"topics"}
    source, sink = open_pair(
        source_settings({"topics": "events", "group": "g"} | {k: options[k] for k in options.keys() - only_source}),
        sink_settings({"results": "results"} | {k: options[k] for k in options.keys() - only_sink}),
    )
    with pytest.raises(ConnectorError, match=complaint):
        sink.recover()
    with pytest.raises(ConnectorError, match=complaint):
        source.start(None)
    source.close()
    sink.close()


@pytest.mark.parametrize("driver", ["python", "fast"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] if FULL else ["SCRAM-SHA-512"])
def test_who_knows_the_password_gets_in(guarded: Cluster, mechanism: str, driver: str) -> None:
    options = {"bootstrap": guarded.secure_bootstrap, "driver": driver, "mechanism": mechanism}
    options |= {"username": "admin", "password": "right"}
    source, sink = open_pair(
        source_settings({"topics": "events", "group": unique("g"), **options}),
        sink_settings({"results": "results", **options}),
    )
    sink.recover()
    source.start(None)
    deadline = time.monotonic() + 20
    while source.reassigned(nothing) is None:
        assert time.monotonic() < deadline
        source.poll(0.1)
    source.close()
    sink.close()
    assert read(guarded.bootstrap, "results") == []
