"""Scored events of a made-up world with known truth: `synthetic:`, for demonstrations and tests.

The same options give the same bytes, from any position. What was injected when can be asked of the source.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from connectors.regression_worlds import RegressionPeriod, RegressionTimetable, RegressionWorld
from connectors.worlds import BLOCK, UNKNOWN, Floats, Form, Period, Timetable, World, tour
from monitor.errors import ConfigurationError
from monitor.ports import Checkpoint, RawBatch, Reassignment, Source
from monitor.ports.options import Duration, read

# 2026-01-01T00:00:00Z, in microseconds: a fixed beginning makes results the same on every machine.
START = 1_767_225_600_000_000

SIXTY_MILLISECONDS = Duration(60_000)
NONE = Duration(0)


@dataclass(frozen=True, slots=True)
class SyntheticOptions:
    """The world, what happens in it, and how its events are written."""

    world: World = field(default_factory=World)
    periods: tuple[Period, ...] = field(default_factory=lambda: tour(5_000))
    start: int = START
    """Event time of the first event, microseconds since the epoch."""
    interval: Duration = SIXTY_MILLISECONDS
    """Event time between events: a minute holds a thousand."""
    disorder: Duration = NONE
    """How much older than its place in the stream an event may claim to be."""
    partitions: int = 1
    rate: float = 0.0
    """Events a second on the wall clock; 0 is as fast as they are read."""
    form: Form = "object"
    """Posteriors and features as objects with names, or as lists."""
    features: bool = True
    """Whether events carry their features."""
    labelled: float = 0.0
    """Share of events that carry their true class."""
    regressor: RegressionWorld | None = None
    """A regression stream instead, with periods of its own; they say which events are labelled."""
    regression: tuple[RegressionPeriod, ...] = ()

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if (self.regressor is None) != (not self.regression):
            yield "want `regressor` and `regression` (its periods) together"
        if self.partitions < 1:
            yield "want at least one partition"
        if not self.periods:
            yield "want at least one period"


@dataclass(frozen=True, slots=True)
class Injected:
    """The truth about one period."""

    period: Period | RegressionPeriod
    start: int
    """Event time of its first event, and of the first event after it; microseconds."""
    end: int


def source(_: str, options: Mapping[str, Any], __: Path) -> Source:
    """The generator as a source; everything is said in options."""
    problems: list[str] = []
    table = read(SyntheticOptions, options, "source", problems)
    if table is None:
        raise ConfigurationError(problems)
    return SyntheticSource(table)


class SyntheticSource:
    """Deals the events of a timetable out to partitions in turn; an offset counts the events of its partition."""

    def __init__(self, options: SyntheticOptions = SyntheticOptions()) -> None:
        self.options = options
        self._encoder = encoder(options)
        self.timetable = self._encoder.timetable
        self._next = {f"synthetic-{number}": 0 for number in range(options.partitions)}
        self._block = lru_cache(maxsize=2)(self._encoder.block)
        self._started = 0.0
        self._dealt = 0

    def injected(self) -> tuple[Injected, ...]:
        """What happens when: the answers that a monitor should find."""
        first, step = self.options.start, self.options.interval
        return tuple(
            Injected(period, first + begin * step, first + end * step) for period, begin, end in self.timetable.spans()
        )

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Go to the checkpoint's positions."""
        progress = checkpoint.progress if checkpoint else {}
        self._next |= {name: each.offset for name, each in progress.items() if name in self._next}
        self._started = time.monotonic()
        return progress.keys() - self._next.keys()

    def reassigned(self, _: Callable[[], None]) -> Reassignment | None:
        """Never: the partitions are fixed."""
        return None

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        """The rest of a block for the partition that is furthest behind."""
        ready = [name for name in self.partitions() if name not in held]
        if not ready or not self._due(timeout):
            return []
        name = min(ready, key=self._next.__getitem__)
        step, first = self.options.partitions, self._next[name]
        lane = list(self._next).index(name)
        number = first * step + lane
        block, within = divmod(number, BLOCK)
        records = self._block(block)[within::step]
        self._next[name] = first + len(records)
        self._dealt += len(records)
        return [RawBatch(name, records, np.arange(first, first + len(records)), first + len(records))]

    def partitions(self) -> Sequence[str]:
        """The partitions that have events left."""
        step = self.options.partitions
        return [name for lane, (name, at) in enumerate(self._next.items()) if at * step + lane < self.timetable.events]

    def waiting(self, partition: str) -> bool:
        """Whether the partition has events left."""
        return partition in self.partitions()

    @property
    def finished(self) -> bool:
        """Whether the timetable is over."""
        return not self.partitions()

    def close(self) -> None:
        """Nothing to close."""

    def _due(self, timeout: float) -> bool:
        """Whether the next events may be dealt at the configured rate; waits for it, but not longer than `timeout`."""
        if not self.options.rate:
            return True
        early = self._dealt / self.options.rate - (time.monotonic() - self._started)
        if early > 0:
            time.sleep(min(early, timeout))
        return early <= timeout


