"""SIGKILL at random instants: no kill changes what is known over windows, nor what is seen of it from outside."""

import json
import random
import re
import shutil
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from monitor.observers.metric_catalogue import CATALOGUE
from tests.labels.streams import told
from tests.marks import in_chaos
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

SEEN = (
    "/",
    "/metrics",
    "/api/streams",
    "/api/streams/s",
    "/api/streams/s/windows?limit=1000",
    "/api/streams/s/windows?segment=country%3DBE",
    "/api/streams/s/result",
    "/api/streams/s/recalibration",
    "/api/streams/s/outcomes?limit=1000",
)

CLOCK = re.compile(r"of \d\d:\d\d:\d\d UTC|<dl.*</dl>", re.DOTALL)
"""When a page was rendered, and how the process stands."""

OF_THE_PROCESS = re.compile(
    r"shiftwatch_(process_\w+|\w+_created|(start|last_\w+_assessed|last_turn|last_commit|watching_since)_timestamp_seconds"
    r"|watermark_delay_seconds)"
)
"""Metrics that say when this process did what."""


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


def shown(folder: Path, kills: Mapping[int, int]) -> dict[str, str]:
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
    wait_until(lambda: settled(seen(f"http://127.0.0.1:{port}/metrics")), "the commit of the last window")
    found = {path: seen(f"http://127.0.0.1:{port}{path}") for path in SEEN}
    process.terminate()
    process.communicate(timeout=30)
    return found


def published_all(results: Path, process: Process) -> bool:
    assert process.poll() is None, process.communicate()
    return results.exists() and results.read_bytes().count(b"shiftwatch.outcome.v1") >= EACH * len(MIXES) / WINDOW


def settled(metrics: str) -> bool:
    """Whether nothing is under way any more."""
    return all(
        f"\nshiftwatch_{name} 0.0\n" in metrics for name in ("assessing_windows", 'labels_waiting_windows{stream="s"}')
    )


def seen(address: str) -> str:
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - our own
        return str(answer.read().decode())


def lasting(metrics: str) -> dict[str, str]:
    """Metrics but counters and moments of this process."""
    counters = {name for spec in CATALOGUE if spec.kind in ("counter", "histogram") for name in spec.series}
    rows = (line.rpartition(" ") for line in metrics.splitlines() if not line.startswith("#"))
    return {
        name: value
        for name, _, value in rows
        if name.partition("{")[0] not in counters and not OF_THE_PROCESS.match(name.partition("{")[0])
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kills")
    reference().save(folder / "s.ref")
    return folder


@pytest.fixture(scope="module")
def whole(folder: Path) -> dict[str, str]:
    """What an uninterrupted run shows."""
    return shown(folder / "whole", {})


FEW = {5: 1, 11: 1}
MANY = dict.fromkeys(range(1, PARTS), 2)


@pytest.mark.parametrize("kills", [FEW, in_chaos(MANY)], ids=["few", "many"])
def test_page_metrics_and_api_are_those_of_an_uninterrupted_run(
    folder: Path, whole: dict[str, str], kills: Mapping[int, int]
) -> None:
    shutil.rmtree(folder / "killed", ignore_errors=True)
    killed = shown(folder / "killed", kills)
    for path in SEEN:
        if path == "/metrics":
            assert lasting(killed[path]) == lasting(whole[path])
        else:
            assert CLOCK.sub("", killed[path]) == CLOCK.sub("", whole[path]), path
    for channel in ("results", "recalibrations", "alarms"):
        again, once = ((folder / name / f"{channel}.jsonl").read_bytes() for name in ("killed", "whole"))
        assert again == once
    # It is a story worth telling: alarms that come and go, changes of level, and estimates that labels put in doubt.
    assert '"trusted":false' in whole["/api/streams/s/outcomes?limit=1000"]
    assert "labels-disagree" in (folder / "whole/recalibrations.jsonl").read_text(encoding="utf-8")
    assert json.loads(whole["/api/streams/s"])["changes"]
    assert b'"resolved"' in (folder / "whole/alarms.jsonl").read_bytes()
