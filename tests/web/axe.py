"""axe-core, which knows what makes pages hard to use for some: one version, from the npm registry, never vendored."""

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.web.browser import Browser

VERSION = "4.10.3"
SHA256 = "0f2b4d7dcdf7d1219df8d1959ad68e565f51d14c3f0d88bb71cd59abeb956292"
GRAVE = ("serious", "critical")


def script() -> str:
    """Its code; skips with the reason where it is neither kept from an earlier run nor to be had."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = base / "shiftwatch-tests" / f"axe-{VERSION}.min.js"
    if not kept.exists():
        with tarfile.open(fileobj=io.BytesIO(_package())) as package:
            code = package.extractfile("package/axe.min.js")
            assert code is not None
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(code.read())
    return kept.read_text(encoding="utf-8")


def _package() -> bytes:
    if shutil.which("npm") is None:
        pytest.skip(f"axe-core {VERSION} cannot be had: there is no npm")
    with TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", f"axe-core@{VERSION}", "--silent"], cwd=folder, capture_output=True, text=True, check=False
        )
        if packed.returncode:
            pytest.skip(f"axe-core {VERSION} cannot be had: {packed.stderr.strip()}")
        package = (Path(folder) / packed.stdout.strip()).read_bytes()
    assert hashlib.sha256(package).hexdigest() == SHA256
    return package


def findings(browser: Browser, code: str) -> list[dict[str, Any]]:
    """What it finds on the page that is open, of those that matter: the rule, and where."""
    browser.run(code)
    found = browser.wait_for("axe.run(document, {resultTypes: ['violations']})")
    return [
        {"rule": one["id"], "help": one["help"], "where": [node["target"] for node in one["nodes"]][:5]}
        for one in found["violations"]
        if one["impact"] in GRAVE
    ]
