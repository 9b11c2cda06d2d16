"""What a process and those it started take: resident memory, what they share in equal parts; descriptors; threads."""

from dataclasses import dataclass
from pathlib import Path

from tests.processes import Process, children


@dataclass(frozen=True)
class Footprint:
    """Of the loop and of the processes beside it."""

    loop_mb: float
    workers_mb: float
    descriptors: int
    threads: int

    @classmethod
    def of(cls, process: Process) -> "Footprint":
        """Raises OSError where the process has just ended."""
        family = [process.pid, *children(process)]
        loop, *workers = map(_resident_mb, family)
        return cls(loop, sum(workers), sum(map(_descriptors, family)), sum(map(_threads, family)))


def _resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1e3


def _descriptors(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/fd").iterdir()])


def _threads(pid: int) -> int:
    return len([*Path(f"/proc/{pid}/task").iterdir()])
