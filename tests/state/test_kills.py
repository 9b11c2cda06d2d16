"""SIGKILL at random instants: no kill changes what is known over windows, nor what is seen of it from outside."""

import json
import random
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

from tests.labels.streams import told
from tests.marks import in_chaos
from tests.outside import Shown, answer, assert_the_same, shown
from tests.processes import Process, free_port, started, wait_until
from tests.service.streams import SECOND_MS, START_MS, reference, scores

MIXES = (0.3, 0.7, 0.3, 0.45)
"""The class mix moves, comes back, and moves a little."""
EACH = 2_400
WINDOW = 200
"""Seconds, and as many events."""
PARTS = 16
"""In which the events come."""

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
follow = true

[sink]
url = "jsonl:results.jsonl"
recalibrations = "recalibrations.jsonl"
alarms = "alarms.jsonl"

[alarms]
false = "1 per 1d"

[log]
level = "warning"  # nobody reads what it says until it ends

[server]
port = {port}
windows = 30

[streams.s]
reference = "../s.ref"
window = {{ size = "{window}s", lateness = "5s" }}
segments = ["country"]
changes = "page-hinkley"
labels = {{ wait = "10m", store = "labels.sqlite" }}
"""


def events() -> list[bytes]:
    """Events, and labels of half of them; some of these are wrong for a while, so that the estimates are doubted."""
    rng = np.random.default_rng(3)
    lines: list[bytes] = []
    for part, positives in enumerate(MIXES):
        posteriors, labels = scores(EACH, positives, seed=part)
        for number, (row, label) in enumerate(zip(posteriors.tolist(), labels.tolist(), strict=True)):
            when, name = START_MS + (EACH * part + number) * SECOND_MS, f"{part}-{number}"
            country = {"country": "BE" if rng.random() < 0.6 else "FR"}
            event = {"stream": "s", "id": name, "timestamp": when, "posteriors": row, "segment": country}
            lines.append(json.dumps(event).encode())
            wrong = part == 1 and rng.random() < 0.5
            if rng.random() < 0.7:
                lines.append(told(name, ["no", "yes"][1 - label if wrong else label], when))
    after = START_MS + (EACH * len(MIXES) + 900) * SECOND_MS
    end = {"stream": "s", "id": "end", "timestamp": after, "posteriors": [0.5, 0.5]}
    return [*lines, json.dumps(end).encode()]


def watched(folder: Path, kills: Mapping[int, int]) -> Shown:
    """What a run shows that has published all; `kills` says how often it was killed with which part of the events."""
    port, rng = free_port(), random.Random(5)
    folder.mkdir()
    (folder / "watch.toml").write_text(CONFIGURATION.format(port=port, window=WINDOW), encoding="utf-8")
    published, lines = folder / "results.jsonl", events()
    size = -(-len(lines) // PARTS)
    source = folder / "events.jsonl"
    source.touch()
    process = started(folder, "watch.toml")
    for part in range(PARTS):
        with source.open("ab") as file:
            file.writelines(line + b"\n" for line in lines[part * size : (part + 1) * size])
        for _ in range(kills.get(part, 0)):
            time.sleep(rng.uniform(0.3, 2.5))
            process.kill()
            process.communicate()
            process = started(folder, "watch.toml")
    wait_until(lambda: published_all(published, process), "the outcome of the last window", 120)
    address = f"http://127.0.0.1:{port}"
    wait_until(lambda: settled(address), "the commit of the last window")
    found = shown(address, ["s"], ["country=BE"])
    process.terminate()
    process.communicate(timeout=30)
    return found


def published_all(results: Path, process: Process) -> bool:
    assert process.poll() is None, process.communicate()
    of_the_whole = b'"schema":"shiftwatch.outcome.v1","stream":"s","segment":"",'
    return results.exists() and results.read_bytes().count(of_the_whole) >= EACH * len(MIXES) / WINDOW


def settled(address: str) -> bool:
    """Whether nothing is under way any more; what was killed last may still be starting."""
    try:
        metrics = answer(f"{address}/metrics")
    except URLError:
        return False
    return all(
        f"\nshiftwatch_{name} 0.0\n" in metrics for name in ("assessing_windows", 'labels_waiting_windows{stream="s"}')
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    reference().save(folder / "s.ref")
    return folder


@pytest.fixture(scope="module")
def whole(folder: Path) -> Shown:
    """What an uninterrupted run shows."""
    return watched(folder / "whole", {})


FEW = {5: 1, 11: 1}
MANY = dict.fromkeys(range(1, PARTS), 2)


@pytest.mark.parametrize("kills", [FEW, in_chaos(MANY)], ids=["few", "many"])
def test_page_metrics_and_api_are_those_of_an_uninterrupted_run(
    folder: Path, whole: Shown, kills: Mapping[int, int]
) -> None:
    shutil.rmtree(folder / "killed", ignore_errors=True)
    assert_the_same(watched(folder / "killed", kills), whole)
    for channel in ("results", "recalibrations", "alarms"):
        again, once = ((folder / name / f"{channel}.jsonl").read_bytes() for name in ("killed", "whole"))
        assert again == once
    # It is a story worth telling: alarms that come and go, changes of level, and estimates that labels put in doubt.
    assert '"trusted":false' in whole["/api/streams/s/outcomes?limit=1000"]
    assert "labels-disagree" in (folder / "whole/recalibrations.jsonl").read_text(encoding="utf-8")
    assert json.loads(whole["/api/streams/s"])["changes"]
    assert b'"resolved"' in (folder / "whole/alarms.jsonl").read_bytes()