class Encoder:
    """Writes a classifier's events as JSON."""

    def __init__(self, timetable: Timetable, options: SyntheticOptions) -> None:
        self.timetable = timetable
        self._options = options

    def block(self, number: int) -> list[bytes]:
        """The records of one block; malformed ones take each kind in turn."""
        block, options, world = self.timetable.block(number), self._options, self.timetable.world
        population = block.population
        times = _times(options, block.numbers, block.jitter)
        posteriors = np.round(population.posteriors, 6).tolist()
        inputs = np.round(population.features, 4).tolist()  # NaN is written as null
        labelled = (block.lot < options.labelled) & (population.labels != UNKNOWN)
        records = []
        for row, event_number in enumerate(block.numbers.tolist()):
            event: dict[str, Any] = {
                "stream": world.stream,
                "id": f"e{event_number}",
                "timestamp": times[row],
                "posteriors": _shaped(options.form, world.classes, posteriors[row]),
            }
            if options.features:
                event["features"] = _shaped(options.form, world.features, inputs[row])
            if labelled[row]:
                event["label"] = world.classes[population.labels[row]]
            if block.malformed[row]:
                records.append(_SPOILERS[event_number % len(_SPOILERS)](event))
            else:
                records.append(msgspec.json.encode(event))
        return records


class RegressionEncoder:
    """Writes a regressor's events as JSON."""

    def __init__(self, timetable: RegressionTimetable, options: SyntheticOptions) -> None:
        self.timetable = timetable
        self._options = options

    def block(self, number: int) -> list[bytes]:
        """The records of one block."""
        block, options, world = self.timetable.block(number), self._options, self.timetable.world
        population = block.population
        times = _times(options, block.numbers, block.jitter)
        predictions, targets = (np.round(column, 4).tolist() for column in (population.predictions, population.targets))
        inputs = np.round(population.features, 4).tolist()
        records = []
        for row, event_number in enumerate(block.numbers.tolist()):
            event: dict[str, Any] = {
                "stream": world.stream,
                "id": f"e{event_number}",
                "timestamp": times[row],
                "prediction": predictions[row],
            }
            if options.features:
                event["features"] = _shaped(options.form, world.features, inputs[row])
            if block.labelled[row]:
                event["label"] = targets[row]
            records.append(msgspec.json.encode(event))
        return records


def encoder(options: SyntheticOptions) -> Encoder | RegressionEncoder:
    """The encoder for the kind of stream that the options describe."""
    if options.regressor is not None:
        return RegressionEncoder(RegressionTimetable(options.regressor, options.regression), options)
    return Encoder(Timetable(options.world, options.periods), options)


def _shaped(form: Form, names: Sequence[str], values: Sequence[Any]) -> Any:
    return values if form == "list" else dict(zip(names, values, strict=True))


def _times(options: SyntheticOptions, numbers: Any, jitter: Floats) -> list[str]:
    """Event times, out of order by as much as is wanted."""
    age = (jitter * options.disorder).astype(np.int64)
    return _texts(options.start + numbers * options.interval - age)


def _texts(times: Any) -> list[str]:
    return [f"{text}Z" for text in np.datetime_as_string(times.astype("datetime64[us]"), unit="ms").tolist()]


def _spoiled(**fields: Any) -> Callable[[dict[str, Any]], bytes]:
    return lambda event: msgspec.json.encode({**event, **fields})


_SPOILERS: tuple[Callable[[dict[str, Any]], bytes], ...] = (
    lambda event: msgspec.json.encode(event)[:-20],
    _spoiled(stream="no-such-stream"),
    _spoiled(posteriors=[1.0]),
    _spoiled(posteriors="high"),
    _spoiled(timestamp="2999-01-01T00:00:00Z"),
    _spoiled(timestamp="yesterday"),
    _spoiled(label="no-such-class"),
    lambda event: msgspec.json.encode(event).replace(b'"posteriors"', b'"x":NaN,"posteriors"'),
    lambda _: b"null",
)
"""What broken producers write."""


def write_labels(path: Path, options: SyntheticOptions, share: float, delay: int) -> int:
    """The labels of such a share of a classifier's events as records of their own, so many microseconds late."""
    timetable = Timetable(options.world, options.periods)
    written = 0
    with path.open("wb") as file:
        for number in range(-(-timetable.events // BLOCK)):
            block = timetable.block(number)
            known = np.flatnonzero((block.lot < share) & (block.population.labels != UNKNOWN) & ~block.malformed)
            times = _texts(options.start + block.numbers[known] * options.interval + delay)
            for row, time_ in zip(known.tolist(), times, strict=True):
                label = options.world.classes[block.population.labels[row]]
                name = f"e{block.numbers[row]}"
                record = {"stream": options.world.stream, "id": name, "timestamp": time_, "label": label}
                file.write(msgspec.json.encode(record) + b"\n")
            written += known.size
    return written


def write(path: Path, options: SyntheticOptions) -> int:
    """All events into one file, one a line; returns how many."""
    writer = encoder(options)
    events = writer.timetable.events
    with path.open("wb") as file:
        for number in range(-(-events // BLOCK)):
            file.write(b"".join(record + b"\n" for record in writer.block(number)))
    return events
