"""SIGKILL at random instants: what was killed and restarted publishes what an uninterrupted run publishes."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from connectors.synthetic import SyntheticOptions, write
from connectors.worlds import Period, World
from monitor.reference.classifier import Reference
from tests.marks import in_chaos
from tests.processes import Process, alive, children, finished, killed_again_and_again, size, started, wait_until

EVENTS, MANY = 80_000, 200_000
OUTPUTS = (".jsonl", "-rejected.jsonl")

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:{results}.jsonl"
dead_letters = "{results}-rejected.jsonl"

[streams.demo]
reference = "demo.ref"
window = {{ size = "1m", lateness = "2s" }}
"""


@pytest.fixture(scope="module")
def events(request: pytest.FixtureRequest) -> int:
    """How many; more for many kills."""
    return getattr(request, "param", EVENTS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, events: int) -> Path:
    """Events, a reference, and one configuration for each way of running."""
    folder = tmp_path_factory.mktemp("kills")
    world = World(seed=5)
    periods = (
        Period("calm", events // 2, malformed=0.01),
        Period("moved", events // 2, priors=(0.2, 0.3, 0.5), malformed=0.01),
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


@pytest.fixture(scope="module")
def whole(folder: Path) -> Mapping[str, bytes]:
    """What an uninterrupted run publishes."""
    finished(started(folder, "whole.toml"))
    return {name: (folder / f"whole{name}").read_bytes() for name in OUTPUTS}


@pytest.mark.parametrize(
    ("events", "kills", "pause"),
    [(EVENTS, 2, (0.0, 0.1)), in_chaos(MANY, 30, (0.5, 2.5))],
    indirect=["events"],
    ids=["few", "many"],
)
def test_a_run_that_is_killed_again_and_again_publishes_what_an_uninterrupted_one_does(
    folder: Path, whole: Mapping[str, bytes], events: int, kills: int, pause: tuple[float, float]
) -> None:
    clean(folder)
    writes = folder / "killed.jsonl" if kills == 2 else None
    assert killed_again_and_again(lambda: started(folder, "killed.toml"), kills, pause, writes) > 1
    finished(started(folder, "killed.toml"))
    assert {name: (folder / f"killed{name}").read_bytes() for name in OUTPUTS} == whole
    # One more than the events fill: disorder reaches back before the start.
    assert whole[".jsonl"].count(b"\n") == events // 1_000 + 1


def test_sigterm_ends_a_run_within_two_seconds_and_the_next_run_finishes_the_work(
    folder: Path, whole: Mapping[str, bytes]
) -> None:
    process = at_work(folder)
    asked = time.monotonic()
    process.terminate()
    finished(process, 30)
    assert time.monotonic() - asked < 2
    finished(started(folder, "killed.toml"))
    assert (folder / "killed.jsonl").read_bytes() == whole[".jsonl"]


def clean(folder: Path) -> None:
    for leftover in folder.glob("killed*.jsonl*"):
        leftover.unlink()


def at_work(folder: Path) -> Process:
    """A run that has published something and has not come to its end."""
    clean(folder)
    process = started(folder, "killed.toml")
    wait_until(lambda: size(folder / "killed.jsonl") > 0 or process.poll() is not None, "a result")
    assert process.poll() is None
    return process


def test_no_process_outlives_a_run_that_is_killed(folder: Path) -> None:
    process = at_work(folder)
    pids = children(process)
    assert pids
    process.kill()
    process.communicate()
    wait_until(lambda: not any(map(alive, pids)), "no worker outlives the service", 5)


def test_a_run_whose_worker_is_killed_says_so_and_publishes_the_same(folder: Path, whole: Mapping[str, bytes]) -> None:
    process = at_work(folder)
    # The worker is the one that was given windows; the other child only counts what multiprocessing has open.
    worker = max(children(process), key=lambda pid: int(Path(f"/proc/{pid}/statm").read_text().split()[1]))
    os.kill(worker, signal.SIGKILL)
    assert b"ended by signal 9: starting another" in finished(process)
    assert (folder / "killed.jsonl").read_bytes() == whole[".jsonl"]


def test_an_output_that_cannot_be_written_makes_the_exit_code_non_zero(folder: Path) -> None:
    config = folder / "nowhere.toml"
    config.write_text(CONFIGURATION.format(results="no/such/folder/results"), encoding="utf-8")
    process = started(folder, "nowhere.toml")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"no/such/folder/results.jsonl" in errors
