"""A soak: two services on each medium, one left alone and measured, one killed, while events come and things happen.

Brokers die and come back, files rotate, every stream gets a new reference. Both services of a medium have to say the
same.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from monitor.version import __version__
from tests.processes import wait_until
from tests.soak import level
from tests.soak.footprint import Footprint
from tests.soak.media import Medium, OnFiles, OnKafka, Tally
from tests.soak.plan import Events, Plan
from tests.soak.service import Soaked

TICK = 0.1
CATCH_UP = 600.0
"""Seconds that services may take to come to the end of what is there, on a machine that is busy."""
SETTLE = 5.0
"""Seconds without a new message after which there is nothing more to come."""


@dataclass(frozen=True)
class Sample:
    """What a service that is left alone took at some moment."""

    seconds: float
    events: int
    medium: str
    footprint: Footprint


@dataclass
class Soak:
    """What came of it."""

    plan: Plan
    seconds: float = 0.0
    events: int = 0
    windows: int = 0
    """Of all streams and segments, on each medium."""
    messages: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    outages: list[tuple[float, float]] = field(default_factory=list)
    """When, and how long."""
    rotations: list[float] = field(default_factory=list)
    new_reference: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    scrapes: int = 0
    failed_scrapes: int = 0
    faults: list[str] = field(default_factory=list)
    """What should not have been, in words."""

    def second_half(self, medium: str) -> list[Sample]:
        return [one for one in self.samples if one.medium == medium and one.seconds >= self.seconds / 2]

    def last_quarters(self, medium: str) -> tuple[list[Footprint], list[Footprint]]:
        """What the service on it took in the third quarter, and in the last."""
        samples, last = self.second_half(medium), 0.75 * self.seconds
        third = [one.footprint for one in samples if one.seconds < last]
        return third, [one.footprint for one in samples if one.seconds >= last]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps({"version": __version__, **asdict(self)}), encoding="utf-8")


class Producer:
    """Sends events to all media at a steady rate, from a thread of its own; it can be held."""

    def __init__(self, plan: Plan, media: Sequence[Medium]) -> None:
        self.events = Events(plan)
        self._media, self._batch = media, int(plan.rate * TICK)
        self._running, self._hold, self._done = threading.Event(), threading.Event(), threading.Event()
        self._between = threading.Lock()
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self._thread.start()

    @contextmanager
    def between(self) -> Iterator[None]:
        """While nothing is being sent."""
        with self._between:
            yield

    def go(self) -> None:
        self._running.set()

    def hold(self) -> None:
        """From the next end of a window on."""
        self._hold.set()
        wait_until(lambda: not self._running.is_set(), "the end of a window", CATCH_UP)
        self._hold.clear()

    def end(self) -> None:
        self._done.set()
        self._running.set()
        self._thread.join()

    def _produce(self) -> None:
        while not self._done.is_set():
            self._running.wait()
            began, first = time.monotonic(), self.events.sent
            while self._running.is_set() and not self._done.is_set():
                with self._between:
                    records = [*self.events.next(self._batch)]
                    for medium in self._media:
                        medium.send(records)
                if self._hold.is_set() and self.events.at_border:
                    self._running.clear()
                ahead = (self.events.sent - first) / self.events.plan.rate - (time.monotonic() - began)
                self._done.wait(max(0.0, ahead))


def run(plan: Plan, folder: Path) -> Soak:
    """Soak on files and on Kafka at once; what is wrong is among the faults of what is returned."""
    soak = Soak(plan)
    with ExitStack() as stack:
        folders = {name: folder / name for name in ("files", "kafka")}
        for each in folders.values():
            each.mkdir(parents=True)
            plan.save_references(each, seed=1)
        files = OnFiles(folders["files"])
        kafka = OnKafka(folders["kafka"], {"alone": "python", "killed": "fast"})
        media: Sequence[Medium] = (files, kafka)
        for medium in media:
            stack.callback(medium.close)
        services = {
            medium.name: [Soaked(plan, medium, folders[medium.name], name) for name in ("alone", "killed")]
            for medium in media
        }
        for one in (one for pair in services.values() for one in pair):
            stack.callback(one.end)
            one.wait_until_ready()
        producer = Producer(plan, media)
        stack.callback(producer.end)
        began = time.monotonic()
        stack.enter_context(_measuring(soak, producer, [pair[0] for pair in services.values()], began))
        producer.go()
        _Meanwhile(soak, producer, files, kafka, services, began).go_on()
        producer.hold()
        soak.seconds = time.monotonic() - began
        soak.events = producer.events.sent
        for pair in services.values():
            try:
                _catch_up(producer.events, pair)
            except AssertionError as error:  # what is missing is among the faults, and the record is kept
                soak.faults.append(str(error))
        _judge_messages(soak, producer.events, services)
        _judge_footprints(soak)
    soak.save(folder / "soak.json")
    return soak


@dataclass
class _Meanwhile:
    """What happens while events come, each at its time."""

    soak: Soak
    producer: Producer
    files: OnFiles
    kafka: OnKafka
    services: Mapping[str, Sequence[Soaked]]
    began: float
    rng: random.Random = field(default_factory=lambda: random.Random(4))
    next_kill: dict[str, float] = field(default_factory=dict)

    @property
    def _now(self) -> float:
        return time.monotonic() - self.began

    @property
    def _flowed(self) -> float:
        """Seconds in which events came."""
        return self.producer.events.sent / self.soak.plan.rate

    def go_on(self) -> None:
        plan = self.soak.plan
        due: list[tuple[float, Callable[[], None]]] = [(plan.new_reference_at * plan.seconds, self._change_references)]
        due += [(at, self._rotate) for at in np.arange(plan.rotate_every, plan.seconds, plan.rotate_every)]
        due += [(at, self._outage) for at in np.arange(plan.outage_every, plan.seconds, plan.outage_every)]
        due.sort(key=lambda entry: entry[0])
        while self._flowed < plan.seconds:
            time.sleep(0.5)
            while due and self._flowed >= due[0][0]:
                due.pop(0)[1]()
            for name, (alone, killed) in self.services.items():
                alone.member.check_alive()
                self._maybe_kill(name, killed)

    def _maybe_kill(self, name: str, service: Soaked) -> None:
        """Once it has published something, and a while later."""
        if not service.published:
            self.next_kill[name] = self._now + self.rng.uniform(*self.soak.plan.kill_after)
        elif self._now >= self.next_kill[name]:
            service.kill()

    def _rotate(self) -> None:
        with self.producer.between():
            self.files.rotate()
        self.soak.rotations.append(self._now)

    def _outage(self) -> None:
        """One service is killed in its middle, and has to start without a broker."""
        at, seconds = self._now, self.rng.uniform(*self.soak.plan.outage)
        killer = threading.Timer(seconds / 2, self.services["kafka"][1].kill)
        killer.start()
        self.kafka.outage(seconds)
        killer.join()
        self.soak.outages.append((at, self._now - at))

    def _change_references(self) -> None:
        """At rest, so that the same windows are judged by it whoever has been killed."""
        self.producer.hold()
        for pair in self.services.values():
            _catch_up(self.producer.events, pair)
        for pair in self.services.values():
            version = self.soak.plan.save_references(pair[0].folder, seed=2)
            for service in pair:
                service.renewed(version)
        self.soak.new_reference = self._now
        self.producer.go()


@contextmanager
def _measuring(soak: Soak, producer: Producer, alone: Sequence[Soaked], began: float) -> Iterator[None]:
    """A sample a second, and a scrape every fifteen as by Prometheus."""
    done = threading.Event()

    def measure() -> None:
        turn = 0
        while not done.wait(1.0):
            turn += 1
            for service in alone:
                with suppress(OSError, ValueError):  # it is just being started again
                    now = Footprint.of(service.member.process)
                    at = time.monotonic() - began
                    soak.samples.append(Sample(at, producer.events.sent, service.medium.name, now))
                if turn % 15 == 0:
                    soak.scrapes += 1
                    soak.failed_scrapes += not service.answers("/metrics")

    thread = threading.Thread(target=measure)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _catch_up(events: Events, services: Sequence[Soaked]) -> None:
    """Until all have published what is due, and nothing more comes."""
    due = events.due * events.plan.streams
    for service in services:
        service.member.check_alive()
        wait_until(lambda service=service: len(_tally(service).used) >= due, f"{service.name}: all windows", CATCH_UP)
    rest = [(-1, 0.0)] * len(services)
    deadline = time.monotonic() + CATCH_UP
    while any(time.monotonic() - since < SETTLE for _, since in rest) or len({count for count, _ in rest}) > 1:
        assert time.monotonic() < deadline, f"they do not come to rest alike: {rest}"
        time.sleep(0.2)
        counts = [len(_tally(service).digests) for service in services]
        now = time.monotonic()
        rest = [(c, now if c != before else since) for c, (before, since) in zip(counts, rest, strict=True)]


def _tally(service: Soaked) -> Tally:
    return service.medium.look(service.name)


def _judge_messages(soak: Soak, events: Events, services: Mapping[str, Sequence[Soaked]]) -> None:
    """Every window once, with the events that it has to hold; and what was killed says what was left alone says."""
    size = soak.plan.window * 1_000_000
    starts = [events.start_ms(number) * 1_000 for number in range(events.due)]
    want = {
        f"s{stream}//{start}/{start + size}": events.used(stream, number)
        for number, start in enumerate(starts)
        for stream in range(soak.plan.streams)
    }
    for name, (alone, killed) in services.items():
        soak.kills[name] = killed.kills
        tallies = [_tally(alone), _tally(killed)]
        for service, tally in zip((alone, killed), tallies, strict=True):
            who = f"{name}: {service.name}"
            soak.faults += [f"{who}: published twice: {key}" for key in tally.twice[:5]]
            soak.faults += [f"{who}: not published: {key}" for key in sorted(want.keys() - tally.used.keys())[:5]]
            wrong = [key for key in want.keys() & tally.used.keys() if want[key] != tally.used[key]]
            soak.faults += [f"{who}: {key} has {tally.used[key]} events, not {want[key]}" for key in wrong[:5]]
            if len(tally.references) != 2:
                soak.faults.append(f"{who}: references {sorted(tally.references)}, want two")
        first, second = (tally.digests for tally in tallies)
        apart = sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))
        soak.faults += [f"{name}: differs between the two: {key}" for key in apart[:5]]
        soak.faults += [f"{name}: left behind by a kill: process {pid}" for pid in killed.orphans]
        others = [service.medium.other_outputs(service.name) for service in (alone, killed)]
        soak.faults += [f"{name}: {key} differ" for key in others[0] if others[0][key] != others[1].get(key)]
        if len(others[0]["dead"]) != events.malformed:
            soak.faults.append(f"{name}: {len(others[0]['dead'])} dead letters, not {events.malformed}")
        soak.windows = len([key for key in first if key.startswith("shiftwatch.window.")])
        soak.messages = len(first)


def _judge_footprints(soak: Soak) -> None:
    """Level memory, and nothing left open, of what was left alone."""
    for name in ("files", "kafka"):
        soak.faults += [f"{name}: {fault}" for fault in level.faults(soak.last_quarters(name), allowed_mb(soak))]


MB_PER_MILLION = 1.0
"""Events: what may be left behind in the second half."""


def allowed_mb(soak: Soak) -> float:
    """Of growth in the second half, on either medium."""
    resident = max(one.footprint.loop_mb + one.footprint.workers_mb for one in soak.samples)
    return max(soak.plan.steps * resident, MB_PER_MILLION * soak.events / 2e6)
