"""What a figure depends on beside the code: processor, memory, versions. No names, no paths."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

SHOWN = ("numpy", "scipy", "scikit-learn", "river", "msgspec", "kafka-python", "confluent-kafka")


def facts() -> dict[str, str]:
    """By name, in words."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    found = {
        "processor": _after(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "BLAS": f"{blas['name']} {blas['version']}",
    }
    for package in SHOWN:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def load() -> str:
    """How busy the machine was in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"


def commit() -> str:
    """The commit of the code that runs, and whether the code differs from it; reports do not count."""
    short = _git("rev-parse", "--short=10", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)tests/bench/reports")
    return f"{short} with uncommitted changes" if changed else short


def changed(path: Path) -> str:
    """The commit that changed a file last."""
    return _git("log", "-1", "--format=%h", "--abbrev=10", "--", str(path.resolve()))


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=_root())
    return done.stdout.strip() or ("unknown" if done.returncode else "")


def _root() -> Path:
    return Path(__file__).parents[2]


def _after(path: Path, key: str) -> str:
    if not path.exists():
        return ""
    lines = (line.partition(":") for line in path.read_text(encoding="utf-8").splitlines())
    return next((text.strip() for name, _, text in lines if name.strip() == key), "")
