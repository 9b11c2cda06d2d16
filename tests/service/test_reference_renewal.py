"""Another reference file while the service runs: each window is compared with one of the two, and published once."""

import json
import random
import shutil
import signal
import time
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from connectors.memory import MemoryLog, MemorySink, MemorySource
from connectors.synthetic import SyntheticOptions, write
from connectors.worlds import Period, World
from monitor.commands.references import References
from monitor.commands.streams import opened, watched_now
from monitor.limits import RENEWAL_SECONDS
from monitor.observers import History, facts
from monitor.reference.classifier import Reference
from monitor.service import Opened, Watched
from monitor.settings import load
from monitor.windows import TimePlan
from tests.marks import in_chaos
from tests.processes import Process, finished, started, wait_until

EVENTS, WINDOW = 20_000, 1_000

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
follow = true

[sink]
url = "jsonl:results.jsonl"

[pace]
idle = "1h"

[streams.demo]
reference = "demo.ref"
window = { size = "1m", lateness = "2s" }
"""


def fitted(world: World, rows: int) -> Reference:
    holdout = world.holdout(rows)
    return Reference.fit(
        holdout.posteriors,
        holdout.labels,
        holdout.features,
        classes=world.classes,
        feature_names=world.features,
        stream=world.stream,
    )


def told(folder: Path) -> list[dict[str, Any]]:
    path = folder / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def windows(folder: Path) -> list[dict[str, Any]]:
    return [message for message in told(folder) if "verdict" in message]


def reached(folder: Path, process: Process, count: int) -> None:
    wait_until(lambda: len(windows(folder)) >= count or process.poll() is not None, f"{count} windows", 60)
    assert process.poll() is None, process.communicate()[1].decode()[-2_000:]


@pytest.mark.parametrize("kills", [0, in_chaos(8)])
def test_another_reference_takes_effect_between_two_windows_and_each_window_is_published_once(
    tmp_path: Path, kills: int
) -> None:
    world = World(seed=5)
    write(tmp_path / "all.jsonl", SyntheticOptions(world=world, periods=(Period("calm", EVENTS),)))
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)
    before, after = fitted(world, 3_000), fitted(world, 3_500)
    before.save(tmp_path / "demo.ref")
    after.save(tmp_path / "next.ref")
    (tmp_path / "run.toml").write_text(CONFIGURATION)
    events = tmp_path / "events.jsonl"
    # In the middle of a window.
    middle = EVENTS // 2 + WINDOW // 2
    events.write_bytes(b"".join(lines[:middle]))
    process = started(tmp_path, "run.toml")
    reached(tmp_path, process, EVENTS // 2 // WINDOW - 1)
    shutil.copy(tmp_path / "next.ref", tmp_path / "demo.ref.new")
    (tmp_path / "demo.ref.new").replace(tmp_path / "demo.ref")
    process.send_signal(signal.SIGHUP)
    rng = random.Random(3)
    for _ in range(kills):
        time.sleep(rng.uniform(0.0, 2.0))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        process = started(tmp_path, "run.toml")
    with events.open("ab") as file:
        file.writelines(lines[middle:])
    reached(tmp_path, process, EVENTS // WINDOW - 2)
    process.terminate()
    said = finished(process).decode()
    found = windows(tmp_path)
    assert len({result["window"] for result in found}) == len(found)
    versions = [(version, len(list(same))) for version, same in groupby(r["versions"]["reference"] for r in found)]
    assert [version for version, _ in versions] == [before.version, after.version]
    assert versions[1][1] >= EVENTS // 2 // WINDOW - 1
    # The window that was open when the reference changed is whole.
    assert {result["events"]["used"] for result in found[1:]} == {WINDOW}
    named = [message for message in told(tmp_path) if message.get("schema") == "shiftwatch.continuity.v1"]
    assert [(message["before"], message["now"]) for message in named] == [(before.version, after.version)]
    if not kills:
        assert f"demo: reference {after.version} takes the place of {before.version}" in said


def test_a_file_that_is_no_reference_leaves_the_one_before_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(seed=5)
    (tmp_path / "events.jsonl").touch()
    before, after = fitted(world, 500), fitted(world, 600)
    before.save(tmp_path / "demo.ref")
    (tmp_path / "run.toml").write_text(CONFIGURATION)
    config = load(tmp_path / "run.toml")
    _, _, watched = opened(config, tmp_path)
    now = [0.0]
    references = References(watched, lambda: watched_now(config), [tmp_path / "demo.ref"], lambda: now[0])
    (tmp_path / "demo.ref").write_bytes(b"half of it")
    assert not references.due()  # it looks once in a while,
    now[0] += RENEWAL_SECONDS + 1
    assert not references.due()
    assert "a reference cannot be renewed" in caplog.text
    assert not references.taken()
    after.save(tmp_path / "demo.ref")
    assert not references.due()
    references.ask()  # or when it is asked
    assert references.due()
    assert references.taken()
    assert references.watched["demo"].reference.version == after.version
    assert not references.due()
    after.save(tmp_path / "demo.ref")  # the same once more
    references.ask()
    assert not references.due()


def test_what_is_seen_from_outside_names_the_reference_in_force(tmp_path: Path) -> None:
    world = World(seed=5)
    before, after = (Watched(fitted(world, rows), TimePlan(60_000_000, 60_000_000, 0, 1_000)) for rows in (500, 600))
    history = History({"demo": facts("demo", before)})
    history(Opened(MemorySource({}), MemorySink(MemoryLog()), {"demo": after}))
    assert history.snapshot.facts["demo"].reference == after.reference.version
