"""The rooms import in one direction, and the tool that says so notices when they do not."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="pip install '.[check]'")

ROOT = Path(__file__).parent.parent
NOT_IN_LAYERS = {"__init__", "__main__"}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """The contracts of pyproject.toml, checked on the packages that stand beside it."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Both packages and their contracts, to be spoiled."""
    for package in ("monitor", "connectors"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_is_kept() -> None:
    said = lint(ROOT)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("monitor/priors/simplex.py", "import monitor.service.loop", "The rooms import in one direction"),
        ("monitor/arrays.py", "import monitor.ports", "The rooms import in one direction"),
        ("monitor/shifts/ks.py", "import time", "The core sees no clock"),
        ("monitor/windows/panes.py", "import os", "The core sees no clock"),
        ("monitor/limits.py", "import pathlib", "The core sees no clock"),  # through whoever imports the limits
        ("monitor/labels/values.py", "import sqlite3", "Publishing and outcomes see no database"),
        ("monitor/service/loop.py", "import connectors.memory", "The monitor imports no connector"),
        ("connectors/jsonl.py", "import monitor.recalibration", "Connectors import the ports"),
    ],
)
def test_an_import_in_the_wrong_direction_breaks_its_contract(
    copy: Path, module: str, line: str, contract: str
) -> None:
    spoiled = copy / module
    spoiled.write_text(spoiled.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    said = lint(copy)
    assert said.returncode == 1
    broken = [row for row in said.stdout.splitlines() if " BROKEN" in row]
    assert any(contract in row for row in broken), said.stdout


def test_every_room_has_its_layer() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    layered = {name.removeprefix("monitor.") for line in layers for name in line.split(" : ")}
    rooms = {
        path.stem for path in (ROOT / "monitor").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert rooms - layered == NOT_IN_LAYERS
