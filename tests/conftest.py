"""How tests are shared out to processes, and one thread for each of them: they run side by side, and cores are few."""

import os
import sys

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is imported, which reads it once

# Some images forbid compiled modules to be kept. Then each of some hundred processes that tests start would compile all
# of `monitor` anew, a third of the time that its start takes, and each run all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402 - it may import numpy
from xdist.scheduler import LoadFileScheduling  # noqa: E402

# How long an example takes depends on what else runs beside it; what the suite takes in all is looked at instead.
# In CI the examples are the same in every run: a change is not refused by another one's luck.
settings.register_profile("shiftwatch", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("shiftwatch")

WAITING = ("tests/kafka/", "tests/deploy/test_end_to_end.py", "tests/service/test_kills.py", "tests/web/")
"""What takes long and mostly waits, for a group to be balanced or an alert to be resolved, begins first."""


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores, as there are always some that wait."""
    return len(os.sched_getaffinity(0)) + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first, so that no process is left with them at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))


TOGETHER = ("tests/kafka/", "tests/web/")
"""Rooms that one process tests: a broker takes long to start, and streams to be lived through before they are shown."""


class _ByFile(LoadFileScheduling):
    """Files go to processes whole, and some rooms."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((room for room in TOGETHER if file.startswith(room)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> _ByFile:
    return _ByFile(config, log)
