"""A log that rotates under load, followed by processes that are killed again and again.

What they publish is what one run over the whole log publishes, byte for byte: no result shows where a file was cut off.
Where a file is replaced while nobody has it open its rest is nowhere: then windows say so, and it is counted.
"""

import json
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from connectors.synthetic import SyntheticOptions, write
from connectors.worlds import Period, World
from monitor.reference.classifier import Reference
from tests.processes import Process, finished, started, wait_until

EVENTS, PIECES = 60_000, 60
EVERY = 2
"""Pieces between two rotations."""
SECONDS, KILLS = 15, 4

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
{follow}

[sink]
url = "jsonl:{results}.jsonl"
dead_letters = "{results}-rejected.jsonl"

[pace]
idle = "1h"

[streams.demo]
reference = "demo.ref"
window = {{ size = "2m", lateness = "2s" }}
"""


def rename(path: Path, number: int) -> None:
    path.rename(path.with_name(f"{path.name}.{1_000 + number}"))
    path.touch()


def copy_and_truncate(path: Path, number: int) -> None:
    shutil.copy(path, path.with_name(f"{path.name}.{1_000 + number}"))
    os.truncate(path, 0)


def replace(path: Path, number: int) -> None:
    new = path.with_name(f".{number}")
    new.touch()
    new.replace(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events, a reference, and what one run over all of them publishes."""
    folder = tmp_path_factory.mktemp("rotation")
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
    (folder / "whole.toml").write_text(CONFIGURATION.format(follow="", results="whole"))
    finished(started(folder, "whole.toml"))
    return folder


@pytest.mark.chaos
@pytest.mark.parametrize("rotate", [rename, copy_and_truncate, replace])
def test_each_event_of_a_log_that_rotates_is_in_one_window_or_the_gap_is_said_and_counted(
    folder: Path, tmp_path: Path, rotate: Callable[[Path, int], None]
) -> None:
    shutil.copy(folder / "demo.ref", tmp_path)
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    log, length = tmp_path / "events.jsonl", len(lines) // PIECES + 1
    log.write_bytes(b"".join(lines[:length]))
    (tmp_path / "killed.toml").write_text(CONFIGURATION.format(follow="follow = true", results="killed"))
    pieces = [lines[first : first + length] for first in range(length, len(lines), length)]
    writer = threading.Thread(target=written, args=(pieces, log, rotate))
    process = started(tmp_path, "killed.toml")
    said = b""
    # What was rotated before the first commit is history.
    wait_until(lambda: b'"mark"' in committed(tmp_path), "a first commit", 120)
    writer.start()
    rng = random.Random(1)
    for _ in range(KILLS):
        before = committed(tmp_path)
        wait_until(lambda: committed(tmp_path) != before or not writer.is_alive(), "a commit")  # noqa: B023
        time.sleep(rng.uniform(0.0, 1.0))
        said += killed(process)
        process = started(tmp_path, "killed.toml")
    writer.join()
    expected = results(folder / "whole.jsonl")
    # The last window is still open: nothing came after it.
    last = list(expected)[-2]
    wait_until(lambda: last in results(tmp_path / "killed.jsonl"), "the last window", 120)
    process.terminate()
    said += finished(process)
    found = results(tmp_path / "killed.jsonl")
    if rotate is not replace:
        assert b"is nowhere" not in said
        assert found == {key: expected[key] for key in list(expected)[:-1]}
        rejected = (tmp_path / "killed-rejected.jsonl").read_bytes()
        assert (folder / "whole-rejected.jsonl").read_bytes().startswith(rejected)
        return
    # What is known over windows remembers the gaps; what is told of a whole window by itself does not.
    told, truth = ({key: json.loads(line) for key, line in each.items()} for each in (found, expected))
    whole = [key for key, result in told.items() if result["complete"]]
    for part in ("events", "estimates"):
        assert {key: told[key][part] for key in whole} == {key: truth[key][part] for key in whole}
    assert (len(whole) < len(expected) - 1) == (b"is nowhere" in said)


def written(pieces: Sequence[list[bytes]], log: Path, rotate: Callable[[Path, int], None]) -> None:
    """One piece after the other, each under the name that the log has then."""
    for number, piece in enumerate(pieces):
        with log.open("ab") as file:
            file.writelines(piece)
        time.sleep(SECONDS / PIECES)
        if number % EVERY == EVERY - 1 and number < len(pieces) - 4:  # what comes last is there to stay
            rotate(log, number)


def committed(folder: Path) -> bytes:
    path = folder / "killed.jsonl.checkpoint"
    return path.read_bytes() if path.exists() else b""


def killed(process: Process) -> bytes:
    process.kill()
    return process.communicate()[1]


def results(path: Path) -> Mapping[str, str]:
    """By window, each once."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    windows = {json.loads(line)["window"]: line for line in lines if line.endswith("\n")}
    assert len(windows) == sum(line.endswith("\n") for line in lines)
    return windows
