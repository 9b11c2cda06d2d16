"""A world for the acceptance tests: streams of scored events in a topic, members that watch them, and what they said.

Every partition ends with an event far ahead of all others, so that every window before it closes, whoever owns which
partition: the results of any run can then be compared with those of an uninterrupted one, byte for byte.
"""

import json
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from confluent_kafka import Producer

from monitor.arrays import Vector
from monitor.reference.classifier import Reference
from tests.kafka.topics import Broker, Written, read, unique
from tests.outside import Shown, answer, assert_soon_the_same, only, shown
from tests.processes import wait_until

START_MS = 1_763_456_400_000
STEP_MS = 100
JITTER_MS = 1_500
LATENESS = "2s"
USUAL, MOVED = 2 / 7, 0.5
"""The share of positives, and that of the second third of each partition: alarms and changes come of it."""
POISON = b'{"stream":"%b","timestamp":%d,"posteriors":[0.5,"half"]}'


@dataclass(frozen=True)
class World:
    """Which streams there are, on which partitions, and how much of them."""

    owners: Sequence[str]
    """The stream of each partition."""
    events: int
    """Of all partitions together."""
    window: str = "250s"
    poisoned: int = 997
    """Every so many-th record of a partition is not an event."""
    seed: int = 0

    @property
    def streams(self) -> list[str]:
        return sorted(set(self.owners))

    @cached_property
    def records(self) -> Mapping[int, list[bytes]]:
        """What each partition holds, in order."""
        return {partition: self._partition(partition) for partition in range(len(self.owners))}

    @property
    def poison(self) -> int:
        """How many records have to be dead-lettered, each once."""
        return sum(record.endswith(b'"half"]}') for records in self.records.values() for record in records)

    @cached_property
    def windows(self) -> Mapping[str, int]:
        """How many events each window has to hold, by window id: counted here, apart from the product."""
        size = int(self.window.removesuffix("s")) * 1_000_000
        found: Counter[str] = Counter()
        for partition, records in self.records.items():
            stream = self.owners[partition]
            for record in records[:-1]:
                if not record.endswith(b'"half"]}'):
                    start = int(record.split(b'"timestamp":', 1)[1].split(b",", 1)[0]) * 1000 // size * size
                    found[f"{stream}//{start}/{start + size}"] += 1
        return found

    def _partition(self, partition: int) -> list[bytes]:
        rng = np.random.default_rng((self.seed, partition))
        count = self.events // len(self.owners) - 1
        scores = _scores(count, np.where(np.arange(count) * 3 // count == 1, MOVED, USUAL), rng)
        times = START_MS + np.arange(count) * STEP_MS - rng.integers(0, JITTER_MS, count)
        stream = self.owners[partition]
        records = [
            b'{"stream":"%b","timestamp":%d,"posteriors":[%.4f,%.4f]}' % (stream.encode(), at, 1 - score, score)
            for at, score in zip(times.tolist(), np.round(scores, 4).tolist(), strict=True)
        ]
        for number in range(self.poisoned, count, self.poisoned):
            records[number] = POISON % (stream.encode(), times[number])
        end = START_MS + count * STEP_MS + 86_400_000
        return [*records, b'{"stream":"%b","timestamp":%d,"posteriors":[0.5,0.5]}' % (stream.encode(), end)]

    def save_references(self, folder: Path) -> None:
        """Hold-out data of the same kind for every stream."""
        rng = np.random.default_rng(self.seed)
        scores = _scores(4_000, np.full(4_000, USUAL), rng)
        labels = (rng.random(4_000) < scores).astype(int)
        posteriors = np.column_stack([1 - scores, scores])
        for stream in self.streams:
            Reference.fit(posteriors, labels, classes=["no", "yes"], stream=stream).save(folder / f"{stream}.ref")


def _scores(count: int, positives: Vector, rng: np.random.Generator) -> Vector:
    """Of as many events, each positive with its own probability: right posteriors where that is the usual one."""
    positive = rng.random(count) < positives
    return np.where(positive, rng.beta(3, 5, count), rng.beta(2, 6, count))


class Feed:
    """Writes the world into a topic, spread over some seconds, with the partitions a little apart."""

    def __init__(self, broker: Broker, topic: str, world: World, seconds: float, waits_at: float = 1.0) -> None:
        self._waits_at, self._may_go_on = waits_at, threading.Event()
        self._thread = threading.Thread(target=self._run, args=(broker.bootstrap, topic, world, seconds), daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def go_on(self) -> None:
        """Past the part of the world at which it waits."""
        self._may_go_on.set()

    def finish(self) -> None:
        self._thread.join(600)
        assert not self.running, "the feed hangs"

    def _run(self, bootstrap: str, topic: str, world: World, seconds: float) -> None:
        options = {"bootstrap.servers": bootstrap, "linger.ms": 20, "log_level": 0, "enable.idempotence": True}
        producer, rng = Producer(options), random.Random(world.seed)
        at = dict.fromkeys(world.records, 0)
        total, begun, sent = sum(map(len, world.records.values())), time.monotonic(), 0
        while sent < total:
            if sent >= self._waits_at * total:
                self._may_go_on.wait(600)
            partition = rng.choice([p for p, place in at.items() if place < len(world.records[p])])
            chunk = world.records[partition][at[partition] : at[partition] + rng.randrange(1, 400)]
            for record in chunk:
                while True:
                    try:
                        producer.produce(topic, value=record, partition=partition)
                    except BufferError:
                        producer.poll(0.1)
                    else:
                        break
            at[partition] += len(chunk)
            sent += len(chunk)
            producer.poll(0)
            time.sleep(max(0.0, begun + seconds * sent / total - time.monotonic()))
        assert producer.flush(120) == 0


@dataclass(frozen=True)
class Setup:
    """A group of members that watch a world: its topics, its configuration."""

    broker: Broker
    world: World
    folder: Path
    topic: str
    name: str
    source: Mapping[str, str] = field(default_factory=dict)
    sink: Mapping[str, str] = field(default_factory=dict)
    port: int = 0
    """Where a member's page is; any that is free."""
    more: str = ""
    """Further tables of the configuration."""

    @property
    def results(self) -> str:
        return f"{self.name}-results"

    @property
    def dead_letters(self) -> str:
        return f"{self.name}-dead"

    @property
    def states(self) -> str:
        return f"{self.name}-states"

    @property
    def recalibrations(self) -> str:
        return f"{self.name}-recalibrations"

    @property
    def alarms(self) -> str:
        return f"{self.name}-alarms"

    replicas: int = 1

    def create(self) -> "Setup":
        """The output topics."""
        self.broker.create(self.results, self.dead_letters, self.alarms, replicas=self.replicas)
        self.broker.create(self.recalibrations, replicas=self.replicas, cleanup_policy="compact")
        self.broker.create(self.states, replicas=self.replicas, cleanup_policy="compact")
        return self

    def config(self, member: str, **source: str) -> Path:
        """The configuration of one member."""
        given = {"group": self.name, "session_timeout": "6s"} | dict(self.source) | source
        sink = {
            "dead_letters": self.dead_letters,
            "states": self.states,
            "recalibrations": self.recalibrations,
            "alarms": self.alarms,
            "transaction_timeout": "5s",
            **self.sink,
        }
        streams = "\n".join(
            f'[streams.{stream}]\nreference = "{stream}.ref"\n'
            f'window = {{ size = "{self.world.window}", lateness = "{LATENESS}" }}\nchanges = "page-hinkley"'
            for stream in self.world.streams
        )
        text = f"""
[source]
url = "kafka://{self.broker.bootstrap}/{self.topic}"
{_lines(given)}

[sink]
url = "kafka://{self.broker.bootstrap}/{self.results}"
{_lines(sink)}

[pace]
commit = "1s"
idle = "0s"

[log]
format = "text"

[server]
port = {self.port}

[alarms]
false = "1 per 1d"

{streams}

{self.more}
"""
        path = self.folder / f"{self.name}-{member}.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def member(self, name: str = "one", **source: str) -> "Member":
        return Member(self.config(name, **source))

    def published(self, topic: str = "") -> dict[bytes, list[bytes]]:
        """By key, all that a reader of committed messages sees of a topic; of the results, unless another is named."""
        found: dict[bytes, list[bytes]] = {}
        for record in read(self.broker.bootstrap, topic or self.results):
            found.setdefault(record.key or b"", []).append(record.value or b"")
        return found

    def known(self) -> dict[bytes, bytes]:
        """What the topic of states says last of each stream, and of each window that is remembered."""
        return {record.key or b"": record.value or b"" for record in read(self.broker.bootstrap, self.states)}

    def dead(self) -> list[Written]:
        return read(self.broker.bootstrap, self.dead_letters)

    def wait_for(self, windows: int, seconds: float, members: Sequence["Member"] = ()) -> None:
        """Until so many results are out; the members have to live until then."""
        deadline = time.monotonic() + seconds
        while (found := sum(map(len, self.published().values()))) < windows:
            for member in members:
                member.check_alive()
            assert time.monotonic() < deadline, f"{found} of {windows} windows after {seconds} s"
            time.sleep(0.5)


class Member:
    """A process of `shiftwatch run`."""

    started: ClassVar[list["Member"]] = []
    """All of them, so that none outlives the test that started it."""

    def __init__(self, config: Path) -> None:
        self.started.append(self)
        self.log = config.with_suffix(f".{time.monotonic_ns()}.log")
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "monitor", "run", str(config)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def address(self) -> str:
        """Of its page."""
        return re.findall(r"http://127\.0\.0\.1:\d+", self.said)[0]

    @property
    def shares(self) -> set[str]:
        """The partitions that it reads now, by its metrics: its log does not say which of them an outage took away."""
        try:
            rows = answer(f"{self.address}/metrics").splitlines()
        except (OSError, IndexError):  # it does not listen yet
            return set()
        found = (re.match(r'shiftwatch_position_offset\{partition="([^"]+)"', row) for row in rows)
        return {one[1] for one in found if one}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 30.0) -> None:
        """SIGTERM, and then it has to end well; before it has begun, the signal just ends it."""
        begun = bool(self.said)
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(seconds) in ((0,) if begun else (0, -signal.SIGTERM)), self.said[-3000:]

    def ended(self, seconds: float = 60.0) -> int:
        return self.process.wait(seconds)

    def wait_until_reading(self) -> None:
        """Until it has partitions."""
        deadline = time.monotonic() + 60
        while "partitions changed" not in self.said:
            self.check_alive()
            assert time.monotonic() < deadline, f"no partitions:\n{self.said[-3000:]}"
            time.sleep(0.02)

    def check_alive(self) -> None:
        assert self.process.poll() is None, f"a member ended by itself:\n{self.said[-3000:]}"


def uninterrupted(setup: Setup) -> tuple[dict[bytes, list[bytes]], Shown]:
    """What one undisturbed member says about the whole topic, and what it then shows."""
    member = setup.create().member()
    setup.wait_for(len(setup.world.windows), 240, [member])
    time.sleep(2.5)  # it hears once a second from the cluster how far it has read
    outside = shown(member.address, setup.world.streams)
    member.stop()
    published = setup.published()
    used = {key.decode(): json.loads(values[0])["events"]["used"] for key, values in published.items()}
    assert used == setup.world.windows, "the uninterrupted run itself does not hold every event"
    return published, outside


def assert_exactly_once(got: Mapping[bytes, Sequence[bytes]], want: Mapping[bytes, Sequence[bytes]]) -> None:
    """Every window once, with the very bytes of the uninterrupted run."""
    twice = {key: len(values) for key, values in got.items() if len(values) != 1}
    assert not twice, f"windows that were published more than once: {twice}"
    missing, extra = sorted(want.keys() - got.keys()), sorted(got.keys() - want.keys())
    assert not missing, f"{len(missing)} of {len(want)} windows are missing: {missing[:5]}"
    assert not extra, f"{len(extra)} windows that the uninterrupted run does not have: {extra[:5]}"
    different = [key for key in want if list(got[key]) != list(want[key])]
    assert not different, (
        f"{len(different)} windows differ: {[_difference(want[k][0], got[k][0]) for k in different[:3]]}"
    )


def setup_of(broker: Broker, world: World, folder: Path, **source: str) -> Setup:
    """A topic for the world, references, and the output topics of a group."""
    world.save_references(folder)
    topic = unique("events")
    broker.create(topic, partitions=len(world.owners))
    return Setup(broker, world, folder, topic, unique("g"), source=source).create()


def compare(setup: Setup, living: Sequence[Member] = (), seconds: float = 90) -> None:
    """What the group has said by now, or says soon, is what an uninterrupted run says.

    So is what the members that live show of their streams, and what one shows that takes all streams over from them.
    """
    whole = replace(setup, name=unique("whole"))
    want, outside = uninterrupted(whole)
    setup.wait_for(len(want), seconds, living)
    time.sleep(1.0)  # time for a second answer, if there were to be one
    assert_exactly_once(setup.published(), want)
    assert_each_poison_record_once(setup)
    assert setup.known() == whole.known()
    for mine, theirs in ((setup.recalibrations, whole.recalibrations), (setup.alarms, whole.alarms)):
        assert setup.published(mine) == whole.published(theirs)
    if living:
        assert_shown(setup, living, outside)


def assert_shown(setup: Setup, living: Sequence[Member], want: Shown) -> None:
    """Each member shows of its own streams what is wanted, and so does one that then takes all of them over."""
    everything = {f"{setup.topic}-{number}": stream for number, stream in enumerate(setup.world.owners)}
    for gone, member in enumerate(living):  # those that are left share out anew what the one before had
        wait_until(partial(share_all, living[gone:], everything), "all partitions", 90)
        own = sorted({everything[partition] for partition in member.shares})
        assert_soon_the_same(partial(own_of, member, own), only(want, own))
        member.stop()
    last = setup.member("last")
    wait_until(lambda: last.shares == everything.keys(), "one member has them all", 90)
    assert_soon_the_same(lambda: shown(last.address, setup.world.streams), want)
    last.stop()


def share_all(members: Sequence[Member], partitions: Collection[str]) -> bool:
    """Whether each partition is with one of these."""
    return sorted(chain(*(one.shares for one in members))) == sorted(partitions)


def own_of(member: Member, streams: Sequence[str]) -> Shown:
    """What a member shows of its streams."""
    return only(shown(member.address, streams), streams)


def _difference(want: bytes, got: bytes) -> str:
    """The first place where two results part."""
    at = next((i for i, (a, b) in enumerate(zip(want, got, strict=False)) if a != b), min(len(want), len(got)))
    return f"{want[: at + 20][-80:]!r} became {got[: at + 20][-80:]!r}"


def assert_each_poison_record_once(setup: Setup) -> None:
    """Every record that is no event is among the dead letters, and none twice."""
    places = Counter(
        (dict(record.headers).get("partition"), dict(record.headers).get("offset")) for record in setup.dead()
    )
    assert len(places) == setup.world.poison, f"{len(places)} of {setup.world.poison} dead letters"
    assert set(places.values()) == {1}, f"dead-lettered twice: {[place for place, n in places.items() if n > 1][:5]}"


def _lines(table: Mapping[str, str]) -> str:
    return "\n".join(
        f"{key} = {value if value.replace('.', '', 1).isdigit() or value in ('true', 'false') else repr(value)}"
        for key, value in table.items()
    )
