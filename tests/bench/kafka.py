"""Events per second from a real Kafka topic, as ratios to the bare poll loop of the same client in the same run.

    python -m tests.bench.kafka              the table
    python -m tests.bench.kafka --memory     10,000,000 events through one service, resident memory every second

Each measurement is a process of its own, the ways of reading take turns, and the median of the rounds counts: how long
a reader waits for its broker differs from round to round. Processor seconds are given beside wall seconds.
"""

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np

from connectors.kafka import open_source, source_settings
from connectors.memory import MemorySink
from monitor.arrays import Labels, Matrix
from monitor.events.decoding import Decoder
from monitor.ports import Checkpoint, Message
from monitor.reference.classifier import Reference
from monitor.service.loop import Pace, Service
from monitor.service.memory import collect_garbage_rarely, keep_freed_memory
from monitor.service.notices import BatchTaken, Committed, Happening, WindowAssessed
from monitor.service.publishing import Watched
from monitor.service.workers import Workers
from monitor.windows.assembly import Windowing
from monitor.windows.batch import StreamRows
from monitor.windows.by_time import TimePlan
from monitor.windows.progress import from_stored
from tests.bench.options import options
from tests.bench.pictures import pyplot
from tests.connectors.harness import nothing
from tests.kafka import apache
from tests.kafka.topics import Broker

REPORTS = Path(__file__).parent / "reports"
PARTITIONS = 4
WINDOW_EVENTS = 10_000
STEP_US = 1_000
START_US = 1_763_456_400_000_000
LATER = 2**60  # no event lies in the future
PLAN = TimePlan(WINDOW_EVENTS * STEP_US, WINDOW_EVENTS * STEP_US, 100 * STEP_US, 10 * WINDOW_EVENTS)
SHAPES = {"2 classes": (2, 0, 1_000_000), "10 classes, 10 features": (10, 10, 400_000)}
WAYS = ("bare", "windows", "assessed", "assessed on the loop", "fast windows", "fast assessed")


def events(classes: int, features: int, count: int, seed: int) -> tuple[Matrix, Labels, Matrix]:
    """Posteriors, labels and inputs as the model has them while nothing moves."""
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    posteriors = rng.dirichlet(np.ones(classes), count) + 2 * np.eye(classes)[labels]
    return posteriors / 3, labels, rng.normal(size=(count, features)) + 0.1 * labels[:, None]


def reference(classes: int, features: int) -> Reference:
    posteriors, labels, table = events(classes, features, 10_000, seed=1)
    names = [f"f{number}" for number in range(features)]
    return Reference.fit(posteriors, labels, table if names else None, feature_names=names or None, stream="bench")


def saved(shape: str, folder: Path) -> Path:
    """Made once: what a reference has learned is not what is measured."""
    path = folder / "bench.ref"
    reference(*SHAPES[shape][:2]).save(path)
    return path


def records(classes: int, features: int, count: int) -> Iterator[tuple[int, bytes]]:
    """Events in the order of their time, dealt to the partitions in turn."""
    posteriors, _, inputs = events(classes, features, 5_000, seed=2)
    tails = [
        (f'"posteriors":{row.tolist()}' + (f',"features":{values.tolist()}' if features else "")).replace(" ", "")
        for row, values in zip(posteriors.round(4), inputs.round(4), strict=True)
    ]
    for number in range(count):
        at = (START_US + number * STEP_US) // 1000
        yield number % PARTITIONS, f'{{"stream":"bench","timestamp":{at},{tails[number % 5_000]}}}'.encode()


def fill(broker: Broker, topic: str, shape: str, count: int) -> None:
    classes, features, _ = SHAPES[shape]
    chunk: dict[int, list[bytes | None]] = {partition: [] for partition in range(PARTITIONS)}
    for number, (partition, record) in enumerate(records(classes, features, count), 1):
        chunk[partition].append(record)
        if number % 100_000 == 0 or number == count:
            broker.produce(topic, chunk)
            chunk = {partition: [] for partition in range(PARTITIONS)}


class Stopwatch:
    """Connecting, joining, importing and closing are not what is measured: runs from `begin` to the last `mark`."""

    def __init__(self, count: int) -> None:
        self.left = count
        self._timed = 0
        self._began: tuple[float, ...] | None = None
        self._marked: tuple[float, ...] = ()

    def begin(self) -> None:
        """From here on, once."""
        if self._began is None:
            self._began = self._now()

    def saw(self, records: int) -> None:
        """So many came."""
        self._timed += records if self._began else 0
        self.left -= records

    def mark(self) -> None:
        """So far, it is done."""
        self._marked = self._now()

    def result(self) -> dict[str, float]:
        """Events per wall second, per processor second of the process that reads, and per that of its worker."""
        assert self._began is not None
        wall, reader, worker = (end - start for start, end in zip(self._began, self._marked, strict=True))
        rates = {"wall": self._timed / wall, "reader": self._timed / reader}
        return rates | ({"worker": self._timed / worker} if worker else {})

    def _now(self) -> tuple[float, ...]:
        return time.perf_counter(), time.process_time(), sum(map(processor_seconds, children()))


