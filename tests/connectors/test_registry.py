"""One scheme, one module."""

from importlib import import_module
from pathlib import Path

import pytest

from connectors import CONNECTORS, open_both, open_sink, open_source
from connectors.jsonl import JsonlSource
from connectors.resultfiles import ResultFiles, StandardOutput
from connectors.synthetic import SyntheticSource
from monitor.errors import ConfigurationError


@pytest.mark.parametrize("scheme", CONNECTORS)
def test_every_scheme_has_a_module_with_a_source_or_a_sink(scheme: str) -> None:
    module = import_module(CONNECTORS[scheme])
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
