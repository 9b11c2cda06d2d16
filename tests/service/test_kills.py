"""SIGKILL at random instants: what was killed and restarted publishes what an uninterrupted run publishes."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from connectors.synthetic import SyntheticOptions, write
from connectors.worlds import Period, World
from monitor.reference.classifier import Reference

EVENTS = 200_000
KILLS = 30 if os.environ.get("CI") else 6

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:{results}.jsonl"
dead_letters = "{results}-rejected.jsonl"

[streams.demo]
reference = "demo.ref"
window = {{ size = "2m", lateness = "2s" }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events, a reference, and one configuration for each way of running."""
    folder = tmp_path_factory.mktemp("kills")
    world = World(seed=5)
    periods = (
        Period("calm", EVENTS // 2, malformed=0.01),
        Period("moved", EVENTS // 2, priors=(0.2, 0.3, 0.5), malformed=0.01),
    )
    write(folder / "events.jsonl", SyntheticOptions(world=world, periods=periods, disorder=3_000_000))
    holdout = world.holdout(10_000)
    Reference.fit(
        holdout.posteriors,
        holdout.labels,
        holdout.features,
        classes=world.classes,
        feature_names=world.features,
        stream=world.stream,
    ).save(folder / "demo.ref")
    for results in ("whole", "killed"):
        (folder / f"{results}.toml").write_text(CONFIGURATION.format(results=results), encoding="utf-8")
    return folder


def started(folder: Path, config: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "monitor", "run", str(folder / config)], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_a_run_that_is_killed_again_and_again_publishes_what_an_uninterrupted_one_does(folder: Path) -> None:
    whole = started(folder, "whole.toml")
    _, errors = whole.communicate(timeout=240)
    assert whole.returncode == 0, errors.decode()[-2000:]

    rng, killed = random.Random(1), 0
    while killed < KILLS:
        process = started(folder, "killed.toml")
        time.sleep(rng.uniform(0.5, 2.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += 1
        if process.returncode == 0:
            break  # it came to the end before it could be killed
    last = started(folder, "killed.toml")
    _, errors = last.communicate(timeout=240)
    assert last.returncode == 0, errors.decode()[-2000:]

    for name in ("{}.jsonl", "{}-rejected.jsonl"):
        assert (folder / name.format("killed")).read_bytes() == (folder / name.format("whole")).read_bytes()
    # One more than the events fill: disorder reaches back before the start.
    assert (folder / "whole.jsonl").read_bytes().count(b"\n") == EVENTS // 2000 + 1
    assert killed > 2


def test_sigterm_ends_a_run_within_two_seconds_and_the_next_run_finishes_the_work(folder: Path) -> None:
    process = at_work(folder)
    asked = time.monotonic()
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert time.monotonic() - asked < 2
    last = started(folder, "killed.toml")
    _, errors = last.communicate(timeout=240)
    assert last.returncode == 0, errors.decode()[-2000:]
    assert (folder / "killed.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()


def children(process: subprocess.Popen[bytes]) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def at_work(folder: Path) -> subprocess.Popen[bytes]:
    """A run that has published something and has not come to its end."""
    for leftover in folder.glob("killed*.jsonl*"):
        leftover.unlink()
    process = started(folder, "killed.toml")
    results = folder / "killed.jsonl"
    while not results.exists() or not results.stat().st_size:
        assert process.poll() is None
        time.sleep(0.01)
    return process


def test_no_process_outlives_a_run_that_is_killed(folder: Path) -> None:
    process = at_work(folder)
    pids = children(process)
    assert pids
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 5
    while any(map(alive, pids)):
        assert time.monotonic() < deadline, "a worker outlives the service"
        time.sleep(0.02)


def test_a_run_whose_worker_is_killed_says_so_and_publishes_the_same(folder: Path) -> None:
    process = at_work(folder)
    # The worker is the one that was given windows; the other child only counts what multiprocessing has open.
    worker = max(children(process), key=lambda pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]))
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors.decode()[-2000:]
    assert b"ended by signal 9: starting another" in errors
    assert (folder / "killed.jsonl").read_bytes() == (folder / "whole.jsonl").read_bytes()


def test_an_output_that_cannot_be_written_makes_the_exit_code_non_zero(folder: Path) -> None:
    config = folder / "nowhere.toml"
    config.write_text(CONFIGURATION.format(results="no/such/folder/results"), encoding="utf-8")
    process = started(folder, "nowhere.toml")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"no/such/folder/results.jsonl" in errors
