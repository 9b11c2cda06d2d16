"""An upgrade, and another reference, on Apache Kafka with kills in the middle: each window is published once."""

import json
import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from connectors.kafka.progress import MARK
from monitor.reference.classifier import Reference
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker
from tests.kafka.world import Feed, Setup, World, assert_exactly_once, setup_of
from tests.processes import wait_until

pytestmark = pytest.mark.chaos
KILLS = 2


@pytest.fixture
def broker(apache_kafka: Cluster) -> Broker:
    return Broker(apache_kafka)


Commits = dict[TopicPartition, OffsetAndMetadata]


@contextmanager
def of_group(setup: Setup) -> Iterator[KafkaConsumer]:
    """Whoever looks at what the group has committed, or commits for it."""
    consumer = KafkaConsumer(bootstrap_servers=setup.broker.bootstrap, group_id=setup.name, enable_auto_commit=False)
    try:
        yield consumer
    finally:
        consumer.close()


def commits(consumer: KafkaConsumer, setup: Setup) -> Commits:
    """What the group has committed."""
    partitions = [TopicPartition(setup.topic, number) for number in range(len(setup.world.owners))]
    found = {partition: consumer.committed(partition, metadata=True) for partition in partitions}
    return {partition: each for partition, each in found.items() if each is not None}


def as_before(metadata: str) -> str:
    """The same as the first release wrote it: an object without a version, and without what it did not know."""
    assert metadata.startswith(MARK)
    state = json.loads(metadata.partition("\n")[2])
    known = ("max", "read", "closed", "counted", "outcomes")
    return json.dumps({name: state[name] for name in known if name in state}, separators=(",", ":"))


def killed_at_work(setup: Setup, rng: random.Random) -> None:
    """A member that is killed some time after it has published something, before all is out."""
    before = windows_out(setup)
    member = setup.member()

    def publishes() -> bool:
        member.check_alive()
        return windows_out(setup) > before

    wait_until(publishes, "it publishes", 120)
    time.sleep(rng.uniform(0.0, 1.0))
    member.kill()
    assert windows_out(setup) < len(setup.world.windows)


def windows_out(setup: Setup) -> int:
    return sum(map(len, setup.published().values()))


def test_offsets_and_metadata_of_the_first_release_are_taken_up_through_kills(broker: Broker, tmp_path: Path) -> None:
    world = World(["s0", "s1"], 40_000, window="100s")
    setup, rng = setup_of(broker, world, tmp_path), random.Random(2)
    feed = Feed(broker, setup.topic, world, 75.0)
    killed_at_work(setup, rng)
    with of_group(setup) as consumer:
        found = commits(consumer, setup)
        before = {at: each._replace(metadata=as_before(each.metadata)) for at, each in found.items()}
        consumer.assign(list(before))
        wait_until(lambda: written(consumer, before), "the group has let its dead member go")
        assert commits(consumer, setup) == before
    for _ in range(KILLS):
        killed_at_work(setup, rng)
    feed.finish()
    last = setup.member("last")
    setup.wait_for(len(world.windows), 120, [last])
    last.stop()
    assert_exactly_once(setup.published(), whole(setup))


def written(consumer: KafkaConsumer, offsets: Commits) -> bool:
    try:
        consumer.commit(offsets)
    except KafkaError:  # the session of the member that was killed is not over
        return False
    return True


def whole(setup: Setup) -> Mapping[bytes, list[bytes]]:
    """What a member says that is never disturbed."""
    alone = Setup(setup.broker, setup.world, setup.folder, setup.topic, f"{setup.name}-whole").create()
    member = alone.member()
    alone.wait_for(len(setup.world.windows), 120, [member])
    member.stop()
    return alone.published()


def test_another_reference_takes_effect_between_two_windows_of_a_topic_and_each_is_published_once(
    broker: Broker, tmp_path: Path
) -> None:
    world = World(["s0", "s0"], 40_000, window="100s")
    setup, rng = setup_of(broker, world, tmp_path), random.Random(5)
    before = Reference.load(tmp_path / "s0.ref").version
    # It waits in the middle: on a busy machine all windows were out before the other reference was made.
    feed = Feed(broker, setup.topic, world, 20.0, waits_at=0.5)
    member = setup.member()
    wait_until(lambda: windows_out(setup) >= 2, "two windows", 120)
    after = another(tmp_path / "s0.ref")
    member.process.send_signal(signal.SIGHUP)
    feed.go_on()
    for _ in range(KILLS):
        time.sleep(rng.uniform(0.0, 3.0))
        member.kill()
        member = setup.member()
    feed.finish()
    setup.wait_for(len(world.windows) + 1, 120, [member])
    member.stop()
    assert_renewed(setup, before, after)


def another(path: Path) -> str:
    """Another hold-out of the same world in the place of the reference; its version."""
    rng = np.random.default_rng(8)
    scores = rng.beta(2, 5, 4_000)
    labels = (rng.random(4_000) < scores).astype(int)
    made = Reference.fit(np.column_stack([1 - scores, scores]), labels, classes=["no", "yes"], stream="s0")
    made.save(path)
    return made.version


def assert_renewed(setup: Setup, before: str, after: str) -> None:
    messages = [json.loads(value) for values in setup.published().values() for value in values]
    windows = sorted((one for one in messages if "verdict" in one), key=lambda one: str(one["start"]))
    used = {one["window"]: one["events"]["used"] for one in windows}
    assert len(used) == len(windows), "each once"
    assert used == setup.world.windows, "and whole"
    versions = [version for version, _ in groupby(one["versions"]["reference"] for one in windows)]
    assert versions == [before, after]
    named = [one for one in messages if one.get("schema") == "shiftwatch.continuity.v1"]
    assert [(one["before"], one["now"]) for one in named] == [(before, after)]
