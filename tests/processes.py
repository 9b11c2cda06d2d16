"""`shiftwatch run` in processes of their own, SIGKILL at random instants of their work, and ports for servers."""

import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

Process = subprocess.Popen[bytes]


def started(folder: Path, config: str) -> Process:
    return subprocess.Popen(
        [sys.executable, "-m", "monitor", "run", str(folder / config)], stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )


def finished(process: Process, seconds: float = 240.0) -> bytes:
    """Wait for its end, which has to be a good one; returns what it said."""
    _, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors.decode()[-2000:]
    return errors


def killed_again_and_again(
    start: Callable[[], Process], kills: int, pause: tuple[float, float], writes: Path | None = None
) -> int:
    """Start, wait for a random pause in seconds, and kill; so many times, or until one comes to its end before.

    The pause begins once the process has written to a file, if one is given. Returns how many were killed.
    """
    rng = random.Random(1)
    for killed in range(kills):
        before = size(writes)
        process = start()
        if writes is not None:
            wait_until(lambda: size(writes) > before or process.poll() is not None, f"{writes} grows")  # noqa: B023
        time.sleep(rng.uniform(*pause))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:
            return killed
    return kills


def size(path: Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0


def wait_until(reached: Callable[[], bool], what: str, seconds: float = 60.0, pause: float = 0.01) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(pause)


def children(process: Process) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


PORTS, BROKERS = range(20_000, 29_000), range(29_000, 32_000)
"""Of servers, and of brokers: what kafka-python leaves open is told from what we do by whom it is connected to."""


def free_ports(count: int, among: range = PORTS) -> list[int]:
    """Ports that nobody listens on, and that no connection is given until they are used.

    They lie below those that the system gives to connections; drawn at random, they differ between processes that test
    side by side.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.choice(among)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found += [port] if port not in found else []
    return found


def free_port() -> int:
    return free_ports(1)[0]