def children(pid: str = "self") -> list[str]:
    """The processes that this one, or another, has started."""
    return [pid for task in Path(f"/proc/{pid}/task").iterdir() for pid in (task / "children").read_text().split()]


def processor_seconds(pid: str) -> float:
    """What a process has used so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def bare(bootstrap: str, topic: str, watch: Stopwatch) -> None:
    """Nothing but the client: poll and drop."""
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 - only this way needs it

    ours = source_settings({"bootstrap": bootstrap, "topics": topic})
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=ours.poll_records,  # with kafka-python's own 500 it is slower
    )
    consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
    while watch.left > 0:
        found = consumer.poll(200)
        watch.saw(sum(map(len, found.values())))
        if found:
            watch.begin()
    watch.mark()
    consumer.close()


def windows(bootstrap: str, topic: str, watch: Stopwatch, made: Reference, driver: str) -> None:
    """Poll, decode and cut into windows, which are dropped."""
    source = open_source(source_settings({"bootstrap": bootstrap, "topics": topic, "driver": driver}))
    decoder = Decoder([made.schema])
    windowing = Windowing({"bench": PLAN})
    source.start(None)
    while watch.left > 0:
        change = source.reassigned(nothing)
        for partition, progress in change.came.items() if change else ():
            windowing.begin(partition, from_stored(partition, progress))
        for batch in source.poll(0.2):
            decoded = decoder.decode(batch, LATER)
            rows = [StreamRows(s.streams, s.rows, batch.offsets[s.index]) for s in decoded.together]
            windowing.add(batch.partition, batch.next_offset, rows)
            watch.saw(len(batch.records))
            watch.begin()
        for _ in windowing.close(source.partitions()):
            pass
    watch.mark()
    source.close()


class Forgetful(MemorySink):
    """Forgets the results, so that memory shows what the service keeps and not what the sink was given."""

    def write(self, message: Message) -> None:
        """Dropped."""

    def commit(self, checkpoint: Checkpoint) -> None:
        """Nothing to publish."""


def assessed(bootstrap: str, topic: str, watch: Stopwatch, made: Reference, driver: str, *, workers: int) -> None:
    """The whole service, every window assessed in full, to the last commit."""
    source = open_source(source_settings({"bootstrap": bootstrap, "topics": topic, "driver": driver}))

    def count(happening: Happening) -> None:
        if isinstance(happening, BatchTaken):
            watch.saw(happening.records)
        elif isinstance(happening, WindowAssessed):
            watch.begin()  # the first one waits for whatever is imported and prepared
        elif isinstance(happening, Committed):
            watch.mark()

    watched = {"bench": Watched(made, PLAN)}
    service = Service(
        watched,
        Decoder([made.schema]),
        source,
        Forgetful(),
        observers=[count],
        pace=Pace(poll=0.2, idle=0.0, stop=60.0),
        assessing=Workers(watched, workers) if workers else None,
    )
    service.run(lambda: watch.left <= 0)


def measure(way: str, made: Path, bootstrap: str, topic: str, count: int) -> None:
    """One measurement in this process, as JSON."""
    driver, watch = "fast" if way.startswith("fast") else "python", Stopwatch(count)
    if way == "bare":
        bare(bootstrap, topic, watch)
        print(json.dumps(watch.result()))
        return
    keep_freed_memory()  # as `shiftwatch run` does
    collect_garbage_rarely()
    if way.endswith("windows"):
        windows(bootstrap, topic, watch, Reference.load(made), driver)
    else:
        workers = 0 if way.endswith("loop") else 1
        assessed(bootstrap, topic, watch, Reference.load(made), driver, workers=workers)
    print(json.dumps(watch.result()))


def apart(*arguments: str) -> "subprocess.Popen[str]":
    """The same in a process of its own."""
    return subprocess.Popen([sys.executable, "-m", "tests.bench.kafka", *arguments], stdout=subprocess.PIPE, text=True)


def table(broker: Broker, given: argparse.Namespace, folder: Path) -> str:
    """Every way on every shape, in turn."""
    lines = []
    ways = ["bare", *(way for way in given.ways if way != "bare")]
    for shape in given.shapes:
        topic, count = shape.replace(" ", "-").replace(",", ""), int(SHAPES[shape][2] * given.scale)
        broker.create(topic, partitions=PARTITIONS)
        fill(broker, topic, shape, count)
        made = saved(shape, folder)
        rounds: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for _ in range(given.rounds):
            for way in ways:
                output, _ = apart("--measure", way, str(made), broker.bootstrap, topic, str(count)).communicate()
                rounds[way].append(json.loads(output))
                print(shape, way, {clock: round(rate) for clock, rate in rounds[way][-1].items()}, file=sys.stderr)
        middle = {way: {clock: median(one[clock] for one in rounds[way]) for clock in rounds[way][0]} for way in ways}
        lines += [row(shape, way, middle[way], middle["bare"]) for way in ways]
    head = (
        "| events | what is done | events/s | ratio to bare | ratio in processor time: reader | worker | slower one |\n"
        "|---|---|--:|--:|--:|--:|--:|\n"
    )
    return head + "\n".join(lines) + "\n"


def row(shape: str, way: str, rates: dict[str, float], bare: dict[str, float]) -> str:
    """With a core for each of them, a reader and its worker are as fast as the slower of the two."""
    reader = rates["reader"] / bare["reader"]
    worker = rates["worker"] / bare["reader"] if "worker" in rates else None
    cells = [f"{rates['wall']:,.0f}", f"{rates['wall'] / bare['wall']:.2f}", f"{reader:.2f}"]
    cells += ["" if worker is None else f"{worker:.2f}", f"{min(reader, worker or reader):.2f}"]
    return f"| {shape} | {way} | {' | '.join(cells)} |"


Seen = list[tuple[float, float, float]]


def memory(broker: Broker, count: int, folder: Path) -> Seen:
    """Seconds, and resident megabytes of reader and worker, while one service reads a long topic.

    The topic is full before: a reader that catches up with a writer shows how its fetches grow, and not what it keeps.
    """
    shape = "2 classes"
    broker.create("long", partitions=PARTITIONS)
    fill(broker, "long", shape, count)
    process = apart("--measure", "assessed", str(saved(shape, folder)), broker.bootstrap, "long", str(count))
    began, seen = time.monotonic(), []
    while process.poll() is None:
        with contextlib.suppress(FileNotFoundError):
            reader = megabytes(str(process.pid))
            worker = max(map(megabytes, children(str(process.pid))), default=0.0)
            seen.append((time.monotonic() - began, reader, worker))
        time.sleep(0.5)
    return seen


def megabytes(pid: str) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def said_of(seen: Seen, count: int) -> str:
    """How level it is, in words: a line through the second half."""
    lines = [f"{count:,} events in {seen[-1][0]:.0f} s."]
    half = np.array(seen[len(seen) // 2 : -1])
    for name, values in (("reader", half[:, 1]), ("worker", half[:, 2])):
        slope = float(np.polyfit(half[:, 0], values, 1)[0]) * seen[-1][0] / count * 1e6
        lines.append(
            f"Resident, {name}, in the second half: {values.min():.1f} to {values.max():.1f} MB,"
            f" {slope:+.2f} MB per million events."
        )
    return " ".join(lines)


def plot(seen: Seen, count: int, path: Path) -> None:
    plt = pyplot()

    figure, axes = plt.subplots(figsize=(7, 3))
    seconds, reader, worker = zip(*seen, strict=True)
    axes.plot(seconds, reader, label="reader")
    axes.plot(seconds, worker, label="worker")
    axes.set(xlabel="seconds", ylabel="resident MB", ylim=(0, None), title=f"{count:,} events through one service")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of events")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--measure", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.scale, given.shapes = 1, 0.1, given.shapes[:1]  # some windows have to close
    if given.measure:
        way, made, bootstrap, topic, count = given.measure
        measure(way, Path(made), bootstrap, topic, int(count))
        return
    reason = apache.unavailable()
    if reason is not None:
        sys.exit(f"Apache Kafka cannot run here: {reason}")
    with tempfile.TemporaryDirectory() as folder:
        cluster = apache.Cluster(Path(folder) / "kafka")
        try:
            if given.memory:
                count = int(10_000_000 * given.scale)
                seen = memory(Broker(cluster), count, Path(folder))
                plot(seen, count, REPORTS / "kafka_memory.png")
                print(said_of(seen, count))
            else:
                print(table(Broker(cluster), given, Path(folder)))
        finally:
            cluster.close()


if __name__ == "__main__":
    main()
