"""The lock files hold what pyproject.toml asks for, with hashes, and the container file installs from them."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.deploy.parts import DEPLOY

PROJECT = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
RUN = PROJECT["project"]["dependencies"]
LOCKED = {
    "run.txt": [*RUN, *EXTRAS["fast"]],
    "build.txt": PROJECT["build-system"]["requires"],
    "ci.txt": [*RUN, *EXTRAS["test"], *EXTRAS["check"], *EXTRAS["deploy"]],
    "release.txt": EXTRAS["release"],
}
"""What each file was made for."""


def entries(path: Path) -> list[Requirement]:
    """What it locks; each has hashes."""
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all("--hash=sha256:" in line for line in lines), path
    return [Requirement(line.partition(" --hash")[0]) for line in lines]


@pytest.mark.parametrize("file", LOCKED)
def test_a_lock_file_has_for_everything_a_version_that_is_allowed(file: str) -> None:
    locked: dict[str, list[Requirement]] = {}
    for entry in entries(DEPLOY / "locks" / file):
        locked.setdefault(canonicalize_name(entry.name), []).append(entry)
    for asked in map(Requirement, LOCKED[file]):
        assert canonicalize_name(asked.name) in locked, f"{asked}: run .ci/lock"
        for entry in locked[canonicalize_name(asked.name)]:
            (version,) = entry.specifier
            assert asked.specifier.contains(version.version), f"{entry} is not {asked}: run .ci/lock"


def test_lock_files_agree_with_each_other() -> None:
    found: dict[str, set[str]] = {}
    for file in LOCKED:
        for entry in entries(DEPLOY / "locks" / file):
            found.setdefault(f"{entry.name} {entry.marker}", set()).add(str(entry.specifier))
    assert {name: versions for name, versions in found.items() if len(versions) > 1} == {}


def test_the_container_installs_by_lock_files_alone() -> None:
    text = (DEPLOY / "container" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    installs = re.findall(r"pip install ([^&\n]*)", text)
    assert len(installs) == 3
    for arguments in installs:
        assert "--require-hashes" in arguments or {"--no-index", "--no-deps"} <= {*arguments.split()}
    for file in re.findall(r"-r locks/(\S+)", text):
        assert f"deploy/locks/{file}" in text
