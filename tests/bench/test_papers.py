"""The one page of the papers' claims: it is whole, and the command that makes it works."""

from pathlib import Path

import pytest

from tests.bench.options import REPORTS
from tests.bench.papers import __main__ as papers
from tests.bench.papers.cells import Cells
from tests.bench.papers.claims import Claim, claimed, table
from tests.marks import in_chaos

PAGE = (REPORTS / "papers.md").read_text(encoding="utf-8")


def test_every_paper_has_claims_on_the_page() -> None:
    for name, title in papers.PAPERS.items():
        assert f"## {title}" in PAGE
        assert f"papers {name}" in PAGE or f" {name}`" in PAGE


def test_every_claim_that_fails_has_its_experiment_with_figures() -> None:
    failed = [row for row in claimed(PAGE) if row[3] == "no"]
    assert failed
    assert [row[0] for row in failed if not any(letter.isdigit() for letter in row[4])] == []


def test_every_section_says_by_which_command_and_at_which_commit() -> None:
    assert PAGE.count("Made by `python -m tests.bench.papers") == len(papers.PAPERS)
    assert PAGE.count(" at commit ") == len(papers.PAPERS)


def test_claims_are_read_back_from_their_table() -> None:
    claims = [Claim("a", "1", "2", holds=False, why="3 of 4"), Claim("b", "1", "1", holds=True, why="not said")]
    assert claimed(table(claims)) == [("a", "1", "2", "no", "3 of 4"), ("b", "1", "1", "yes", "")]


def test_a_cell_is_measured_once_and_again_with_other_code(tmp_path: Path) -> None:
    from tests.bench.papers import caelen_print, esuli_print  # noqa: PLC0415 - two modules that differ

    calls: list[int] = []

    def measure() -> list[float]:
        calls.append(1)
        return [float(len(calls))]

    kept = tmp_path / "cells.jsonl"
    assert Cells(kept).get("a", [esuli_print], measure) == [1.0]
    assert Cells(kept).get("a", [esuli_print], measure) == [1.0]
    assert Cells(kept).get("a", [caelen_print], measure) == [2.0]
    assert len(calls) == 2


@pytest.mark.parametrize("name", ["dussap", in_chaos("caelen")])
def test_the_command_writes_a_paper_and_the_page_quickly(name: str, tmp_path: Path) -> None:
    papers.main(["--quick", "--report", str(tmp_path / "papers.md"), name])
    assert claimed((tmp_path / "papers.md").read_text(encoding="utf-8"))


@pytest.mark.chaos
@pytest.mark.parametrize("name", ["esuli", "alotaibi", "bouveyron"])
def test_the_longer_papers_are_written_too(name: str, tmp_path: Path) -> None:
    papers.main(["--quick", "--report", str(tmp_path / "papers.md"), name])
    assert (tmp_path / f"papers_{name}.md").exists()
