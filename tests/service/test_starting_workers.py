"""Workers that are still starting when the service is killed: none of them stays."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.processes import alive, children, wait_until

ROOT = Path(__file__).parents[2]
WORKERS = 12
GONE = 10.0
"""Seconds after the kill, on a machine that has a dozen interpreters to start; what they load takes a minute."""

# The workers are begun one after another, so that the kill meets each at another instant of its start.
PARENT = """
import random, time
from monitor.service.workers import Workers

class Slow:
    def __reduce__(self):
        return time.sleep, (60,)

workers = []
for _ in range({count}):
    workers.append(Workers({{"s": Slow()}}, 1))
    print(flush=True)
    time.sleep(random.uniform(0, 0.1))
time.sleep(60)
"""


@pytest.mark.parametrize("seed", range(3))
def test_no_worker_outlives_a_service_that_is_killed_while_it_starts(seed: int) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT.format(count=WORKERS)], stdout=subprocess.PIPE, cwd=ROOT)
    assert parent.stdout is not None
    parent.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.0, 1.5))
    started = children(parent)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert started
    wait_until(lambda: not any(map(alive, started)), f"{started} to end", GONE)
