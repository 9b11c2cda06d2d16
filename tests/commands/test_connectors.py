"""One scheme, one module: the monitor's own connectors and whatever else is installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from connectors.jsonl import JsonlSource
from connectors.resultfiles import ResultFiles, StandardOutput
from connectors.synthetic import SyntheticSource
from monitor import Reference
from monitor.commands.connectors import GROUP, known_connectors, open_both, open_sink, open_source
from monitor.errors import ConfigurationError
from tests.examples import blocks


@pytest.mark.parametrize("scheme", ["jsonl", "kafka", "synthetic"])
def test_every_scheme_has_a_module_with_a_source_or_a_sink(scheme: str) -> None:
    module = known_connectors()[scheme].load()
    assert hasattr(module, "source") or hasattr(module, "sink")


def test_urls_open_connectors(tmp_path: Path) -> None:
    assert isinstance(open_source("jsonl:x", {}, tmp_path), JsonlSource)
    assert isinstance(open_source("jsonl:-", {}, tmp_path), JsonlSource)
    assert isinstance(open_source("synthetic:", {}, tmp_path), SyntheticSource)
    assert isinstance(open_sink("jsonl:x", {}, tmp_path), ResultFiles)
    assert isinstance(open_sink("jsonl:-", {}, tmp_path), StandardOutput)


@pytest.mark.parametrize("url", ["carrier-pigeon:x", "events.jsonl", ""])
def test_an_unknown_scheme_lists_the_known_ones(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"begins with none of .*jsonl:.*synthetic:"):
        open_source(url, {})


def test_a_source_that_is_no_sink_says_so() -> None:
    with pytest.raises(ConfigurationError, match="synthetic: cannot be a sink"):
        open_sink("synthetic:", {})


@pytest.mark.parametrize(
    ("source", "sink", "letters"),
    [("e.jsonl", "e.jsonl", "d"), ("e.jsonl", "r", "./e.jsonl"), (".", "r", "out/d"), ("", "out/r", "d")],
)
def test_what_is_written_is_not_read_as_events(tmp_path: Path, source: str, sink: str, letters: str) -> None:
    with pytest.raises(ConfigurationError, match="would be read as events"):
        open_both((f"jsonl:{source}", {}), (f"jsonl:{sink}", {"dead_letters": letters}), tmp_path)


def test_results_may_stand_beside_the_file_that_is_read_and_below_the_directory(tmp_path: Path) -> None:
    open_both(("jsonl:e.jsonl", {}), ("jsonl:r", {"dead_letters": "d"}), tmp_path)
    open_both(("jsonl:.", {}), ("jsonl:out/r", {"dead_letters": "out/d"}), tmp_path)
    open_both(("jsonl:-", {}), ("jsonl:-", {}), tmp_path)


def test_the_problems_of_both_ends_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_both(("jsonl:e", {"folow": True}), ("jsonl:r", {"dead_leters": "d"}), tmp_path)
    assert [("follow" in one, "dead_letters" in one) for one in caught.value.problems] == [(True, False), (False, True)]


CONFIGURATION = """
[source]
url = "counting:4000"
[sink]
url = "jsonl:results.jsonl"
[pace]
workers = 0
[streams.s]
reference = "s.ref"
window = { count = 1000 }
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that CONTRIBUTING.md's package with a connector in it was installed to."""
    project, folder = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("installed")
    for name, (_, text) in blocks("A connector").items():
        (project / name).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*pip, str(folder), str(project)], check=True)
    return folder


def test_a_connector_that_is_installed_beside_the_monitor_is_found(elsewhere: Path, tmp_path: Path) -> None:
    rows = np.random.default_rng(0)
    labels = rows.random(4_000) < 0.25
    posteriors = np.where(labels, 0.99, 0.01)
    Reference.fit(
        np.column_stack([1 - posteriors, posteriors]),
        labels.astype(int),
        classes=("no", "yes"),
        stream="s",
    ).save(tmp_path / "s.ref")
    (tmp_path / "shiftwatch.toml").write_text(CONFIGURATION, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "monitor", "run", str(tmp_path / "shiftwatch.toml")],
        env={**os.environ, "PYTHONPATH": f"{elsewhere}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        check=True,
        timeout=120,
    )
    windows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [window["events"]["used"] for window in windows] == [1000] * 4


def test_two_connectors_of_one_scheme_are_a_problem_in_words(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other-1.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n", encoding="utf-8")
    (other / "entry_points.txt").write_text(f"[{GROUP}]\ncounting = other\n", encoding="utf-8")
    monkeypatch.syspath_prepend(elsewhere)
    assert open_source("counting:3", {}).partitions() == ["all"]
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match="counting: is claimed by two connectors, other and counting"):
        open_source("counting:3", {})


def test_a_connector_that_cannot_be_imported_is_a_problem_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken-1.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n", encoding="utf-8")
    (broken / "entry_points.txt").write_text(f"[{GROUP}]\nbroken = broken_connector\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match=r"the connector broken: \(broken_connector\) cannot be imported"):
        open_sink("broken:", {})
