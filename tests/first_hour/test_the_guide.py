"""The guide to the first hour runs as it stands, and its outcome is what it says."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.pages import GUIDES, ROOT, followed, page

GUIDE = page(GUIDES / "first-hour.md")


def test_every_block_runs_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    followed(GUIDE, space)
    said = capsys.readouterr().out
    assert "mind this  orders: windows of 40m may hold up to 600 events" in said
    results = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    verdicts = [result["verdict"] for result in results]
    assert verdicts == ["stable"] * 5 + ["prior-shift"] * 3 + ["covariate-shift"] * 3
    shifted = next(result for result in results if result["verdict"] == "prior-shift")
    assert shifted["prevalence"]["fraud"]["lower"] < 0.3 < shifted["prevalence"]["fraud"]["upper"]
    assert shifted["recalibration"]["apply"]
    assert all("amount" in result["reasons"][0] for result in results[-3:])


def test_every_complaint_of_the_table_of_traps_is_one_that_the_product_makes() -> None:
    everything = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "monitor").rglob("*.py"))
    for words in (
        "look exchanged",
        "is `score` the probability of",
        "are negative",
        "since the epoch?",
        "text where the reference has",
        "is taken as a category, as",
        "JSON has no NaN",
        "is missing in all events",
        "goes one way from row to row",
        "every score is 0 or 1",
        "no event has any of the features that the reference knows",
        "the scores do not go with them",
        "left out, as it has",
    ):
        assert words in everything
        assert words.replace("`", "") in GUIDE.replace("`", "")
