"""Late labels on Apache Kafka: two members with partitions of their own, SIGKILLs, and what a quiet pair says.

Each stream lies in a partition of its own, and so do its labels, up to three windows late. Half of the way the labels
of one of them change: corrections, outcomes and alarms follow from labels that came before a kill and after it.
"""

import json
import random
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from monitor.reference.classifier import Reference
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read, unique
from tests.kafka.world import Member
from tests.labels.streams import told
from tests.marks import in_chaos
from tests.processes import wait_until
from tests.service.streams import SECOND_MS, START_MS, scores

STREAMS = ("steady", "changing")
WINDOW, LATE, EVENTS = 200, 3, 8_000
"""Seconds of a window with an event each, windows until a label comes, and events of a stream."""
OF_EACH = 3
"""Results of a window, and outcomes: of the whole, and of two segments."""

MEMBER = """
[source]
url = "kafka://{bootstrap}/{topic}"
group = "{name}"
partitions = [{partition}]

[sink]
url = "kafka://{bootstrap}/{name}-results"
states = "{name}-states"
recalibrations = "{name}-recalibrations"
alarms = "{name}-alarms"
events = "{name}-corrected"
transaction_timeout = "5s"

[pace]
commit = "1s"

[alarms]
false = "1 per 1d"

[streams.{stream}]
reference = "{stream}.ref"
segments = ["country"]
window = {{ size = "{window}s", lateness = "10s" }}
labels = {{ wait = "{wait}s", store = "{name}-{stream}.sqlite" }}
corrected = "window"
"""
OUTPUTS = ("results", "recalibrations", "alarms", "corrected", "states")


def records(stream: str, seed: int) -> list[bytes]:
    """Events, and seven in ten of their labels; those of `changing` turn round in the middle."""
    rng = np.random.default_rng(seed)
    posteriors, labels = scores(EVENTS, 0.3, seed)
    lines: list[tuple[int, bytes]] = []
    for number, (row, label) in enumerate(zip(posteriors.tolist(), labels.tolist(), strict=True)):
        sent, name = START_MS + number * SECOND_MS, f"{stream}-{number}"
        event = {"stream": stream, "id": name, "timestamp": sent, "posteriors": row}
        event["segment"] = {"country": ["BE", "FR"][number % 2]}
        lines.append((sent, json.dumps(event).encode()))
        if rng.random() < 0.7:
            came = sent + int(rng.integers(1, LATE * WINDOW)) * SECOND_MS
            turned = stream == "changing" and number > EVENTS // 2
            word = ["no", "yes"][1 - label if turned else label]
            lines.append((came, told(name, word, came).replace(b'"s"', json.dumps(stream).encode())))
    return [line for _, line in sorted(lines)]


def members(broker: Broker, folder: Path, name: str) -> list[Path]:
    """The configurations of a pair, with topics of its own."""
    for output in OUTPUTS:
        broker.create(f"{name}-{output}", **({"cleanup_policy": "compact"} if output == "states" else {}))
    broker.create(f"{name}-events", partitions=len(STREAMS))
    paths = []
    for partition, stream in enumerate(STREAMS):
        path = folder / f"{name}-{stream}.toml"
        filled = MEMBER.format(
            bootstrap=broker.bootstrap,
            topic=f"{name}-events",
            name=name,
            partition=partition,
            stream=stream,
            window=WINDOW,
            wait=(LATE + 1) * WINDOW,
        )
        path.write_text(filled, encoding="utf-8")
        paths.append(path)
    return paths


def published(broker: Broker, name: str, output: str) -> dict[bytes, list[bytes]]:
    """By key, what a reader of committed messages sees; of states the last."""
    found: dict[bytes, list[bytes]] = {}
    for record in read(broker.bootstrap, f"{name}-{output}"):
        found.setdefault(record.key or b"", []).append(record.value or b"")
    return {key: values[-1:] for key, values in found.items()} if output == "states" else found


def results(broker: Broker, name: str) -> int:
    return sum(map(len, published(broker, name, "results").values()))


def parts(lines: Sequence[bytes], number: int) -> list[Sequence[bytes]]:
    ends = [len(lines) * part // number for part in range(number + 1)]
    return [lines[start:end] for start, end in pairwise(ends)]


@pytest.mark.parametrize("kills", [in_chaos(2), in_chaos(30)])
def test_two_members_that_are_killed_again_and_again_learn_the_same_from_late_labels(
    apache_kafka: Cluster, tmp_path: Path, kills: int
) -> None:
    broker = Broker(apache_kafka)
    said = [records(stream, seed) for seed, stream in enumerate(STREAMS, 31)]
    for stream in STREAMS:
        reference = Reference.fit(*scores(2_000, 0.3, seed=1), classes=["no", "yes"], stream=stream)
        reference.save(tmp_path / f"{stream}.ref")

    whole, killed = unique("whole"), unique("killed")
    quiet = [Member(path) for path in members(broker, tmp_path, whole)]
    broker.produce(f"{whole}-events", dict(enumerate(said)))
    windows = len(STREAMS) * OF_EACH * (EVENTS // WINDOW)
    outcomes = len(STREAMS) * OF_EACH * (EVENTS // WINDOW - LATE - 2)
    wait_until(lambda: results(broker, whole) >= windows + outcomes, "all windows and outcomes", 120)
    time.sleep(3.0)
    for member in quiet:
        member.check_alive()
        member.stop()

    rng, paths = random.Random(1), members(broker, tmp_path, killed)
    alive = [Member(path) for path in paths]
    for chunk in zip(*(parts(lines, kills) for lines in said), strict=True):
        broker.produce(f"{killed}-events", dict(enumerate(chunk)))
        time.sleep(rng.uniform(0.2, 3.0))
        number = rng.randrange(len(alive))
        alive[number].check_alive()
        alive[number].kill()
        alive[number] = Member(paths[number])
    want = {output: published(broker, whole, output) for output in OUTPUTS}
    wait_until(lambda: results(broker, killed) >= sum(map(len, want["results"].values())), "as many results", 120)
    time.sleep(3.0)
    for member in alive:
        member.check_alive()
        member.stop()
    for output in OUTPUTS:
        assert published(broker, killed, output) == want[output], output
    tables = [json.loads(value) for values in want["results"].values() for value in values]
    assert any(one.get("verdict") == "concept-shift" and one["stream"] == "changing" for one in tables)
    assert not any(one.get("verdict") == "concept-shift" and one["stream"] == "steady" for one in tables)
    feed = [json.loads(value) for values in want["recalibrations"].values() for value in values]
    feed = [one for one in feed if not one["validity"]["segment"]]
    assert sum(bool(one["experts"]) for one in feed) > len(feed) // 2
    series = {json.loads(value)["series"] for values in want["alarms"].values() for value in values}
    assert "labels against scores" in series
