"""Whatever an event may look like and whatever a stream asks for: two stages say what one process says."""

import json
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from connectors.memory import MemorySink, MemorySource
from monitor.commands.run import service
from monitor.commands.streams import decoder_of, watched_now
from monitor.ports import Message, Progress, RawBatch
from monitor.reference import Reference
from monitor.service import PartMaker, PartMerger
from monitor.settings import load
from tests.service.streams import START_MS, scores

STREAMS = {
    "plain": "window = { size = '1m', lateness = '0s' }",
    "sliding": "window = { size = '1m', slide = '20s', lateness = '5s' }\nsegments = ['country']",
    "labelled": "window = { size = '30s', lateness = '3s', max_events = 150 }\ncorrected = 'window'",
}
PARTITIONS, SECONDS, LAST = 3, 240, "the last of its partition"


def event(rng: np.random.Generator, second: float, number: int, **fields: object) -> dict[str, object]:
    stream = str(rng.choice([*STREAMS]))
    (posterior,), (label,) = scores(1, 0.3 if second < SECONDS / 2 else 0.6, int(rng.integers(2**31)))
    legit, fraud = posterior.tolist()
    shown: dict[str, object] = {"stream": stream, "id": f"e{number}", **fields}
    shown |= [{"posteriors": [legit, fraud]}, {"posteriors": {"yes": fraud, "no": legit}}, {"score": fraud}][number % 3]
    if stream == "sliding":
        shown["segment"] = {"country": str(rng.choice(["be", "fr"]))}
    if stream == "labelled" and number % 2:
        shown["label"] = ["no", "yes"][label]
    return shown


def partition(seed: int) -> tuple[list[bytes | None], list[int]]:
    """The records, and their own times in microseconds."""
    rng, records, times = np.random.default_rng(seed), list[bytes | None](), list[int]()
    for number, second in enumerate(np.sort(rng.uniform(0, SECONDS, 1_500)).tolist()):
        at = START_MS + round((second - (20 if rng.random() < 0.02 else 2) * rng.random()) * 1_000)
        written = datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="milliseconds")
        stamp: dict[str, object] = [{"timestamp": at}, {"timestamp": written}, {}][number % 3]
        some = [event(rng, second, 10 * number + place, **stamp) for place in range(3 if number % 10 == 0 else 1)]
        records.append(json.dumps(some if len(some) > 1 else some[0]).encode())
        if number % 97 == 0:
            records[-1] = [None, b"{", json.dumps(some[0] | {"posteriors": [2, -1], "score": None}).encode()][
                number % 3
            ]
        times.append(at * 1_000)
    for stream in STREAMS:
        last = {"stream": stream, "id": LAST, "timestamp": START_MS + 10_000_000, "posteriors": [0.5, 0.5]}
        records.append(json.dumps(last).encode())
        times.append(times[-1])
    return records, times


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("all-kinds")
    posteriors, labels = scores(2_000, 0.3, seed=1)
    text = "[server]\n[source]\nurl = 'jsonl:unused'\n[sink]\nurl = 'jsonl:unused.jsonl'\n[pace]\nworkers = 0\n"
    for stream, settings in STREAMS.items():
        Reference.fit(posteriors, labels, classes=["no", "yes"], stream=stream).save(folder / f"{stream}.ref")
        text += f"[streams.{stream}]\nreference = '{stream}.ref'\n{settings}\n"
    (folder / "shiftwatch.toml").write_text(text)
    return folder / "shiftwatch.toml"


def by_one_process(path: Path) -> list[Message]:
    settings, sink = load(path), MemorySink()
    there = {f"events-{number}": partition(number) for number in range(PARTITIONS)}
    source = MemorySource(
        {name: records for name, (records, _) in there.items()},
        timestamps={name: times for name, (_, times) in there.items()},
        batch=400,
    )
    service(settings, watched_now(settings), source, sink, []).run()
    return sink.log.messages


def by_stages(path: Path, seed: int) -> list[Message]:
    """In batches of any size, whose turns come at random; each stream's second stage has tables of its own."""
    settings, rng = load(path), np.random.default_rng(seed)
    watched = watched_now(settings)
    maker = PartMaker(watched, partial(decoder_of, settings, watched), settings.dead_letters)
    merger = PartMerger(watched, 0.0)
    tables = {stream: (dict[str, bytes](), dict[str, bytes]()) for stream in STREAMS}
    left = {f"events-{number}": partition(number) for number in range(PARTITIONS)}
    ends = {name: len(records) for name, (records, _) in left.items()}
    at, progress, said = dict.fromkeys(left, 0), dict[str, Progress](), list[Message]()
    for stream in STREAMS:
        said += merger.told(stream, ends, *tables[stream], 0.0)
    while left:
        name = str(rng.choice([*left]))
        (records, times), first = left[name], at[name]
        stop = at[name] = min(first + int(rng.integers(1, 300)), len(records))
        offsets = np.arange(first, stop)
        batch = RawBatch(name, records[first:stop], offsets, stop, np.array(times[first:stop], dtype=np.int64))
        made = maker.take(batch, progress.get(name), time.time_ns() // 1_000)
        progress[name] = made.progress
        said += made.dead_letters
        for stream, parts in made.parts.items():
            said += merger.take(stream, parts, *tables[stream], 1.0)
        if stop == len(records):
            del left[name]
    return said


def test_all_that_a_job_takes_gives_the_bytes_of_one_process(path: Path) -> None:
    want, got = by_one_process(path), by_stages(path, 1)
    results = Counter(message.value for message in want if message.channel == "results")
    closed = Counter({value: times for value, times in results.items() if b"end-of-input" not in value})
    assert Counter(message.value for message in got if message.channel == "results") == closed
    told = [json.loads(value) for value in closed]
    assert Counter(each["stream"] for each in told if not each["segment"]) == {"plain": 5, "sliding": 15, "labelled": 9}
    assert {each["segment"] for each in told if each["stream"] == "sliding"} == {"", "country=be", "country=fr"}
    assert any(each["events"]["late"] for each in told)
    assert any(each["events"]["sampled_out"] for each in told)

    remembered, all_remembered = (
        {each.value for each in said if b'"concern":"windows"' in each.value} for said in (got, want)
    )
    assert len(remembered) == len(closed)
    assert remembered < all_remembered
    labelled = [value for value in remembered if b'"labelled":0' not in value]
    assert {value.split(b'"stream":"')[1].split(b'"')[0] for value in labelled} == {b"labelled"}

    for channel in ("dead-letters", "events"):
        ours, theirs = (
            Counter((each.key, each.value) for each in said if each.channel == channel and not of_the_end(each))
            for said in (got, want)
        )
        assert ours == theirs
        assert ours


def of_the_end(message: Message) -> bool:
    """Its window is open for ever in a topic."""
    return LAST.encode() in message.value
