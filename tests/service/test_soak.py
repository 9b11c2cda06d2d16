"""Minutes or hours at a steady rate, killed again and again or left alone: nothing lost, nothing twice, flat memory.

    SHIFTWATCH_SOAK_SECONDS=7200 pytest -m chaos tests/service/test_soak.py

Two services follow the same growing file. One is left alone, and its memory is looked at; the other is killed at random
instants and started again at once. Both have to publish the same bytes in the end.
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from tests.service import streams

SECONDS = float(os.environ.get("SHIFTWATCH_SOAK_SECONDS", "300"))
RATE = 2_000  # events a second
BATCH = RATE // 10
WINDOW_SECONDS = 5
MALFORMED_EVERY = 997
KILL_AFTER = (2.0, 20.0)  # seconds
MEMORY_GROWTH_MB = 8.0
"""From the middle to the end, fitted. Resident memory steps by a few megabytes as the allocator pleases; what leaks a
hundred bytes an event would show 30 MB in the second half of five minutes."""

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
follow = true

[sink]
url = "jsonl:{name}.jsonl"
dead_letters = "{name}-rejected.jsonl"

[streams.s]
reference = "s.ref"
window = {{ size = "{seconds}s", lateness = "1s" }}
"""


@dataclass
class Run:
    """One `shiftwatch run`, started again after each kill."""

    folder: Path
    name: str
    kills: int = 0
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        text = CONFIGURATION.format(name=self.name, seconds=WINDOW_SECONDS)
        (self.folder / f"{self.name}.toml").write_text(text, encoding="utf-8")
        self.start()

    def start(self) -> None:
        with (self.folder / f"{self.name}.log").open("ab") as log:
            command = [sys.executable, "-m", "monitor", "run", str(self.folder / f"{self.name}.toml")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        assert self.process.poll() is None, self.log()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1
        self.start()

    def stop(self) -> None:
        self.process.terminate()
        # One that was started an instant ago may not have got as far as listening to signals.
        assert self.process.wait(timeout=30) in {0, -signal.SIGTERM}, self.log()

    def resident_mb(self) -> float:
        """With the process that assesses beside the loop."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        pages = [int(Path(f"/proc/{one}/statm").read_text().split()[1]) for one in (pid, *children)]
        return sum(pages) * resource.getpagesize() / 1e6

    def log(self) -> str:
        return (self.folder / f"{self.name}.log").read_text()[-2000:]

    def results(self) -> bytes:
        path = self.folder / f"{self.name}.jsonl"
        return path.read_bytes() if path.exists() else b""


@contextmanager
def steady_events(path: Path) -> Iterator[list[int]]:
    """Events as if from a producer, until the context ends; yields what grows to be the number of events written."""
    written, done = [0], threading.Event()
    scores = streams.scores(10_000, 0.3, seed=3)[0].round(6).tolist()

    def record(number: int) -> str:
        if number % MALFORMED_EVERY == 0:
            return '{"stream": "s", "posteriors": [0.5]'
        at = streams.START_MS + number * 1000 // RATE
        return json.dumps({"stream": "s", "timestamp": at, "posteriors": scores[number % len(scores)]})

    def produce() -> None:
        began = time.monotonic()
        with path.open("a", buffering=1, encoding="utf-8") as file:
            while not done.wait(max(0.0, began + written[0] / RATE - time.monotonic())):
                file.write("".join(record(number) + "\n" for number in range(written[0], written[0] + BATCH)))
                file.flush()
                written[0] += BATCH

    producer = threading.Thread(target=produce)
    producer.start()
    try:
        yield written
    finally:
        done.set()
        producer.join()


def due(events: int) -> int:
    """How many windows must have been published when these have been read: all whose lateness has passed."""
    newest = streams.START_MS + (events - 1) * 1000 // RATE
    return (newest - 1000 - streams.START_MS) // (WINDOW_SECONDS * 1000)


@pytest.mark.chaos
@pytest.mark.timeout(SECONDS + 240)
def test_a_service_that_is_killed_for_hours_publishes_every_window_once_and_one_that_is_not_stays_as_small_as_it_was(
    tmp_path: Path,
) -> None:
    streams.reference().save(tmp_path / "s.ref")
    (tmp_path / "events.jsonl").touch()
    rng, memory = random.Random(4), list[tuple[float, float]]()
    alone, killed = Run(tmp_path, "alone"), Run(tmp_path, "killed")
    try:
        with steady_events(tmp_path / "events.jsonl") as written:
            began = time.monotonic()
            next_kill = began + rng.uniform(*KILL_AFTER)
            while (now := time.monotonic()) < began + SECONDS:
                time.sleep(0.2)
                memory.append((now - began, alone.resident_mb()))
                if now >= next_kill:
                    killed.kill()
                    next_kill = time.monotonic() + rng.uniform(*KILL_AFTER)
        expected = due(written[0])
        catching_up = time.monotonic() + 60
        while min(run.results().count(b"\n") for run in (alone, killed)) < expected:
            assert time.monotonic() < catching_up, alone.log() + killed.log()
            time.sleep(0.2)
        alone.stop()
        killed.stop()
    finally:
        for run in (alone, killed):
            run.process.kill()
            run.process.wait()

    assert killed.kills >= SECONDS / KILL_AFTER[1] - 1
    assert killed.results() == alone.results()
    rejected = [(tmp_path / f"{run.name}-rejected.jsonl").read_bytes() for run in (alone, killed)]
    assert rejected[0] == rejected[1]
    assert rejected[0].count(b"\n") == -(-written[0] // MALFORMED_EVERY)

    windows = [json.loads(line) for line in alone.results().splitlines()]
    assert len({window["window"] for window in windows}) == len(windows) == expected
    for number, window in enumerate(windows):
        first, last = (n * WINDOW_SECONDS * RATE for n in (number, number + 1))
        malformed = sum(n % MALFORMED_EVERY == 0 for n in range(first, last))
        assert window["events"]["used"] == last - first - malformed

    seconds, resident = np.array(memory)[len(memory) // 2 :].T
    growth = np.polyfit(seconds, resident, 1)[0] * (seconds[-1] - seconds[0])
    assert growth < MEMORY_GROWTH_MB, f"{growth:.1f} MB in {seconds[-1] - seconds[0]:.0f} s, to {resident[-1]:.0f} MB"
