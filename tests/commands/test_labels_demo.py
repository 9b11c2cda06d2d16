"""The demo of late labels: a change that only labels show, and scores that they make better."""

import re

import numpy as np
import pytest

from connectors.worlds import Period, Timetable, World
from monitor.commands.cli import main
from monitor.errors import InputError

RENAMED = {"delivery": ("returns", 0.5)}


def test_what_is_called_otherwise_looks_as_it_did_and_scores_as_it_did() -> None:
    calm = Timetable(World(), [Period("calm", 2_000)]).block(1).population
    renamed = Timetable(World(), [Period("calm", 1_000), Period("new", 1_000, relabelled=RENAMED)]).block(1).population
    np.testing.assert_array_equal(calm.posteriors, renamed.posteriors)
    moved = calm.labels != renamed.labels
    assert set(calm.labels[moved]) == {1}
    assert set(renamed.labels[moved]) == {2}
    assert moved.sum() / (calm.labels == 1).sum() == pytest.approx(0.5, abs=0.1)


def test_classes_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="want classes among"):
        Timetable(World(), [Period("odd", 10, relabelled={"parcels": ("returns", 0.5)})])


def test_the_demo_says_how_scores_fared_with_and_without_the_correction(tmp_path, capsys) -> None:
    folder = tmp_path / "demo"
    assert main(["demo", "--labels", "--fast", "--out", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "concept-shift" in said
    before, after = map(float, re.search(r"Brier score is ([\d.]+) as scored, and ([\d.]+) as", said).groups())
    assert after < 0.95 * before
    estimated, known = re.findall(r"calm +stable +([\d.]+) \([\d.-]+\) +([\d.]+)", said)[0]
    assert float(estimated) == pytest.approx(float(known), abs=0.04)
    written = (folder / "results.jsonl").read_bytes()
    assert main(["replay", str(folder / "shiftwatch.toml"), "-o", str(tmp_path / "again.jsonl")]) == 0
    assert (tmp_path / "again.jsonl").read_bytes() == written
