"""Events that are posted to processes which are killed again and again.

A sender sends again, under the same key, what it was not answered with 200. What is published then is what one run over
a file of all events publishes, byte for byte: nothing that was acknowledged is lost, and nothing counts twice.
"""

import json
import random
import time
from pathlib import Path
from threading import Thread

import httpx
import pytest

from connectors.synthetic import SyntheticOptions, write
from connectors.worlds import Period, World
from monitor.reference.classifier import Reference
from tests.processes import Process, finished, free_port, started, wait_until

EVENTS, TOGETHER = 30_000, 100
KILLS = 6

CONFIGURATION = """
[source]
{source}

[sink]
url = "jsonl:{results}.jsonl"
dead_letters = "{results}-rejected.jsonl"

[pace]
idle = "1h"
commit = "200ms"

[streams.demo]
reference = "demo.ref"
window = {{ size = "2m", lateness = "2s" }}
"""


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_what_was_acknowledged_counts_once_whatever_kills_the_process(tmp_path: Path) -> None:
    lines = prepared(tmp_path)
    port = free_port()
    said = f'url = "http://127.0.0.1:{port}/events"\nmax_log_bytes = 4_000_000\nmax_body_bytes = 200_000'
    (tmp_path / "posted.toml").write_text(CONFIGURATION.format(source=said, results="posted"))
    process = started(tmp_path, "posted.toml")
    sender = Sender(f"http://127.0.0.1:{port}/events", lines)
    sender.start()
    rng = random.Random(3)
    kills = 0
    while kills < KILLS:
        before = sender.acknowledged
        wait_until(lambda: sender.acknowledged > before, "an answer", 120)  # noqa: B023
        time.sleep(rng.uniform(0.0, 0.15))
        assert process.poll() is None, process.communicate()[1]
        process.kill()
        process.communicate()
        kills += 1
        process = started(tmp_path, "posted.toml")
    assert sender.is_alive(), "all was posted before the last kill: too few events"
    sender.held_up = 0.0
    sender.join()
    whole = (tmp_path / "whole.jsonl").read_bytes().splitlines()
    # The last window is still open: nothing came after it.
    wait_until(lambda: count(tmp_path / "posted.jsonl") >= len(whole) - 1, "the last window", 120)
    end(process)
    assert (tmp_path / "posted.jsonl").read_bytes().splitlines() == whole[:-1]
    assert rejected(tmp_path / "posted-rejected.jsonl") == rejected(tmp_path / "whole-rejected.jsonl")
    assert sender.again > 0


class Sender(Thread):
    """Posts all lines in their order, each post until it is answered with 200."""

    def __init__(self, url: str, lines: list[bytes]) -> None:
        super().__init__(daemon=True)
        self.url, self.lines = url, lines
        self.acknowledged = self.again = 0
        self.held_up = 0.05
        """Seconds after each post, so that there are some left for the last kill."""

    def run(self) -> None:
        with httpx.Client(timeout=10) as client:
            for first in range(0, len(self.lines), TOGETHER):
                body = b"".join(self.lines[first : first + TOGETHER])
                headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"post-{first}"}
                while not self._posted(client, body, headers):
                    self.again += 1
                    time.sleep(0.01)
                self.acknowledged += 1
                time.sleep(self.held_up)

    def _posted(self, client: httpx.Client, body: bytes, headers: dict[str, str]) -> bool:
        try:
            answer = client.post(self.url, content=body, headers=headers)
        except httpx.HTTPError:  # nobody there, or killed in the middle
            return False
        assert answer.status_code in (200, 429), answer.text
        return answer.status_code == 200


def prepared(folder: Path) -> list[bytes]:
    """Events, a reference, and what one run over a file of all of them publishes."""
    world = World(seed=5)
    periods = (Period("calm", EVENTS // 2, malformed=0.01), Period("moved", EVENTS // 2, priors=(0.2, 0.3, 0.5)))
    write(folder / "events.jsonl", SyntheticOptions(world=world, periods=periods))
    holdout = world.holdout(5_000)
    Reference.fit(
        holdout.posteriors,
        holdout.labels,
        holdout.features,
        classes=world.classes,
        feature_names=world.features,
        stream=world.stream,
    ).save(folder / "demo.ref")
    (folder / "whole.toml").write_text(CONFIGURATION.format(source='url = "jsonl:events.jsonl"', results="whole"))
    finished(started(folder, "whole.toml"))
    return (folder / "events.jsonl").read_bytes().splitlines(keepends=True)


def rejected(path: Path) -> list[tuple[str, str]]:
    """Which records, and why; where they stood is another place in a log."""
    letters = map(json.loads, path.read_bytes().splitlines())
    return [(letter["reason"], letter["record"]) for letter in letters]


def count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def end(process: Process) -> None:
    process.terminate()
    finished(process)
